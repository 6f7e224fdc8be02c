package jobs

import (
	"bytes"
	"errors"
	"io"
)

// source is a log whose lines are shown masked. A window of masked bytes is kept, since lines that are shown lie together.
type source struct {
	log    io.ReaderAt
	size   int64
	masked []byte
	from   int64
}

func newSource(log io.ReaderAt, size int64) *source { return &source{log: log, size: size} }

// text is what the line [start, end) shows.
func (s *source) text(start, end int64) (string, error) {
	const windowSize = 16 << 10
	if start < s.from || end > s.from+int64(len(s.masked)) {
		masked, err := readRange(s.log, s.size, start, min(s.size, max(end, start+windowSize)))
		if err != nil {
			return "", err
		}
		s.masked, s.from = masked, start
	}
	low := min(start-s.from, int64(len(s.masked)))
	line := s.masked[low:min(end-s.from, int64(len(s.masked)))]
	return render(bytes.TrimSuffix(line, []byte("\n"))), nil
}

// lines visits the lines of [start, end) until visit reports false. A line longer than grepBlock comes in pieces. passOver,
// where there is one, says how many bytes of whole lines at the start of a block need no visit.
func (s *source) lines(start, end int64, passOver func(block []byte) int, visit func(rawLine) (bool, error)) error {
	block := make([]byte, 0, 2*grepBlock)
	for at := start; at < end || len(block) > 0; {
		kept := len(block)
		want := int(min(int64(grepBlock), end-at))
		block = block[:kept+want]
		n, err := s.log.ReadAt(block[kept:], at)
		if n < want && err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		block = block[:kept+n]
		at += int64(n)
		last := at >= end || n < want
		used := 0
		if passOver != nil {
			used = passOver(block)
		}
		for used < len(block) {
			size := bytes.IndexByte(block[used:], '\n') + 1
			raw := block[used:]
			if size > 0 {
				raw = block[used : used+size-1]
			} else if !last && len(raw) < grepBlock {
				break
			} else {
				size = len(raw)
			}
			from := at - int64(len(block)-used)
			more, err := visit(rawLine{raw: raw, start: from, end: from + int64(size)})
			if !more || err != nil {
				return err
			}
			used += size
		}
		block = append(block[:0], block[used:]...)
		if last {
			return nil
		}
	}
	return nil
}
