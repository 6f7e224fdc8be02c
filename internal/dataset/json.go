package dataset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The kinds of file that a table is read from.
const (
	KindJSONL   = "jsonl"   // one object a line (https://jsonlines.org)
	KindJSON    = "json"    // an array of objects
	KindParquet = "parquet" // https://parquet.apache.org/docs/file-format/
)

// The limits of a table of objects.
const (
	maxKeys  = 20_000
	maxDepth = 64
)

// jsonRows reads objects: one a line, or the elements of one array. Keys become columns in the order in which they are met, those of
// inner objects as outer.inner; an array stays as it is written. A line that is no object is passed over and counted.
type jsonRows struct {
	src    *bufio.Reader
	array  bool
	limit  int
	names  []string
	index  map[string]int
	keys   []string // names as the file spells them, in whatever encoding
	expect int      // index of the key that comes next if this object is like the one before
	offset int64
	line   int
	begun  bool
	rec    Record
	raw    []byte
	text   []byte // unescaped strings of this record
	spans  []span
	path   []byte
	broken func(line int, offset int64, why string)
	err    error
}

// span is a value of the record at hand: text[from:to] where copied, else raw[from:to].
type span struct {
	from, to int
	copied   bool
	set      bool
}

func newJSONRows(src io.Reader, array bool, offset int64) *jsonRows {
	return &jsonRows{src: bufio.NewReaderSize(src, 256<<10), array: array, limit: MaxRecord, index: map[string]int{}, line: 1, offset: offset}
}

func (j *jsonRows) Next() (*Record, error) {
	for j.err == nil {
		var err error
		if j.array {
			err = j.element()
		} else {
			err = j.oneLine()
		}
		if err != nil {
			j.err = err
			break
		}
		if len(bytes.TrimSpace(j.raw)) == 0 {
			continue
		}
		if why := j.parse(); why != "" {
			if j.array {
				j.err = &RecordError{Code: "json_damaged", Line: j.rec.Line, Byte: j.rec.Byte, Why: why}
				break
			}
			j.broken(j.rec.Line, j.rec.Byte, why)
			continue
		}
		return &j.rec, nil
	}
	return nil, j.err
}

// oneLine takes the next line into raw.
func (j *jsonRows) oneLine() error {
	j.rec.Line, j.rec.Byte, j.raw = j.line, j.offset, j.raw[:0]
	for {
		piece, err := j.src.ReadSlice('\n')
		j.raw = append(j.raw, piece...)
		j.offset += int64(len(piece))
		switch {
		case len(j.raw) > j.limit+2:
			return &RecordError{Code: "line_too_long", Line: j.rec.Line, Byte: j.rec.Byte, Why: fmt.Sprintf("the record is longer than %d bytes", j.limit)}
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && len(j.raw) > 0:
		case err != nil:
			return err
		}
		j.line++
		end := len(bytes.TrimRight(j.raw, "\r\n"))
		j.rec.Raw, j.rec.End = j.raw[:end], j.raw[end:]
		return nil
	}
}

// element takes the next object of the array into raw.
func (j *jsonRows) element() error {
	c, err := j.token()
	if !j.begun && err == nil {
		if c != '[' {
			return j.damaged("the file does not begin with [")
		}
		j.begun = true
		if c, err = j.token(); err == nil && c == ']' {
			return j.trailing()
		}
	} else if err == nil {
		switch c {
		case ',':
			c, err = j.token()
		case ']':
			return j.trailing()
		default:
			return j.damaged(fmt.Sprintf("%q where a comma or ] was expected", c))
		}
	}
	if err == io.EOF {
		return j.damaged("the array is not closed: the file breaks off")
	}
	if err != nil {
		return err
	}
	if c != '{' {
		return j.damaged(fmt.Sprintf("%q where an object was expected", c))
	}
	j.rec.Line, j.rec.Byte, j.raw = j.line, j.offset-1, append(j.raw[:0], '{')
	for depth, quoted, escaped := 1, false, false; depth > 0; {
		c, err := j.src.ReadByte()
		if err == io.EOF {
			return &RecordError{Code: "json_damaged", Line: j.rec.Line, Byte: j.rec.Byte, Why: "an object is not closed: the file breaks off"}
		}
		if err != nil {
			return err
		}
		j.offset++
		j.raw = append(j.raw, c)
		switch {
		case len(j.raw) > j.limit:
			return &RecordError{Code: "line_too_long", Line: j.rec.Line, Byte: j.rec.Byte, Why: fmt.Sprintf("the record is longer than %d bytes", j.limit)}
		case escaped:
			escaped = false
		case c == '\\':
			escaped = quoted
		case c == '"':
			quoted = !quoted
		case c == '\n':
			j.line++
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
		}
	}
	j.rec.Raw, j.rec.End = j.raw, nil
	return nil
}

