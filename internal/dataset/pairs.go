package dataset

import (
	"cmp"
	"math"
	"slices"
)

// pairSample keeps between 64 and 128 pairs of numbers, evenly spread over those that came.
type pairSample struct {
	kept   [][2]float64
	seen   int64
	stride int64
}

const samplePairs = 128

func (s *pairSample) add(x, y float64) {
	s.stride = max(s.stride, 1)
	if s.seen++; (s.seen-1)%s.stride != 0 {
		return
	}
	if len(s.kept) == samplePairs {
		for i := range samplePairs / 2 {
			s.kept[i] = s.kept[2*i]
		}
		s.kept = s.kept[:samplePairs/2]
		if s.stride *= 2; (s.seen-1)%s.stride != 0 {
			return
		}
	}
	s.kept = append(s.kept, [2]float64{x, y})
}

// ranks is Spearman's correlation of the sample: Pearson's of the ranks, equal values sharing their mean rank. 0 where it is not defined.
func (s *pairSample) ranks() float64 {
	x, y := ranksOf(s.kept, 0), ranksOf(s.kept, 1)
	middle := float64(len(s.kept)-1) / 2
	var xx, yy, xy float64
	for i := range x {
		dx, dy := x[i]-middle, y[i]-middle
		xx, yy, xy = xx+dx*dx, yy+dy*dy, xy+dx*dy
	}
	if xx <= 0 || yy <= 0 {
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}

func ranksOf(pairs [][2]float64, side int) []float64 {
	order := make([]int, len(pairs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(pairs[a][side], pairs[b][side]) })
	ranks := make([]float64, len(pairs))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && pairs[order[to]][side] == pairs[order[from]][side] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return ranks
}
