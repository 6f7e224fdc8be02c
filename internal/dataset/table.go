package dataset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/trainwright/trainwright/internal/finding"
)

// FileInfo is a file that was read. SHA256 ("sha256:<hex>") is of the very bytes that were read, and empty where the
// file was not read whole.
type FileInfo struct {
	Path   string `json:"path"`
	Part   string `json:"part,omitempty"` // which part of a predefined split it is
	SHA256 string `json:"sha256,omitempty"`
	Bytes  int64  `json:"bytes"`
}

// BadRow is a record with another number of fields than the header, or a line that is no object.
type BadRow struct {
	Line   int    `json:"line"`
	Byte   int64  `json:"byte"`
	Fields int    `json:"fields"`
	Want   int    `json:"want"`
	Why    string `json:"why,omitempty"` // of a line that is no JSON object
}

// keptExamples is how many examples of anything are kept beside its count.
const keptExamples = 10

// table is an open file with its columns known. next yields the data records; what is odd about the text gathers on the way.
type table struct {
	ctx      context.Context // of the call that opened it: reading happens inside that call
	maxBytes int64
	path     string
	file     *os.File
	size     int64
	sum      hash.Hash
	reader   *Reader   // of delimited text; nil for other kinds
	source   records   // what yields the records: reader, or that of another kind
	text     *unpacked // nil for Parquet
	ended    bool
	format   Format
	names    []string
	index    map[string]int
	header   []byte // the header record with its line end, nil without one

	commas   []bool  // columns that write a decimal comma; nil for none
	points   []int64 // how many of their values hold a point and no comma
	scratch  []byte
	number   int64 // 0-based number of the current data record
	rows     int64 // data records so far
	bad      []BadRow
	badTotal int64
	blank    int64 // lines of white space only
	early    []finding.Finding
	odd      oddities
}

// records yields the records of a file one by one, io.EOF behind the last.
type records interface{ Next() (*Record, error) }

// oddities are the first places of things that readers disagree about.
type oddities struct {
	notUTF8, nul, bareCR       int64 // records with it
	notUTF8At, nulAt, bareCRAt finding.Where
}

// openTable opens a text table and reads its header. A file that is none is refused.
func openTable(ctx context.Context, path string, dialect Dialect) (*table, error) {
	return openBounded(ctx, path, dialect, 0)
}

// openBounded is openTable for who reads no record that begins behind maxBytes of the text; 0 bounds nothing. The context ends
// every read, also where a file holds no record for long.
func openBounded(ctx context.Context, path string, dialect Dialect, maxBytes int64) (*table, error) {
	info, err := os.Stat(path)
	if f := unusableFile(path, info, err); f != nil {
		return nil, finding.Refuse(*f)
	}
	file, err := os.Open(path)
	if f := unusableFile(path, info, err); f != nil {
		return nil, finding.Refuse(*f)
	}
	t := &table{ctx: ctx, maxBytes: maxBytes, path: path, file: file, size: info.Size(), sum: sha256.New(), number: -1}
	if err := t.begin(dialect); err != nil {
		file.Close()
		return nil, err
	}
	return t, nil
}

func unusableFile(path string, info fs.FileInfo, err error) *finding.Finding {
	f := finding.Finding{Severity: finding.Error, Where: &finding.Where{Path: path}, Expected: "a readable table: CSV, TSV, JSON Lines or Parquet"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Code, f.What, f.Remedy = "file_missing", "there is no such file", "check the path; relative paths start at the workspace"
	case err != nil:
		f.Code, f.What, f.Remedy = "file_unreadable", "the file can't be read: "+err.Error(), "check its permissions"
	case info.IsDir():
		f.Code, f.What, f.Remedy = "path_is_directory", "the path is a directory", "name the file inside it"
	case !info.Mode().IsRegular():
		f.Code, f.What, f.Remedy = "file_unreadable", "the path is no regular file", "name a regular file"
	case info.Size() == 0:
		f.Code, f.What, f.Remedy = "file_empty", "the file has no bytes", "check that it was fetched or written completely"
	default:
		return nil
	}
	return &f
}

