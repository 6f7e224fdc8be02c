package dataset

import (
	"bytes"
	"hash/maphash"
)

// columnSides is how many goroutines the columns are dealt out to. It changes nothing in what comes out.
const columnSides = 2

// columnSide gathers every columnSides-th column. It takes a batch column by column, so that what a column knows stays in the
// processor's cache, and works ahead on one value while it waits for another.
type columnSide struct {
	first   int
	columns []*gatherer
	fresh   func() *gatherer
	taken   int64 // records
	keys    []uint64
}

func newColumnSide(first, columns int, fresh func() *gatherer) *columnSide {
	s := &columnSide{first: first, fresh: fresh}
	for i := first; i < columns; i += columnSides {
		s.columns = append(s.columns, fresh())
	}
	return s
}

func (s *columnSide) take(b *batch) {
	columns := b.columns()
	for n, i := 0, s.first; i < columns; n, i = n+1, i+columnSides {
		from := 0
		if n == len(s.columns) { // a key that no row before had
			from = b.from(i)
			late := s.fresh()
			late.kinds[kindMissing] = s.taken + int64(from)
			late.absent = late.kinds[kindMissing]
			s.columns = append(s.columns, late)
		}
		s.keys = s.columns[n].take(b, i, from, s.keys)
	}
	s.taken += int64(len(b.records))
}

// dealt puts the columns back into their order.
func dealt(sides []*columnSide) []*gatherer {
	var out []*gatherer
	for i := 0; i/len(sides) < len(sides[i%len(sides)].columns); i++ {
		out = append(out, sides[i%len(sides)].columns[i/len(sides)])
	}
	return out
}

// rowSide gathers what concerns whole records: their hashes, to find repeated ones, and what gives the target away.
type rowSide struct {
	seed    maphash.Seed
	delim   byte // of delimited text, else 0
	id      int  // left out when records are compared; negative for none
	bound   int64
	repeats repeats
	copies  *copies
	key     []byte
	record  Record
}

func (s *rowSide) take(b *batch) {
	for n := range b.records {
		k := &b.records[n]
		if s.repeats.n >= s.bound || k.line > maxLine {
			break
		}
		s.repeats.add(maphash.Bytes(s.seed, s.identity(b, k)), k.line)
	}
	if s.copies.target >= 0 {
		b.each(&s.record, func(r *Record) { s.copies.add(s.seed, r) })
	}
}

// identity is what makes two records the same: their values without that of the id, and not how they are quoted. In delimited
// text that is the record as it stands where it has no quotes, and looks the same where it has needless ones.
func (s *rowSide) identity(b *batch, k *keptRecord) []byte {
	s.key = s.key[:0]
	if s.delim == 0 {
		for i := range int(k.fields) {
			if i != s.id {
				s.key = appendExact(s.key, b.field(k, i))
			}
		}
		return s.key
	}
	if k.starts < 0 {
		raw := b.bytes[k.raw.from:k.raw.to]
		if s.id < 0 {
			return raw
		}
		at := b.fields[int(k.first)+s.id]
		s.key = append(append(s.key, raw[:at.from-k.raw.from]...), raw[at.to-k.raw.from:]...)
		return s.key
	}
	for i := range int(k.fields) {
		if i > 0 {
			s.key = append(s.key, s.delim)
		}
		if i != s.id {
			s.key = append(s.key, b.field(k, i)...)
		}
	}
	if bytes.Count(s.key, []byte{s.delim}) < int(k.fields) && bytes.IndexByte(s.key, quote) < 0 {
		return s.key
	}
	s.key = append(s.key, quote) // no record without quotes has one; lengths tell where fields end
	for i := range int(k.fields) {
		n := 0
		if i != s.id {
			n = len(b.field(k, i))
		}
		s.key = append(s.key, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	}
	return s.key
}
