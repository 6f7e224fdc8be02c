package jobs

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
)

const (
	// errorsWithin is how many bytes at the end of a log are searched for errors.
	errorsWithin = 256 << 10
	// errorsKept is how many of the first and of the last errors are told: the first is often the cause, the last the end.
	errorsKept = 4
	// errorTextMost bounds the bytes that are told of one.
	errorTextMost = 400
)

// errorWords are looked for first, since a search for them costs a hundredth of errorLine.
var errorWords = [][]byte{[]byte("Error"), []byte("error:"), []byte("ERROR"), []byte("Exception"), []byte("FATAL"), []byte("atal:"), []byte("atal error"),
	[]byte("CRITICAL"), []byte("Killed"), []byte("No space left"), []byte("ut of memory"), []byte("annot allocate"), []byte("ermission denied"),
	[]byte("not found"), []byte("egmentation fault"), []byte("core dumped"), []byte("No such file"), []byte("oom-kill"), []byte("oom_kill"), []byte("panic:"), []byte("TIME LIMIT")}

// errorLine tells the line of a failure. Metrics are called errors too: a number behind the word, or no colon, is none.
var errorLine = regexp.MustCompile(`^\W*(\w+\]?:? +)*([a-z_]\w*\.)*[A-Z]\w*(Error|Exception)(:|$)` +
	`|\b(ERROR|FATAL|CRITICAL)\b` +
	`|(^|[\]>:] |^\S+: )(?i:fatal error|error|fatal|panic): *[^\s\d.+-]` +
	`|(?i:no space left on device|out of memory|cannot allocate memory|permission denied|command not found|segmentation fault|core dumped|no such file or directory|oom[-_]kill)` +
	`|DUE TO TIME LIMIT|(^|[\s:])Killed$`)

// errorLines finds the lines near the end of a log that tell of a failure, equal ones once, first and last ones in the order
// of their bytes; budget bounds their size together. Only those lines are redacted, with what stands around them.
func errorLines(log io.ReaderAt, size int64, budget int) ([]LogLine, error) {
	from := max(0, size-errorsWithin)
	raw := make([]byte, size-from)
	n, err := log.ReadAt(raw, from)
	if n < len(raw) && err != nil && err != io.EOF {
		return nil, err
	}
	raw = raw[:n]
	var found []LogLine
	lines := newSource(log, size)
	for _, at := range suspects(raw) {
		line := lineAt(raw, at)
		if !errorLine.MatchString(strings.TrimRight(terminal(line), "\r\n ")) {
			continue
		}
		text, err := lines.text(from+int64(at), from+int64(at+len(line)))
		if err != nil {
			return nil, err
		}
		text = strings.ToValidUTF8(strings.TrimSpace(text)[:min(len(strings.TrimSpace(text)), errorTextMost)], "")
		if i := slices.IndexFunc(found, func(l LogLine) bool { return l.Text == text }); i >= 0 {
			found[i].Times++
			continue
		}
		found = append(found, LogLine{Byte: from + int64(at), Text: text, Times: 1})
		if len(found) > 2*errorsKept {
			found = slices.Delete(found, errorsKept, errorsKept+1)
		}
	}
	for len(found) > 0 && sizeOf(found) > budget {
		found = slices.Delete(found, len(found)/2, len(found)/2+1)
	}
	return found, nil
}

// suspects are the starts of the lines that hold one of errorWords, in order.
func suspects(raw []byte) []int {
	const most = 2000 // a log of nothing but errors need not be judged whole; the last ones are
	var starts []int
	for _, word := range errorWords {
		for at := 0; at < len(raw); {
			hit := bytes.Index(raw[at:], word)
			if hit < 0 {
				break
			}
			start := bytes.LastIndexByte(raw[:at+hit], '\n') + 1
			starts = append(starts, start)
			at = start + len(lineAt(raw, start)) + 1
		}
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	return starts[max(0, len(starts)-most):]
}

// lineAt is the line that begins at the offset, without its newline.
func lineAt(raw []byte, at int) []byte {
	line := raw[at:]
	if newline := bytes.IndexByte(line, '\n'); newline >= 0 {
		line = line[:newline]
	}
	return line
}

// sizeOf is what lines take of a budget.
func sizeOf(lines []LogLine) int {
	const names = 30 // of the fields around the text
	size := 0
	for _, l := range lines {
		size += len(l.Text) + names
	}
	return size
}
