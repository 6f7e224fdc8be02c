package dataset

import (
	"fmt"
	"math"
	"slices"

	"github.com/trainwright/trainwright/internal/finding"
)

const (
	fewLabels   = 20 // distinct words of a target that names classes
	fewCodes    = 10 // distinct whole numbers of one
	rowsOfLabel = 10 // on average; below that a target with few rows would be taken for classes
	noLabel     = math.MaxUint8
)

// labels follows the classes of a target that a split is not made by, to tell of those that a part lacks. It gives up on a target of many
// values or of decimal numbers.
type labels struct {
	of    []uint8 // by row
	names []string
	known map[string]uint8
	codes bool // some are whole numbers
	over  bool
}

func (l *labels) add(value []byte) {
	if l.over {
		return
	}
	k, _ := classify(value)
	if k == kindMissing {
		l.of = append(l.of, noLabel)
		return
	}
	label, known := l.known[string(value)]
	l.codes = l.codes || k == kindInteger
	if most := map[bool]int{true: fewCodes, false: fewLabels}[l.codes]; !known && len(l.names) == most || k == kindNumber || k == kindNonFinite {
		*l = labels{over: true}
		return
	}
	if !known {
		if l.known == nil {
			l.known = map[string]uint8{}
		}
		label = uint8(len(l.names))
		l.known[string(value)], l.names = label, append(l.names, shorten(text(value), longestShown))
	}
	l.of = append(l.of, label)
}

// absent tells which classes a part lacks: a score of them would be of nothing.
func (l *labels) absent(path, target string, names []string, part []uint8) []finding.Finding {
	if len(l.names) < 2 || len(l.of) != len(part) || len(part) < rowsOfLabel*len(l.names) {
		return nil
	}
	counts := make([][]int64, len(names))
	for p := range counts {
		counts[p] = make([]int64, len(l.names))
	}
	for i, label := range l.of {
		if label != noLabel && part[i] != leftOut {
			counts[part[i]][label]++
		}
	}
	var found []finding.Finding
	for p, tally := range counts {
		var absent []string
		for label, n := range tally {
			if n == 0 {
				absent = append(absent, l.names[label])
			}
		}
		if slices.Sort(absent); len(absent) > 0 {
			found = append(found, finding.Finding{Code: "class_not_in_part", Severity: finding.Warning, Where: &finding.Where{Path: path, Field: target},
				What:     fmt.Sprintf("%q has no row of %d class(es) of %s: %s", names[p], len(absent), target, listed(absent)),
				Expected: "every class in every part", Remedy: "choose another seed or other fractions, or report their scores as unknown"})
		}
	}
	return found
}
