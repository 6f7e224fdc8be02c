package dataset

import (
	"cmp"
	"math/bits"
	"slices"
)

// hashSet is a set of hashes by open addressing: 8 bytes a slot, at most half full while it fits the processor's cache, and
// three quarters beyond. 0 stands for an empty slot, so the hash 0 is taken for 1.
type hashSet struct {
	slots []uint64
	shift uint8 // what takes a product with spread to a slot
	n     int
	most  int // hashes that the slots take
}

// roomy is how many slots are filled by half only.
const roomy = 1 << 15

// add puts a hash in and says whether it is new.
func (s *hashSet) add(hash uint64) bool {
	hash = max(hash, 1)
	if s.n == s.most {
		s.grow()
	}
	mask := uint64(len(s.slots) - 1)
	for i := hash * spread >> s.shift; ; i++ {
		switch s.slots[i&mask] {
		case hash:
			return false
		case 0:
			s.slots[i&mask] = hash
			s.n++
			return true
		}
	}
}

func (s *hashSet) grow() {
	old := s.slots
	size := max(64, 2*len(old))
	*s = hashSet{slots: make([]uint64, size), shift: uint8(65 - bits.Len(uint(size))), most: size / 2}
	if size > roomy {
		s.most = size / 4 * 3
	}
	for _, hash := range old {
		if hash != 0 {
			s.add(hash)
		}
	}
}

// frequencies counts the distinct values of a column, exactly up to a bound, and follows how often each stands as long as
// there are few of them. It works on 64-bit hashes: two values are taken for one about once in 10^13 pairs of columns.
type frequencies struct {
	bound     int // distinct values counted exactly
	seen      hashSet
	over      bool // there are more than bound
	counts    tally
	unfollow  bool // there are too many to follow new ones
	followMax int
}

// followed is how many values of a column are followed by their text.
const followed = 4096

func newFrequencies(bound int) frequencies {
	return frequencies{bound: bound, followMax: min(bound, followed)}
}

// wanted says whether further values change anything.
func (f *frequencies) wanted() bool { return !f.over || len(f.counts.values) > 0 }

// add takes the next value while new ones are followed.
func (f *frequencies) add(key uint64, value []byte) {
	if known := f.counts.find(key); known != nil { // what is followed was seen before
		known.Count++
		return
	}
	f.see(key)
	if len(f.counts.values) < f.followMax {
		f.counts.add(key, ValueCount{Value: shorten(text(value), longestShown), Count: 1})
		return
	}
	// From now on only values met twice already are followed: the others can hardly become the most frequent, and a
	// column of all different values costs nothing any more.
	f.unfollow = true
	f.counts.dropSingles()
}

// addAll takes values once no new ones are followed.
func (f *frequencies) addAll(keys []uint64) {
	if len(f.counts.values) > 0 {
		unknown := keys[:0]
		for _, key := range keys {
			if known := f.counts.find(key); known != nil {
				known.Count++
			} else {
				unknown = append(unknown, key)
			}
		}
		keys = unknown
	}
	for _, key := range keys {
		if f.over {
			return
		}
		f.see(key)
	}
}

// see counts a value that is not followed, and every followed one once.
func (f *frequencies) see(key uint64) {
	if !f.over && f.seen.add(key) && f.seen.n > f.bound {
		f.over, f.seen.slots = true, nil
	}
}

// distinct is the number of distinct values, and whether it is only a lower bound.
func (f *frequencies) distinct() (n int64, atLeast bool) {
	return int64(min(f.seen.n, f.bound)), f.over
}

// top returns the n most frequent values, ties by text.
func (f *frequencies) top(n int) []ValueCount {
	var top []ValueCount
	order := func(a, b ValueCount) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value)) }
	for _, count := range f.counts.values {
		if len(top) == n && order(count, top[n-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, count, order)
		top = slices.Insert(top, at, count)
		top = top[:min(len(top), n)]
	}
	return top
}
