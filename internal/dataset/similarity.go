package dataset

import (
	"bytes"
	"cmp"
	"context"
	"hash/maphash"
	"math"
	"slices"
)

// Sequences are compared by the k-mers they share, as Mash does (Ondov et al. 2016, doi:10.1186/s13059-016-0997-x): of each
// sequence the smallest hashes of its k-mers are kept, and two sequences are alike where enough of one are in the other, counted among
// the hashes that both could hold. Alike sequences are joined by single linkage, so that no pair above the bound is parted.
const (
	maxSequences     = 500_000
	sketchSize       = 128
	nucleotideLength = 12  // k for DNA and RNA: 16 million k-mers, so that ten thousand bases share few by chance
	residueLength    = 4   // k for others: proteins
	nucleotideShare  = 0.9 // of the letters are A, C, G, T, U or N: DNA or RNA, with letters for ambiguous bases
	alikeShare       = 0.5 // of residues' hashes
	alikeBases       = 0.4 // of bases' hashes, since k is longer: 0.4 of 12-mers is about 0.93 identity, 0.5 of 4-mers 0.84
	fewestHashes     = 12  // two sketches with fewer hashes in common reach are compared only when one is whole
	commonHash       = 2000
)

// clusters gathers the sketches of sequences: hashes[from[i]:from[i+1]] are those of sequence i, smallest first.
type clusters struct {
	hashes  []uint64
	from    []int
	cut     []bool // the sequence has more k-mers than its sketch
	bases   []bool
	scratch []uint64
	letters []byte
}

// add sketches a sequence. Spaces, gaps and stops are no part of it; U is T; a strand and its complement are one; k-mers with an unknown
// letter (N, X) are left out.
func (c *clusters) add(sequence []byte) {
	bases := c.read(sequence)
	k, unknown := residueLength, byte('X')
	if bases {
		k, unknown = nucleotideLength, 'N'
	}
	k = min(k, max(len(c.letters), 1))
	c.scratch = c.scratch[:0]
	for i := 0; i+k <= len(c.letters); i++ {
		if kmer := c.letters[i : i+k]; bytes.IndexByte(kmer, unknown) < 0 {
			hash := mix(kmer)
			if bases {
				hash = min(hash, mixComplement(kmer))
			}
			c.scratch = append(c.scratch, hash)
		}
	}
	if len(c.scratch) == 0 {
		c.scratch = append(c.scratch, mix(c.letters))
	}
	slices.Sort(c.scratch)
	distinct := slices.Compact(c.scratch)
	if len(c.from) == 0 {
		c.from = append(c.from, 0)
	}
	c.hashes = append(c.hashes, distinct[:min(len(distinct), sketchSize)]...)
	c.from, c.cut, c.bases = append(c.from, len(c.hashes)), append(c.cut, len(distinct) > sketchSize), append(c.bases, bases)
}

// read puts the letters of a sequence into c.letters and says whether they are bases.
func (c *clusters) read(sequence []byte) (bases bool) {
	c.letters = c.letters[:0]
	known := 0
	for _, letter := range bytes.ToUpper(sequence) {
		switch letter {
		case ' ', '\t', '\r', '\n', '-', '.', '*':
			continue
		case 'A', 'C', 'G', 'T', 'U', 'N':
			known++
		}
		c.letters = append(c.letters, letter)
	}
	bases = known > 0 && float64(known) >= nucleotideShare*float64(len(c.letters))
	if bases {
		for i, letter := range c.letters {
			switch letter {
			case 'U':
				c.letters[i] = 'T'
			case 'A', 'C', 'G', 'T':
			default:
				c.letters[i] = 'N' // an ambiguous base
			}
		}
	}
	return bases
}

// mix is FNV-1a with the finishing steps of splitmix64: short k-mers need their bits spread, alike on every machine.
func mix(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return finish(h)
}

var complement = [256]byte{'A': 'T', 'C': 'G', 'G': 'C', 'T': 'A'}

// mixComplement is mix of the other strand.
func mixComplement(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for i := len(b) - 1; i >= 0; i-- {
		h = (h ^ uint64(complement[b[i]])) * 1099511628211
	}
	return finish(h)
}