// begin looks at the file, then starts reading it from the first byte and takes the header.
func (t *table) begin(dialect Dialect) error {
	s, err := lookAt(t.ctx, t.path, t.file, dialect)
	if err != nil {
		return t.refuse(err)
	}
	if _, err := t.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("rewind %s: %w", t.path, err)
	}
	if s.kind == KindParquet {
		return t.beginParquet()
	}
	t.text, err = newUnpacked(t.ctx, io.TeeReader(t.file, t.sum), t.maxBytes)
	if err != nil {
		return t.refuse(err)
	}
	if s.kind != "" {
		return t.beginJSON(s)
	}
	t.format = Format{Delimiter: string(rune(s.delim)), Encoding: "utf-8", BOM: s.bom, Header: !s.looksHeaderless()}
	headerless := !t.format.Header
	if dialect.Header != nil {
		t.format.Header, headerless = *dialect.Header, false
	}
	t.format.Packed = packing(s)
	offset, err := t.skipMark(s)
	if err != nil {
		return err
	}
	t.reader = NewReader(t.text, ReaderOptions{Delimiter: s.delim, LineEnd: s.eol, Offset: offset})
	t.source = t.reader
	if err := t.takeHeader(s, headerless); err != nil {
		return err
	}
	t.takeDecimals(s)
	return nil
}

// takeDecimals finds the columns with decimal commas.
func (t *table) takeDecimals(s *sample) {
	if s.delim == ',' {
		return
	}
	records := s.records(s.delim, 1000)
	if t.format.Header && len(records) > 0 {
		records = records[1:]
	}
	commas := decimalComma(records)
	if slices.Contains(commas, true) {
		t.commas, t.points = commas[:min(len(commas), len(t.names))], make([]int64, len(commas))
	}
}

func packing(s *sample) string {
	if s.packed {
		return "gzip"
	}
	return ""
}

// skipMark reads over the byte order mark.
func (t *table) skipMark(s *sample) (int64, error) {
	if !s.bom {
		return 0, nil
	}
	offset := int64(len(byteOrderMark))
	if _, err := io.CopyN(io.Discard, t.text, offset); err != nil {
		return 0, fmt.Errorf("read %s: %w", t.path, err)
	}
	return offset, nil
}

// beginJSON takes the names of the keys that the beginning of the file has; those met later come behind them.
func (t *table) beginJSON(s *sample) error {
	t.format = Format{Kind: s.kind, Packed: packing(s), Encoding: "utf-8", Header: true, BOM: s.bom}
	rows := newJSONRows(bytes.NewReader(s.data), s.kind == KindJSON, 0)
	rows.broken = func(int, int64, string) {}
	for n := 0; n < 10_000; n++ {
		if _, err := rows.Next(); err != nil {
			break
		}
	}
	offset, err := t.skipMark(s)
	if err != nil {
		return err
	}
	names, keys := rows.names, rows.keys
	rows = newJSONRows(t.text, s.kind == KindJSON, offset)
	rows.names, rows.keys, t.names = names, keys, names
	for i, name := range names {
		rows.index[name] = i
	}
	t.index = rows.index
	rows.broken = func(line int, offset int64, why string) {
		t.number, t.rows = t.rows, t.rows+1
		if t.badTotal++; len(t.bad) < keptExamples {
			t.bad = append(t.bad, BadRow{Line: line, Byte: offset, Why: why})
		}
	}
	t.source = rows
	return nil
}

func (t *table) beginParquet() error {
	rows, err := openParquet(t.file, t.size)
	if err != nil {
		return t.refuse(err)
	}
	t.format = Format{Kind: KindParquet, Encoding: "utf-8", Header: true}
	t.source, t.names = rows, rows.names
	t.nameColumns()
	return nil
}

