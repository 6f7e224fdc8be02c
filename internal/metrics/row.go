package metrics

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds nesting in a row; a metrics row needs two or three levels.
const maxDepth = 32

// kind is the JSON type of a value. Bare NaN and Infinity, which Python and JavaScript writers emit and
// encoding/json refuses, have a kind of their own; that is why rows are scanned here.
type kind byte

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindNonFinite
	kindString
	kindArray
	kindObject
)

// field is one name and value of an object; raw is the value's bytes and at its offset in the line.
type field struct {
	name string
	kind kind
	raw  []byte
	at   int
	// loose takes numbers as printers and spreadsheets write them, beside those of JSON: .5, 1., +1, 007
	loose bool
}

// syntaxError says what was expected at which byte of the line; cut means the text ended too early.
type syntaxError struct {
	at   int
	want string
	cut  bool
}

type scanner struct {
	text []byte
	at   int
}

// parseObject reads a line that holds exactly one JSON object. The fields are appended to into, which may be nil.
func parseObject(text []byte, into []field) ([]field, *syntaxError) {
	s := &scanner{text: text}
	s.space()
	fields, bad := s.object(0, into)
	if bad != nil {
		return fields, bad
	}
	s.space()
	if s.at < len(text) {
		return fields, s.expected("the end of the line after the object")
	}
	return fields, nil
}

// parseArray reads the elements of an array whose bytes are already known to be well formed.
func parseArray(raw []byte) []field {
	s := &scanner{text: raw, at: 1}
	var elements []field
	for {
		s.space()
		if s.at >= len(raw) || raw[s.at] == ']' {
			return elements
		}
		if raw[s.at] == ',' {
			s.at++
			continue
		}
		element, bad := s.value(1)
		if bad != nil {
			return elements
		}
		elements = append(elements, element)
	}
}

func (s *scanner) expected(want string) *syntaxError {
	return &syntaxError{at: s.at, want: want, cut: s.at >= len(s.text)}
}

func (s *scanner) space() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t' || s.text[s.at] == '\r' || s.text[s.at] == '\n') {
		s.at++
	}
}

func (s *scanner) take(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// object reads an object and appends its fields to into.
func (s *scanner) object(depth int, into []field) ([]field, *syntaxError) {
	fields := into
	if !s.take('{') {
		return fields, s.expected("an object that begins with {")
	}
	s.space()
	if s.take('}') {
		return fields, nil
	}
	for {
		s.space()
		name, bad := s.quoted("a field name in double quotes")
		if bad != nil {
			return fields, bad
		}
		s.space()
		if !s.take(':') {
			return fields, s.expected(": after the field name")
		}
		s.space()
		value, bad := s.value(depth + 1)
		if bad != nil {
			return fields, bad
		}
		value.name = decodeString(name)
		fields = append(fields, value)
		s.space()
		if s.take('}') {
			return fields, nil
		}
		if !s.take(',') {
			return fields, s.expected(", or } after a value")
		}
	}
}

func (s *scanner) array(depth int) *syntaxError {
	s.at++
	s.space()
	if s.take(']') {
		return nil
	}
	for {
		s.space()
		if _, bad := s.value(depth + 1); bad != nil {
			return bad
		}
		s.space()
		if s.take(']') {
			return nil
		}
		if !s.take(',') {
			return s.expected(", or ] after an element")
		}
	}
}

func (s *scanner) value(depth int) (field, *syntaxError) {
	start := s.at
	if depth > maxDepth {
		return field{}, &syntaxError{at: s.at, want: "at most " + strconv.Itoa(maxDepth) + " levels"}
	}
	if s.at >= len(s.text) {
		return field{}, s.expected("a value")
	}
	var bad *syntaxError
	var found kind
	switch s.text[s.at] {
	case '{':
		found = kindObject
		_, bad = s.object(depth, nil)
	case '[':
		found = kindArray
		bad = s.array(depth)
	case '"':
		found = kindString
		_, bad = s.quoted("a string")
	default:
		found, bad = s.word()
	}
	if bad != nil {
		return field{}, bad
	}
	return field{kind: found, raw: s.text[start:s.at], at: start}, nil
}

// quoted reads a string and returns it with its quotes.
func (s *scanner) quoted(want string) ([]byte, *syntaxError) {
	start := s.at
	if !s.take('"') {
		return nil, s.expected(want)
	}
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return s.text[start:s.at], nil
		case c == '\\':
			s.at += 2
		case c < 0x20:
			return nil, s.expected("no control character in a string")
		default:
			s.at++
		}
	}
	s.at = len(s.text)
	return nil, s.expected("the closing quote of a string")
}

