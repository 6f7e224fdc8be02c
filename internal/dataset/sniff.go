package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Dialect says how a file is written where the caller knows; what is left open is found by looking.
type Dialect struct {
	Delimiter string `json:"delimiter,omitempty"` // one character, or "tab"
	Header    *bool  `json:"header,omitempty"`    // whether the first record names the columns
}

// Format is how a file turned out to be written.
type Format struct {
	Kind      string `json:"kind,omitempty"`   // "jsonl", "json" or "parquet"; empty for delimited text
	Packed    string `json:"packed,omitempty"` // "gzip"
	Delimiter string `json:"delimiter"`
	Encoding  string `json:"encoding"` // "utf-8", or "latin-1" where the bytes are not UTF-8
	Header    bool   `json:"header"`
	Newline   string `json:"newline"` // "lf", "crlf", "cr", "mixed", or "none" for a single line
	BOM       bool   `json:"bom"`
}

// sampleSize is how much of a file is looked at to find its delimiter and header.
const sampleSize = 256 << 10

var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}

// sample is the beginning of a file, looked at before it is read.
type sample struct {
	kind   string
	packed bool
	data   []byte // without the byte order mark
	whole  bool   // whether data is the whole file
	bom    bool
	delim  byte
	eol    byte
}

// formatsByMagic are the file formats that people pass where a text table is meant, by their first bytes.
var formatsByMagic = []struct{ magic, name, remedy string }{
	{"PK\x03\x04", "a zip archive or spreadsheet", "unpack it, or export the sheet as CSV"},
	{"\x89HDF", "an HDF5 file", "export the table as CSV"},
	{"\x93NUMPY", "a NumPy array", "export it as CSV (numpy.savetxt)"},
	{"BZh", "bzip2 data", "unpack it first (bunzip2 -k)"},
	{"\xfd7zXZ", "xz data", "unpack it first (xz -dk)"},
	{"\x28\xb5\x2f\xfd", "zstd data", "unpack it first (unzstd)"},
	{"SQLite format 3", "an SQLite database", "export the table as CSV"},
	{"%PDF", "a PDF", "export the table as CSV"},
	{"\xff\xfe", "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8"},
	{"\xfe\xff", "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8"},
}

// notText returns a finding where the bytes are no text table, else nil. A few NUL bytes in otherwise plain text are
// damage, told of elsewhere; more than one in a hundred bytes are a binary format.
func notText(path string, data []byte) *finding.Finding {
	what, remedy := "", "give a table: CSV, TSV, JSON Lines, a JSON array of objects, or Parquet"
	for _, format := range formatsByMagic {
		if bytes.HasPrefix(data, []byte(format.magic)) {
			what, remedy = "the file is "+format.name, format.remedy
			break
		}
	}
	if head := bytes.ToLower(bytes.TrimLeft(data[:min(len(data), 256)], "\xef\xbb\xbf \t\r\n")); bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html")) {
		what, remedy = "the file is an HTML page", "fetch the table itself: often it is the page of a login or of an error"
	}
	nul := bytes.IndexByte(data, 0)
	if order := wideOrder(data); what == "" && order != "" {
		what, remedy = "the file is UTF-16 text without a byte order mark", "convert it: iconv -f UTF-16"+order+" -t UTF-8"
	}
	if what == "" && nul >= 0 && bytes.Count(data, []byte{0})*100 > len(data) {
		what = "the file is binary"
	}
	if what == "" {
		return nil
	}
	return &finding.Finding{Code: "not_text", Severity: finding.Error, What: what + ", not a text table",
		Where: &finding.Where{Path: path, Byte: int64(max(nul, 0))}, Expected: "comma, tab, semicolon or pipe separated text, JSON Lines, or Parquet", Remedy: remedy}
}

// wideOrder is the byte order ("LE", "BE") of UTF-16 text of mostly Western letters, whose every second byte is NUL; "" for anything
// else.
func wideOrder(data []byte) string {
	var nul [2]int
	for i, c := range data {
		if c == 0 {
			nul[i&1]++
		}
	}
	half := len(data) / 2
	switch {
	case half < 8:
	case 10*nul[1] >= 8*half && 10*nul[0] <= half:
		return "LE"
	case 10*nul[0] >= 8*half && 10*nul[1] <= half:
		return "BE"
	}
	return ""
}