func (t *table) takeHeader(s *sample, headerless bool) error {
	if !t.format.Header {
		fields, err := t.countFields(s)
		if err != nil {
			return err
		}
		for i := range fields {
			t.names = append(t.names, strconv.Itoa(i))
		}
		t.nameColumns()
		if headerless {
			t.early = append(t.early, finding.Finding{Code: "header_missing", Severity: finding.Warning,
				What:  fmt.Sprintf("the first record looks like data, not names; columns are called 0 to %d", len(t.names)-1),
				Where: &finding.Where{Path: t.path, Line: 1}, Expected: "a first line with column names",
				Remedy: "add a header line, use the numbers as names, or say header: true if it is one"})
		}
		return nil
	}
	for {
		record, err := t.reader.Next()
		switch {
		case err == io.EOF || errors.Is(err, errPastBound):
			return finding.Refuse(onlyBlank(t.path))
		case err != nil:
			return t.refuse(err)
		case blankRecord(record):
			t.blank++
			continue
		}
		t.inspect(record)
		t.header = append(append([]byte{}, record.Raw...), record.End...)
		for _, field := range record.Fields {
			t.names = append(t.names, text(field))
		}
		if record.Raw[0] == '#' {
			t.early = append(t.early, finding.Finding{Code: "header_comment", Severity: finding.Warning,
				What: "the header line begins with #", Where: &finding.Where{Path: t.path, Line: record.Line, Byte: record.Byte},
				Expected: "column names only", Remedy: "remove the # or the comment lines, unless the training script skips them"})
		}
		t.nameColumns()
		return nil
	}
}

// countFields counts the fields of the first record, which stays to be read as data. The sample may have cut it, so the
// file is opened once more.
func (t *table) countFields(s *sample) (int, error) {
	file, err := os.Open(t.path)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", t.path, err)
	}
	defer file.Close()
	again, err := newUnpacked(t.ctx, file, t.maxBytes)
	if err != nil {
		return 0, t.refuse(err)
	}
	if _, err := io.CopyN(io.Discard, again, t.reader.base); err != nil {
		return 0, fmt.Errorf("read %s: %w", t.path, err)
	}
	reader := NewReader(again, ReaderOptions{Delimiter: s.delim, LineEnd: s.eol, Offset: t.reader.base})
	for {
		record, err := reader.Next()
		switch {
		case err == io.EOF || errors.Is(err, errPastBound):
			return 0, finding.Refuse(onlyBlank(t.path))
		case err != nil:
			return 0, t.refuse(err)
		case !blankRecord(record):
			return len(record.Fields), nil
		}
	}
}

func onlyBlank(path string) finding.Finding {
	return finding.Finding{Code: "file_empty", Severity: finding.Error, What: "the file holds only blank lines, as far as it was read",
		Where: &finding.Where{Path: path}, Expected: "a header and data records", Remedy: "check that it was written completely"}
}

// nameColumns makes the names unique and never empty, the way pandas does, so that they mean the same in a script.
func (t *table) nameColumns() {
	t.index = make(map[string]int, len(t.names))
	var unnamed, spaced, twice []string
	for i, name := range t.names {
		if strings.TrimSpace(name) == "" {
			name = "Unnamed: " + strconv.Itoa(i)
			unnamed = append(unnamed, strconv.Itoa(i))
		} else if strings.TrimSpace(name) != name {
			spaced = append(spaced, strconv.Quote(name))
		}
		if _, taken := t.index[name]; taken {
			twice = append(twice, strconv.Quote(name))
			base := name
			for n := 1; taken; n++ {
				name = base + "." + strconv.Itoa(n)
				_, taken = t.index[name]
			}
		}
		t.names[i], t.index[name] = name, i
	}
	note := func(code string, severity finding.Severity, list []string, what, remedy string) {
		if len(list) > 0 {
			t.early = append(t.early, finding.Finding{Code: code, Severity: severity, Where: &finding.Where{Path: t.path, Line: 1},
				What: what + ": " + shorten(strings.Join(list, ", "), 200), Expected: "one plain, unique name for each column", Remedy: remedy})
		}
	}
	note("column_duplicate", finding.Warning, twice, "columns named more than once", "rename them; the later ones are called name.1, name.2, … as pandas does")
	note("column_unnamed", finding.Note, unnamed, "columns without a name, at 0-based position", "they are called \"Unnamed: <position>\" as pandas does; often a written-out index, not a feature")
	note("column_name_spaces", finding.Note, spaced, "column names with spaces around them", "use the names with their spaces, as the script will see them")
}

