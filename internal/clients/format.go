package clients

import (
	"bytes"
	"fmt"
)

// member is one field of an entry; Value is a string, []string, int, bool or members.
type member struct {
	key   string
	value any
}

// members are the fields of an entry in their order.
type members []member

// verbatim is an entry's own text, put back as it was.
type verbatim []byte

// spot is where an entry lies in a configuration: below keys, under its name.
type spot struct {
	keys   []string
	name   string
	schema string // the $schema that a new file begins with
	strict bool   // the client reads JSON without comments and trailing commas
}

// format is a language of configurations.
type format struct {
	parse func(data []byte, at spot) (document, error) // the error is a *fault where the text can't be read
	fresh func(at spot, entry any) []byte              // a whole new configuration with the entry
}

// document is a configuration that was parsed. The methods that edit give the whole new text and leave the document alone.
type document interface {
	// entry is the entry's value, nil where there is none, and its text.
	entry() (value any, text verbatim)
	// put inserts the entry, which is not there; replace puts another in its place.
	put(entry any) ([]byte, error)
	replace(entry any) ([]byte, error)
	// remove gives the text without the entry; first, where the entry is all that a table holds, without that table too.
	remove() ([][]byte, error)
	// others is the value of everything but the entry. Tables on the way to it that hold nothing else are left out.
	others() any
}

// fault is what is wrong with a text, and where.
type fault struct {
	what         string
	line, column int // from 1; 0 where the whole text is meant
}

func (f *fault) Error() string {
	if f.line == 0 {
		return f.what
	}
	return fmt.Sprintf("line %d, column %d: %s", f.line, f.column, f.what)
}

// place counts an offset as line and column, in bytes.
func place(data []byte, offset int) (line, column int) {
	before := data[:min(max(offset, 0), len(data))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// edit replaces the bytes from start to end.
type edit struct {
	start, end int
	text       string
}

// apply makes edits that come in the order of the text and do not overlap.
func apply(data []byte, edits ...edit) []byte {
	var out []byte
	done := 0
	for _, e := range edits {
		out = append(append(out, data[done:e.start]...), e.text...)
		done = e.end
	}
	return append(out, data[done:]...)
}

// lineEnd is how the lines of the text end: as its first one does.
func lineEnd(data []byte) string {
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

const blanks = " \t\r\n"

// lineIndent is the white space that the line of an offset begins with.
func lineIndent(data []byte, offset int) string {
	line := data[bytes.LastIndexByte(data[:offset], '\n')+1 : offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}
