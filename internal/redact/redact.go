package redact

import (
	"bytes"
	"unicode/utf8"
)

// scanLimit bounds in bytes how far one hit looks for the end of its secret, so that hostile text costs linear time.
const scanLimit = 8 << 10

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

// secrets lists the spans to mask, in no order; they may overlap.
func secrets(b []byte) []span {
	if len(b) == 0 {
		return nil
	}
	var found []span
	found = appendShapes(found, b)
	found = appendWebTokens(found, b)
	lower := lowerASCII(b)
	found = appendKeyBlocks(found, b)
	found = appendURLPasswords(found, b)
	found = appendHeaders(found, b, lower)
	found = appendLogins(found, b, lower)
	return appendNamed(found, b, lower)
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

// each calls visit with every offset of word in b.
func each(b []byte, word string, visit func(at int)) {
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte(word))
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

func skipBlanks(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\t') {
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
