package dataset

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/trainwright/trainwright/internal/finding"
)

// Stat is the mean and deviation of a numeric column. Std is that of the population (divided by N, not N-1), as
// scikit-learn's StandardScaler takes it. From says which rows: "train".
type Stat struct {
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
	From string  `json:"from"`
	N    int64   `json:"n"` // finite numbers; missing values are left out
}

// fitter gathers statistics of every column that holds nothing but numbers and missing values.
type fitter struct {
	names   []string
	skip    int
	columns []moments
	other   []BadValue // the first value of each column that is no number; Line 0 for none
}

func newFitter(names []string, skip int) *fitter {
	return &fitter{names: names, skip: skip, columns: make([]moments, len(names)), other: make([]BadValue, len(names))}
}

func (f *fitter) add(r *Record) {
	for i := range f.columns {
		if i == f.skip || f.other[i].Line > 0 {
			continue
		}
		value := trim(r.Fields[i])
		switch k, number := classify(value); k {
		case kindInteger, kindNumber:
			f.columns[i].add(number)
		case kindMissing, kindNonFinite:
		default:
			line, offset := r.place(i)
			f.other[i] = BadValue{Line: line, Byte: offset, Value: shorten(text(value), longestShown)}
		}
	}
}

func (f *fitter) statistics() map[string]Stat {
	out := map[string]Stat{}
	for i, name := range f.names {
		if stat, ok := f.stat(i); ok {
			out[name] = stat
		}
	}
	return out
}

func (f *fitter) stat(i int) (Stat, bool) {
	m := &f.columns[i]
	if i == f.skip || f.other[i].Line > 0 || m.n == 0 || finite(m.mean) == nil || finite(m.std()) == nil {
		return Stat{}, false
	}
	return Stat{Mean: m.mean, Std: m.std(), From: Train, N: m.n}, true
}

// Statistics fits mean and deviation on a file, which must be the train part. No columns means every column that is
// numeric throughout; a named column that is not there (column_unknown) or not numeric (column_not_numeric) is refused.
func Statistics(ctx context.Context, path string, columns []string) (map[string]Stat, error) {
	t, err := openTable(ctx, path, Dialect{})
	if err != nil {
		return nil, err
	}
	defer t.close()
	var bad []finding.Finding
	for _, name := range columns {
		if f := t.unknown(name); f != nil {
			bad = append(bad, *f)
		}
	}
	if len(bad) > 0 {
		return nil, finding.Refuse(bad...)
	}
	fit := newFitter(t.names, -1)
	if err := t.each(ctx, func(r *Record) error { fit.add(r); return nil }); err != nil {
		return nil, err
	}
	if len(columns) == 0 {
		return fit.statistics(), nil
	}
	out := map[string]Stat{}
	for _, name := range columns {
		i := t.index[name]
		stat, ok := fit.stat(i)
		if !ok {
			f := finding.Finding{Code: "column_not_numeric", Severity: finding.Error, What: fmt.Sprintf("column %q has no mean: it holds no finite numbers", name),
				Where: &finding.Where{Path: path, Field: name}, Expected: "numbers and missing values only", Remedy: "leave it out of normalisation"}
			if other := fit.other[i]; other.Line > 0 {
				f.What = fmt.Sprintf("column %q has no mean: it holds %q", name, other.Value)
				f.Where.Line, f.Where.Byte = other.Line, other.Byte
			}
			bad = append(bad, f)
		}
		out[name] = stat
	}
	if len(bad) > 0 {
		return nil, finding.Refuse(bad...)
	}
	return out, nil
}

// each calls visit for every data record. A damaged file is refused.
func (t *table) each(ctx context.Context, visit func(*Record) error) error {
	for {
		record, err := t.next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return t.refuse(err)
		}
		if err := visit(record); err != nil {
			return err
		}
	}
	if bad := errorsOf(t.findings()); len(bad) > 0 {
		return finding.Refuse(bad...)
	}
	return nil
}

// EachRow calls visit with the values of these columns in every whole record of a table, nil for a JSON row without the key; number counts
// those records from 0. Records that can't be read are passed over, and what they hold with them; text that can't be cut any further is refused.
// The fields hold until visit returns.
func EachRow(ctx context.Context, path string, columns []string, visit func(number int, fields [][]byte) error) error {
	t, err := openTable(ctx, path, Dialect{})
	if err != nil {
		return err
	}
	defer t.close()
	fields, number := make([][]byte, len(columns)), 0
	for {
		record, err := t.next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return t.refuse(err)
		}
		for i, name := range columns {
			fields[i] = nil
			if at, known := t.index[name]; known && at < len(record.Fields) {
				fields[i] = record.Fields[at]
			}
		}
		if err := visit(number, fields); err != nil {
			return err
		}
		number++
	}
}

// maxTargets bounds the memory of Targets.
const maxTargets = 5_000_000

// Targets returns each row's target as it is written (without surrounding spaces), by id, to compute metrics again.
// Without an id column the ids are row-<n>. Refused: a damaged file, column_unknown, id_duplicate, id_missing, too_many_rows.
func Targets(ctx context.Context, path, idColumn, target string) (map[string]string, error) {
	t, err := openTable(ctx, path, Dialect{})
	if err != nil {
		return nil, err
	}
	defer t.close()
	for _, name := range []string{idColumn, target} {
		if f := t.unknown(name); f != nil {
			return nil, finding.Refuse(*f)
		}
	}
	if target == "" {
		return nil, finding.Refuse(unknownColumn(path, "target", "", t.names))
	}
	id, column, out := t.column(idColumn), t.column(target), map[string]string{}
	err = t.each(ctx, func(r *Record) error {
		if len(out) == maxTargets {
			return finding.Refuse(tooManyRows(path, maxTargets))
		}
		name := t.id(r, id)
		if f := badID(path, name, r, id); f != nil {
			return finding.Refuse(*f)
		}
		if _, again := out[name]; again {
			return finding.Refuse(finding.Finding{Code: "id_duplicate", Severity: finding.Error, What: fmt.Sprintf("the id %q stands twice", shorten(name, longestShown)),
				Where: &finding.Where{Path: path, Line: r.Line, Byte: r.Byte, Field: idColumn}, Expected: "a different id in every record", Remedy: "name another id column, or none to number the records"})
		}
		out[name] = text(trim(r.Fields[column]))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// sortedParts are the parts' names in the usual order, others behind.
func sortedParts(parts map[string]string) []string {
	var out []string
	for _, name := range Parts {
		if parts[name] != "" {
			out = append(out, name)
		}
	}
	var others []string
	for name, path := range parts {
		if path != "" && !slices.Contains(Parts, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return append(out, others...)
}