// next returns the next data record with as many fields as there are columns; others are noted and passed over, but
// keep their number. io.EOF ends it.
func (t *table) next(ctx context.Context) (*Record, error) {
	for {
		if t.rows&0xfff == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		record, err := t.source.Next()
		if err != nil {
			t.ended = t.ended || err == io.EOF
			return nil, err
		}
		if rows, ok := t.source.(*jsonRows); ok {
			t.names = rows.names // it may have met a new key
		}
		if t.reader != nil && blankRecord(record) {
			t.blank++
			continue
		}
		t.number, t.rows = t.rows, t.rows+1
		t.inspect(record)
		if len(record.Fields) == len(t.names) {
			if t.commas != nil {
				t.pointed(record)
			}
			return record, nil
		}
		if t.badTotal++; len(t.bad) < keptExamples {
			t.bad = append(t.bad, BadRow{Line: record.Line, Byte: record.Byte, Fields: len(record.Fields), Want: len(t.names)})
		}
	}
}

// inspect notes bytes that readers of text disagree about.
func (t *table) inspect(r *Record) {
	note := func(count *int64, at *finding.Where, i int) {
		if *count++; *count == 1 {
			*at = finding.Where{Path: t.path, Line: r.Line + bytes.Count(r.Raw[:i], []byte{'\n'}), Byte: r.Byte + int64(i)}
		}
	}
	if !utf8.Valid(r.Raw) {
		note(&t.odd.notUTF8, &t.odd.notUTF8At, firstInvalid(r.Raw))
	}
	if i := bytes.IndexByte(r.Raw, 0); i >= 0 {
		note(&t.odd.nul, &t.odd.nulAt, i)
	}
	if t.reader != nil && t.reader.eol == '\n' && !r.Quoted {
		if i := bytes.IndexByte(r.Raw, '\r'); i >= 0 {
			note(&t.odd.bareCR, &t.odd.bareCRAt, i)
		}
	}
}

func firstInvalid(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return 0
}

// id is the id of the current record: column's value, or row-<number> when column is negative.
func (t *table) id(r *Record, column int) string {
	if column < 0 {
		return rowID(t.number)
	}
	return text(r.Fields[column])
}

func rowID(number int64) string { return "row-" + strconv.FormatInt(number, 10) }

// info closes the books on the file: its hash when it was read to the end.
func (t *table) info() FileInfo {
	info := FileInfo{Path: t.path, Bytes: t.size}
	if t.format.Kind == KindParquet && t.ended {
		if _, err := t.file.Seek(0, io.SeekStart); err == nil {
			_, err = io.Copy(t.sum, t.file)
			t.ended = err == nil
		}
	}
	if t.ended {
		if t.text != nil { // what stands behind the last member of a gzip file
			_, _ = io.Copy(io.Discard, t.text.file)
		}
		info.SHA256 = "sha256:" + hex.EncodeToString(t.sum.Sum(nil))
	}
	return info
}

func (t *table) close() { t.file.Close() }

// refuse turns an error of the reader into one that says what to do; other errors gain the path.
func (t *table) refuse(err error) error {
	if f := t.recordFinding(err); f != nil {
		return finding.Refuse(*f)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("read %s: %w", t.path, err)
}

// share is how much of the file stands before an offset of its text; known is false where nothing tells.
func (t *table) share(offset int64) (share float64, known bool) {
	if rows, ok := t.source.(*parquetRows); ok {
		return float64(t.rows) / float64(max(rows.file.NumRows(), 1)), true
	}
	if t.text.packed {
		return t.text.share(offset, t.size)
	}
	return float64(offset) / float64(max(t.size, 1)), true
}
