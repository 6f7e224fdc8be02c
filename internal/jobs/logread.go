package jobs

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/trainwright/trainwright/internal/redact"
)

const (
	// windowMost bounds the raw bytes that one slice is rendered from: a progress bar may need many for one line.
	windowMost = 1 << 20
	// blockSize is how much is read at a time when the start of the tail is sought.
	blockSize = 64 << 10
)

// render is the text of raw log bytes. The second pass finds secrets that control characters had split.
func render(raw []byte) string {
	if plain(raw) {
		return string(raw)
	}
	return redact.Text(terminal(raw))
}

// shape is how a part of a log is wanted: at most so many lines (0: no limit) and bytes of text, repeated lines folded or
// not.
type shape struct {
	lines, budget int
	fold          bool
}

// forward reads from start. A window of raw bytes grows until it fills the budget.
func forward(log io.ReaderAt, size, start int64, want shape) (LogSlice, error) {
	budget := want.budget
	slice := LogSlice{Start: start, End: start, Size: size, NextCursor: start}
	var taken taken
	var end int64
	for window := int64(budget); ; window *= 4 {
		end = min(size, start+min(window, windowMost))
		raw, err := readRange(log, size, start, end)
		if err != nil {
			return slice, err
		}
		last := end == size || window >= windowMost
		taken = take(raw, want, last)
		if taken.full || last || len(taken.text) > budget/2 {
			break
		}
	}
	slice.Text = taken.text
	slice.End = start + int64(taken.raw)
	slice.NextCursor, slice.More = slice.End, slice.End < size
	allButARune := end == size && !taken.full // the last one is not whole yet
	if slice.More && !taken.enough && !allButARune {
		why := fmt.Sprintf("the budget of %d tokens is used up", budget/bytesPerToken)
		if !taken.full && len(taken.text) <= budget/2 {
			why = fmt.Sprintf("%d bytes show no more than this", slice.End-start)
		}
		slice.Cut = &Cut{From: slice.End, To: size, Why: fmt.Sprintf("%s; read on with cursor %d", why, slice.End)}
	}
	return slice, nil
}

// taken is what was rendered of a window: raw bytes consumed and their text. full means that a limit stopped it, not the
// end of the window; enough that the limit was the number of lines.
type taken struct {
	raw          int
	text         string
	full, enough bool
}

// take renders whole lines from the start of raw until a limit is met. The last part without a newline is taken only where
// last says that no larger window will come.
func take(raw []byte, want shape, last bool) taken {
	var out taken
	var text []byte
	for count := 0; out.raw < len(raw); count++ {
		if want.lines > 0 && count >= want.lines {
			out.full, out.enough = true, true
			break
		}
		line := raw[out.raw:]
		if newline := bytes.IndexByte(line, '\n'); newline >= 0 {
			line = line[:newline+1]
		} else if last {
			line = line[:wholeRunes(line)]
		} else {
			break
		}
		shown := render(line)
		if want.fold {
			more, bytes := likesAfter(raw[out.raw+len(line):], line, shown, want.lines-count-1)
			if folded := foldNote(shown, more); folded != "" && len(text)+len(shown)+len(folded) <= want.budget {
				text = append(append(text, shown...), folded...)
				out.raw += len(line) + bytes
				count += more
				continue
			}
		}
		if len(text)+len(shown) > want.budget {
			out.full = true
			if len(text) == 0 {
				n := cutLine(line, want.budget)
				text, out.raw = append(text, render(line[:n])...), out.raw+n
			}
			break
		}
		text, out.raw = append(text, shown...), out.raw+len(line)
		if line[len(line)-1] != '\n' {
			break
		}
	}
	out.text = string(text)
	return out
}

// wholeRunes is the length of line without a rune that is not complete yet; a line that is nothing else is taken as it is,
// so that a reader gets on.
func wholeRunes(line []byte) int {
	for back := 1; back < utf8.UTFMax && back < len(line); back++ {
		if b := line[len(line)-back]; utf8.RuneStart(b) {
			if !utf8.FullRune(line[len(line)-back:]) {
				return len(line) - back
			}
			break
		}
	}
	return len(line)
}

