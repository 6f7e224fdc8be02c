package jobs

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

// foldFrom is how many likes must follow a line before they are counted instead of shown.
const foldFrom = 3

// foldNote stands in for the likes of the line shown; empty where they are few or the note would not be shorter.
func foldNote(shown string, likes int) string {
	if likes < foldFrom || !strings.HasSuffix(shown, "\n") {
		return ""
	}
	note := fmt.Sprintf("[the line above %d times more]\n", likes)
	if len(note) >= likes*len(shown) {
		return ""
	}
	return note
}

// likesAfter counts the whole lines at the start of raw that show the same as line, and their bytes. most bounds the count;
// negative is no bound.
func likesAfter(raw, line []byte, shown string, most int) (count, size int) {
	if most < 0 {
		most = math.MaxInt
	}
	for count < most {
		next := bytes.IndexByte(raw[size:], '\n')
		if next < 0 || !alike(raw[size:size+next+1], line, shown) {
			break
		}
		count, size = count+1, size+next+1
	}
	return count, size
}

// likesBefore counts the lines at the end of raw that show the same as line, and their bytes.
func likesBefore(raw, line []byte, shown string) (count, size int) {
	for size < len(raw) {
		previous := lastLine(raw[:len(raw)-size])
		if !alike(previous, line, shown) {
			break
		}
		count, size = count+1, size+len(previous)
	}
	return count, size
}

// alike compares what two lines show. Lines of other bytes show the same only where one of them needs rendering.
func alike(other, line []byte, shown string) bool {
	return bytes.Equal(other, line) || !(plain(other) && plain(line)) && render(other) == shown
}

// lastLine is the last line of raw with its newline.
func lastLine(raw []byte) []byte {
	return raw[bytes.LastIndexByte(raw[:len(raw)-1], '\n')+1:]
}
