package checkpoint

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// maxJSONDepth bounds nesting, maxJSONToken the bytes of a top-level name or number that are kept.
const (
	maxJSONDepth = 512
	maxJSONToken = 4 << 10
)

func looksLikeJSON(head []byte) bool {
	for _, c := range head {
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '{', '[':
			return true
		}
		return false
	}
	return false
}

// readJSON streams through a JSON checkpoint to its last brace. encoding/json would hold a list of weights in memory and
// stop at the NaN that Python writes; here memory is bounded and a NaN is a finding.
func readJSON(file *os.File, path string, size int64) (contents, error) {
	inside := contents{format: FormatJSON, complete: Complete}
	walk := &jsonWalk{source: bufio.NewReaderSize(io.NewSectionReader(file, 0, size), 64<<10), into: &inside, nonFinite: -1}
	err := walk.document()
	var bad *jsonError
	switch {
	case err == nil:
		inside.why = append(inside.why, "JSON read to its end")
	case errors.Is(err, io.EOF):
		inside.complete = Truncated
		inside.findings = append(inside.findings, truncated(path, size, fmt.Sprintf("the JSON ends at byte %d in the middle of a value", size), "its closing bracket"))
	case errors.As(err, &bad):
		inside.complete = Unknown
		inside.findings = append(inside.findings, corrupt(path, bad.at, fmt.Sprintf("not JSON at byte %d", bad.at), bad.want))
	default:
		return inside, fmt.Errorf("read checkpoint %s: %w", path, err)
	}
	if walk.nonFinite >= 0 {
		inside.findings = append(inside.findings, finding.Finding{
			Code: "checkpoint_nonfinite", Severity: finding.Warning, Where: &finding.Where{Path: path, Byte: walk.nonFinite},
			What: fmt.Sprintf("the checkpoint holds %d values that are NaN or infinite", walk.count), Remedy: "do not resume from it: use one from before training diverged",
		})
	}
	return inside, nil
}

// jsonError says what was expected at which byte.
type jsonError struct {
	at   int64
	want string
}

func (e *jsonError) Error() string { return fmt.Sprintf("byte %d: expected %s", e.at, e.want) }

// jsonWalk reads JSON byte by byte. nonFinite is the offset of the first NaN or infinity, -1 for none.
type jsonWalk struct {
	source    *bufio.Reader
	into      *contents
	at        int64 // of the next byte
	nonFinite int64
	count     int
}

// next reads a byte, io.EOF at the end.
func (w *jsonWalk) next() (byte, error) {
	c, err := w.source.ReadByte()
	if err == nil {
		w.at++
	}
	return c, err
}

func (w *jsonWalk) back() {
	_ = w.source.UnreadByte() // always follows a ReadByte
	w.at--
}

// token skips white space and reads the byte after it.
func (w *jsonWalk) token() (byte, error) {
	for {
		c, err := w.next()
		if err != nil || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, err
		}
	}
}

func (w *jsonWalk) wrong(want string) error { return &jsonError{at: w.at - 1, want: want} }

func (w *jsonWalk) document() error {
	c, err := w.token()
	if err != nil {
		return err
	}
	if c != '{' && c != '[' {
		return w.wrong("an object or a list")
	}
	if _, err := w.value(c, 0); err != nil {
		return err
	}
	if _, err = w.token(); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	return w.wrong("the end of the file after the value")
}

// value reads the value that begins with c; it returns the text of a scalar.
func (w *jsonWalk) value(c byte, depth int) (string, error) {
	if depth > maxJSONDepth {
		return "", w.wrong(fmt.Sprintf("at most %d levels", maxJSONDepth))
	}
	switch c {
	case '{':
		return "", w.object(depth)
	case '[':
		return "", w.list(depth, false)
	case '"':
		return w.str()
	}
	return w.word(c)
}

