package diagnose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

const (
	blockBytes = 1 << 20
	// firstKept and lastKept are how many places of one sign are remembered from the start and from the end of a log.
	firstKept, lastKept = 4, 24
	// windowBytes bounds what is read at once around a place. A traceback through a deep framework is some 20 kB.
	windowBytes = 64 << 10
	// nonFiniteTried bounds how many lines are looked at for a loss, so that a log full of other "nan" costs no more.
	nonFiniteTried = 10000
)

// scanned is a log after the one pass through it.
type scanned struct {
	path string
	file io.ReaderAt
	size int64
	// places holds the kept offsets of each sign, ascending.
	places [][]int64
	// lines counts the line ends before each block of blockBytes.
	lines []int
	// nonFinite is where a loss that is no number was written first, -1 for nowhere.
	nonFinite int64
	tried     int
	// ending is the log's last lines; see end.
	ending []row
}

// scan reads a log of the given size once. It allocates some 1.1 MB, and 8 bytes for each megabyte of the log.
func scan(path string, file io.ReaderAt, size int64) (*scanned, error) {
	s := &scanned{path: path, file: file, size: size, places: make([][]int64, len(signs)), nonFinite: -1}
	seek := seeker()
	buffer := make([]byte, overlap+min(size, blockBytes))
	kept, lines := 0, 0 // bytes of the block before that stand in front of the new ones
	for offset := int64(0); offset < size; {
		want := min(int64(blockBytes), size-offset)
		n, err := file.ReadAt(buffer[kept:kept+int(want)], offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read %s at byte %d: %w", path, offset, err)
		}
		if n == 0 {
			s.size = offset // it was truncated meanwhile
			break
		}
		s.lines = append(s.lines, lines)
		lines += bytes.Count(buffer[kept:kept+n], []byte{'\n'})
		text, base := buffer[:kept+n], offset-int64(kept)
		seek.search(text, func(literal, end int) {
			if end > kept {
				s.found(text, base, literal, end)
			}
		})
		offset += int64(n)
		keep := min(overlap, len(text))
		copy(buffer, text[len(text)-keep:])
		kept = keep
	}
	for _, places := range s.places {
		slices.Sort(places)
	}
	return s, nil
}

// overlap is how much of a block is looked at again with the next one. Longer than any literal; a loss and its number stand
// this close on a line.
const overlap = 256

// found keeps a place: the first and the last ones of its sign.
func (s *scanned) found(text []byte, base int64, literal, end int) {
	at := base + int64(end-len(signs[literal].literal))
	if signs[literal].kind == kindNonFinite {
		s.foundNonFinite(text, end, at)
		return
	}
	places := s.places[literal]
	if len(places) < firstKept+lastKept {
		if places == nil {
			places = make([]int64, 0, firstKept+lastKept)
		}
		s.places[literal] = append(places, at)
		return
	}
	// A block's quarters are searched side by side, so that its places come out of order.
	least := firstKept
	for i := firstKept + 1; i < len(places); i++ {
		if places[i] < places[least] {
			least = i
		}
	}
	if places[least] < at {
		places[least] = at
	}
}

// foundNonFinite keeps the first place where the line speaks of a loss and the word ends with the number.
func (s *scanned) foundNonFinite(text []byte, end int, at int64) {
	if s.nonFinite >= 0 && s.nonFinite <= at || s.tried >= nonFiniteTried {
		return
	}
	if end < len(text) && isWord(text[end]) && !bytes.HasPrefix(text[end:], []byte("inity")) {
		return
	}
	s.tried++
	line := text[max(0, end-overlap):end]
	if cut := bytes.LastIndexAny(line, "\n\r"); cut >= 0 {
		line = line[cut+1:]
	}
	if bytes.Contains(bytes.ToLower(line), []byte("loss")) {
		s.nonFinite = at
	} else if rest := text[end:min(len(text), end+40)]; bytes.HasPrefix(rest, []byte(" loss")) { // non-finite loss
		s.nonFinite = at
	}
}

func isWord(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '_'
}

// read is the bytes [from, to) of the log, less where it is shorter.
func (s *scanned) read(from, to int64) []byte {
	from, to = max(0, from), min(s.size, to)
	if from >= to {
		return nil
	}
	raw := make([]byte, to-from)
	n, _ := s.file.ReadAt(raw, from) // what can't be read any more is not there
	return raw[:n]
}

// lineAt is the physical line, from 1, that holds the byte at offset.
func (s *scanned) lineAt(offset int64) int {
	block := int(offset / blockBytes)
	if block >= len(s.lines) {
		block = len(s.lines) - 1
	}
	if block < 0 {
		return 1
	}
	return s.lines[block] + bytes.Count(s.read(int64(block)*blockBytes, offset), []byte{'\n'}) + 1
}

// scanFile scans the file at path; nil where there is none.
func scanFile(path string) (*scanned, func() error, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	s, err := scan(path, file, info.Size())
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return s, file.Close, nil
}