// trailing is the end of the array: nothing but white space may follow.
func (j *jsonRows) trailing() error {
	if c, err := j.token(); err == nil {
		return j.damaged(fmt.Sprintf("%q behind the end of the array", c))
	} else if err != io.EOF {
		return err
	}
	return io.EOF
}

// token is the next byte that is no white space.
func (j *jsonRows) token() (byte, error) {
	for {
		c, err := j.src.ReadByte()
		if err != nil {
			return 0, err
		}
		j.offset++
		switch c {
		case '\n':
			j.line++
		case ' ', '\t', '\r':
		default:
			return c, nil
		}
	}
}

func (j *jsonRows) damaged(why string) error {
	return &RecordError{Code: "json_damaged", Line: j.line, Byte: max(j.offset-1, 0), Why: why}
}

// parse reads raw into the record's fields; why says what is wrong with it.
func (j *jsonRows) parse() (why string) {
	j.text, j.path, j.expect = j.text[:0], j.path[:0], 0
	for i := range j.spans {
		j.spans[i] = span{}
	}
	at, why := j.object(skipSpace(j.rec.Raw, 0), 0)
	if why == "" && skipSpace(j.rec.Raw, at) < len(j.rec.Raw) {
		why = "text behind the object"
	}
	if why != "" {
		return why
	}
	for len(j.spans) < len(j.names) {
		j.spans = append(j.spans, span{})
	}
	j.rec.Fields, j.rec.Starts = j.rec.Fields[:0], j.rec.Starts[:0]
	for i := range j.names {
		s := j.spans[i]
		field, start := []byte(nil), 0
		switch {
		case !s.set:
		case s.copied:
			field = j.text[s.from:s.to]
		default:
			field, start = j.rec.Raw[s.from:s.to], s.from
		}
		j.rec.Fields, j.rec.Starts = append(j.rec.Fields, field), append(j.rec.Starts, start)
	}
	return ""
}

func skipSpace(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\t' || b[at] == '\n' || b[at] == '\r') {
		at++
	}
	return at
}

// object reads the object at a place and returns the place behind it.
func (j *jsonRows) object(at, depth int) (int, string) {
	b := j.rec.Raw
	if at >= len(b) || b[at] != '{' {
		return at, "the line is no JSON object"
	}
	if depth > maxDepth {
		return at, fmt.Sprintf("objects within objects, more than %d deep", maxDepth)
	}
	at = skipSpace(b, at+1)
	if at < len(b) && b[at] == '}' {
		return at + 1, ""
	}
	for {
		if at >= len(b) || b[at] != '"' {
			return at, "a key was expected"
		}
		end, plain, why := j.quoted(at)
		if why != "" {
			return at, why
		}
		kept := len(j.path)
		if depth > 0 {
			j.path = append(j.path, '.')
		}
		if plain {
			j.path = append(j.path, b[at+1:end-1]...)
		} else {
			j.path = unescape(j.path, b[at+1:end-1])
		}
		at = skipSpace(b, end)
		if at >= len(b) || b[at] != ':' {
			return at, "a colon was expected behind a key"
		}
		if at, why = j.value(skipSpace(b, at+1), depth); why != "" {
			return at, why
		}
		j.path = j.path[:kept]
		at = skipSpace(b, at)
		switch {
		case at < len(b) && b[at] == ',':
			at = skipSpace(b, at+1)
		case at < len(b) && b[at] == '}':
			return at + 1, ""
		default:
			return at, "the object is not closed"
		}
	}
}

