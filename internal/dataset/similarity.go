package dataset

import (
	"bytes"
	"context"
	"slices"
)

// Sequences are compared by the k-mers they share, as Mash does (Ondov et al. 2016, doi:10.1186/s13059-016-0997-x): of each
// sequence the smallest hashes of its k-mers are kept, and two sequences are alike where enough of the smaller sketch is in
// the other. Alike sequences are joined by single linkage, so that no pair above the bound is ever parted.
const (
	maxSequences     = 500_000
	sketchSize       = 128
	nucleotideLength = 8   // k for sequences of A, C, G, T, U and N
	residueLength    = 4   // k for others: proteins
	alikeShare       = 0.5 // of the smaller sketch
	commonHash       = 2000
)

// clusters gathers the sketches of sequences.
type clusters struct {
	sketches [][]uint64
	scratch  []uint64
}

func (c *clusters) add(sequence []byte) {
	sequence = bytes.ToUpper(sequence)
	k := residueLength
	if len(bytes.Trim(sequence, "ACGTUN-")) == 0 {
		k = nucleotideLength
	}
	k = min(k, len(sequence))
	c.scratch = c.scratch[:0]
	for i := 0; i+k <= len(sequence); i++ {
		c.scratch = append(c.scratch, mix(sequence[i:i+k]))
	}
	slices.Sort(c.scratch)
	distinct := slices.Compact(c.scratch)
	c.sketches = append(c.sketches, slices.Clone(distinct[:min(len(distinct), sketchSize)]))
}

// mix is FNV-1a with the finishing steps of splitmix64: short k-mers need their bits spread, alike on every machine.
func mix(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// leaders names for each sequence the first one of its cluster. A hash that more than two thousand sequences have joins
// nothing by itself: low-complexity repeats would make one cluster of everything, and take quadratic time.
func (c *clusters) leaders(ctx context.Context) ([]int, error) {
	parent := make([]int, len(c.sketches))
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	holders, shared := map[uint64][]int32{}, map[int32]int{}
	for i, sketch := range c.sketches {
		if i&0xfff == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		clear(shared)
		for _, hash := range sketch {
			with := holders[hash]
			for _, other := range with {
				shared[other]++
			}
			if len(with) < commonHash {
				holders[hash] = append(with, int32(i))
			}
		}
		for other, count := range shared {
			if float64(count) >= alikeShare*float64(min(len(sketch), len(c.sketches[other]))) {
				a, b := root(i), root(int(other))
				parent[max(a, b)] = min(a, b)
			}
		}
	}
	for i := range parent {
		parent[i] = root(i)
	}
	return parent, nil
}
