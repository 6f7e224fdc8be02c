package dataset

import (
	"bytes"
	"fmt"
	"io"
)

// MaxRecord is the longest record, in bytes, that a Reader takes unless told otherwise. A longer one is nearly always
// a quote that was never closed or a file that is not a table.
const MaxRecord = 16 << 20

const quote = '"'

// Record is one record of a delimited file. Its slices point into the reader's buffer: they hold until the next call
// of Next and must not be changed.
type Record struct {
	Line   int      // physical line of the first byte, from 1
	Byte   int64    // offset of the first byte in the file
	Raw    []byte   // the record's bytes without its line end
	End    []byte   // its line end: "\n", "\r\n", "\r", or empty at the end of the file
	Fields [][]byte // unquoted values
	Starts []int    // offset of each field in Raw, at its opening quote where it has one
	Quoted bool     // whether Raw holds any quote
}

// place is where field i begins.
func (r *Record) place(i int) (line int, offset int64) {
	line, offset = r.Line, r.Byte
	if i < len(r.Starts) {
		offset += int64(r.Starts[i])
		if r.Quoted {
			line += bytes.Count(r.Raw[:r.Starts[i]], []byte{'\n'})
		}
	}
	return line, offset
}

// RecordError says that the text can't be cut into records any further. Code is "line_too_long" or
// "quote_unterminated"; Line and Byte are where the record begins, or where the open quote stands.
type RecordError struct {
	Code string
	Line int
	Byte int64
	Why  string
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("%s at line %d, byte %d: %s", e.Code, e.Line, e.Byte, e.Why)
}

// ReaderOptions tell a Reader how the file is written. The zero value is a comma file with LF or CRLF line ends.
type ReaderOptions struct {
	Delimiter byte  // ',' when 0
	LineEnd   byte  // '\n' (which takes CRLF too) when 0; '\r' for files of the old Macintosh
	Offset    int64 // bytes of the file before the reader's first byte, such as a byte order mark
	MaxRecord int   // MaxRecord when 0
}

// Reader cuts delimited text into records as RFC 4180 describes, forgiving as pandas is: a quote inside an unquoted
// field is text, and text after a closing quote belongs to the field. Empty lines are skipped and counted. It holds
// one record and a read-ahead in memory, never more than twice the record limit.
type Reader struct {
	src        io.Reader
	delim, eol byte
	limit      int

	buf      []byte
	pos, end int   // buf[pos:end] is not yet consumed
	base     int64 // offset of buf[0] in the file
	line     int   // physical line of buf[pos]
	eof      bool
	err      error

	rec     Record
	scratch []byte // unescaped text of this record's quoted fields

	blank    int64 // empty lines skipped
	lf, crlf int64 // line ends by kind
	stray    int64 // fields with a quote where none belongs
	strayAt  [2]int64
}

// NewReader returns a Reader of src.
func NewReader(src io.Reader, opts ReaderOptions) *Reader {
	r := &Reader{src: src, delim: opts.Delimiter, eol: opts.LineEnd, limit: opts.MaxRecord, base: opts.Offset, line: 1}
	if r.delim == 0 {
		r.delim = ','
	}
	if r.eol == 0 {
		r.eol = '\n'
	}
	if r.limit <= 0 {
		r.limit = MaxRecord
	}
	r.buf = make([]byte, 256<<10)
	return r
}

// Next returns the next record, io.EOF after the last one, a *RecordError where the text can't be cut, or what reading
// failed with. After an error it keeps answering that error.
func (r *Reader) Next() (*Record, error) {
	for r.err == nil {
		n, quoted, err := r.span()
		if err != nil {
			r.err = err
			break
		}
		raw := r.buf[r.pos : r.pos+n]
		r.rec.Line, r.rec.Byte, r.rec.Quoted = r.line, r.base+int64(r.pos), quoted
		r.rec.Raw, r.rec.End = r.cutEnd(raw)
		r.pos += n
		if quoted {
			r.line += bytes.Count(raw, []byte{r.eol})
		} else {
			r.line++
		}
		if len(r.rec.Raw) == 0 {
			r.blank++
			continue
		}
		r.rec.Fields, r.rec.Starts = r.rec.Fields[:0], r.rec.Starts[:0]
		if quoted {
			r.splitQuoted(r.rec.Raw)
		} else {
			r.splitPlain(r.rec.Raw)
		}
		return &r.rec, nil
	}
	return nil, r.err
}

// span finds the length of the next record, its line end included, and whether it holds a quote. Most records hold
// none, and then a line is a record: two vectorised searches find that out.
func (r *Reader) span() (n int, quoted bool, err error) {
	from := 0
	for {
		if i := bytes.IndexByte(r.buf[r.pos+from:r.end], r.eol); i >= 0 {
			n = from + i + 1
			break
		}
		from = r.end - r.pos
		if from > r.limit+2 || !r.more() {
			n = from
			break
		}
	}
	switch {
	case r.err != nil:
		return 0, false, r.err
	case n == 0:
		return 0, false, io.EOF
	case bytes.IndexByte(r.buf[r.pos:r.pos+n], quote) >= 0:
		n, err = r.spanQuoted()
		return n, true, err
	case n > r.limit+2:
		return 0, false, r.tooLong()
	}
	return n, false, nil
}

func (r *Reader) tooLong() error {
	return &RecordError{Code: "line_too_long", Line: r.line, Byte: r.base + int64(r.pos),
		Why: fmt.Sprintf("the record is longer than %d bytes", r.limit)}
}

// more reads ahead, moving the unread bytes to the front and growing the buffer when they fill it. It returns false at
// the end of the input, and on an error, which it keeps.
func (r *Reader) more() bool {
	if r.eof {
		return false
	}
	if r.pos > 0 {
		copy(r.buf, r.buf[r.pos:r.end])
		r.base += int64(r.pos)
		r.end -= r.pos
		r.pos = 0
	}
	if r.end == len(r.buf) {
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		if err != nil {
			r.eof = true
			if err != io.EOF {
				r.err = err
				return false
			}
		}
		if n > 0 || r.eof {
			return n > 0
		}
	}
	r.eof, r.err = true, io.ErrNoProgress
	return false
}

// The states of the quote scanner: at the start of a field, in an unquoted field, inside quotes, and behind a quote that
// either closed them or is the first of a doubled one.
const (
	fieldStart = iota
	inField
	inQuotes
	afterQuote
)

// spanQuoted is span for a record with quotes, where a line end may stand inside a field.
func (r *Reader) spanQuoted() (int, error) {
	state, opened := fieldStart, 0
	for i := 0; ; i++ {
		for r.pos+i >= r.end {
			if i > r.limit+2 || !r.more() {
				return r.spanEnd(i, state == inQuotes, opened)
			}
		}
		c := r.buf[r.pos+i]
		switch {
		case state == inQuotes:
			j := bytes.IndexByte(r.buf[r.pos+i:r.end], quote)
			if j < 0 {
				i = r.end - r.pos - 1
				continue
			}
			i += j
			state = afterQuote
		case c == r.delim:
			state = fieldStart
		case c == r.eol:
			if i > r.limit+2 {
				return 0, r.tooLong()
			}
			return i + 1, nil
		case c == quote && state == fieldStart:
			state, opened = inQuotes, i
		case c == quote && state == afterQuote:
			state = inQuotes
		default:
			state = inField
		}
	}
}

// spanEnd decides what it means that input or patience ran out n bytes into a record.
func (r *Reader) spanEnd(n int, open bool, opened int) (int, error) {
	switch {
	case r.err != nil:
		return 0, r.err
	case open:
		why := "a quote opened here is never closed"
		if !r.eof {
			why = fmt.Sprintf("a quote opened here is still open after %d bytes", r.limit)
		}
		before := r.buf[r.pos : r.pos+opened]
		return 0, &RecordError{Code: "quote_unterminated", Line: r.line + bytes.Count(before, []byte{r.eol}),
			Byte: r.base + int64(r.pos+opened), Why: why}
	case n > r.limit+2:
		return 0, r.tooLong()
	}
	return n, nil
}

// cutEnd parts a record from its line end and counts the kind of it.
func (r *Reader) cutEnd(raw []byte) (body, end []byte) {
	n := len(raw)
	if n > 0 && raw[n-1] == r.eol {
		n--
		r.lf++
	}
	if r.eol == '\n' && n > 0 && raw[n-1] == '\r' {
		n--
		if len(raw)-n == 2 {
			r.lf--
			r.crlf++
		}
	}
	return raw[:n], raw[n:]
}

func (r *Reader) splitPlain(body []byte) {
	start := 0
	for {
		i := bytes.IndexByte(body[start:], r.delim)
		if i < 0 {
			break
		}
		r.field(body[start:start+i], start)
		start += i + 1
	}
	r.field(body[start:], start)
}

func (r *Reader) field(value []byte, start int) {
	r.rec.Fields = append(r.rec.Fields, value)
	r.rec.Starts = append(r.rec.Starts, start)
}

func (r *Reader) splitQuoted(body []byte) {
	r.scratch = r.scratch[:0]
	for start := 0; ; {
		var value []byte
		var next int
		if start < len(body) && body[start] == quote {
			value, next = r.unquote(body, start)
		} else {
			next = start + fieldLength(body[start:], r.delim)
			value = body[start:next]
			if bytes.IndexByte(value, quote) >= 0 {
				r.noteStray(start)
			}
		}
		r.field(value, start)
		if next >= len(body) {
			return
		}
		start = next + 1
	}
}

func fieldLength(b []byte, delim byte) int {
	if i := bytes.IndexByte(b, delim); i >= 0 {
		return i
	}
	return len(b)
}

// unquote reads the quoted field at start and returns its text and where it ends. The text is a piece of body unless
// doubled quotes or stray text force a copy.
func (r *Reader) unquote(body []byte, start int) (value []byte, next int) {
	from, kept := start+1, len(r.scratch)
	for {
		i := bytes.IndexByte(body[from:], quote)
		if i < 0 { // span has seen the closing quote, so this is only reached on bytes cut off by hand
			return append(r.scratch, body[from:]...)[kept:], len(body)
		}
		closing := from + i
		if closing+1 < len(body) && body[closing+1] == quote {
			r.scratch = append(r.scratch, body[from:closing+1]...)
			from = closing + 2
			continue
		}
		next = closing + 1 + fieldLength(body[closing+1:], r.delim)
		stray := next > closing+1
		if !stray && len(r.scratch) == kept {
			return body[from:closing], next
		}
		if stray {
			r.noteStray(start)
		}
		r.scratch = append(append(r.scratch, body[from:closing]...), body[closing+1:next]...)
		return r.scratch[kept:], next
	}
}

// noteStray counts a quote where none belongs, and keeps the place of the first.
func (r *Reader) noteStray(start int) {
	if r.stray++; r.stray == 1 {
		line, offset := r.rec.Line, r.rec.Byte+int64(start)
		line += bytes.Count(r.rec.Raw[:start], []byte{r.eol})
		r.strayAt = [2]int64{int64(line), offset}
	}
}