func (w *jsonWalk) object(depth int) error {
	for first := true; ; first = false {
		c, err := w.token()
		if err != nil {
			return err
		}
		if first && c == '}' {
			return nil
		}
		if c != '"' {
			return w.wrong("a name in double quotes")
		}
		name, err := w.str()
		if err != nil {
			return err
		}
		if c, err = w.token(); err != nil {
			return err
		} else if c != ':' {
			return w.wrong(": after a name")
		}
		if c, err = w.token(); err != nil {
			return err
		}
		if err := w.member(name, c, depth); err != nil {
			return err
		}
		if c, err = w.token(); err != nil {
			return err
		}
		if c == '}' {
			return nil
		}
		if c != ',' {
			return w.wrong(", or }")
		}
	}
}

// member reads a value and, at the top level, takes what it says about the checkpoint.
func (w *jsonWalk) member(name string, c byte, depth int) error {
	if depth > 0 {
		_, err := w.value(c, depth+1)
		return err
	}
	if name == "holds" && c == '[' {
		return w.list(depth, true)
	}
	text, err := w.value(c, depth+1)
	if err != nil {
		return err
	}
	switch partName(name) {
	case "epoch":
		if value, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(value) && !math.IsInf(value, 0) {
			w.into.epoch = &value
		}
	case "step":
		if value, err := strconv.ParseFloat(text, 64); err == nil && value == math.Trunc(value) && math.Abs(value) <= 1<<53 {
			step := int64(value)
			w.into.step = &step
		}
	}
	w.into.holds = addPart(w.into.holds, name)
	return nil
}

// list reads a list; parts says that its strings name what the checkpoint holds.
func (w *jsonWalk) list(depth int, parts bool) error {
	for first := true; ; first = false {
		c, err := w.token()
		if err != nil {
			return err
		}
		if first && c == ']' {
			return nil
		}
		text, err := w.value(c, depth+1)
		if err != nil {
			return err
		}
		if parts && c == '"' {
			w.into.holds = addPart(w.into.holds, text)
		}
		if c, err = w.token(); err != nil {
			return err
		}
		if c == ']' {
			return nil
		}
		if c != ',' {
			return w.wrong(", or ]")
		}
	}
}

// str reads a string after its opening quote and returns its beginning, decoded.
func (w *jsonWalk) str() (string, error) {
	kept, escaped := []byte{'"'}, false
	for {
		c, err := w.next()
		if err != nil {
			return "", err
		}
		if c < 0x20 {
			return "", w.wrong("no control character in a string")
		}
		if c == '"' && !escaped {
			break
		}
		escaped = c == '\\' && !escaped
		if len(kept) < maxJSONToken {
			kept = append(kept, c)
		}
	}
	var text string
	if json.Unmarshal(append(kept, '"'), &text) != nil {
		return "", nil // a broken escape, or one that was cut: no name that matters
	}
	return text, nil
}

// word reads a number, true, false, null, NaN or an infinity.
func (w *jsonWalk) word(first byte) (string, error) {
	start := w.at - 1
	if !strings.ContainsRune("-0123456789tfnNI", rune(first)) {
		return "", &jsonError{at: start, want: "a value"}
	}
	word := []byte{first}
	for {
		c, err := w.next()
		if errors.Is(err, io.EOF) {
			return "", io.EOF
		}
		if err != nil {
			return "", err
		}
		if c == ',' || c == ']' || c == '}' || c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			w.back()
			break
		}
		if word = append(word, c); len(word) > maxJSONToken || c < 0x20 {
			return "", &jsonError{at: start, want: "a number, true, false or null"}
		}
	}
	switch text := string(word); text {
	case "NaN", "Infinity", "-Infinity":
		if w.count++; w.nonFinite < 0 {
			w.nonFinite = start
		}
		return text, nil
	case "true", "false", "null":
		return text, nil
	default:
		if !json.Valid(word) {
			return "", &jsonError{at: start, want: "a number, true, false or null"}
		}
		return text, nil
	}
}
