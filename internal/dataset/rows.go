package dataset

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"slices"

	"github.com/trainwright/trainwright/internal/finding"
)

// maxSplitRows bounds the memory of a split: 60 bytes a row, 1.2 GB at worst.
const maxSplitRows = 20_000_000

// maxClasses bounds a stratified split.
const maxClasses = 10_000

// scanned is a file read for its rows.
type scanned struct {
	path    string
	info    FileInfo
	format  Format
	names   []string
	id      int // column of the id, -1 for none
	rows    []row
	classes []string
	labels  labels // of a target that the rows are not dealt by
	dates   bool   // the times of a time split are dates, not numbers
	zoned   bool   // and name their zone
}

func (s *scanned) dialect() Dialect {
	header := s.format.Header
	return Dialect{Delimiter: s.format.Delimiter, Header: &header}
}

// scanRows reads what a split needs to know of each row. Any damage refuses the file: a split of it would not mean the same to
// the script that reads it.
func scanRows(ctx context.Context, path string, spec SplitSpec) (*scanned, error) {
	t, err := openTable(ctx, path, spec.Dialect)
	if err != nil {
		return nil, err
	}
	defer t.close()
	for _, name := range []string{spec.ID, spec.Target, spec.Group, spec.Time, spec.Sequence} {
		if f := t.unknown(name); f != nil {
			return nil, finding.Refuse(*f)
		}
	}
	s := &scanned{path: path, names: t.names, id: t.column(spec.ID)}
	unit := newUnits(t, spec)
	target, seed, classes := t.column(spec.Target), maphash.MakeSeed(), map[string]uint32{}
	var missing []BadValue
	var missingTotal int64
	var buf []byte
	for {
		record, err := t.next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, t.refuse(err)
		}
		if len(s.rows) == maxSplitRows {
			return nil, finding.Refuse(tooManyRows(path, maxSplitRows))
		}
		id := t.id(record, s.id)
		if f := badID(path, id, record, s.id); f != nil {
			return nil, finding.Refuse(*f)
		}
		r := row{rank: rankOf(spec.Seed, id), line: uint32(min(record.Line, math.MaxUint32))}
		r.identity, buf = rowKey(seed, buf, record, s.id)
		r.features, buf = featureKey(seed, buf, record, s.id, target)
		if f := unit.add(&r, record); f != nil {
			return nil, finding.Refuse(*f)
		}
		if spec.Strategy == Stratified {
			value := trim(record.Fields[target])
			if isMissing(value) {
				if missingTotal++; len(missing) < keptExamples {
					line, offset := record.place(target)
					missing = append(missing, BadValue{Line: line, Byte: offset})
				}
			}
			class, known := classes[string(value)]
			if !known {
				if len(s.classes) == maxClasses {
					return nil, finding.Refuse(tooManyClasses(path, spec.Target, len(s.classes)+1, len(s.rows)+1))
				}
				class = uint32(len(s.classes))
				classes[string(value)] = class
				s.classes = append(s.classes, text(value))
			}
			r.class = class
		} else if target >= 0 {
			s.labels.add(trim(record.Fields[target]))
		}
		s.rows = append(s.rows, r)
	}
	s.info, s.format, s.dates, s.zoned = t.info(), t.format, !unit.numbers, zoned(unit.first)
	if err := unit.cluster(ctx, s.rows); err != nil {
		return nil, err
	}
	bad := errorsOf(t.findings())
	bad = append(bad, targetMissing(path, &Column{Name: spec.Target, Missing: missingTotal, MissingAt: missing})...)
	if len(bad) == 0 && spec.Strategy == Stratified && 2*len(s.classes) > len(s.rows) {
		bad = append(bad, tooManyClasses(path, spec.Target, len(s.classes), len(s.rows)))
	}
	if len(bad) > 0 {
		return nil, finding.Refuse(bad...)
	}
	return s, nil
}

// column is the position of a column, -1 for the empty name.
func (t *table) column(name string) int {
	if name == "" {
		return -1
	}
	return t.index[name]
}

// rowKey hashes a record's values, without the column skip when that is not negative. It depends on values and not on
// quoting. buf is scratch.
func rowKey(seed maphash.Seed, buf []byte, r *Record, skip int) (uint64, []byte) {
	buf = buf[:0]
	for i, field := range r.Fields {
		if i != skip {
			buf = appendExact(buf, field)
		}
	}
	return maphash.Bytes(seed, buf), buf
}

