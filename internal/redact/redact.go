package redact

import (
	"bytes"
	"unicode/utf8"
)

// scanLimit bounds in bytes how far one hit looks for the end of its secret, so that hostile text costs linear time.
const scanLimit = 8 << 10

// blankLimit bounds in bytes the blanks between a name and its value.
const blankLimit = 256

// keyBlockLimit bounds a private key block in bytes; a 16384-bit RSA key in PEM takes about 12 KiB.
const keyBlockLimit = 32 << 10

// Text returns s with each byte of every secret replaced by '*'. The result has the length of s.
func Text(s string) string {
	masked := secrets([]byte(s))
	if len(masked) == 0 {
		return s
	}
	return string(mask([]byte(s), masked))
}

// Bytes is Text for a byte slice. The slice that was passed in is not changed.
func Bytes(b []byte) []byte {
	return mask(bytes.Clone(b), secrets(b))
}

// Value redacts a value whose name is known apart from it, such as one variable of an environment: the whole value is
// masked when the name says that it is a secret, otherwise whatever Text finds in it. The length stays.
func Value(name, value string) string {
	lower := bytes.ToLower([]byte(name))
	for _, word := range nameWords {
		if !bytes.HasSuffix(lower, []byte(word.text)) {
			continue
		}
		weight, ok := word.weigh(string(lower[:len(lower)-len(word.text)]))
		if ok && isSecret(weight, value, true) {
			return string(mask([]byte(value), []span{{0, len(value)}}))
		}
	}
	return Text(value)
}

// span is a half-open range of bytes.
type span struct{ start, end int }

// mask overwrites the spans. Line ends stay, so that line numbers do.
func mask(b []byte, spans []span) []byte {
	for _, s := range spans {
		for i := s.start; i < s.end; i++ {
			if b[i] != '\n' && b[i] != '\r' {
				b[i] = '*'
			}
		}
	}
	return b
}

// window is a part of a text in which secrets are looked for. A hit is where a shape, a place or a name begins; those in
// [from, to) are judged. What stands before from and behind to is looked at, so that a text may be judged in parts.
type window struct {
	b, lower []byte
	from, to int
	// done is, for each of nameWords, where the value that was masked last ends.
	done []int
	// found lists the spans to mask, in no order; they may overlap. None begins before its hit.
	found []span
}

// secrets lists the spans to mask in a whole text.
func secrets(b []byte) []span {
	if len(b) == 0 {
		return nil
	}
	w := window{b: b, lower: lowerASCII(b), to: len(b), done: make([]int, len(nameWords))}
	w.judge()
	return w.found
}

func (w *window) judge() {
	w.shapes()
	w.webTokens()
	w.keyBlocks()
	w.urlPasswords()
	w.headers()
	w.logins()
	w.named()
}

// lowerASCII folds ASCII letters only, so that offsets stay those of b.
func lowerASCII(b []byte) []byte {
	lower := make([]byte, len(b))
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return lower
}

// each calls visit with the offset of every hit of word in text, which is w.b or w.lower.
func (w *window) each(text []byte, word string, visit func(at int)) {
	text = text[:min(len(text), w.to+len(word)-1)]
	for from := w.from; from < len(text); {
		i := bytes.Index(text[from:], []byte(word))
		if i < 0 {
			return
		}
		visit(from + i)
		from += i + len(word)
	}
}

// until returns the offset of the first byte from start on that stop accepts, at most limit bytes further and never
// inside a character.
func until(b []byte, start, limit int, stop func(byte) bool) int {
	end := min(len(b), start+limit)
	for i := start; i < end; i++ {
		if stop(b[i]) {
			return i
		}
	}
	for end < len(b) && end > start && !utf8.RuneStart(b[end]) {
		end--
	}
	return end
}

// skipBlanks passes blanks and tabs, at most blankLimit of them.
func skipBlanks(b []byte, at int) int {
	for end := min(len(b), at+blankLimit); at < end && (b[at] == ' ' || b[at] == '\t'); {
		at++
	}
	return at
}

func isWord(c byte) bool { return isAlnum(c) || c == '_' }

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }
