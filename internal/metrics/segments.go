package metrics

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// segmentReader cuts a stream at line ends and at carriage returns, by which progress bars write over their own line.
// A segment keeps the number of its physical line, which only a line feed ends; at most MaxLine bytes of one are kept.
// The text of a segment is valid until the next call.
type segmentReader struct {
	source *bufio.Reader
	offset int64
	number int
	text   []byte
}

func newSegmentReader(source io.Reader) *segmentReader {
	return &segmentReader{source: bufio.NewReaderSize(source, 64<<10), number: 1}
}

// next returns the next segment, or io.EOF after the last. terminated says that a line feed ended it, so that what
// stands there is what a terminal still shows.
func (r *segmentReader) next() (line, error) {
	r.text = r.text[:0]
	current := line{number: r.number, start: r.offset}
	for {
		if _, err := r.source.Peek(1); err != nil {
			if errors.Is(err, io.EOF) && r.offset > current.start {
				current.end, current.text = r.offset, r.text
				return current, nil
			}
			return line{}, err
		}
		part, _ := r.source.Peek(r.source.Buffered()) // what is there already
		end := bytes.IndexAny(part, "\r\n")
		found := end >= 0
		if !found {
			end = len(part)
		}
		if room := MaxLine - len(r.text); end > room {
			current.tooLong = true
			r.text = append(r.text, part[:room]...)
		} else {
			r.text = append(r.text, part[:end]...)
		}
		if !found {
			r.discard(end)
			continue
		}
		stop := part[end]
		r.discard(end)
		current.end, current.text = r.offset, r.text
		r.discard(1)
		if stop == '\r' {
			if after, err := r.source.Peek(1); err == nil && after[0] == '\n' {
				r.discard(1)
				stop = '\n'
			}
		}
		if stop == '\n' {
			current.terminated = true
			r.number++
		}
		return current, nil
	}
}

// discard steps over bytes that were peeked at.
func (r *segmentReader) discard(n int) {
	n, _ = r.source.Discard(n)
	r.offset += int64(n)
}

// plain is a segment's text as people see it: without the escape sequences of terminals (ECMA-48 CSI, such as colours
// and cursor movements) and without other control characters.
func plain(text []byte) string {
	if bytes.IndexFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f }) < 0 {
		return string(text)
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == 0x1b && i+1 < len(text) && text[i+1] == '[':
			i += 2
			for i < len(text) && (text[i] < 0x40 || text[i] > 0x7e) {
				i++
			}
		case c == '\t':
			out = append(out, ' ')
		case c < 0x20 || c == 0x7f:
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
