package dataset

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/trainwright/trainwright/internal/finding"
)

// The kinds of leakage between parts by what the rows belong to.
const (
	LeakGroup  = "group_overlap"    // rows of one group in two parts
	LeakWindow = "window_straddles" // a row of an earlier part whose target lies in the time of a later one
)

// CheckUnits looks for what rows of several parts have in common beside their values: the group, where spec names one, and the time.
// A row of an earlier part (train, val) straddles the cut when its time plus spec.Horizon steps reaches the first time of a later part.
// whole is the file that the parts were cut from, "" where there is none: its time column says which steps there are, also those that
// are in no part. Without a horizon only rows that lie in the later part's time count, as a warning.
// Findings: leakage_group, leakage_window, units_unchecked. Refused: damaged files, column_unknown, time_unreadable, too_many_rows.
func CheckUnits(ctx context.Context, parts map[string]string, whole string, spec SplitSpec) ([]Leak, []finding.Finding, error) {
	var leaks []Leak
	var found []finding.Finding
	if spec.Group != "" {
		leak, without, err := groupOverlap(ctx, parts, spec)
		if err != nil {
			return nil, nil, err
		}
		leaks, found = append(leaks, leak), append(found, without.finding(spec.Group)...)
	}
	if spec.Time != "" {
		leak, without, err := straddling(ctx, parts, whole, spec)
		if err != nil {
			return nil, nil, err
		}
		leaks, found = append(leaks, leak), append(found, without.finding(spec.Time)...)
	}
	leaks = occurred(leaks)
	for _, leak := range leaks {
		found = append(found, unitFinding(leak, spec))
	}
	return leaks, found, nil
}

func unitFinding(leak Leak, spec SplitSpec) finding.Finding {
	first, second := leak.Examples[0].First, leak.Examples[0].Second
	f := finding.Finding{Code: "leakage_group", Severity: leak.Severity, Where: &finding.Where{Path: second.Path, Line: second.Line, Field: spec.Group},
		What:     fmt.Sprintf("%d row(s) belong to a %s that an earlier part has too, such as line %d of %s and line %d of %s", leak.Count, spec.Group, first.Line, first.Part, second.Line, second.Part),
		Expected: "each " + spec.Group + " in one part", Remedy: fmt.Sprintf("split anew: {\"strategy\": \"group\", \"group\": %q}", spec.Group)}
	if leak.Kind == LeakWindow {
		f.Code, f.Where = "leakage_window", &finding.Where{Path: first.Path, Line: first.Line, Field: spec.Time}
		f.What = fmt.Sprintf("%d row(s) reach over the cut into a later part, such as line %d of %s: with a horizon of %d it reaches line %d of %s", leak.Count, first.Line, first.Part, spec.Horizon, second.Line, second.Part)
		if spec.Horizon == 0 {
			f.What = fmt.Sprintf("%d row(s) are not older than the first of a later part, such as line %d of %s and line %d of %s", leak.Count, first.Line, first.Part, second.Line, second.Part)
		}
		f.Expected = fmt.Sprintf("%s of each part before that of the next, with %d steps between", spec.Time, spec.Horizon)
		f.Remedy = fmt.Sprintf("remove these rows from %s, or split anew by time with a gap of %d", first.Part, max(spec.Gap, spec.Horizon))
	}
	return f
}

// walkColumn calls visit with a column's value in every row of a part.
func walkColumn(ctx context.Context, path, column string, spec SplitSpec, visit func(r *Record, value []byte, at int) error) error {
	t, err := openTable(ctx, path, spec.Dialect)
	if err != nil {
		return err
	}
	defer t.close()
	if f := t.unknown(column); f != nil {
		return finding.Refuse(*f)
	}
	at := t.column(column)
	return t.each(ctx, func(r *Record) error { return visit(r, trim(r.Fields[at]), at) })
}

// valueless counts rows that can't be compared, since they have no group or time.
type valueless struct {
	n     int64
	first finding.Where
}

func (v *valueless) add(path string, line int, offset int64) {
	if v.n++; v.n == 1 {
		v.first = finding.Where{Path: path, Line: line, Byte: offset}
	}
}

func (v *valueless) finding(column string) []finding.Finding {
	if v.n == 0 {
		return nil
	}
	where := v.first
	where.Field = column
	return []finding.Finding{{Code: "units_unchecked", Severity: finding.Warning, Where: &where,
		What:     fmt.Sprintf("%d row(s) have no %s and were not compared with the other parts", v.n, column),
		Expected: "a value in every record", Remedy: "supply it, or report these rows as unchecked"}}
}

func groupOverlap(ctx context.Context, parts map[string]string, spec SplitSpec) (Leak, *valueless, error) {
	without := &valueless{}
	leak, names := Leak{Kind: LeakGroup, Severity: finding.Error}, sortedParts(parts)
	seed, seen := maphash.MakeSeed(), map[uint64]seenRow{}
	for p, name := range names {
		err := walkColumn(ctx, parts[name], spec.Group, spec, func(r *Record, value []byte, at int) error {
			if isMissing(value) {
				line, offset := r.place(at)
				without.add(parts[name], line, offset)
				return nil
			}
			key := groupKey(seed, value)
			first, known := seen[key]
			switch {
			case !known && len(seen) == maxHashed:
				return finding.Refuse(tooManyRows(parts[name], maxHashed))
			case !known:
				seen[key] = seenRow{part: uint8(p), line: uint32(r.Line)}
			case first.part != uint8(p):
				leak.add(Place{Part: names[first.part], Path: parts[names[first.part]], Line: int(first.line)}, Place{Part: name, Path: parts[name], Line: r.Line})
			}
			return nil
		})
		if err != nil {
			return leak, without, err
		}
	}
	return leak, without, nil
}
