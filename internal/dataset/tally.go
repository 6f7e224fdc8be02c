package dataset

import "math/bits"

// tally counts values by their 64-bit hash: open addressing over indexes, at most half full and an eighth while that is little,
// so that a value mostly costs one look.
type tally struct {
	slots  []uint64 // the high half of the hash above the index into values plus one; 0 is empty
	shift  uint8    // what takes a product with spread to a slot
	hashes []uint64
	values []ValueCount
}

const tallyIndex = 1<<32 - 1

// find gives the count of a value, nil where it is not followed. It holds until the next add.
func (t *tally) find(hash uint64) *ValueCount {
	if len(t.slots) == 0 {
		return nil
	}
	mask := uint64(len(t.slots) - 1)
	for i := hash * spread >> t.shift; ; i++ {
		slot := t.slots[i&mask]
		if slot == 0 {
			return nil
		}
		if slot>>32 == hash>>32 {
			if at := slot&tallyIndex - 1; t.hashes[at] == hash {
				return &t.values[at]
			}
		}
	}
}

// add follows a value that find does not know.
func (t *tally) add(hash uint64, value ValueCount) {
	t.hashes, t.values = append(t.hashes, hash), append(t.values, value)
	if n := len(t.slots); 2*len(t.values) > n || 8*len(t.values) > n && n < 1024 {
		t.slots = make([]uint64, max(16, 2*n))
		t.shift = uint8(65 - bits.Len(uint(len(t.slots))))
		for at := range t.values {
			t.place(at)
		}
		return
	}
	t.place(len(t.values) - 1)
}

func (t *tally) place(at int) {
	mask, hash := uint64(len(t.slots)-1), t.hashes[at]
	i := hash * spread >> t.shift
	for t.slots[i&mask] != 0 {
		i++
	}
	t.slots[i&mask] = hash&^tallyIndex | uint64(at+1)
}

// dropSingles forgets the values that were met once.
func (t *tally) dropSingles() {
	old := *t
	*t = tally{}
	for at, value := range old.values {
		if value.Count > 1 {
			t.add(old.hashes[at], value)
		}
	}
}
