package diagnose

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/trainwright/trainwright/internal/redact"
)

// row is a line of a log as a terminal shows it: behind its last carriage return, without escape sequences, secrets masked.
type row struct {
	// offset is the file's byte that text begins at, end the one behind the line.
	offset, end int64
	// prefix is what torchrun, srun --label, mpirun or an exception group put before the line, text what follows.
	prefix, text string
}

var (
	// rankPrefix: "[default0]:" and "[rank1]:" of torchrun, "0:" of srun --label, "[1,0]<stderr>:" of mpirun --tag-output,
	// "  |" of an exception group (PEP 654).
	rankPrefix = regexp.MustCompile(`^(?:\[[A-Za-z_.-]*\d+\]:|\[\d+,\d+\](?:<std(?:out|err)>)?:|\d+:| *[|+](?: |$))`)
	// escapes are the sequences that colour a line (ECMA-48: CSI to a byte from '@' to '~').
	escapes = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]`)
)

// lookBack is how far the start of a line is sought, and how much of the text before it is looked at for a secret that
// reaches into it.
const lookBack = 4 << 10

// rows are the lines from the one that holds the byte at from up to the byte to. A line that begins more than lookBack
// before it is cut.
func (s *scanned) rows(from, to int64) []row {
	base := max(0, from-2*lookBack)
	raw := redact.Bytes(s.read(base, to))
	start := min(int(from-base), len(raw))
	if cut := bytes.LastIndexByte(raw[max(0, start-lookBack):start], '\n'); cut >= 0 {
		start = max(0, start-lookBack) + cut + 1
	} else {
		start = max(0, start-lookBack)
	}
	var out []row
	for at := start; at < len(raw); {
		end := len(raw)
		if cut := bytes.IndexByte(raw[at:], '\n'); cut >= 0 {
			end = at + cut + 1
		}
		out = append(out, newRow(raw[at:end], base+int64(at)))
		at = end
	}
	return out
}

func newRow(raw []byte, offset int64) row {
	out := row{offset: offset, end: offset + int64(len(raw))}
	raw = bytes.TrimRight(raw, "\r\n")
	if cut := bytes.LastIndexByte(raw, '\r'); cut >= 0 {
		out.offset += int64(cut) + 1
		raw = raw[cut+1:]
	}
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	if strings.ContainsRune(text, '\x1b') {
		text = redact.Text(escapes.ReplaceAllString(text, ""))
	}
	out.text = text
	if prefix := rankPrefix.FindString(text); prefix != "" {
		out.text = text[len(prefix):]
		if cut := strings.IndexAny(prefix, "|+"); cut >= 0 {
			out.prefix, out.text = prefix[:cut]+"|", text[cut+1:]
		} else {
			out.prefix = prefix
		}
	}
	return out
}

func (r row) indent() int { return len(r.text) - len(strings.TrimLeft(r.text, " \t")) }

func (r row) blank() bool { return strings.TrimSpace(r.text) == "" }

// line is the row as evidence.
func (s *scanned) line(r row) Line {
	return Line{Path: s.path, Line: s.lineAt(r.offset), Byte: r.offset, Text: strings.TrimSpace(strings.TrimRight(r.prefix, " |") + r.text)}
}

// end is the last lines of the log. They are rendered once: most places lie there.
func (s *scanned) end() []row {
	if s.ending == nil {
		s.ending = s.rows(max(0, s.size-windowBytes), s.size)
	}
	return s.ending
}

// rowAt is the number of the line of end that holds the byte at offset, -1 for none.
func (s *scanned) rowAt(offset int64) int {
	rows := s.end()
	i, _ := slices.BinarySearchFunc(rows, offset, func(r row, offset int64) int { return cmp.Compare(r.end, offset+1) })
	if i == len(rows) || rows[0].offset > offset {
		return -1
	}
	return i
}

// lastRow is the last line that says something, with a letter or digit.
func (s *scanned) lastRow() (row, bool) {
	for _, r := range slices.Backward(s.end()) {
		if strings.ContainsFunc(r.text, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }) {
			return r, true
		}
	}
	return row{}, false
}

// ordinaryMost is how many ordinary lines may follow a failure. A program that writes more has survived it.
const ordinaryMost = 40

// wentOn reports whether the program wrote on between two places: more ordinary lines than the epilogue of a failure has.
// Of a log with ranks only the lines of the same rank count.
func (s *scanned) wentOn(from, to int64, prefix string) bool {
	return s.ordinary(from, to, prefix) > ordinaryMost
}

// ordinary counts the lines between two places that are no epilogue; more than ordinaryMost where they are far apart.
func (s *scanned) ordinary(from, to int64, prefix string) int {
	if to-from > windowBytes {
		return ordinaryMost + 1
	}
	ordinary := 0
	rows := s.end()
	if len(rows) == 0 || rows[0].offset > from {
		rows = s.rows(from, to)
	}
	for _, r := range rows {
		if r.offset < from || r.offset >= to || r.blank() || r.indent() > 0 || prefix != "" && r.prefix != prefix {
			continue
		}
		if !strings.HasPrefix(r.text, "frame #") { // the stack of a C++ exception
			ordinary++
		}
	}
	return ordinary
}
