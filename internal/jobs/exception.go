package jobs

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// logged says that the line before a traceback is a message with a level, as logging.exception writes it: the program caught
// the exception and went on.
func logged(before []byte) bool {
	before = bytes.TrimRight(before, "\n")
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return level.Match(line)
}

var level = regexp.MustCompile(`\b(ERROR|CRITICAL|WARNING|WARN)\b`)

// tailRead is how much of the end of stderr is looked at for a crash, in bytes.
const tailRead = 64 << 10

// ExceptionAtExitZero notices that the stderr of a job which exited with 0 ends with a Python traceback: an error
// (exit_zero_after_exception), or a warning where the program went on writing after it, since it may have handled it.
func ExceptionAtExitZero(folder string) *finding.Finding {
	path := filepath.Join(folder, StderrFile)
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	start := max(0, info.Size()-tailRead)
	tail := make([]byte, info.Size()-start)
	if n, err := file.ReadAt(tail, start); err != nil && n == 0 {
		return nil
	}
	at := bytes.LastIndex(tail, []byte("Traceback (most recent call last):"))
	if at < 0 {
		return nil
	}
	lines := strings.Split(strings.TrimRight(string(tail[at:]), "\n"), "\n")
	f := &finding.Finding{Code: "exit_zero_after_exception", Severity: finding.Error, What: "the job says exit status 0, but its stderr ends with an exception: " + lines[len(lines)-1],
		Where: &finding.Where{Path: path, Byte: start + int64(at)}, Expected: "an exit status other than 0 after an exception", Remedy: "let the exception end the program, or handle it without a traceback; then run it again"}
	if logged(tail[:at]) {
		f.Severity, f.What = finding.Warning, "the job's stderr ends with a traceback that the program logged: "+lines[len(lines)-1]
		return f
	}
	for i := 1; i < len(lines)-1; i++ {
		if lines[i] != "" && !strings.HasPrefix(lines[i], " ") {
			f.Severity, f.What = finding.Warning, "the job's stderr holds a traceback: "+lines[i]
			break
		}
	}
	return f
}
