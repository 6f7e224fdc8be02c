package dataset

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// The kinds of leakage between parts.
const (
	LeakID       = "id_overlap"         // the same id in two parts
	LeakRow      = "row_identical"      // equal rows (without the id) in two parts
	LeakFeatures = "features_identical" // rows that mean the same features, spelled or labelled differently
)

// Leak is a way in which a part knows of another. Count is the number of rows of later parts (val, test) that an earlier
// part holds already; a row counts for the first kind that fits it.
type Leak struct {
	Kind     string           `json:"kind"`
	Severity finding.Severity `json:"severity"`
	Count    int64            `json:"count"`
	Examples []LeakExample    `json:"examples"`
}

// LeakExample is a pair of rows in two parts.
type LeakExample struct {
	First  Place `json:"first"`
	Second Place `json:"second"`
}

// Place is a row of a part.
type Place struct {
	Part string `json:"part"`
	Path string `json:"path,omitempty"`
	Line int    `json:"line"`
	ID   string `json:"id,omitempty"`
}

// newLeaks are the kinds in order of weight.
func newLeaks() []Leak {
	return []Leak{{Kind: LeakID, Severity: finding.Error}, {Kind: LeakRow, Severity: finding.Error}, {Kind: LeakFeatures, Severity: finding.Warning}}
}

func (l *Leak) add(first, second Place) {
	if l.Count++; len(l.Examples) < keptExamples {
		l.Examples = append(l.Examples, LeakExample{First: first, Second: second})
	}
}

// occurred keeps the kinds that were found.
func occurred(leaks []Leak) []Leak {
	return slices.DeleteFunc(leaks, func(l Leak) bool { return l.Count == 0 })
}

// leakage looks for rows of a split that mean the same features in two parts. Equal rows can't be: they stay together.
func (s *scanned) leakage(names []string, part []uint8) []Leak {
	order := make([]uint32, len(s.rows))
	for i := range order {
		order[i] = uint32(i)
	}
	// Alike rows become neighbours, a row of train in front of them.
	slices.SortFunc(order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(s.rows[a].features, s.rows[b].features), cmp.Compare(part[a], part[b]), cmp.Compare(a, b))
	})
	var pairs [][2]uint32
	first := 0
	for i, at := range order {
		switch {
		case s.rows[at].features != s.rows[order[first]].features:
			first = i
		case part[order[first]] == leftOut || part[at] == leftOut:
			first = i
		case part[at] != part[order[first]]:
			pairs = append(pairs, [2]uint32{order[first], at})
		}
	}
	slices.SortFunc(pairs, func(a, b [2]uint32) int { return cmp.Compare(a[1], b[1]) })
	leaks := newLeaks()
	for _, pair := range pairs {
		place := func(i uint32) Place { return Place{Part: names[part[i]], Path: s.path, Line: int(s.rows[i].line)} }
		leaks[2].add(place(pair[0]), place(pair[1]))
	}
	return occurred(leaks)
}

// leakFindings say what the leaks mean.
func leakFindings(leaks []Leak) []finding.Finding {
	var out []finding.Finding
	for _, leak := range leaks {
		example := leak.Examples[0]
		f := finding.Finding{Code: "leakage_" + strings.SplitN(leak.Kind, "_", 2)[0], Severity: leak.Severity,
			Where: &finding.Where{Path: example.Second.Path, Line: example.Second.Line}}
		pair := fmt.Sprintf("line %d of %s and line %d of %s", example.First.Line, example.First.Part, example.Second.Line, example.Second.Part)
		switch leak.Kind {
		case LeakID:
			f.What = fmt.Sprintf("%d row(s) have an id that an earlier part has too, such as %q in %s", leak.Count, shorten(example.Second.ID, longestShown), pair)
			f.Expected, f.Remedy = "ids in one part only", "remove these rows from the later part"
		case LeakRow:
			f.What = fmt.Sprintf("%d row(s) equal a row of an earlier part, such as %s", leak.Count, pair)
			f.Expected, f.Remedy = "rows in one part only", "remove these rows from the later part"
		case LeakFeatures:
			f.What = fmt.Sprintf("%d row(s) have the same features as a row of an earlier part, such as %s", leak.Count, pair)
			f.Expected, f.Remedy = "samples that training has not seen", "check whether they are the same sample; if so, keep them in one part"
		}
		out = append(out, f)
	}
	return out
}

// seenRow is where a hash was met first.
type seenRow struct {
	part uint8
	line uint32
}

// partsChecker walks the parts in order and remembers what it met.
type partsChecker struct {
	seed     maphash.Seed
	names    []string
	paths    map[string]string
	id       string
	target   string
	shared   []string // columns that all parts have, in the order of the first
	ids      map[uint64]seenRow
	rows     map[uint64]seenRow
	features map[uint64]seenRow
	leaks    []Leak
	read     int64
	buf      []byte
}

// CheckParts looks for rows that more than one part has: by id, equal, or with the same features (spelling, case and missing spellings
// aside, without id and target). Only columns that all parts have are compared. Findings: leakage_id, leakage_row,
// leakage_features, columns_differ, leakage_unchecked where there are more than five million rows. Refused: damaged
// files, column_unknown for the id, columns_differ where nothing can be compared.
func CheckParts(ctx context.Context, parts map[string]string, idColumn, target string) ([]Leak, []finding.Finding, error) {
	return checkParts(ctx, parts, idColumn, target, Dialect{})
}

