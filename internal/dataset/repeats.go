package dataset

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/trainwright/trainwright/internal/rundir"
)

// repeats finds equal records by their 64-bit hashes when all are in. While the file is read, hashes are only appended, 12
// bytes a record: to parts by their first bits, each so small in the end that it is compared inside the processor's cache. A
// table over all of them would miss the cache at every record, and hold twice its memory whenever it grows. Beyond a bound
// the parts go to a temporary file that has no name, and come back one by one.
type repeats struct {
	parts [1 << partBits][][]keptHash // chunks, in the order of the lines
	n     int64
	held  int // hashes in memory
	most  int // of them; spillAt when 0

	file    *os.File
	written int64
	spilled [1 << partBits][]segment // in the order of the lines
	full    bool                     // they could not be written: what comes later is not compared
}

// segment is a piece of the temporary file: where it begins, and how many hashes it holds.
type segment struct {
	at int64
	n  int
}

// spillAt is how many hashes are held in memory: 48 MB.
const spillAt = 4 << 20

// keptBytes is the size of a keptHash in the file.
const keptBytes = 12

const (
	partBits   = 8
	firstChunk = 8
	mostChunk  = 1024
	maxLine    = math.MaxUint32 // lines are kept in four bytes
)

// keptHash is a hash in two halves, so that it takes 12 bytes, and the line of the record.
type keptHash struct{ high, low, line uint32 }

func (r *repeats) add(hash uint64, line int) {
	if r.held >= cmp.Or(r.most, spillAt) && !r.spill() {
		return
	}
	r.held++
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
func (r *repeats) find(examples int) (n int64, first []Duplicate, err error) {
	var slots, back []keptHash
	for part, chunks := range r.parts {
		if r.file != nil {
			if back, err = r.load(part, back[:0]); err != nil {
				return 0, nil, err
			}
			chunks = append([][]keptHash{back}, chunks...)
		}
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
	return n, first, nil
}

// spill moves what is held to the temporary file. It is false where that can't be: the disk is full, or this process writes
// nothing.
func (r *repeats) spill() bool {
	if r.full {
		return false
	}
	if err := r.write(); err != nil {
		r.full = true
		return false
	}
	return true
}

func (r *repeats) write() error {
	if r.file == nil {
		if err := rundir.MayWrite(); err != nil {
			return err
		}
		file, err := os.CreateTemp("", "trainwright-rows-*")
		if err != nil {
			return err
		}
		r.file = file
		_ = os.Remove(file.Name()) // it lives until it is closed; where that does not go, close removes it
	}
	var out []byte
	at := r.written
	var pieces [1 << partBits]segment
	for part, chunks := range r.parts {
		out = out[:0]
		for _, chunk := range chunks {
			for _, h := range chunk {
				out = binary.LittleEndian.AppendUint32(out, h.high)
				out = binary.LittleEndian.AppendUint32(out, h.low)
				out = binary.LittleEndian.AppendUint32(out, h.line)
			}
		}
		if _, err := r.file.WriteAt(out, at); err != nil {
			return err
		}
		pieces[part] = segment{at, len(out) / keptBytes}
		at += int64(len(out))
	}
	for part := range r.parts {
		r.spilled[part] = append(r.spilled[part], pieces[part])
		for i := range r.parts[part] {
			r.parts[part][i] = r.parts[part][i][:0]
		}
		r.parts[part] = r.parts[part][:0]
	}
	r.written, r.held = at, 0
	return nil
}

// load reads a part back, in the order of the lines.
func (r *repeats) load(part int, into []keptHash) ([]keptHash, error) {
	for _, piece := range r.spilled[part] {
		data := make([]byte, piece.n*keptBytes)
		if _, err := r.file.ReadAt(data, piece.at); err != nil {
			return nil, fmt.Errorf("read back the hashes of rows: %w", err)
		}
		for ; len(data) > 0; data = data[keptBytes:] {
			into = append(into, keptHash{binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:]), binary.LittleEndian.Uint32(data[8:])})
		}
	}
	return into, nil
}

// close gives the temporary file back.
func (r *repeats) close() {
	if r.file != nil {
		r.file.Close()
		_ = os.Remove(r.file.Name()) // gone already, but on Windows
	}
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