// lookAt reads the beginning of src and decides how it is written.
func lookAt(ctx context.Context, path string, src *os.File, dialect Dialect) (*sample, error) {
	data := make([]byte, sampleSize)
	n, packed, err := beginning(ctx, src, data)
	whole := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if err != nil && !whole {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	s := &sample{data: data[:n], whole: whole, eol: '\n', packed: packed}
	if s.kind = kindOf(s.data, packed); s.kind == KindParquet {
		return s, nil
	}
	if f := notText(path, s.data); f != nil {
		return nil, finding.Refuse(*f)
	}
	if s.bom = bytes.HasPrefix(s.data, byteOrderMark); s.bom {
		s.data = s.data[len(byteOrderMark):]
	}
	if s.kind != "" {
		return s, nil
	}
	if bytes.IndexByte(s.data, '\n') < 0 && bytes.IndexByte(s.data, '\r') >= 0 {
		s.eol = '\r'
	}
	s.delim, err = dialect.delimiter(path)
	if err == nil && s.delim == 0 {
		s.sniffDelimiter()
	}
	return s, err
}

// kindOf recognises what is no delimited text by its first bytes: a JSON object, or a bracket before one.
func kindOf(data []byte, packed bool) string {
	if !packed && bytes.HasPrefix(data, []byte(parquetMagic)) {
		return KindParquet
	}
	head := bytes.TrimLeft(bytes.TrimPrefix(data, byteOrderMark), " \t\r\n")
	switch {
	case len(head) > 1 && head[0] == '{' && (head[1] == '"' || head[1] == '}' || head[1] == ' ' || head[1] == '\n' || head[1] == '\r'):
		return KindJSONL
	case len(head) > 1 && head[0] == '[' && bytes.HasPrefix(bytes.TrimLeft(head[1:], " \t\r\n"), []byte("{")):
		return KindJSON
	}
	return ""
}

// delimiter is the one the caller asked for, 0 where it left that open.
func (d Dialect) delimiter(path string) (byte, error) {
	switch {
	case d.Delimiter == "":
		return 0, nil
	case strings.EqualFold(d.Delimiter, "tab") || d.Delimiter == `\t`:
		return '\t', nil
	case len(d.Delimiter) == 1 && !strings.ContainsAny(d.Delimiter, "\"\r\n\x00"):
		return d.Delimiter[0], nil
	}
	return 0, finding.Refuse(finding.Finding{Code: "delimiter_invalid", Severity: finding.Error,
		What: fmt.Sprintf("the delimiter %q can't be used", d.Delimiter), Where: &finding.Where{Path: path, Field: "delimiter"},
		Expected: `one ASCII character or "tab"`, Remedy: "leave it out to have it found"})
}

// sniffDelimiter takes the candidate that cuts the most records into as many fields as the first. On a tie the comma
// comes last: a file that a tab, semicolon or pipe cuts evenly has its commas inside values (decimal commas, mostly).
func (s *sample) sniffDelimiter() {
	best, share := byte(','), 0.0
	for _, candidate := range []byte{'\t', ';', '|', ','} {
		records := s.records(candidate, 200)
		if len(records) == 0 || len(records[0]) < 2 {
			continue
		}
		alike := 0
		for _, fields := range records {
			if len(fields) == len(records[0]) {
				alike++
			}
		}
		if now := float64(alike) / float64(len(records)); now > share {
			best, share = candidate, now
		}
	}
	s.delim = best
}

// records returns up to limit records of the sample, copied. The last one is left out where the sample may have cut it.
func (s *sample) records(delim byte, limit int) [][]string {
	reader := NewReader(bytes.NewReader(s.data), ReaderOptions{Delimiter: delim, LineEnd: s.eol})
	var records [][]string
	for len(records) <= limit {
		record, err := reader.Next()
		if err != nil || len(record.End) == 0 && !s.whole && len(records) > 0 {
			break
		}
		if blankRecord(record) {
			continue
		}
		fields := make([]string, len(record.Fields))
		for i, field := range record.Fields {
			fields[i] = text(field)
		}
		records = append(records, fields)
	}
	return records
}

// blankRecord is a line of white space only, which pandas skips as well.
func blankRecord(r *Record) bool {
	return len(r.Fields) == 1 && !r.Quoted && len(trim(r.Raw)) == 0
}

// looksHeaderless says whether the first record is data rather than names: all its values are numbers, or at least
// half of them are, each above a column of numbers. Years do not count in the second case, as wide tables are headed by
// them.
func (s *sample) looksHeaderless() bool {
	records := s.records(s.delim, 20)
	if len(records) == 0 {
		return false
	}
	var numeric []int
	filled, years := 0, 0
	for i, name := range records[0] {
		b := trim([]byte(name))
		if len(b) == 0 {
			continue
		}
		filled++
		value, integer, ok := parseNumber(b)
		if !ok {
			continue
		}
		numeric = append(numeric, i)
		if integer && value >= 1500 && value <= 2500 {
			years++
		}
	}
	if filled == 0 || len(numeric) == filled {
		return filled > 0
	}
	below := records[1:]
	if 2*len(numeric) < filled || years > 0 || len(below) == 0 {
		return false
	}
	return !slices.ContainsFunc(below, func(fields []string) bool {
		return slices.ContainsFunc(numeric, func(i int) bool { return i < len(fields) && !numberOrMissing(fields[i]) })
	})
}

func numberOrMissing(value string) bool {
	b := trim([]byte(value))
	_, _, ok := parseNumber(b)
	return ok || isMissing(b)
}
