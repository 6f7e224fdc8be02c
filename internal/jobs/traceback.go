package jobs

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/redact"
)

// logLine is one physical line of a log, as a terminal shows it and with its secrets masked.
type logLine struct {
	path string
	// number counts from 1; 0 where the log is too long to count. offset is the line's first byte in the file.
	number int
	offset int64
	text   string
}

// logEnd is the last part of a log.
type logEnd []logLine

const (
	endRead    = 256 << 10 // a traceback through a deep framework is some 20 kB
	linesCount = 8 << 20   // up to this size the lines before the end are counted
)

// readEnd reads the last part of a log; a log that can't be read has no lines.
func readEnd(path string) logEnd {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	start := max(0, info.Size()-endRead)
	raw, err := readRange(file, info.Size(), start, info.Size())
	if err != nil {
		return nil
	}
	if start > 0 {
		if next := bytes.IndexByte(raw, '\n'); next >= 0 {
			raw, start = raw[next+1:], start+int64(next)+1
		}
	}
	number := linesBefore(file, start)
	var out logEnd
	for line := range bytes.Lines(raw) {
		text := strings.TrimRight(redact.Text(terminal(line)), "\n")
		out = append(out, logLine{path: path, number: number, offset: start, text: text})
		start += int64(len(line))
		if number > 0 {
			number++
		}
	}
	return out
}

// linesBefore is the physical line that begins at offset, 0 where counting would read too much.
func linesBefore(file io.ReaderAt, offset int64) int {
	if offset > linesCount {
		return 0
	}
	head := make([]byte, offset)
	if _, err := file.ReadAt(head, 0); err != nil && err != io.EOF {
		return 0
	}
	return bytes.Count(head, []byte("\n")) + 1
}

// lastLine is the last line that says something.
func (e logEnd) lastLine() (logLine, bool) {
	for _, line := range slices.Backward(e) {
		if strings.TrimSpace(line.text) != "" {
			return line, true
		}
	}
	return logLine{}, false
}

var (
	// rankPrefix is what torchrun and srun --label put before each line.
	rankPrefix = regexp.MustCompile(`^(\[(rank|default)?\d+\]:|\d+:)\s?`)
	frameLine  = regexp.MustCompile(`^\s+File "([^"]+)", line (\d+)`)
	// exceptionLine is a dotted class name, with or without a message.
	exceptionLine = regexp.MustCompile(`^([A-Za-z_][\w.]*)(?:: (.*))?$`)
	missingModule = regexp.MustCompile(`No module named '([^']+)'`)
)

type frame struct {
	path string
	line int
}

// traceback finds the last Python traceback: its exception and the innermost frame in the user's own code. A SyntaxError of
// the main script has frames and no header.
func (e logEnd) traceback() *Cause {
	var frames []frame
	var found *Cause
	for _, line := range e {
		text := rankPrefix.ReplaceAllString(line.text, "")
		if strings.HasPrefix(text, "Traceback (most recent call last):") {
			frames = nil
			continue
		}
		if match := frameLine.FindStringSubmatch(text); match != nil {
			number, _ := strconv.Atoi(match[2]) // digits by the expression
			frames = append(frames, frame{match[1], number})
			continue
		}
		if len(frames) == 0 || strings.HasPrefix(text, " ") || text == "" {
			continue
		}
		if match := exceptionLine.FindStringSubmatch(text); match != nil {
			found = exceptionCause(match[1], match[2], frames, line)
		}
		frames = nil
	}
	return found
}

// exceptionCause names the exception and points to the user's own line, else to the line of the log.
func exceptionCause(class, message string, frames []frame, line logLine) *Cause {
	name := class[strings.LastIndexByte(class, '.')+1:]
	what := class
	if message != "" {
		what += ": " + clip(message)
	}
	where := &finding.Where{Path: line.path, Line: line.number, Byte: line.offset}
	at := ""
	if own, ok := ownFrame(frames); ok {
		where = &finding.Where{Path: own.path, Line: own.line}
		at = fmt.Sprintf(" (%s:%d; the traceback ends at %s)", own.path, own.line, finding.Where{Path: line.path, Line: line.number, Byte: line.offset})
	}
	code, category, remedy := exceptionMeaning(name, message)
	if code == "python_exception" && at == "" {
		remedy = "read the traceback in the log; no frame of it is in the user's own code"
	}
	return cause(code, category, what+at, where, "a run without an unhandled exception", remedy)
}

// exceptionMeaning maps an exception to a code, a category and what to do.
func exceptionMeaning(name, message string) (code, category, remedy string) {
	switch {
	case name == "ModuleNotFoundError" || name == "ImportError":
		remedy = "install it for the interpreter that runs, or use one that has it"
		if match := missingModule.FindStringSubmatch(message); match != nil {
			remedy = "install " + match[1] + " for the interpreter that runs, or use one that has it"
		}
		return "import_missing", CategoryDependency, remedy
	case name == "FileNotFoundError":
		return "input_missing", CategoryData, "check the path; relative ones start at the job's working directory"
	case name == "PermissionError":
		return "permission_denied", CategoryEnvironment, "check the owner and the permissions of that path"
	case name == "MemoryError" || name == "OutOfMemoryError" || strings.Contains(message, "out of memory"):
		return "out_of_memory", CategoryEnvironment, "lower the batch size or ask for more memory"
	case name == "OSError" && strings.Contains(message, "No space left on device"):
		return "disk_full", CategoryEnvironment, "free space where the job writes, or keep fewer checkpoints"
	case name == "KeyboardInterrupt":
		return "interrupted", CategoryTransient, "run again"
	}
	return "python_exception", CategoryCode, "read the code at this line"
}

// ownFrame is the innermost frame outside installed packages, the standard library and code given on the command line.
func ownFrame(frames []frame) (frame, bool) {
	for _, f := range slices.Backward(frames) {
		installed := strings.Contains(f.path, "/site-packages/") || strings.Contains(f.path, "/dist-packages/") ||
			libraryPath.MatchString(f.path) || strings.HasPrefix(f.path, "<")
		if !installed {
			return f, true
		}
	}
	return frame{}, false
}

// libraryPath is where CPython keeps its standard library.
var libraryPath = regexp.MustCompile(`/lib(64)?/python\d+(\.\d+)?/`)
