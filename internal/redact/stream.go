package redact

import (
	"bytes"
	"io"
)

const (
	// reach is how far in bytes a hit looks ahead: a key block with its label and the line that follows it is the longest.
	reach = keyBlockLimit + scanLimit + 1<<10
	// lookback is how far in bytes before its hit a secret's name and line are looked at.
	lookback = 256
	// strideSize is how many bytes of a line without an end are collected before they are judged together.
	strideSize = 16 << 10
	// partSize bounds what is taken in at a time, and with reach and strideSize the memory of a stream.
	partSize = 32 << 10
)

// stream masks a text that comes in parts exactly as Bytes would mask the whole of it. Whole lines are settled at once: no
// secret but a key block crosses a line's end. Of a line without an end, and of what may become a key block, the last
// reach bytes are held back.
type stream struct {
	buf    []byte // raw bytes: lookback, then what is not settled
	from   int    // offset in buf of the first byte that is not settled
	done   []int  // see window
	found  []span // secrets that reach into what is not settled
	stride int
}

func newStream(stride int) *stream {
	return &stream{done: make([]int, len(nameWords)), stride: stride}
}

// take adds bytes and returns those that are settled by now, masked. last says that no more will come.
func (s *stream) take(part []byte, last bool) []byte {
	s.buf = append(s.buf, part...)
	to := s.settled(last)
	if to <= s.from {
		return nil
	}
	w := window{b: s.buf, lower: lowerASCII(s.buf), from: s.from, to: to, done: s.done, found: s.found}
	w.judge()
	out := bytes.Clone(s.buf[s.from:to])
	s.found = nil
	for _, f := range w.found {
		if f.start < to && f.end > s.from {
			mask(out, []span{{max(f.start, s.from) - s.from, min(f.end, to) - s.from}})
		}
		if f.end > to {
			s.found = append(s.found, f)
		}
	}
	s.from = to
	s.forget()
	return out
}

// settled is the offset up to which every hit can be judged for good.
func (s *stream) settled(last bool) int {
	if last {
		return len(s.buf)
	}
	to := s.from
	if hard := len(s.buf) - reach; hard >= s.from+s.stride {
		to = hard
	}
	if newline := bytes.LastIndexByte(s.buf[s.from:], '\n'); newline >= 0 {
		to = max(to, s.from+newline+1)
	}
	open := to
	w := window{b: s.buf, from: s.from, to: to}
	w.each(s.buf, keyBegin, func(at int) {
		if at < open && len(s.buf)-at < reach && !keyBlockSettled(s.buf, at) {
			open = at
		}
	})
	return open
}

// forget drops the settled bytes that no hit looks back to.
func (s *stream) forget() {
	drop := s.from - lookback
	if drop <= 0 {
		return
	}
	s.buf = append(s.buf[:0], s.buf[drop:]...)
	s.from -= drop
	for i := range s.done {
		s.done[i] -= drop
	}
	for i := range s.found {
		s.found[i].start -= drop
		s.found[i].end -= drop
	}
}

// Reader masks what it reads from another reader.
type Reader struct {
	from   io.Reader
	stream *stream
	part   []byte
	out    []byte
	err    error
}

// NewReader returns a reader of r's bytes in which every secret is masked as Bytes masks it in the whole text, also where
// reads cut it in two. The length stays. It holds back the line that is not complete and up to 41 KiB of what may be a
// private key, and needs less than 256 KiB of memory however long the text is. An error of r comes after all bytes.
func NewReader(r io.Reader) *Reader {
	return &Reader{from: r, stream: newStream(strideSize), part: make([]byte, partSize)}
}

// Read reads masked bytes.
func (r *Reader) Read(p []byte) (int, error) {
	for len(p) > 0 && len(r.out) == 0 && r.err == nil {
		var n int
		n, r.err = r.from.Read(r.part)
		r.out = r.stream.take(r.part[:n], r.err != nil)
	}
	if len(r.out) == 0 && len(p) > 0 {
		return 0, r.err
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// Writer masks what is written through it to another writer.
type Writer struct {
	to     io.Writer
	stream *stream
	err    error
}

// NewWriter returns a writer that passes its bytes on to w with every secret masked, with the promises of NewReader. What
// it holds back is passed on by Close.
func NewWriter(w io.Writer) *Writer {
	return &Writer{to: w, stream: newStream(strideSize)}
}

// Write masks p and passes on what is settled. After an error of the underlying writer it does nothing but return it.
func (w *Writer) Write(p []byte) (int, error) {
	taken := 0
	for taken < len(p) && w.err == nil {
		part := p[taken:min(len(p), taken+partSize)]
		w.pass(w.stream.take(part, false))
		if w.err == nil {
			taken += len(part)
		}
	}
	return taken, w.err
}

// Close passes on what was held back. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.err == nil {
		w.pass(w.stream.take(nil, true))
	}
	return w.err
}

func (w *Writer) pass(out []byte) {
	if len(out) == 0 {
		return
	}
	n, err := w.to.Write(out)
	if err == nil && n < len(out) {
		err = io.ErrShortWrite
	}
	w.err = err
}
