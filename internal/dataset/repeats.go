package dataset

import (
	"math"
	"slices"
)

// repeats finds equal records by their 64-bit hashes when all are in. While the file is read, hashes are only appended, 12
// bytes a record: to parts by their first bits, each so small in the end that it is compared inside the processor's cache. A
// table over all of them would miss the cache at every record, and hold twice its memory whenever it grows.
type repeats struct {
	parts [1 << partBits][][]keptHash // chunks, in the order of the lines
	n     int64
}

const (
	partBits   = 8
	firstChunk = 8
	mostChunk  = 1024
	maxLine    = math.MaxUint32 // lines are kept in four bytes
)

// keptHash is a hash in two halves, so that it takes 12 bytes, and the line of the record.
type keptHash struct{ high, low, line uint32 }

func (r *repeats) add(hash uint64, line int) {
	chunks := &r.parts[hash>>(64-partBits)]
	last := len(*chunks) - 1
	if last < 0 || len((*chunks)[last]) == cap((*chunks)[last]) {
		size := firstChunk
		if last >= 0 {
			size = min(2*cap((*chunks)[last]), mostChunk)
		}
		*chunks = append(*chunks, make([]keptHash, 0, size))
		last++
	}
	(*chunks)[last] = append((*chunks)[last], keptHash{high: uint32(hash >> 32), low: uint32(hash), line: uint32(line)})
	r.n++
}

// find counts the records that repeat an earlier one, and gives the first few of them, in the order of their lines.
func (r *repeats) find(examples int) (n int64, first []Duplicate) {
	var slots []keptHash
	for _, chunks := range r.parts {
		held := 0
		for _, chunk := range chunks {
			held += len(chunk)
		}
		size := 16
		for 2*size < 3*held {
			size *= 2
		}
		slots = slices.Grow(slots[:0], size)[:size]
		clear(slots)
		for _, chunk := range chunks {
			for _, record := range chunk {
				earlier := meet(slots, record)
				if earlier == 0 {
					continue
				}
				n++
				first = keepFirst(first, Duplicate{Line: int(record.line), FirstLine: int(earlier)}, examples)
			}
		}
	}
	return n, first
}

// meet puts a record into an open-addressed table, or gives the line of the equal one that is there. Lines count from 1, so
// line 0 is an empty slot.
func meet(slots []keptHash, record keptHash) (earlier uint32) {
	mask := uint32(len(slots) - 1)
	for i := record.low & mask; ; i = (i + 1) & mask {
		switch slot := &slots[i]; {
		case slot.line == 0:
			*slot = record
			return 0
		case slot.low == record.low && slot.high == record.high:
			return slot.line
		}
	}
}

// keepFirst keeps the ones of lowest line, in order.
func keepFirst(kept []Duplicate, d Duplicate, most int) []Duplicate {
	if len(kept) == most && d.Line >= kept[most-1].Line {
		return kept
	}
	at, _ := slices.BinarySearchFunc(kept, d, func(a, b Duplicate) int { return a.Line - b.Line })
	kept = slices.Insert(kept, at, d)
	return kept[:min(len(kept), most)]
}
