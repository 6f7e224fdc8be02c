package baseline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/dataset"
	"github.com/trainwright/trainwright/internal/finding"
)

// lookedAt is how many bytes of a file tell how it is written.
const lookedAt = 4 << 20

// part is a file of the split whose columns are known.
type part struct {
	path   string
	format dataset.Format
	order  []string
}

// openPart learns how a file is written and which columns it has.
func openPart(ctx context.Context, path string) (part, error) {
	profile, found, err := dataset.ProfileCSV(ctx, path, dataset.ProfileOptions{MaxBytes: lookedAt})
	if err != nil {
		return part{}, err
	}
	for _, f := range found {
		if f.Severity == finding.Error && (f.Code == "quote_unterminated" || f.Code == "line_too_long") {
			return part{}, finding.Refuse(f)
		}
	}
	return part{path: path, format: profile.Format, order: profile.Order}, nil
}

// column is the position of a named column.
func (p part) column(name, field string) (int, error) {
	if i := slices.Index(p.order, name); i >= 0 {
		return i, nil
	}
	return 0, finding.Refuse(finding.Finding{Code: "column_unknown", Severity: finding.Error, What: fmt.Sprintf("there is no column %q", name),
		Where: &finding.Where{Path: p.path, Field: field}, Expected: "one of " + strings.Join(p.order[:min(len(p.order), 20)], ", "), Remedy: "use the columns' names as the file has them"})
}

// byteOrderMark is UTF-8's.
const byteOrderMark = "\xef\xbb\xbf"

// each calls visit with the fields of every whole record; number counts those records from 0. Ragged records are passed
// over, as everywhere. The fields hold until visit returns.
func (p part) each(ctx context.Context, visit func(number int, fields [][]byte) error) error {
	file, err := os.Open(p.path)
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	defer file.Close()
	options := dataset.ReaderOptions{Delimiter: p.format.Delimiter[0]}
	if p.format.Newline == "cr" {
		options.LineEnd = '\r'
	}
	if p.format.BOM {
		options.Offset = int64(len(byteOrderMark))
		if _, err := file.Seek(options.Offset, io.SeekStart); err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
	}
	reader := dataset.NewReader(file, options)
	header, number := p.format.Header, 0
	for read := 0; ; read++ {
		if read&0xfff == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		record, err := reader.Next()
		var broken *dataset.RecordError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &broken):
			return finding.Refuse(finding.Finding{Code: broken.Code, Severity: finding.Error, What: broken.Why,
				Where: &finding.Where{Path: p.path, Line: broken.Line, Byte: broken.Byte}, Remedy: "repair the file; no baseline is computed on a part of it"})
		case err != nil:
			return fmt.Errorf("baseline: read %s: %w", p.path, err)
		case len(bytes.TrimSpace(record.Raw)) == 0:
			continue
		case header:
			header = false
			continue
		case len(record.Fields) != len(p.order):
			continue
		}
		if err := visit(number, record.Fields); err != nil {
			return err
		}
		number++
	}
}

// missing says whether a value is one of the ways in which people write none; the same as in dataset.
func missing(value string) bool {
	if len(value) > 4 {
		return false
	}
	switch strings.ToLower(value) {
	case "", "?", "-", "na", "n/a", "#n/a", "<na>", "nan", "null", "none":
		return true
	}
	return false
}

// number reads a finite decimal number.
func number(value string) (float64, bool) {
	for i := range len(value) { // strconv would also take hexadecimal, underscores and words
		if c := value[i]; (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(value, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// label writes a class in one way, as metrics compares them: 1, 1.0 and 01 are one class, True and true are another.
func label(value string) string {
	if v, ok := number(value); ok {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	if lower := strings.ToLower(value); lower == "true" || lower == "false" {
		return lower
	}
	return value
}

func trimmed(field []byte) string { return string(bytes.TrimSpace(field)) }
