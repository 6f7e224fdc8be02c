package dataset

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// WriteOptions say how WriteParts writes. The zero value copies records as they are.
type WriteOptions struct {
	// AddID, where not empty, is the name of a column that is put in front and holds each row's id. Without it, a script that
	// numbers its own rows restarts at 0 in every part; MapPartIDs leads such numbers back.
	AddID string
}

// WriteParts writes <outDir>/<part>.csv (.tsv for a .tsv source) for each part: the header, then the part's records with their
// bytes untouched; only a last record without a line end gains one. Other kinds, and packed files, become plain text: <part>.jsonl, an object a line. The files appear when all of them are complete.
// dir is where split.json lies. A predefined split is not copied: its own files are returned. Refused: source_changed when
// the file is not the one that was split, ids_changed when an ids file is not the one that was written.
func WriteParts(ctx context.Context, path string, split *Split, dir, outDir string, opts WriteOptions) (map[string]string, []finding.Finding, error) {
	out := map[string]string{}
	if split.Strategy == Predefined {
		for name, part := range split.Parts {
			out[name] = part.Path
		}
		return out, nil, nil
	}
	t, err := openTable(ctx, path, split.Dialect)
	if err != nil {
		return nil, nil, err
	}
	defer t.close()
	if f := t.unknown(split.ID); f != nil {
		return nil, nil, finding.Refuse(*f)
	}
	var writers []*partWriter
	for _, name := range Parts {
		part, ok := split.Parts[name]
		if !ok {
			continue
		}
		w, err := newPartWriter(filepath.Join(dir, filepath.FromSlash(part.IDsFile)), filepath.Join(outDir, PartName(path, t.format, name)))
		if err != nil {
			return nil, nil, err
		}
		defer w.close()
		w.part, out[name] = part, w.file.path
		writers = append(writers, w)
	}
	if err := deliver(ctx, t, split, writers, opts.AddID); err != nil {
		return nil, nil, err
	}
	for _, w := range writers {
		if err := w.file.commit(); err != nil {
			return nil, nil, err
		}
	}
	return out, nil, nil
}

// partWriter pairs a part's ids, read in order, with the file that receives its records.
type partWriter struct {
	part    Part
	idsPath string
	idsFile *os.File
	ids     *idReader
	id      string // the next id of the part
	more    bool
	file    *atomicFile
}

func newPartWriter(idsPath, path string) (*partWriter, error) {
	idsFile, err := os.Open(idsPath)
	if err != nil {
		return nil, fmt.Errorf("read ids of a part: %w", err)
	}
	file, err := createAtomic(path)
	if err != nil {
		idsFile.Close()
		return nil, err
	}
	w := &partWriter{idsPath: idsPath, idsFile: idsFile, ids: newIDReader(idsFile), file: file}
	if err := w.advance(); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *partWriter) advance() (err error) {
	w.id, w.more, err = w.ids.next()
	return err
}

func (w *partWriter) close() {
	w.idsFile.Close()
	w.file.abandon()
}

// deliver walks the source once. The ids of each part are in the order of the source, so the next id of one of the parts
// is always the record's: no list of ids is held in memory.
func deliver(ctx context.Context, t *table, split *Split, writers []*partWriter, addID string) error {
	newline := []byte("\n")
	switch {
	case t.reader != nil && t.reader.eol != '\n':
		newline = []byte{t.reader.eol}
	case bytes.HasSuffix(t.header, []byte("\r\n")):
		newline = []byte("\r\n")
	}
	var line []byte
	for _, w := range writers {
		w.begin(t, addID, newline)
	}
	column, skipped := t.column(split.ID), int64(0)
	err := t.each(ctx, func(r *Record) error {
		id := t.id(r, column)
		for _, w := range writers {
			if !w.more || w.id != id {
				continue
			}
			prefix := ""
			if addID != "" {
				prefix = quoteField(id, t.format.Delimiter) + t.format.Delimiter
			}
			raw := r.Raw
			if t.format.Kind == KindJSON || t.format.Kind == KindParquet { // an object on a line of its own
				line = t.object(line[:0], r)
				raw = line
			}
			if err := w.write(prefix, raw, r.End, newline); err != nil {
				return err
			}
			return w.advance()
		}
		if skipped++; skipped <= split.LeftOut {
			return nil
		}
		return finding.Refuse(sourceChanged(t.path, r, id))
	})
	if err != nil {
		return err
	}
	if len(split.Source) > 0 && t.info().SHA256 != split.Source[0].SHA256 {
		return finding.Refuse(sourceChanged(t.path, nil, ""))
	}
	for _, w := range writers {
		if w.more || w.ids.sha256() != w.part.SHA256 {
			return finding.Refuse(finding.Finding{Code: "ids_changed", Severity: finding.Error, What: "the ids file is not the one that the split wrote",
				Where: &finding.Where{Path: w.idsPath}, Expected: w.part.SHA256, Remedy: "make the split again"})
		}
	}
	return nil
}