func finish(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

func (c *clusters) sketch(i int) []uint64 { return c.hashes[c.from[i]:c.from[i+1]] }

// alike compares two sketches. Only hashes up to the largest that both sketches reach can be in both, so that a part of a long sequence is
// found in the whole.
func (c *clusters) alike(i, j int) bool {
	if c.bases[i] != c.bases[j] {
		return false
	}
	a, b := c.sketch(i), c.sketch(j)
	reach := uint64(math.MaxUint64)
	if c.cut[i] {
		reach = a[len(a)-1]
	}
	if c.cut[j] {
		reach = min(reach, b[len(b)-1])
	}
	common, inA, inB := 0, 0, 0
	for inA < len(a) && inB < len(b) && max(a[inA], b[inB]) <= reach {
		switch {
		case a[inA] < b[inB]:
			inA++
		case a[inA] > b[inB]:
			inB++
		default:
			common, inA, inB = common+1, inA+1, inB+1
		}
	}
	for inA < len(a) && a[inA] <= reach {
		inA++
	}
	for inB < len(b) && b[inB] <= reach {
		inB++
	}
	fewer, share := min(inA, inB), alikeShare
	if c.bases[i] {
		share = alikeBases
	}
	if fewer < fewestHashes && (c.cut[i] || c.cut[j]) {
		return common == fewer && fewer >= fewestHashes/2
	}
	return common > 0 && float64(common) >= share*float64(fewer)
}

// leaders names for each sequence the first one of its cluster. Where more than two thousand sequences have a hash, each is held against
// the first and the last thousand before it only: low-complexity repeats would take quadratic time.
func (c *clusters) leaders(ctx context.Context) ([]int, error) {
	parent := make([]int, len(c.cut))
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
	join := func(i, j int) {
		a, b := root(i), root(j)
		parent[max(a, b)] = min(a, b)
	}
	twins := c.twins(join)
	holders, list := c.holders(twins)
	common, touched := make([]uint16, len(parent)), []int32{}
	for i := range parent {
		if i&0xff == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if twins[i] {
			continue
		}
		count := func(with []int32) {
			for _, other := range with {
				if common[other]++; common[other] == 1 {
					touched = append(touched, other)
				}
			}
		}
		touched = touched[:0]
		for e := c.from[i]; e < c.from[i+1]; e++ {
			at := list[e]
			if at.known <= commonHash {
				count(holders[at.first : at.first+at.known])
				continue
			}
			count(holders[at.first : at.first+commonHash/2])
			count(holders[at.first+at.known-commonHash/2 : at.first+at.known])
		}
		for _, other := range touched {
			// A capped list may hide a part of what is common, so that a few hashes are reason enough to look.
			j, shared := int(other), int(common[other])
			common[other] = 0
			if (shared >= 3 || 4*shared >= min(len(c.sketch(i)), len(c.sketch(j)))) && root(i) != root(j) && c.alike(i, j) {
				join(i, j)
			}
		}
	}
	for i := range parent {
		parent[i] = root(i)
	}
	return parent, nil
}

// twins joins sequences whose sketches are equal, and marks all but the first.
func (c *clusters) twins(join func(i, j int)) []bool {
	twin, seen, seed := make([]bool, len(c.cut)), map[uint64]int{}, maphash.MakeSeed()
	for i := range twin {
		key := maphash.Comparable(seed, [3]uint64{})
		for _, hash := range c.sketch(i) {
			key = maphash.Comparable(seed, [2]uint64{key, hash})
		}
		first, known := seen[key]
		switch {
		case !known:
			seen[key] = i
		case c.bases[i] == c.bases[first] && c.cut[i] == c.cut[first] && slices.Equal(c.sketch(i), c.sketch(first)):
			twin[i] = true
			join(first, i)
		}
	}
	return twin
}

// held is where the earlier holders of a hash stand.
type held struct{ first, known int32 }

// holders lists the sequences by the hashes they have, in their order, and for each place in c.hashes which of them come before.
func (c *clusters) holders(twins []bool) (by []int32, list []held) {
	owner := make([]int32, len(c.hashes))
	order := make([]int32, 0, len(c.hashes))
	for i := range twins {
		for e := c.from[i]; e < c.from[i+1]; e++ {
			if owner[e] = int32(i); !twins[i] {
				order = append(order, int32(e))
			}
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(c.hashes[a], c.hashes[b]), cmp.Compare(a, b)) })
	by, list = make([]int32, len(order)), make([]held, len(c.hashes))
	first := 0
	for at, e := range order {
		if c.hashes[e] != c.hashes[order[first]] {
			first = at
		}
		by[at], list[e] = owner[e], held{int32(first), int32(at - first)}
	}
	return by, list
}
