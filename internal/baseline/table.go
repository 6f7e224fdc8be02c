package baseline

import (
	"bytes"
	"context"
	"fmt"
	"math"
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
	path  string
	order []string
}

// openPart learns how a file is written and which columns it has.
func openPart(ctx context.Context, path string) (part, error) {
	profile, found, err := dataset.ProfileTable(ctx, path, dataset.ProfileOptions{MaxBytes: lookedAt})
	if err != nil {
		return part{}, err
	}
	for _, f := range found {
		if f.Severity == finding.Error && (f.Code == "quote_unterminated" || f.Code == "line_too_long") {
			return part{}, finding.Refuse(f)
		}
	}
	return part{path: path, order: profile.Order}, nil
}

// column is the position of a named column.
func (p part) column(name, field string) (int, error) {
	if i := slices.Index(p.order, name); i >= 0 {
		return i, nil
	}
	return 0, finding.Refuse(finding.Finding{Code: "column_unknown", Severity: finding.Error, What: fmt.Sprintf("there is no column %q", name),
		Where: &finding.Where{Path: p.path, Field: field}, Expected: "one of " + strings.Join(p.order[:min(len(p.order), 20)], ", "), Remedy: "use the columns' names as the file has them"})
}

// each calls visit with the fields of every whole record; number counts those records from 0. Ragged records are passed
// over, as everywhere. The fields hold until visit returns.
func (p part) each(ctx context.Context, visit func(number int, fields [][]byte) error) error {
	return dataset.EachRow(ctx, p.path, p.order, visit)
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