// cutLine is how many raw bytes of a line that is too long can be shown: up to the last carriage return within the budget,
// where a terminal would begin anew, else as many whole runes as fit; at least one byte.
func cutLine(line []byte, budget int) int {
	n := min(len(line), max(budget, utf8.UTFMax))
	if n < len(line) {
		if back := bytes.LastIndexByte(line[:n], '\r'); back > 0 {
			n = back
		}
		n = wholeRunes(line[:n])
	}
	for n > utf8.UTFMax && len(render(line[:n])) > budget {
		n = wholeRunes(line[:n/2])
	}
	return n
}

// tail reads the last lines. It searches backwards block by block and never further than windowMost.
func tail(log io.ReaderAt, size int64, want shape) (LogSlice, error) {
	lines, budget := want.lines, want.budget
	from, whole, err := tailStart(log, size, lines)
	if err != nil {
		return LogSlice{}, err
	}
	raw, err := readRange(log, size, from, size)
	if err != nil {
		return LogSlice{}, err
	}
	if !whole {
		skip := resumeAt(raw)
		raw, from = raw[skip:], from+int64(skip)
	}
	raw = raw[:wholeRunes(raw)]
	text, used := lastThatFit(raw, want)
	slice := LogSlice{Text: text, End: from + int64(len(raw)), Size: size}
	slice.Start = slice.End - int64(used)
	slice.NextCursor, slice.More = slice.End, slice.End < size
	switch {
	case slice.Start > from:
		slice.Cut = &Cut{From: from, To: slice.Start, Why: fmt.Sprintf("the budget of %d tokens is used up; the lines before are at cursor %d", budget/bytesPerToken, from)}
	case !whole:
		slice.Cut = &Cut{From: 0, To: from, Why: fmt.Sprintf("the last %d bytes hold fewer than %d lines; the bytes before can be read with a cursor", size-from, lines)}
	}
	return slice, nil
}

// tailStart is the offset of the first of the last lines; whole is false where the search was given up before it.
func tailStart(log io.ReaderAt, size int64, lines int) (start int64, whole bool, err error) {
	block := make([]byte, blockSize)
	lowest := max(0, size-windowMost)
	found := 0
	for high := size; high > lowest; {
		low := max(lowest, high-blockSize)
		part := block[:high-low]
		if n, err := log.ReadAt(part, low); n < len(part) && err != nil {
			return 0, false, err
		}
		for i, b := range slices.Backward(part) {
			if b != '\n' || low+int64(i) == size-1 {
				continue // the newline that ends the log starts no line
			}
			if found++; found == lines {
				return low + int64(i) + 1, true, nil
			}
		}
		high = low
	}
	return lowest, lowest == 0, nil
}

// resumeAt is where reading may begin in a window that starts inside a line: behind its first newline, else behind its
// first carriage return, else at its first whole rune.
func resumeAt(raw []byte) int {
	if newline := bytes.IndexByte(raw, '\n'); newline >= 0 && newline+1 < len(raw) {
		return newline + 1
	}
	if back := bytes.IndexByte(raw, '\r'); back >= 0 && back+1 < len(raw) {
		return back + 1
	}
	skip := 0
	for skip < len(raw) && skip < utf8.UTFMax && !utf8.RuneStart(raw[skip]) {
		skip++
	}
	return skip
}

// lastThatFit renders the last lines of raw that fit the budget and says how many raw bytes they are.
func lastThatFit(raw []byte, want shape) (text string, used int) {
	budget := want.budget
	var parts []string
	total := 0
	for used < len(raw) {
		rest := raw[:len(raw)-used]
		line := lastLine(rest)
		shown := render(line)
		if want.fold {
			more, bytes := likesBefore(rest[:len(rest)-len(line)], line, shown)
			if folded := foldNote(shown, more); folded != "" && total+len(shown)+len(folded) <= budget {
				parts, total, used = append(parts, shown+folded), total+len(shown)+len(folded), used+len(line)+bytes
				continue
			}
		}
		if total+len(shown) > budget {
			if len(parts) == 0 {
				line = line[len(line)-min(len(line), budget):]
				line = line[resumeAt(line):]
				for shown = render(line); len(shown) > budget && len(line) > 1; shown = render(line) {
					line = line[len(line)/2:]
					line = line[resumeAt(line):]
				}
				return shown, len(line)
			}
			break
		}
		parts, total, used = append(parts, shown), total+len(shown), used+len(line)
	}
	slices.Reverse(parts)
	return joined(parts, total), used
}

func joined(parts []string, size int) string {
	out := make([]byte, 0, size)
	for _, part := range parts {
		out = append(out, part...)
	}
	return string(out)
}
