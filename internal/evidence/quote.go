package evidence

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Nearest is the passage of a text that has most in common with a quote that is not in it. Text is "" when nothing does.
type Nearest struct {
	Text  string
	Line  int // physical, from 1
	Start int // byte offset
}

// FindQuote looks for a quote in a text: under NFKC, with white space folded, soft hyphens removed and words joined that
// were hyphenated at the end of a line; letters keep their case. The range is in the text as it is and covers whole
// characters: text[start:end] folds to what the quote folds to. The first match counts. An empty quote is in no text.
//
// When the quote is not there, nearest is the place to look. The cost is linear in the text.
func FindQuote(text []byte, quote string) (start, end int, nearest Nearest, ok bool) {
	if len(fold([]byte(quote), false).text) == 0 {
		return 0, 0, Nearest{}, false
	}
	if start, end, ok = findVerbatim(text, []byte(strings.TrimSpace(quote))); ok {
		return start, end, Nearest{}, true
	}
	for _, keepHyphen := range []bool{false, true} {
		want, have := fold([]byte(quote), keepHyphen), fold(text, keepHyphen)
		if start, end, ok = have.find(text, want.text, keepHyphen); ok {
			return start, end, Nearest{}, true
		}
		if !want.joined && !have.joined {
			break // the other reading of hyphens is the same
		}
	}
	return 0, 0, nearestPassage(text, quote), false
}

// findVerbatim is the short way for a quote that was copied.
func findVerbatim(text, quote []byte) (start, end int, ok bool) {
	i := bytes.Index(text, quote)
	if i < 0 || !isBoundary(text, i) || !isBoundary(text, i+len(quote)) {
		return 0, 0, false
	}
	return i, i + len(quote), true
}

// isBoundary tells whether a character begins at i that does not combine with what stands before it.
func isBoundary(text []byte, i int) bool {
	if i == 0 || i == len(text) {
		return true
	}
	return utf8.RuneStart(text[i]) && norm.NFKC.Properties(text[i:]).BoundaryBefore()
}

func (f folded) find(text, want []byte, keepHyphen bool) (start, end int, ok bool) {
	const mostTries = 1000 // matches that begin or end inside a character; more than a handful is made up
	for at, tries := 0, 0; tries < mostTries; tries++ {
		i := f.indexWhole(want, at)
		if i < 0 {
			return 0, 0, false
		}
		start, end = int(f.from[i]), int(f.to[i+len(want)-1])
		if bytes.Equal(fold(text[start:end], keepHyphen).text, want) {
			return start, end, true
		}
		at = i + 1
	}
	return 0, 0, false
}

// indexWhole finds want from offset at on where it does not begin or end inside what one character was folded to, such as
// the f of a ligature fi.
func (f folded) indexWhole(want []byte, at int) int {
	for {
		i := bytes.Index(f.text[at:], want)
		if i < 0 {
			return -1
		}
		i += at
		if f.edge(i) && f.edge(i+len(want)) {
			return i
		}
		at = i + 1
	}
}

func (f folded) edge(i int) bool {
	return i == 0 || i == len(f.text) || f.from[i-1] != f.from[i] || f.text[i-1] == ' '
}
