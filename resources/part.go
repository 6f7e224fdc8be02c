package resources

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/trainwright/trainwright/internal/redact"
)

// What a read gives. A client shows its model some ten thousand characters of one answer, and puts more into a file.
const (
	// WholeText is how much of a text comes back where no range is asked for.
	WholeText = 48 << 10
	// TableLines and TableBytes are how much of a CSV or JSONL file does.
	TableLines, TableBytes = 100, 16 << 10
	// WholeBinary is the largest binary file that comes whole: part of a picture is no picture.
	WholeBinary = 1 << 20
	// MaxPart is the longest range.
	MaxPart = 1 << 20
	// around is how many bytes on either side of a range are looked at when secrets are masked, so that one which the range
	// cuts in two is found whole. A PEM private key of 4096 bits takes 3.2 kB.
	around = 8 << 10
)

// stored is a file that is open, or something that is read like one.
type stored struct {
	io.ReaderAt
	name    string
	size    int64
	modTime time.Time
	tail    bool // without a range its end is what matters
}

// read answers an address with a stored file, or the part of it that is asked for.
func (a address) read(f stored) (Content, error) {
	head, err := f.bytes(0, min(f.size, 512))
	if err != nil {
		return Content{}, err
	}
	c := Content{URI: a.uri, MIME: MIMEType(f.name, head), Total: f.size, ModTime: f.modTime}
	text := isText(head) || namedAsText(f.name)
	from, to := a.part.of(f, text)
	raw, err := f.masked(from, to, text)
	if err != nil {
		return Content{}, err
	}
	if text && legible(raw, namedAsText(f.name)) {
		skip, keep := wholeCharacters(raw, from, from+int64(len(raw)) >= f.size)
		raw, from = raw[skip:keep], from+int64(skip)
		if !a.part.given {
			begin, end := wholeLines(raw, from, f)
			raw, from = raw[begin:end], from+int64(begin)
		}
		c.Text = strings.ToValidUTF8(string(bytes.ReplaceAll(raw, []byte{0}, []byte("\uFFFD"))), "\uFFFD")
	} else {
		c.Binary, c.Blob = true, raw
	}
	c.Offset, c.Shown = from, int64(len(raw))
	a.tellCut(&c)
	return c, nil
}

// of is the range of bytes to read of a file.
func (p part) of(f stored, text bool) (from, to int64) {
	size := int64(WholeText)
	switch {
	case p.given:
		from = p.offset
		if from < 0 {
			from = max(0, f.size+from)
		}
		if p.limit > 0 {
			size = min(p.limit, MaxPart)
		}
	case !text && f.size <= WholeBinary:
		size = f.size
	case isTable(f.name):
		size = TableBytes
	case f.tail && text:
		from = max(0, f.size-size)
	}
	from = min(from, f.size)
	return from, min(f.size, from+size)
}

// bytes reads [from, to), less where the file has become shorter.
func (f stored) bytes(from, to int64) ([]byte, error) {
	raw := make([]byte, to-from)
	n, err := f.ReadAt(raw, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return raw[:n], nil
}

// masked is bytes with the secrets of a text masked; masking keeps the length.
func (f stored) masked(from, to int64, text bool) ([]byte, error) {
	if !text {
		return f.bytes(from, to)
	}
	low, high := max(0, from-around), min(f.size, to+around)
	raw, err := f.bytes(low, high)
	if err != nil {
		return nil, err
	}
	n := int64(len(raw))
	return redact.Bytes(raw)[min(from-low, n):min(to-low, n)], nil
}

// legible says whether bytes, whose first and last character may be cut, can be shown as text. Of a file that is named as
// text a few bytes may be none: a log with a stray byte is still read as a log.
func legible(raw []byte, named bool) bool {
	skip, keep := wholeCharacters(raw, 1, false)
	if isText(raw[skip:keep]) {
		return true
	}
	bad := 0
	for rest := raw; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == 0 || r == utf8.RuneError && n == 1 {
			bad++
		}
		rest = rest[n:]
	}
	return named && bad*10 <= len(raw)
}

// wholeCharacters leaves a character out that the range cuts: at its start, where the range before has given it, and at its
// end. A range that holds nothing else keeps it.
func wholeCharacters(raw []byte, from int64, toEnd bool) (skip, keep int) {
	keep = len(raw)
	for from > 0 && skip < min(utf8.UTFMax-1, len(raw)) && !utf8.RuneStart(raw[skip]) {
		skip++
	}
	if !toEnd {
		for back := 1; back < utf8.UTFMax && back <= len(raw)-skip; back++ {
			if last := raw[len(raw)-back:]; utf8.RuneStart(last[0]) {
				if !utf8.FullRune(last) {
					keep = len(raw) - back
				}
				break
			}
		}
	}
	if skip >= keep {
		return 0, len(raw)
	}
	return skip, keep
}

// wholeLines ends a text that is cut at the end of a line, so that the rest begins with one, and begins the end of a log so.
// A table ends after TableLines.
func wholeLines(raw []byte, from int64, f stored) (begin, end int) {
	end = len(raw)
	if from > 0 {
		if first := bytes.IndexByte(raw, '\n') + 1; first < end {
			begin = first
		}
		return begin, end
	}
	if isTable(f.name) {
		at := 0
		for range TableLines {
			next := bytes.IndexByte(raw[at:], '\n')
			if next < 0 {
				at = end
				break
			}
			at += next + 1
		}
		end = at
	}
	if int64(end) < f.size {
		if last := bytes.LastIndexByte(raw[:end], '\n') + 1; last > end/2 || isTable(f.name) && last > 0 {
			end = last
		}
	}
	return begin, end
}

// isTable says whether a file is rows, of which the first ones show what the others are like.
func isTable(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".csv", ".tsv", ".jsonl", ".ndjson":
		return true
	}
	return false
}

// tellCut says what is missing of a content that is not the whole, and how to get it.
func (a address) tellCut(c *Content) {
	end := c.Offset + c.Shown
	if c.Cut = c.Offset > 0 || end < c.Total; !c.Cut {
		return
	}
	if end < c.Total {
		c.Rest = fmt.Sprintf("%s?offset=%d", a.base, end)
	}
	switch {
	case c.Shown == 0:
		c.Note = fmt.Sprintf("[nothing from byte %d on: there are %d bytes]", c.Offset, c.Total)
	case c.Offset == 0:
		c.Note = fmt.Sprintf("[cut: the first %d of %d bytes are shown%s; go on with %s]", c.Shown, c.Total, a.rows(c), c.Rest)
	case c.Rest != "":
		c.Note = fmt.Sprintf("[bytes %d to %d of %d are shown; go on with %s]", c.Offset, end, c.Total, c.Rest)
	case a.part.given:
		c.Note = fmt.Sprintf("[bytes %d to %d of %d are shown, up to the end]", c.Offset, end, c.Total)
	default:
		c.Note = fmt.Sprintf("[cut: the last %d of %d bytes are shown; from the start with %s?offset=0]", c.Shown, c.Total, a.base)
	}
}

func (a address) rows(c *Content) string {
	if a.part.given || !isTable(a.path) || c.Binary {
		return ""
	}
	return fmt.Sprintf(", %d lines", strings.Count(c.Text, "\n"))
}
