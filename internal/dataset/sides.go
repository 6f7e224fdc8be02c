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
		s.columns[n].take(b, i, from)
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
// text that is a line without needless quotes, which most records are already.
func (s *rowSide) identity(b *batch, k *keptRecord) []byte {
	if s.delim != 0 && k.starts < 0 {
		raw := b.bytes[k.raw.from:k.raw.to]
		if s.id < 0 {
			return raw
		}
		at := b.fields[int(k.first)+s.id]
		s.key = append(append(s.key[:0], raw[:at.from-k.raw.from]...), raw[at.to-k.raw.from:]...)
		return s.key
	}
	s.key = s.key[:0]
	for i := range int(k.fields) {
		field := b.field(k, i)
		switch {
		case s.delim == 0:
			if i != s.id {
				s.key = appendExact(s.key, field)
			}
			continue
		case i > 0:
			s.key = append(s.key, s.delim)
		}
		if i != s.id {
			s.key = appendQuoted(s.key, field, s.delim)
		}
	}
	return s.key
}

// appendQuoted appends a field of delimited text, in quotes where it has to be.
func appendQuoted(dst, field []byte, delim byte) []byte {
	if bytes.IndexByte(field, delim) < 0 && bytes.IndexByte(field, quote) < 0 {
		return append(dst, field...)
	}
	dst = append(dst, quote)
	for _, c := range field {
		if c == quote {
			dst = append(dst, quote)
		}
		dst = append(dst, c)
	}
	return append(dst, quote)
}
