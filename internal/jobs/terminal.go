package jobs

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// terminal renders raw log bytes as a terminal would leave them on the screen: a carriage return goes back to the start of
// the line and what follows overwrites it, so that a progress bar's thousand states become its last one. Colours and other
// escape sequences are dropped, bytes that are not UTF-8 become U+FFFD. Plain text comes back unchanged.
func terminal(raw []byte) string {
	if plain(raw) {
		return string(raw)
	}
	screen := screen{out: make([]byte, 0, min(len(raw), 1<<16))}
	for len(raw) > 0 {
		if raw[0] == escape {
			raw = screen.sequence(raw[1:])
			continue
		}
		r, size := utf8.DecodeRune(raw)
		if r == utf8.RuneError && size == 1 {
			size = invalidRun(raw)
		}
		screen.put(r)
		raw = raw[size:]
	}
	screen.flush()
	return string(screen.out)
}

const escape = 0x1b

// plain reports whether raw needs no rendering.
func plain(raw []byte) bool {
	for _, b := range raw {
		if (b < ' ' && b != '\n' && b != '\t') || b == 0x7f {
			return false
		}
	}
	return utf8.Valid(raw)
}

// invalidRun is how many bytes in a row are not UTF-8; they share one replacement character.
func invalidRun(raw []byte) int {
	n := 1
	for n < len(raw) {
		if r, size := utf8.DecodeRune(raw[n:]); r != utf8.RuneError || size != 1 {
			break
		}
		n++
	}
	return n
}

// screen is the line being written and the lines before it. One rune takes one cell.
type screen struct {
	out         []byte
	line        []rune
	column      int
	overwritten bool
}

func (s *screen) put(r rune) {
	switch {
	case r == '\n':
		s.flush()
		s.out = append(s.out, '\n')
	case r == '\r':
		s.column = 0
		s.overwritten = true
	case r == '\b':
		s.column = max(0, s.column-1)
	case (r < ' ' && r != '\t') || r == 0x7f: // other control characters show nothing
	case s.column < len(s.line):
		s.line[s.column] = r
		s.column++
	default:
		s.line = append(s.line, r)
		s.column++
	}
}

// flush writes the line. A bar that was overwritten pads its end with blanks to hide the longer one before it.
func (s *screen) flush() {
	text := string(s.line)
	if s.overwritten {
		text = strings.TrimRight(text, " ")
	}
	s.out = append(s.out, text...)
	s.line, s.column, s.overwritten = s.line[:0], 0, false
}

// sequence drops the escape sequence whose ESC was just read (ECMA-48: CSI ends with a byte from '@' to '~', OSC with BEL or
// ESC \) and returns what follows. Erase in line (CSI K) is honoured, since progress bars use it.
func (s *screen) sequence(raw []byte) []byte {
	if len(raw) == 0 {
		return raw
	}
	switch raw[0] {
	case '[':
		end := 1
		for end < len(raw) && raw[end] >= 0x20 && raw[end] <= 0x3f {
			end++
		}
		if end == len(raw) {
			return nil
		}
		if raw[end] == 'K' {
			s.erase(string(raw[1:end]))
		}
		if raw[end] < '@' || raw[end] > '~' {
			return raw[end:] // malformed; the byte is text
		}
		return raw[end+1:]
	case ']':
		if end := bytes.IndexAny(raw, "\a\x1b\n"); end >= 0 {
			if bytes.HasPrefix(raw[end:], []byte("\x1b\\")) {
				return raw[end+2:]
			}
			if raw[end] == '\a' {
				end++
			}
			return raw[end:]
		}
		return nil
	}
	if raw[0] >= 0x80 || raw[0] < ' ' {
		return raw // not a sequence; the byte is text
	}
	return raw[1:]
}

// erase clears from the cursor to the end of the line ("" or 0), from its start to the cursor (1) or all of it (2).
func (s *screen) erase(mode string) {
	switch mode {
	case "", "0":
		s.line = s.line[:min(s.column, len(s.line))]
	case "1":
		for i := range min(s.column, len(s.line)) {
			s.line[i] = ' '
		}
	case "2":
		s.line, s.column = s.line[:0], 0
	}
}
