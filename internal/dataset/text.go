package dataset

import (
	"bytes"
	"math"
	"strings"
	"unicode/utf8"
)

// kind is what one value looks like on its own.
type kind uint8

const (
	kindMissing kind = iota
	kindInteger
	kindNumber
	kindNonFinite
	kindBoolean
	kindDate
	kindString
	kindCount
)

// text turns bytes of a file into a string fit for JSON: UTF-8 as it is, anything else read as Latin-1, which is what
// such files nearly always are and which never fails.
func text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	runes := make([]rune, len(b))
	for i, c := range b {
		runes[i] = rune(c)
	}
	return string(runes)
}

// shorten cuts s for a message or a profile, on a character boundary.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// trim cuts spaces and tabs, looking first whether there are any.
func trim(b []byte) []byte {
	if len(b) == 0 || b[0] > ' ' && b[len(b)-1] > ' ' {
		return b
	}
	return bytes.TrimSpace(b)
}

// isMissing says whether a trimmed value is one of the ways in which people write "no value": nothing, NA, N/A, #N/A,
// <NA>, nan, null, None, ? and -, in any case.
func isMissing(b []byte) bool {
	switch len(b) {
	case 0:
		return true
	case 1:
		return b[0] == '?' || b[0] == '-'
	case 2, 3, 4:
		if c := b[0] | 0x20; c != 'n' && b[0] != '#' && b[0] != '<' {
			return false
		}
		switch strings.ToLower(string(b)) {
		case "na", "n/a", "#n/a", "<na>", "nan", "null", "none":
			return true
		}
	}
	return false
}

// classify says what a trimmed value is, with its number where it is one.
func classify(b []byte) (kind, float64) {
	if isMissing(b) {
		return kindMissing, 0
	}
	switch c := b[0]; {
	case c >= '0' && c <= '9' || c == '.' || c == '-' || c == '+':
		if len(b) >= 10 && b[4] == b[7] && isDate(b) { // two equal signs there are no number
			return kindDate, 0
		}
		if value, integer, ok := parseNumber(b); ok {
			switch {
			case math.IsInf(value, 0):
				return kindNonFinite, value
			case integer:
				return kindInteger, value
			}
			return kindNumber, value
		}
		if isDate(b) {
			return kindDate, 0
		}
	}
	return classifyWord(b), 0
}

// classifyWord tells words that are truth values or infinities from others.
func classifyWord(b []byte) kind {
	if len(b) < 2 || len(b) > 9 {
		return kindString
	}
	switch b[0] | 0x20 { // '+' and '-' have that bit already
	case 't':
		if isWord(b, "true") {
			return kindBoolean
		}
	case 'f':
		if isWord(b, "false") {
			return kindBoolean
		}
	case 'y':
		if isWord(b, "yes") {
			return kindBoolean
		}
	case 'n':
		if isWord(b, "no") {
			return kindBoolean
		}
	case 'i', '+', '-':
		if b[0] == '+' || b[0] == '-' {
			b = b[1:]
			if isWord(b, "nan") {
				return kindNonFinite
			}
		}
		if isWord(b, "inf") || isWord(b, "infinity") {
			return kindNonFinite
		}
	}
	return kindString
}

// isWord compares with a word of small letters, in any case.
func isWord(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if c|0x20 != word[i] {
			return false
		}
	}
	return true
}

// isDate recognises ISO 8601 as people write it: YYYY-MM-DD or YYYY/MM/DD, alone or followed by T or a space and
// hh:mm[:ss[.fff]] with an optional Z or offset; and DD.MM.YYYY, which nobody writes month first. Day-first and month-first dates
// with other signs can't be told apart and stay strings.
func isDate(b []byte) bool {
	if len(b) < 10 {
		return false
	}
	var month, day int
	two := func(i int) int { return int(b[i]-'0')*10 + int(b[i+1]-'0') }
	switch {
	case b[4] == b[7] && (b[4] == '-' || b[4] == '/') && digitsAt(b, 0, 4) && digitsAt(b, 5, 2) && digitsAt(b, 8, 2):
		month, day = two(5), two(8)
	case b[2] == '.' && b[5] == '.' && digitsAt(b, 0, 2) && digitsAt(b, 3, 2) && digitsAt(b, 6, 4):
		day, month = two(0), two(3)
	}
	if month < 1 || month > 12 || day < 1 || day > 31 {
		return false
	}
	if len(b) == 10 {
		return true
	}
	rest := b[11:]
	if b[10] != 'T' && b[10] != ' ' || len(rest) < 5 || !digitsAt(rest, 0, 2) || rest[2] != ':' || !digitsAt(rest, 3, 2) {
		return false
	}
	return len(bytes.Trim(rest[5:], "0123456789:.Z+-")) == 0
}

func digitsAt(b []byte, from, n int) bool {
	if len(b) < from+n {
		return false
	}
	for _, c := range b[from : from+n] {
		if c-'0' > 9 {
			return false
		}
	}
	return true
}

// appendNormal appends what a value means rather than how it is spelled: numbers by value, words without case, every
// missing spelling alike. A length before each value keeps neighbours apart.
func appendNormal(dst, b []byte) []byte {
	b = trim(b)
	switch k, value := classify(b); k {
	case kindMissing:
		return append(dst, 'm')
	case kindInteger, kindNumber:
		if value == 0 {
			value = 0 // -0 is 0
		}
		bits := math.Float64bits(value + 0)
		return append(dst, 'n', byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24), byte(bits>>32), byte(bits>>40), byte(bits>>48), byte(bits>>56))
	default:
		return appendExact(append(dst, 's'), bytes.ToLower(b))
	}
}

// appendExact appends a value with its length.
func appendExact(dst, b []byte) []byte {
	n := len(b)
	dst = append(dst, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	return append(dst, b...)
}
