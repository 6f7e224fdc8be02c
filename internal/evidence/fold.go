package evidence

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// folded is a text as quotes are compared: NFKC, each run of white space one space and none at the ends, soft hyphens
// removed, words joined that a hyphen broke at the end of a line. For each of its bytes it knows the range of the original
// text that the byte came from.
type folded struct {
	text     []byte
	from, to []int32 // offsets in the original; sources that are kept have at most 4 MiB
	joined   bool    // a hyphen at a line's end was taken for a break
}

// folder builds a folded text rune by rune.
type folder struct {
	folded
	keepHyphen bool
	last       rune // the last rune put out
	before     rune // the one before it
	space      bool // white space waits for what follows
	newline    bool // and it contains a line end
	soft       bool // a soft hyphen came right before it
	spaceFrom  int
	spaceTo    int
}

// fold folds a text. A hyphen between letters at the end of a line may belong to the word ("well-known") or to the break
// ("optimi-zer"): keepHyphen says which reading to take.
func fold(text []byte, keepHyphen bool) folded {
	f := folder{keepHyphen: keepHyphen}
	f.text = make([]byte, 0, len(text))
	f.from, f.to = make([]int32, 0, len(text)), make([]int32, 0, len(text))
	var buffer []byte
	for i := 0; i < len(text); {
		// An ASCII character before another one stands for itself.
		if text[i] < utf8.RuneSelf && (i+1 == len(text) || text[i+1] < utf8.RuneSelf) {
			f.add(rune(text[i]), text[i:i+1], i, i+1)
			i++
			continue
		}
		if size := plainSize(text[i:]); size > 0 {
			r, _ := utf8.DecodeRune(text[i:])
			f.add(r, text[i:i+size], i, i+size)
			i += size
			continue
		}
		size := norm.NFKC.NextBoundary(text[i:], true)
		buffer = norm.NFKC.Append(buffer[:0], text[i:i+size]...)
		for rest := buffer; len(rest) > 0; {
			r, n := utf8.DecodeRune(rest)
			f.add(r, rest[:n], i, i+size)
			rest = rest[n:]
		}
		i += size
	}
	return f.folded
}

// plainSize is the size of the first character of text when NFKC leaves it alone and nothing after it combines with it,
// which is so for most of a text in any script; 0 otherwise.
func plainSize(text []byte) int {
	this := norm.NFKC.Properties(text)
	size := this.Size()
	if size == 0 || !this.BoundaryBefore() || this.Decomposition() != nil || !isBoundary(text, size) {
		return 0
	}
	return size
}

const softHyphen = '\u00ad'

func (f *folder) add(r rune, encoded []byte, from, to int) {
	switch {
	case r == softHyphen:
		f.soft = true
		return
	case unicode.IsSpace(r):
		if !f.space {
			f.space, f.newline, f.spaceFrom = true, false, from
		}
		f.newline = f.newline || r == '\n' || r == '\r'
		f.spaceTo = to
		return
	}
	if f.space {
		f.endSpace(r)
	}
	f.space, f.soft = false, false
	f.emit(encoded, from, to)
	f.before, f.last = f.last, r
}

// endSpace decides what becomes of the white space before r.
func (f *folder) endSpace(r rune) {
	switch {
	case len(f.text) == 0:
	case f.newline && f.soft && unicode.IsLetter(f.last) && unicode.IsLetter(r):
	case f.newline && isHyphen(f.last) && unicode.IsLetter(f.before) && unicode.IsLetter(r):
		f.joined = true
		if !f.keepHyphen {
			size := utf8.RuneLen(f.last)
			f.text, f.from, f.to = f.text[:len(f.text)-size], f.from[:len(f.from)-size], f.to[:len(f.to)-size]
		}
	default:
		f.emit([]byte{' '}, f.spaceFrom, f.spaceTo)
		f.last = ' '
	}
}

func (f *folder) emit(encoded []byte, from, to int) {
	for _, c := range encoded {
		f.text = append(f.text, c)
		f.from = append(f.from, int32(from))
		f.to = append(f.to, int32(to))
	}
}

func isHyphen(r rune) bool { return r == '-' || r == '\u2010' } // U+2011 is U+2010 in NFKC
