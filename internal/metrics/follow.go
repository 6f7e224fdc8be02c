package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxPoll bounds the bytes that one Poll reads; the next one goes on from there.
const maxPoll = 8 << 20

// Follower reads a metrics file while it grows. Not safe for concurrent use.
type Follower struct {
	// Skipped counts lines that were no rows, Restarts how often the file was found replaced or cut and was read anew.
	Skipped, Restarts int

	path     string
	offset   int64 // of the first byte not yet read as a complete line
	number   int   // complete lines read
	before   []byte
	opened   os.FileInfo
	keys     keyCache
	skipping bool // inside a line that is too long
}

// NewFollower follows the file at path, which need not exist yet.
func NewFollower(path string) *Follower { return &Follower{path: path, keys: keyCache{}} }

// Offset is how far the file is read, in bytes.
func (f *Follower) Offset() int64 { return f.offset }

// Poll returns the points of the complete lines that came since the last call, at most 8 MiB of them; a line without its
// end waits for the next call. A file that does not exist has none. A file that was cut, replaced or written anew is
// read from its start.
func (f *Follower) Poll() ([]Point, error) {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		if f.offset > 0 {
			f.restart()
		}
		return nil, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("follow %s: not a regular file", f.path)
	}
	if err != nil {
		return nil, fmt.Errorf("follow metrics: %w", err)
	}
	file, err := os.Open(f.path)
	if err != nil {
		return nil, fmt.Errorf("follow metrics: %w", err)
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return nil, fmt.Errorf("follow metrics: %w", err)
	}
	same, err := f.continues(file, info)
	if err != nil {
		return nil, err
	}
	if !same {
		f.restart()
	}
	f.opened = info
	chunk := make([]byte, min(info.Size()-f.offset, maxPoll))
	n, err := file.ReadAt(chunk, f.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("follow %s at byte %d: %w", f.path, f.offset, err)
	}
	return f.lines(chunk[:n]), nil
}

// continues says whether the file is still the one read so far: same file, no shorter, same bytes before the offset.
func (f *Follower) continues(file *os.File, info os.FileInfo) (bool, error) {
	if f.offset == 0 {
		return true, nil
	}
	if info.Size() < f.offset || !os.SameFile(info, f.opened) {
		return false, nil
	}
	before := make([]byte, len(f.before))
	if _, err := file.ReadAt(before, f.offset-int64(len(before))); err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("follow %s: %w", f.path, err)
	}
	return bytes.Equal(before, f.before), nil
}

func (f *Follower) restart() {
	f.Restarts++
	f.offset, f.number, f.before, f.skipping = 0, 0, nil, false
}

// lines takes the complete lines of a chunk.
func (f *Follower) lines(chunk []byte) []Point {
	var points []Point
	rest := chunk
	for {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			break
		}
		f.number++
		text := bytes.TrimSuffix(rest[:end], []byte("\r"))
		at := line{number: f.number, start: f.offset, end: f.offset + int64(len(text))}
		f.offset += int64(end) + 1
		rest = rest[end+1:]
		if f.skipping {
			f.skipping = false
			continue
		}
		points = append(points, f.row(at, text)...)
	}
	if len(rest) > MaxLine { // a line this long is never read: step over what is there
		if !f.skipping {
			f.Skipped++
		}
		f.skipping = true
		f.offset += int64(len(rest))
		rest = nil
	}
	f.remember(chunk[:len(chunk)-len(rest)])
	return points
}

func (f *Follower) row(at line, text []byte) []Point {
	if at.number == 1 {
		text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	if len(text) > MaxLine {
		f.Skipped++
		return nil
	}
	row, bad := parseObject(text, nil)
	if bad != nil {
		f.Skipped++
		return nil
	}
	points, _, problem := rowPoints(at, row, f.keys)
	if problem != nil {
		f.Skipped++
	}
	return points
}

// remember keeps the last bytes before the offset, by which a rewritten file is known.
func (f *Follower) remember(read []byte) {
	if len(read) == 0 {
		return
	}
	const most = 64
	kept := append(f.before, read...)
	f.before = bytes.Clone(kept[max(0, len(kept)-most):])
}
