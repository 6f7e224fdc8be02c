package dataset

import (
	"context"
	"fmt"

	"github.com/trainwright/trainwright/internal/finding"
)

// What is checked of parts that were made elsewhere, beside what parts of any origin are checked for: a class that a part lacks,
// and sequences that are alike across parts.

// LeakSimilar is a sequence of a later part that an earlier one has in a similar form.
const LeakSimilar = "similarity_across_parts"

// eachPart visits a column of every part in order, with the part's index and the row's line.
func eachPart(ctx context.Context, spec SplitSpec, column string, visit func(part uint8, line int, value []byte)) ([]string, error) {
	var names []string
	for _, name := range Parts {
		path := spec.Files[name]
		if path == "" {
			continue
		}
		names = append(names, name)
		t, err := openTable(ctx, path, spec.Dialect)
		if err != nil {
			return nil, err
		}
		at, known := t.index[column]
		for known {
			record, err := t.next(ctx)
			if err != nil {
				break // its end, or damage that the reading before has told
			}
			if at < len(record.Fields) {
				visit(uint8(len(names)-1), record.Line, trim(record.Fields[at]))
			}
		}
		t.close()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// absentClasses tells which classes of the target a part lacks. A part without the column is no part of the question.
func absentClasses(ctx context.Context, spec SplitSpec) ([]finding.Finding, error) {
	if spec.Target == "" {
		return nil, nil
	}
	var l labels
	var of []uint8
	has := map[uint8]bool{}
	names, err := eachPart(ctx, spec, spec.Target, func(part uint8, _ int, value []byte) {
		if l.over {
			return
		}
		l.add(value)
		of = append(of, part)
		has[part] = true
	})
	if err != nil || len(has) < 2 || len(has) < len(names) {
		return nil, err
	}
	return l.absent(spec.Files[Train], spec.Target, names, of), nil
}

// similarAcross looks for sequences of later parts that are alike one of an earlier part.
func similarAcross(ctx context.Context, spec SplitSpec) (*Leak, []finding.Finding, error) {
	if spec.Sequence == "" {
		return nil, nil, nil
	}
	var sketches clusters
	var of []uint8
	var lines []int
	more := false
	names, err := eachPart(ctx, spec, spec.Sequence, func(part uint8, line int, value []byte) {
		if more = more || len(of) == maxSequences; more {
			return
		}
		sketches.add(value)
		of, lines = append(of, part), append(lines, line)
	})
	if err != nil || len(of) == 0 {
		return nil, nil, err
	}
	leaders, err := sketches.leaders(ctx)
	if err != nil {
		return nil, nil, err
	}
	leak := Leak{Kind: LeakSimilar, Severity: finding.Warning}
	place := func(i int) Place {
		return Place{Part: names[of[i]], Path: spec.Files[names[of[i]]], Line: lines[i]}
	}
	for i, leader := range leaders { // parts come in order, so that the leader is of the earliest part of its cluster
		if of[leader] != of[i] {
			leak.add(place(leader), place(i))
		}
	}
	var found []finding.Finding
	if more {
		found = append(found, finding.Finding{Code: "leakage_unchecked", Severity: finding.Warning, What: fmt.Sprintf("only the first %d sequences were compared", maxSequences),
			Expected: "all of them", Remedy: "report the rest as unchecked"})
	}
	if leak.Count == 0 {
		return nil, found, nil
	}
	example := leak.Examples[0]
	return &leak, append(found, finding.Finding{Code: "leakage_similarity", Severity: leak.Severity, Where: &finding.Where{Path: example.Second.Path, Line: example.Second.Line, Field: spec.Sequence},
		What:     fmt.Sprintf("%d sequence(s) are alike one of an earlier part, such as line %d of %s and line %d of %s", leak.Count, example.First.Line, example.First.Part, example.Second.Line, example.Second.Part),
		Expected: "families of sequences in one part", Remedy: fmt.Sprintf("split anew: {\"strategy\": \"similarity\", \"sequence\": %q}; or report the score as one of known families", spec.Sequence)}), nil
}
