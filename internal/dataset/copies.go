package dataset

import (
	"fmt"
	"hash/maphash"
	"math"

	"github.com/trainwright/trainwright/internal/finding"
)

// A feature that gives the target away is a near-copy of it: the same number in another unit or rounded, or the same classes
// under other names.
const (
	copyCorrelation = 0.9999  // |r| of two columns that are one quantity, rounding included
	copyRanks       = 0.95    // of the order of a sample: a few far values, such as -9999 in both columns, make no copy
	copyRows        = 20      // fewer rows prove nothing
	copyValues      = 100_000 // distinct values followed; a column with more names no classes
	copyBudget      = 1 << 20 // distinct values followed in all columns together, at about 80 bytes
	copyUnique      = 4096    // values without a single repetition: names no classes either
)

// copies compares every column with the target while the file is read.
type copies struct {
	target  int
	values  int // distinct values followed in each column
	columns []pairing
}

// pairing is what one column has in common with the target.
type pairing struct {
	n                   int64
	meanX, meanY        float64
	sumXX, sumYY, sumXY float64 // about the means (Welford)
	words               bool    // values that are no numbers: not a linear copy
	forth, back         map[uint64]uint64
	apart               bool // some value goes with two targets, or some target with two values
	filled              int64
	sample              pairSample
}

func newCopies(target, columns int) *copies {
	if target < 0 {
		return &copies{target: target}
	}
	return &copies{target: target, values: min(max(copyBudget/max(columns, 1), 64), copyValues), columns: make([]pairing, columns)}
}

func (c *copies) add(seed maphash.Seed, r *Record) {
	if c.target < 0 {
		return
	}
	goal := trim(r.Fields[c.target])
	goalKind, y := classify(goal)
	if goalKind == kindMissing {
		return
	}
	goalHash := maphash.Bytes(seed, goal)
	for i := range c.columns {
		if p := &c.columns[i]; i != c.target && !(p.apart && p.words) {
			p.add(seed, trim(r.Fields[i]), goalHash, y, goalKind == kindInteger || goalKind == kindNumber, c.values)
		}
	}
}

func (p *pairing) add(seed maphash.Seed, value []byte, goal uint64, y float64, numeric bool, most int) {
	k, x := classify(value)
	if k == kindMissing {
		return
	}
	p.filled++
	if !numeric || k != kindInteger && k != kindNumber {
		p.words = true
	} else if !p.words {
		p.n++
		dx, dy := x-p.meanX, y-p.meanY
		p.meanX += dx / float64(p.n)
		p.meanY += dy / float64(p.n)
		p.sumXX += dx * (x - p.meanX)
		p.sumYY += dy * (y - p.meanY)
		p.sumXY += dx * (y - p.meanY)
		p.sample.add(x, y)
	}
	if p.apart {
		return
	}
	if p.forth == nil {
		p.forth, p.back = map[uint64]uint64{}, map[uint64]uint64{}
	}
	own := maphash.Bytes(seed, value)
	seen, known := p.forth[own]
	from, knownBack := p.back[goal]
	if known && seen != goal || knownBack && from != own || len(p.forth) > most ||
		len(p.forth) == copyUnique && p.filled == copyUnique+1 {
		p.apart, p.forth, p.back = true, nil, nil
		return
	}
	p.forth[own], p.back[goal] = goal, own
}

// correlation is Pearson's r, 0 where it is not defined.
func (p *pairing) correlation() float64 {
	if p.words || p.sumXX <= 0 || p.sumYY <= 0 {
		return 0
	}
	return p.sumXY / math.Sqrt(p.sumXX*p.sumYY)
}

// how says in which way the column is the target, "" where it is not.
func (p *pairing) how() string {
	switch r := p.correlation(); {
	case p.filled < copyRows:
	case math.Abs(r) >= copyCorrelation && math.Abs(p.sample.ranks()) >= copyRanks:
		return fmt.Sprintf("correlates with it at r = %.6f over %d rows", r, p.n)
	case !p.apart && len(p.forth) > 1 && p.filled >= 2*int64(len(p.forth)): // values that never repeat go with any target
		return fmt.Sprintf("has exactly one value for each of its %d values, over %d rows", len(p.forth), p.filled)
	}
	return ""
}

// findings name the columns that give the target away.
func (c *copies) findings(path string, names []string, id string) []finding.Finding {
	var out []finding.Finding
	for i := range c.columns {
		how := c.columns[i].how()
		if how == "" || names[i] == id {
			continue
		}
		out = append(out, finding.Finding{Code: "target_in_features", Severity: finding.Warning,
			What:     fmt.Sprintf("column %q gives the target %q away: it %s", names[i], names[c.target], how),
			Where:    &finding.Where{Path: path, Line: 1, Field: names[i]},
			Expected: "features that are known before the target is", Remedy: "take the column out of the data that the script reads, unless it is known at prediction time"})
	}
	return out
}