// word reads a number, true, false, null or a non-finite token.
func (s *scanner) word() (kind, *syntaxError) {
	start := s.at
	for s.at < len(s.text) && !endsWord[s.text[s.at]] {
		s.at++
	}
	text := s.text[start:s.at]
	if isNumber(text) {
		return kindNumber, nil
	}
	switch word := string(text); {
	case word == "null":
		return kindNull, nil
	case word == "true" || word == "false":
		return kindBool, nil
	case nonFiniteWord(word) != "":
		return kindNonFinite, nil
	}
	// A word that reaches the end of the text may be one that was cut ("tru", "1.").
	bad := &syntaxError{at: start, want: "a value (number, string, true, false, null)", cut: s.at >= len(s.text)}
	return kindNull, bad
}

// endsWord are the bytes that a number or literal ends before.
var endsWord = [256]bool{',': true, ']': true, '}': true, ':': true, ' ': true, '\t': true, '\r': true, '\n': true, '"': true, '{': true, '[': true}

// isNumber says whether text is a JSON number (RFC 8259, section 6).
func isNumber[T string | []byte](text T) bool {
	i := 0
	digits := func() bool {
		from := i
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(text) && text[i] == '-' {
		i++
	}
	first := i
	if !digits() || text[first] == '0' && i > first+1 {
		return false
	}
	if i < len(text) && text[i] == '.' {
		i++
		if !digits() {
			return false
		}
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		if !digits() {
			return false
		}
	}
	return i == len(text)
}

// nonFiniteWord maps the tokens of Python, JavaScript, NumPy and C printers to nan, inf or -inf; "" is none of them.
func nonFiniteWord(word string) string {
	switch strings.ToLower(word) {
	case "nan", "-nan", "+nan":
		return "nan"
	case "inf", "+inf", "infinity", "+infinity":
		return "inf"
	case "-inf", "-infinity":
		return "-inf"
	}
	return ""
}

// nonFiniteValue is the number that a non-finite word stands for.
func nonFiniteValue(word string) float64 {
	switch word {
	case "inf":
		return math.Inf(1)
	case "-inf":
		return math.Inf(-1)
	}
	return math.NaN()
}

// decodeString turns a quoted JSON string into text; invalid UTF-8 and broken escapes become U+FFFD.
func decodeString(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return strings.ToValidUTF8(string(inner), "\uFFFD")
	}
	return text
}

// string returns a string field's text, and a number's as printed.
func (f field) string() (string, bool) {
	switch f.kind {
	case kindString:
		return decodeString(f.raw), true
	case kindNumber:
		return string(f.raw), true
	}
	return "", false
}

// number returns a numeric field's value, also where it was written as a string. A number beyond float64 is infinite.
func (f field) number() (value float64, nonFinite, text string, ok bool) {
	text, ok = f.string()
	if f.kind == kindNonFinite {
		text, ok = string(f.raw), true
	}
	text = strings.TrimSpace(text)
	if !ok || text == "" {
		return 0, "", "", false
	}
	if !isNumber(text) && !(f.loose && printedNumber(text)) {
		word := nonFiniteWord(text)
		return nonFiniteValue(word), word, text, word != ""
	}
	value, err := strconv.ParseFloat(text, 64)
	switch {
	case math.IsInf(value, 1):
		return value, "inf", text, true
	case math.IsInf(value, -1):
		return value, "-inf", text, true
	}
	return value, "", text, err == nil
}

// whole returns a field's integer value; 120.0 counts as 120.
func (f field) whole() (int64, bool) {
	text, ok := f.string()
	if !ok {
		return 0, false
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
		return n, true
	}
	value, nonFinite, _, ok := f.number()
	if !ok || nonFinite != "" || value != math.Trunc(value) || math.Abs(value) > 1<<53 {
		return 0, false
	}
	return int64(value), true
}