func checkParts(ctx context.Context, parts map[string]string, id, target string, dialect Dialect) ([]Leak, []finding.Finding, error) {
	c := &partsChecker{seed: maphash.MakeSeed(), names: sortedParts(parts), paths: parts, id: id, target: target,
		ids: map[uint64]seenRow{}, rows: map[uint64]seenRow{}, features: map[uint64]seenRow{}, leaks: newLeaks()}
	out, err := c.agree(ctx, dialect)
	if err != nil {
		return nil, nil, err
	}
	for i := range c.names {
		if err := c.walk(ctx, uint8(i), dialect); err != nil {
			return nil, nil, err
		}
	}
	if c.read > maxHashed {
		out = append(out, finding.Finding{Code: "leakage_unchecked", Severity: finding.Warning,
			What:     fmt.Sprintf("only the first %d rows of the parts were compared, of %d", maxHashed, c.read),
			Expected: "all rows compared", Remedy: "report disjointness as unchecked beyond that"})
	}
	leaks := occurred(c.leaks)
	return leaks, append(out, leakFindings(leaks)...), nil
}

// maxHashed is how many rows of parts are compared for equality, at some 50 bytes of memory each.
const maxHashed = 5_000_000

// agree finds the columns that all parts share.
func (c *partsChecker) agree(ctx context.Context, dialect Dialect) ([]finding.Finding, error) {
	var out []finding.Finding
	for i, name := range c.names {
		t, err := openTable(ctx, c.paths[name], dialect)
		if err != nil {
			return nil, err
		}
		t.close()
		if f := t.unknown(c.id); f != nil {
			return nil, finding.Refuse(*f)
		}
		if i == 0 {
			c.shared = slices.Clone(t.names)
			continue
		}
		lacks := slices.DeleteFunc(slices.Clone(c.shared), func(column string) bool { _, ok := t.index[column]; return ok })
		extra := slices.DeleteFunc(slices.Clone(t.names), func(column string) bool { return slices.Contains(c.shared, column) })
		if len(lacks)+len(extra) == 0 {
			continue
		}
		out = append(out, finding.Finding{Code: "columns_differ", Severity: finding.Warning,
			What:  fmt.Sprintf("%s lacks the columns [%s] of %s and has [%s] besides", name, listed(lacks), c.names[0], listed(extra)),
			Where: &finding.Where{Path: t.path, Line: 1}, Expected: "the same columns in every part", Remedy: "correct the header; only shared columns are compared"})
		c.shared = slices.DeleteFunc(c.shared, func(column string) bool { return slices.Contains(lacks, column) })
	}
	if !slices.ContainsFunc(c.shared, func(column string) bool { return column != c.id && column != c.target }) && len(c.names) > 0 {
		return nil, finding.Refuse(append(out, finding.Finding{Code: "columns_differ", Severity: finding.Error, What: "the parts share no feature column",
			Where: &finding.Where{Path: c.paths[c.names[0]], Line: 1}, Expected: "the same columns in every part", Remedy: "check that these files are parts of one data set"})...)
	}
	return out, nil
}

// walk compares one part with those before it.
func (c *partsChecker) walk(ctx context.Context, part uint8, dialect Dialect) error {
	path := c.paths[c.names[part]]
	t, err := openTable(ctx, path, dialect)
	if err != nil {
		return err
	}
	defer t.close()
	columns := make([]int, len(c.shared))
	for i, name := range c.shared {
		columns[i] = t.index[name]
	}
	id := t.column(c.id)
	return t.each(ctx, func(r *Record) error {
		if c.read++; c.read <= maxHashed {
			c.compare(part, t.id(r, id), r, columns, id)
		}
		return nil
	})
}

func (c *partsChecker) compare(part uint8, id string, r *Record, columns []int, idColumn int) {
	here := seenRow{part: part, line: uint32(r.Line)}
	var kinds [3]uint64
	if idColumn >= 0 {
		kinds[0] = maphash.String(c.seed, id)
	}
	c.buf = c.buf[:0]
	for i, column := range columns {
		if c.shared[i] != c.id {
			c.buf = appendExact(c.buf, r.Fields[column])
		}
	}
	kinds[1] = maphash.Bytes(c.seed, c.buf)
	c.buf = c.buf[:0]
	for i, column := range columns {
		if c.shared[i] != c.id && c.shared[i] != c.target {
			c.buf = appendNormal(c.buf, r.Fields[column])
		}
	}
	kinds[2] = maphash.Bytes(c.seed, c.buf)
	told := false
	for kind, seen := range []map[uint64]seenRow{c.ids, c.rows, c.features} {
		if kind == 0 && idColumn < 0 {
			continue
		}
		first, known := seen[kinds[kind]]
		if !known {
			seen[kinds[kind]] = here
		} else if first.part != part && !told {
			told = true
			c.leaks[kind].add(c.place(first, ""), c.place(here, id))
		}
	}
}

func (c *partsChecker) place(at seenRow, id string) Place {
	name := c.names[at.part]
	place := Place{Part: name, Path: c.paths[name], Line: int(at.line)}
	if c.id != "" {
		place.ID = id
	}
	return place
}