// begin writes what stands before the records: byte order mark and header, where the source has them.
func (w *partWriter) begin(t *table, addID string, newline []byte) {
	if t.format.BOM {
		w.file.Write(byteOrderMark)
	}
	if t.header == nil {
		return
	}
	prefix := ""
	if addID != "" {
		prefix = quoteField(addID, t.format.Delimiter) + t.format.Delimiter
	}
	body := bytes.TrimRight(t.header, "\r\n")
	w.write(prefix, body, t.header[len(body):], newline) // a write error stays in the buffered writer until commit
}

func (w *partWriter) write(prefix string, raw, end, newline []byte) error {
	if len(end) == 0 || end[len(end)-1] != newline[len(newline)-1] {
		end = newline
	}
	for _, piece := range [][]byte{[]byte(prefix), raw, end} {
		if _, err := w.file.Write(piece); err != nil {
			return fmt.Errorf("write %s: %w", w.file.path, err)
		}
	}
	return nil
}

// quoteField writes a value so that a CSV reader gives it back.
func quoteField(value, delimiter string) string {
	if !strings.ContainsAny(value, "\"\r\n"+delimiter) {
		return value
	}
	return `"` + strings.ReplaceAll(value, `"`, `""`) + `"`
}

func sourceChanged(path string, r *Record, id string) finding.Finding {
	f := finding.Finding{Code: "source_changed", Severity: finding.Error, What: "the file is not the one that was split", Where: &finding.Where{Path: path},
		Expected: "the bytes named in split.json", Remedy: "make the split again"}
	if r != nil {
		f.What += fmt.Sprintf(": the split has no row %q", shorten(id, longestShown))
		f.Where.Line, f.Where.Byte = r.Line, r.Byte
	}
	return f
}

// idReader reads ids one by one and hashes the file on the way.
type idReader struct {
	r   *bufio.Reader
	sum interface{ Sum([]byte) []byte }
}

func newIDReader(src io.Reader) *idReader {
	sum := sha256.New()
	return &idReader{r: bufio.NewReader(io.TeeReader(src, sum)), sum: sum}
}

func (i *idReader) next() (id string, ok bool, err error) {
	line, err := i.r.ReadString('\n')
	if err == io.EOF {
		return line, line != "", nil
	}
	if err != nil {
		return "", false, fmt.Errorf("read ids: %w", err)
	}
	return line[:len(line)-1], true, nil
}

// sha256 is the hash of the ids file, valid when next has answered false.
func (i *idReader) sha256() string { return "sha256:" + hex.EncodeToString(i.sum.Sum(nil)) }

// MapPartIDs returns the ids of a part in the order of its rows: a prediction "row-<k>" that a script made by numbering
// the rows of a part file belongs to the k-th of them.
func MapPartIDs(partIDsFile string) ([]string, error) {
	file, err := os.Open(partIDsFile)
	if err != nil {
		return nil, fmt.Errorf("read ids of a part: %w", err)
	}
	defer file.Close()
	ids, reader := []string{}, newIDReader(file)
	for {
		id, ok, err := reader.next()
		if err != nil || !ok {
			return ids, err
		}
		ids = append(ids, id)
	}
}

// PartName is the file of a part of the file at path.
func PartName(path string, format Format, part string) string {
	switch {
	case format.Kind != "":
		return part + ".jsonl"
	case strings.EqualFold(filepath.Ext(strings.TrimSuffix(strings.ToLower(path), ".gz")), ".tsv"):
		return part + ".tsv"
	}
	return part + ".csv"
}

// object writes a record as one line of JSON. Of an array of objects it is the object as it stands, without line breaks; a row of a Parquet
// file is written from its values: numbers and truth values as such, lists as they are, the rest as strings.
func (t *table) object(dst []byte, r *Record) []byte {
	if t.format.Kind == KindJSON {
		for _, c := range r.Raw { // a line break can only stand between tokens
			if c != '\n' && c != '\r' {
				dst = append(dst, c)
			}
		}
		return dst
	}
	rows, _ := t.source.(*parquetRows)
	dst = append(dst, '{')
	for i, field := range r.Fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		name, _ := json.Marshal(t.names[i])
		dst = append(append(dst, name...), ':')
		switch {
		case len(field) == 0:
			dst = append(dst, "null"...)
		case rows != nil && rows.bare[i] && json.Valid(field):
			dst = append(dst, field...)
		default:
			value, _ := json.Marshal(text(field))
			dst = append(dst, value...)
		}
	}
	return append(dst, '}')
}
