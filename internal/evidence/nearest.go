package evidence

import (
	"bytes"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// pieceBytes cuts long lines, so that the nearest passage of a one-line file is still a passage.
	pieceBytes = 300
	// mostTokens of a quote are looked for: one bit each.
	mostTokens = 64
	// mostPieces is the longest window, in lines.
	mostPieces = 10
)

// piece is a line of a text, or a part of a long one.
type piece struct {
	start, end int // byte offsets
	line       int
	shared     uint64 // which tokens of the quote are in it
	hits       int    // how many of its tokens are the quote's
	tokens     int
}

// nearestPassage slides a window of as many lines as the quote has over the text, and takes the one with most of the
// quote's words in it; among those the one with the fewest others.
func nearestPassage(text []byte, quote string) Nearest {
	wanted := map[string]uint64{}
	eachToken([]byte(quote), func(token []byte) {
		word := strings.ToLower(string(token))
		if _, ok := wanted[word]; !ok && len(wanted) < mostTokens {
			wanted[word] = 1 << len(wanted)
		}
	})
	width := 1 + strings.Count(strings.TrimSpace(quote), "\n") + len(quote)/pieceBytes
	width = min(width, mostPieces)
	var window, best []piece
	var score, density float64
	eachPiece(text, func(p piece) {
		p.count(text, wanted)
		if len(window) == width {
			copy(window, window[1:])
			window = window[:width-1]
		}
		window = append(window, p)
		s, d := rate(window)
		if s > score || s == score && d > density {
			score, density = s, d
			best = append(best[:0], window...)
		}
	})
	if score == 0 {
		return Nearest{}
	}
	return passage(text, best)
}

func rate(window []piece) (score, density float64) {
	var shared uint64
	hits, tokens := 0, 0
	for _, p := range window {
		shared |= p.shared
		hits += p.hits
		tokens += p.tokens
	}
	return float64(bits.OnesCount64(shared)), float64(hits) / float64(max(tokens, 1))
}

// passage cuts lines without a shared word off both ends and makes the rest fit to be shown.
func passage(text []byte, window []piece) Nearest {
	for window[0].shared == 0 {
		window = window[1:]
	}
	for window[len(window)-1].shared == 0 {
		window = window[:len(window)-1]
	}
	start, end := window[0].start, window[len(window)-1].end
	for start < end && isBlank(text[start]) {
		start++
	}
	cut := min(end, start+pieceBytes)
	for cut < end && cut > start && !utf8.RuneStart(text[cut]) {
		cut--
	}
	shown := strings.TrimSpace(strings.ToValidUTF8(string(text[start:cut]), "�"))
	return Nearest{Text: shown, Line: window[0].line, Start: start}
}

func isBlank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

func (p *piece) count(text []byte, wanted map[string]uint64) {
	eachToken(text[p.start:p.end], func(token []byte) {
		p.tokens++
		if bit, ok := wanted[string(bytes.ToLower(token))]; ok {
			p.hits++
			p.shared |= bit
		}
	})
}

// eachPiece visits the lines of a text, long ones in parts that end at a blank where there is one.
func eachPiece(text []byte, visit func(piece)) {
	line := 1
	for start := 0; start < len(text); line++ {
		end := len(text)
		next := end
		if i := bytes.IndexByte(text[start:], '\n'); i >= 0 {
			end, next = start+i, start+i+1
		}
		for end-start > pieceBytes {
			cut := start + pieceBytes
			if blank := bytes.LastIndexAny(text[start:cut], " \t,;"); blank > 0 {
				cut = start + blank + 1
			}
			visit(piece{start: start, end: cut, line: line})
			start = cut
		}
		visit(piece{start: start, end: end, line: line})
		start = next
	}
}

// eachToken visits the runs of letters, digits and underscores. A token is only valid during the visit.
func eachToken(text []byte, visit func([]byte)) {
	start := -1
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' {
			if start < 0 {
				start = i
			}
		} else if start >= 0 {
			visit(text[start:i])
			start = -1
		}
		i += size
	}
	if start >= 0 {
		visit(text[start:])
	}
}
