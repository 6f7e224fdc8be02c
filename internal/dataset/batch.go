package dataset

import (
	"fmt"
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

// batch holds copies of records.
type batch struct {
	records []Record
	bytes   []byte
	fields  [][]byte
	starts  []int
	n       int
}

func (b *batch) reset() {
	b.n, b.bytes, b.fields, b.starts = 0, b.bytes[:0], b.fields[:0], b.starts[:0]
}

// full says whether another record of usual size might not fit.
func (b *batch) full() bool { return b.n == batchRecords || len(b.bytes) >= batchBytes }

// add copies a record. Buffers that are too small for it are made anew: records that were copied before keep the old ones. plain
// says that each field stands in Raw from its start on.
func (b *batch) add(r *Record, plain bool) {
	if b.n == len(b.records) {
		b.records = append(b.records, Record{})
	}
	to := &b.records[b.n]
	b.n++
	need := len(r.Raw)
	if !plain {
		for _, f := range r.Fields {
			need += len(f)
		}
	}
	if cap(b.bytes)-len(b.bytes) < need {
		b.bytes = make([]byte, 0, max(2*batchBytes, need))
	}
	if cap(b.fields)-len(b.fields) < len(r.Fields) {
		b.fields = make([][]byte, 0, max(16*batchRecords, len(r.Fields)))
	}
	if cap(b.starts)-len(b.starts) < len(r.Starts) {
		b.starts = make([]int, 0, max(16*batchRecords, len(r.Starts)))
	}
	raw := b.keep(r.Raw)
	from := len(b.fields)
	for i, f := range r.Fields {
		switch {
		case f == nil: // a key that the row does not have
			b.fields = append(b.fields, nil)
		case plain:
			b.fields = append(b.fields, raw[r.Starts[i]:r.Starts[i]+len(f)])
		default:
			b.fields = append(b.fields, b.keep(f))
		}
	}
	at := len(b.starts)
	b.starts = append(b.starts, r.Starts...)
	*to = Record{Line: r.Line, Byte: r.Byte, Raw: raw, Quoted: r.Quoted, Fields: b.fields[from:], Starts: b.starts[at:]}
}

func (b *batch) keep(data []byte) []byte {
	from := len(b.bytes)
	b.bytes = append(b.bytes, data...)
	return b.bytes[from:len(b.bytes):len(b.bytes)]
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
		for b := range g.filled {
			for i := range b.n {
				take(&b.records[i])
			}
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