// value reads the value of the key in path.
func (j *jsonRows) value(at, depth int) (int, string) {
	b := j.rec.Raw
	if at >= len(b) {
		return at, "a value was expected"
	}
	var s span
	end := at
	switch c := b[at]; {
	case c == '{':
		return j.object(at, depth+1)
	case c == '[':
		var why string
		if end, why = j.skipArray(at); why != "" {
			return at, why
		}
		s = span{from: at, to: end}
	case c == '"':
		var plain bool
		var why string
		if end, plain, why = j.quoted(at); why != "" {
			return at, why
		}
		if s = (span{from: at + 1, to: end - 1}); !plain {
			from := len(j.text)
			j.text = unescape(j.text, b[at+1:end-1])
			s = span{from: from, to: len(j.text), copied: true}
		}
	default:
		for end < len(b) && b[end] != ',' && b[end] != '}' && b[end] != ']' && b[end] > ' ' {
			end++
		}
		switch word := string(b[at:end]); {
		case word == "null" || word == "true" || word == "false" || word == "NaN" || word == "Infinity" || word == "-Infinity":
		default:
			if _, _, ok := parseNumber(b[at:end]); !ok {
				return at, fmt.Sprintf("%q is no value", shorten(text(b[at:end]), 40))
			}
		}
		s = span{from: at, to: end}
	}
	s.set = true
	return end, j.set(s)
}

func (j *jsonRows) set(s span) string {
	i, known := j.expect, j.expect < len(j.keys) && j.keys[j.expect] == string(j.path)
	if !known {
		i, known = j.index[text(j.path)]
	}
	if !known {
		if len(j.names) == maxKeys {
			return fmt.Sprintf("more than %d different keys", maxKeys)
		}
		i = len(j.names)
		name := text(j.path)
		j.names, j.keys = append(j.names, name), append(j.keys, string(j.path))
		j.index[name] = i
	}
	j.expect = i + 1
	for len(j.spans) <= i {
		j.spans = append(j.spans, span{})
	}
	j.spans[i] = s
	return ""
}

// quoted finds the end of the string at a place, behind its quote; plain strings hold no escape.
func (j *jsonRows) quoted(at int) (end int, plain bool, why string) {
	b := j.rec.Raw
	plain = true
	for i := at + 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			plain = false
			i++
		case '"':
			return i + 1, plain, ""
		}
	}
	return at, false, "a quote is never closed"
}

// skipArray finds the end of the array at a place.
func (j *jsonRows) skipArray(at int) (int, string) {
	b := j.rec.Raw
	for i, depth := at, 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			end, _, why := j.quoted(i)
			if why != "" {
				return at, why
			}
			i = end - 1
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1, ""
			}
		}
	}
	return at, "an array is not closed"
}

// unescape appends a JSON string without its escapes; what is no escape stays as it is.
func unescape(dst, b []byte) []byte {
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			dst = append(dst, b[i])
			continue
		}
		i++
		switch c := b[i]; c {
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'r':
			dst = append(dst, '\r')
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'u':
			r, n := unicodeAt(b[i+1:])
			dst = utf8.AppendRune(dst, r)
			i += n
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// unicodeAt reads the four digits behind \u, and those of a second half.
func unicodeAt(b []byte) (r rune, n int) {
	hex := func(b []byte) (rune, bool) {
		if len(b) < 4 {
			return utf8.RuneError, false
		}
		v, err := strconv.ParseUint(string(b[:4]), 16, 32)
		return rune(v), err == nil
	}
	r, ok := hex(b)
	if !ok {
		return utf8.RuneError, 0
	}
	if utf16.IsSurrogate(r) && len(b) >= 10 && b[4] == '\\' && b[5] == 'u' {
		if low, ok := hex(b[6:]); ok {
			if whole := utf16.DecodeRune(r, low); whole != utf8.RuneError {
				return whole, 10
			}
		}
	}
	return r, 4
}
