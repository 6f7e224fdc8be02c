package dataset

import (
	"bytes"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// A profile reads and gathers side by side: one goroutine cuts the text into records and copies them into batches, and each
// batch goes to several sides, each in a goroutine of its own, of which every one gathers something else: some of the columns,
// or what concerns whole records. Batches go round in a ring, so that memory stays bounded, and come to each side in the order of
// the file, so that the result does not depend on how many processors there are.
const (
	batchBytes   = 128 << 10
	batchRecords = 1024
	batchRing    = 4
)

// batch holds copies of records: their bytes behind each other, and where fields begin and end in them. Slices are made of that
// where they are used: places take a third of the memory.
type batch struct {
	records []keptRecord
	bytes   []byte
	fields  []place
	starts  []int32 // where fields begin in the record, of records whose fields were unquoted or changed

	waiting atomic.Int32 // sides that are not through with it
}

// place is a piece of a batch's bytes; one that begins at absent is the value of a key that the row does not have.
type place struct{ from, to uint32 }

const absent = math.MaxUint32

type keptRecord struct {
	line   int
	byte   int64
	raw    place
	first  int32 // its first field among the batch's
	fields int32 // how many
	starts int32 // its first among the batch's starts; negative where each field stands in raw, and its start follows from that
	quoted bool
}

func (b *batch) reset() {
	b.records, b.bytes, b.fields, b.starts = b.records[:0], b.bytes[:0], b.fields[:0], b.starts[:0]
}

// full says whether the batch is to be handed on.
func (b *batch) full() bool { return len(b.records) == batchRecords || len(b.bytes) >= batchBytes }

// add copies a record. plain says that each field stands in Raw from its start on.
func (b *batch) add(r *Record, plain bool) {
	raw := b.keep(r.Raw)
	k := keptRecord{line: r.Line, byte: r.Byte, raw: raw, first: int32(len(b.fields)), fields: int32(len(r.Fields)), starts: -1, quoted: r.Quoted}
	if plain {
		b.records = append(b.records, k)
		for i, f := range r.Fields {
			from := raw.from + uint32(r.Starts[i])
			b.fields = append(b.fields, place{from, from + uint32(len(f))})
		}
		return
	}
	k.starts = int32(len(b.starts))
	b.records = append(b.records, k)
	for i, f := range r.Fields {
		if f == nil {
			b.fields = append(b.fields, place{absent, absent})
		} else {
			b.fields = append(b.fields, b.keep(f))
		}
		start := int32(0)
		if i < len(r.Starts) {
			start = int32(r.Starts[i])
		}
		b.starts = append(b.starts, start)
	}
}

func (b *batch) keep(data []byte) place {
	from := len(b.bytes)
	b.bytes = append(b.bytes, data...)
	return place{uint32(from), uint32(len(b.bytes))}
}

// columns is how many the last record has, which has the most: keys are only ever added.
func (b *batch) columns() int {
	if len(b.records) == 0 {
		return 0
	}
	return int(b.records[len(b.records)-1].fields)
}

// from is the first record that has a column.
func (b *batch) from(column int) int {
	at := 0
	for int(b.records[at].fields) <= column {
		at++
	}
	return at
}

// field is a value of a record, nil for a key that the row does not have.
func (b *batch) field(k *keptRecord, column int) []byte {
	at := b.fields[int(k.first)+column]
	if at.from == absent {
		return nil
	}
	return b.bytes[at.from:at.to]
}

// start is where a field begins in its record.
func (b *batch) start(k *keptRecord, column int) int {
	switch at := b.fields[int(k.first)+column]; {
	case at.from == absent:
		return 0
	case k.starts < 0:
		return int(at.from - k.raw.from)
	}
	return int(b.starts[int(k.starts)+column])
}

// cell is one value of a batch. Its place in the file is worked out when somebody wants it, which few do.
type cell struct {
	batch          *batch
	record, column int
}

func (c cell) place() (line int, offset int64) {
	k := &c.batch.records[c.record]
	start := c.batch.start(k, c.column)
	line, offset = k.line, k.byte+int64(start)
	if k.quoted {
		line += bytes.Count(c.batch.bytes[k.raw.from:int(k.raw.from)+start], []byte{'\n'})
	}
	return line, offset
}

// each hands on every record, in one Record that is used again and again.
func (b *batch) each(r *Record, take func(*Record)) {
	for n := range b.records {
		k := &b.records[n]
		*r = Record{Line: k.line, Byte: k.byte, Raw: b.bytes[k.raw.from:k.raw.to], Quoted: k.quoted, Fields: r.Fields[:0], Starts: r.Starts[:0]}
		for i := range int(k.fields) {
			r.Fields, r.Starts = append(r.Fields, b.field(k, i)), append(r.Starts, b.start(k, i))
		}
		take(r)
	}
}

// gathering is the other sides: they take batches until there are no more.
type gathering struct {
	free   chan *batch
	filled []chan *batch // one for each side
	done   sync.WaitGroup

	breaking sync.Mutex
	broken   error // a panic of a side, to be raised where the call can answer it
}

// gather starts the sides.
func gather(sides ...func(*batch)) *gathering {
	g := &gathering{free: make(chan *batch, batchRing)}
	for range batchRing {
		g.free <- &batch{}
	}
	for _, take := range sides {
		filled := make(chan *batch, batchRing) // there are no more, so that handing over never waits
		g.filled = append(g.filled, filled)
		g.done.Go(func() {
			for b := range filled {
				g.guarded(take, b)
				g.release(b)
			}
		})
	}
	return g
}

// guarded keeps a panic, and lets nobody work on behind it: the reader must not wait for ever.
func (g *gathering) guarded(take func(*batch), b *batch) {
	defer func() {
		if p := recover(); p != nil {
			g.breaking.Lock()
			defer g.breaking.Unlock()
			if g.broken == nil {
				g.broken = fmt.Errorf("%v\n%s", p, debug.Stack())
			}
		}
	}()
	take(b)
}

// release gives a batch back once all sides are through with it.
func (g *gathering) release(b *batch) {
	if b.waiting.Add(-1) == 0 {
		b.reset()
		g.free <- b
	}
}

// hand gives a batch to every side.
func (g *gathering) hand(b *batch) {
	b.waiting.Store(int32(len(g.filled)))
	for _, filled := range g.filled {
		filled <- b
	}
}

// finish hands over the last batch and waits for the end.
func (g *gathering) finish(last *batch) {
	g.hand(last)
	for _, filled := range g.filled {
		close(filled)
	}
	g.done.Wait()
	if g.broken != nil {
		panic(g.broken)
	}
}
