package dataset

import (
	"fmt"
	"math"
	"runtime/debug"
)

// A profile reads and gathers side by side: one goroutine cuts the text into records and copies them into batches, another
// hands them to the columns. Batches go round in a ring, so that memory stays bounded, and come in the order of the file, so that
// the result does not depend on how many processors there are.
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
}

// place is a piece of a batch's bytes; one that begins at absent is the value of a key that the row does not have.
type place struct{ from, to uint32 }

const absent = math.MaxUint32

type keptRecord struct {
	line   int
	byte   int64
	raw    place
	fields int32 // how many
	plain  bool  // each field stands in raw, and its start follows from that
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
	b.records = append(b.records, keptRecord{r.Line, r.Byte, raw, int32(len(r.Fields)), plain, r.Quoted})
	if plain {
		for i, f := range r.Fields {
			from := raw.from + uint32(r.Starts[i])
			b.fields = append(b.fields, place{from, from + uint32(len(f))})
		}
		return
	}
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

// each hands on every record, in one Record that is used again and again.
func (b *batch) each(r *Record, take func(*Record)) {
	fields, starts := b.fields, b.starts
	for _, k := range b.records {
		n := int(k.fields)
		*r = Record{Line: k.line, Byte: k.byte, Raw: b.bytes[k.raw.from:k.raw.to], Quoted: k.quoted, Fields: r.Fields[:0], Starts: r.Starts[:0]}
		for i, at := range fields[:n] {
			switch {
			case at.from == absent:
				r.Fields, r.Starts = append(r.Fields, nil), append(r.Starts, 0)
				continue
			case k.plain:
				r.Starts = append(r.Starts, int(at.from-k.raw.from))
			default:
				r.Starts = append(r.Starts, int(starts[i]))
			}
			r.Fields = append(r.Fields, b.bytes[at.from:at.to])
		}
		fields = fields[n:]
		if !k.plain {
			starts = starts[n:]
		}
		take(r)
	}
}

// gathering is the other side: it takes batches until there are no more.
type gathering struct {
	free, filled chan *batch
	done         chan struct{}
	broken       error // a panic of the gatherers, to be raised where the call can answer it
}

// gather starts taking batches.
func gather(take func(*Record)) *gathering {
	g := &gathering{free: make(chan *batch, batchRing), filled: make(chan *batch, batchRing), done: make(chan struct{})}
	for range batchRing {
		g.free <- &batch{}
	}
	go func() {
		defer close(g.done)
		defer func() {
			if p := recover(); p != nil {
				g.broken = fmt.Errorf("%v\n%s", p, debug.Stack())
				for range g.filled { // the reader must not wait for ever
					g.free <- &batch{}
				}
			}
		}()
		var record Record
		for b := range g.filled {
			b.each(&record, take)
			b.reset()
			g.free <- b
		}
	}()
	return g
}

// finish hands over the last batch and waits for the end.
func (g *gathering) finish(last *batch) {
	g.filled <- last
	close(g.filled)
	<-g.done
	if g.broken != nil {
		panic(g.broken)
	}
}