// featureKey hashes what a record means without its id and target.
func featureKey(seed maphash.Seed, buf []byte, r *Record, id, target int) (uint64, []byte) {
	buf = buf[:0]
	for i, field := range r.Fields {
		if i != id && i != target {
			buf = appendNormal(buf, field)
		}
	}
	return maphash.Bytes(seed, buf), buf
}

func tooManyRows(path string, bound int) finding.Finding {
	return finding.Finding{Code: "too_many_rows", Severity: finding.Error, What: fmt.Sprintf("the file has more than %d data records", bound),
		Where: &finding.Where{Path: path}, Expected: "a file that fits the memory bound", Remedy: "split it yourself and give the files as predefined, or take a part of it"}
}

func tooManyClasses(path, target string, classes, rows int) finding.Finding {
	return finding.Finding{Code: "stratify_too_many_classes", Severity: finding.Error,
		What:     fmt.Sprintf("%q has %d different values in %d rows: it does not name classes", target, classes, rows),
		Where:    &finding.Where{Path: path, Field: target},
		Expected: fmt.Sprintf("at least two rows for each class, at most %d classes", maxClasses), Remedy: "use a random split, or stratify by a column of classes"}
}

// badID refuses an id that can't stand on a line of an ids file. column is negative for numbered rows.
func badID(path, id string, r *Record, column int) *finding.Finding {
	if column < 0 {
		return nil
	}
	line, offset := r.place(column)
	f := finding.Finding{Severity: finding.Error, Where: &finding.Where{Path: path, Line: line, Byte: offset}}
	switch {
	case len(trim([]byte(id))) == 0:
		f.Code, f.What, f.Expected, f.Remedy = "id_missing", "the id is empty", "an id in every record", "supply it, or name no id column to number the records"
	case bytes.ContainsAny([]byte(id), "\r\n"):
		f.Code, f.What, f.Expected, f.Remedy = "id_unusable", "the id holds a line break", "ids on one line", "name another id column, or none to number the records"
	default:
		return nil
	}
	return &f
}

// uniqueIDs refuses ids that stand twice. Equal ids have equal ranks, so they are neighbours in shuffled order.
func (s *scanned) uniqueIDs(ctx context.Context, spec SplitSpec) error {
	if s.id < 0 {
		return nil
	}
	order := make([]uint32, len(s.rows))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		if c := compareRanks(s.rows[a].rank, s.rows[b].rank); c != 0 {
			return c
		}
		return int(int64(a) - int64(b))
	})
	var pairs [][2]uint32 // rows: first, repeated
	for i := 1; i < len(order); i++ {
		if s.rows[order[i]].rank == s.rows[order[i-1]].rank {
			pairs = append(pairs, [2]uint32{order[i-1], order[i]})
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	slices.SortFunc(pairs, func(a, b [2]uint32) int { return int(int64(a[1]) - int64(b[1])) })
	total := len(pairs)
	var found []finding.Finding
	for _, pair := range pairs[:min(total, 3)] {
		first, again := s.rows[pair[0]].line, s.rows[pair[1]].line
		id, err := idAt(ctx, s.path, spec, int64(pair[1]))
		if err != nil {
			return err
		}
		found = append(found, finding.Finding{Code: "id_duplicate", Severity: finding.Error,
			What:     fmt.Sprintf("the id %q stands in line %d and again in line %d (%d repeated id(s) in all)", shorten(id, longestShown), first, again, total),
			Where:    &finding.Where{Path: s.path, Line: int(again), Field: spec.ID},
			Expected: "a different id in every record", Remedy: "name another id column, or none to number the records"})
	}
	return finding.Refuse(found...)
}

// idAt reads the id of one row again, since a split keeps only hashes.
func idAt(ctx context.Context, path string, spec SplitSpec, number int64) (string, error) {
	t, err := openTable(ctx, path, spec.Dialect)
	if err != nil {
		return "", err
	}
	defer t.close()
	for {
		record, err := t.next(ctx)
		if err != nil {
			return "", t.refuse(err)
		}
		if t.number == number {
			return t.id(record, t.column(spec.ID)), nil
		}
	}
}
