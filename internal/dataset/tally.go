package dataset

// tally counts values by their 64-bit hash: open addressing over indexes, at most half full, so that a value that is not
// followed mostly costs one look.
type tally struct {
	slots  []uint32 // index into values, plus one; 0 is empty
	hashes []uint64
	values []ValueCount
}

// find gives the count of a value, nil where it is not followed. It holds until the next add.
func (t *tally) find(hash uint64) *ValueCount {
	if len(t.slots) == 0 {
		return nil
	}
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; t.slots[i] != 0; i = (i + 1) & mask {
		if at := t.slots[i] - 1; t.hashes[at] == hash {
			return &t.values[at]
		}
	}
	return nil
}

// add follows a value that find does not know.
func (t *tally) add(hash uint64, value ValueCount) {
	t.hashes, t.values = append(t.hashes, hash), append(t.values, value)
	if 2*len(t.values) > len(t.slots) {
		t.slots = make([]uint32, max(16, 2*len(t.slots)))
		for at := range t.values {
			t.place(at)
		}
		return
	}
	t.place(len(t.values) - 1)
}

func (t *tally) place(at int) {
	mask := uint64(len(t.slots) - 1)
	i := t.hashes[at] & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = uint32(at) + 1
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
