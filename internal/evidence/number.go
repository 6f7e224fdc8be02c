package evidence

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// number is a decimal number as configurations and prose write it; thousands may be set off by commas or underscores.
var number = regexp.MustCompile(`(?:[0-9]+(?:[,_][0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?`)

var thousands = regexp.MustCompile(`^[0-9]{1,3}(?:,[0-9]{3})+(?:\.|[eE]|$)`)

// numberIn tells whether a number equal to want stands in text.
func numberIn(want float64, text string) bool {
	if math.IsNaN(want) || math.IsInf(want, 0) {
		return false
	}
	for _, at := range number.FindAllStringIndex(text, -1) {
		start, end := at[0], at[1]
		if !standsAlone(text, start, end) {
			continue
		}
		negative := isSigned(text, start)
		for i, token := range readings(strings.TrimSuffix(text[start:end], ".")) {
			n, err := strconv.ParseFloat(token, 64)
			if negative && i <= 1 { // the sign belongs to the whole, or to the first of a list
				n = -n
			}
			if err == nil && n == want {
				return true
			}
		}
	}
	return false
}

// standsAlone tells a number from a part of a word, a version or a path.
func standsAlone(text string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	after, size := utf8.DecodeRuneInString(text[end:])
	if isWordRune(before) || isWordRune(after) || before == '.' || after == '^' {
		return false
	}
	if after == '.' || text[end-1] == '.' && after != utf8.RuneError { // 1.2.3, 1.x; a full stop ends a sentence
		next, _ := utf8.DecodeRuneInString(text[end+size:])
		return after != '.' && !isWordRune(after) || after == '.' && !isWordRune(next)
	}
	return true
}

// isSigned tells a minus sign from a dash: nothing that could be subtracted from stands before it.
func isSigned(text string, start int) bool {
	minus, size := utf8.DecodeLastRuneInString(text[:start])
	if minus != '-' && minus != '\u2212' {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(text[:start-size])
	return !isWordRune(before) && before != ')' && before != ']' && before != '.'
}

// readings are the ways to read a token with commas: "1,000" is a thousand, and may be a list of 1 and 0. The whole comes
// first, then the parts in their order.
func readings(token string) []string {
	token = strings.ReplaceAll(token, "_", "")
	if !strings.Contains(token, ",") {
		return []string{token}
	}
	parts := strings.Split(token, ",")
	if thousands.MatchString(token) {
		return append([]string{strings.ReplaceAll(token, ",", "")}, parts...)
	}
	return append(parts[:1:1], parts...)
}
