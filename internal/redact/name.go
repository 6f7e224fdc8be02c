package redact

import (
	"bytes"
	"strings"
)

// named finds values by the name that stands before them, in the forms of env files, YAML, JSON, Python and command
// lines.
func (w *window) named() {
	b, lower := w.b, w.lower
	for i, word := range nameWords {
		done := &w.done[i] // a name inside a value that is masked already needs no second look
		w.each(lower, word.text, func(at int) {
			end := at + len(word.text)
			if at < *done || end < len(b) && isWordDash(b[end]) {
				return
			}
			start := nameStart(b, at)
			weight, ok := word.weigh(string(lower[start:at]))
			if !ok {
				return
			}
			if s, ok := namedValue(b, start, at, end, weight); ok {
				w.found = append(w.found, s)
				*done = s.end
			}
		})
	}
}

func nameStart(b []byte, at int) int {
	start := at
	for start > 0 && at-start < 64 && (isWordDash(b[start-1]) || b[start-1] == '.') {
		start--
	}
	return start
}

// namedValue returns the span of the secret after the name b[start:end], whose last word begins at word.
func namedValue(b []byte, start, word, end int, w weight) (span, bool) {
	at, ok := afterSeparator(b, end)
	if !ok {
		return flagValue(b, start, end, w)
	}
	if list := at + 1; (b[at] == '[' || b[at] == '(') && skipOpening(b, list) != list {
		at = list
	}
	if open := skipOpening(b, at); open != at {
		closing := closingQuote(b, open, b[open-1])
		return span{open, closing}, isSecret(w, string(b[open:closing]), true)
	}
	closing := bareEnd(b, at)
	if b[at] == '<' { // <your password>
		closing = until(b, at, scanLimit, func(c byte) bool { return c == '\n' || c == '>' })
		closing = min(closing+1, len(b))
	}
	value := b[at:closing]
	if isEnvLine(b, start, at) {
		return span{at, closing}, isSecret(w, string(value), true)
	}
	inside := isOpened(b, start, word)
	if !isPlaceholder(string(value)) && !isCode(string(value)) {
		value = value[:delimited(b, start, value, inside)]
	}
	judged := string(bytes.TrimRight(value, ";:)}]"))
	if isPlaceholder(string(value)) || isCode(string(value)) || inside && w == credential && codePath.MatchString(judged) && !strings.ContainsFunc(judged, isDigitRune) {
		return span{}, false
	}
	return span{at, at + len(value)}, isSecret(w, judged, false)
}

// bareEnd is where a value without quotes ends: at a blank, a quote, or what a string in JSON has for them.
func bareEnd(b []byte, at int) int {
	end := min(len(b), at+scanLimit)
	for i := at; i < end; i++ {
		switch c := b[i]; {
		case isSpace(c) || isQuote(c):
			return i
		case c == '\\' && i+1 < len(b):
			next := b[i+1]
			if isQuote(next) || next == 'n' || next == 'r' || next == 't' {
				return i
			}
			if next == '\\' {
				i++
			}
		}
	}
	return until(b, at, scanLimit, func(byte) bool { return false })
}

// delimited is the length of a value that stands between commas, in a query, a connection string or brackets. Any other
// sign is a part of it.
func delimited(b []byte, start int, value []byte, inside bool) int {
	size := len(value)
	cut := func(at int) {
		if at >= 0 {
			size = min(size, at)
		}
	}
	cut(bytes.IndexByte(value, ','))
	if start > 0 {
		switch b[start-1] {
		case '?', '&':
			cut(bytes.IndexByte(value, '&'))
		case ';':
			cut(bytes.IndexByte(value, ';'))
		}
	}
	if !inside {
		return size
	}
	depth := 0
	closing := -1 // the last bracket that closes one before the name
	for i, c := range value[:size] {
		switch {
		case isOpener(c):
			depth++
		case isCloser(c) && depth > 0:
			depth--
		case isCloser(c):
			closing = i
		}
	}
	cut(closing)
	return size
}

// isOpened reports whether a bracket is open on the line before the name that begins at start; word is where its hit is.
func isOpened(b []byte, start, word int) bool {
	depth := 0
	for i := start - 1; i >= max(0, word-lookback) && b[i] != '\n'; i-- {
		switch {
		case isCloser(b[i]):
			depth++
		case isOpener(b[i]) && depth == 0:
			return true
		case isOpener(b[i]):
			depth--
		}
	}
	return false
}

func isOpener(c byte) bool { return c == '(' || c == '[' || c == '{' }

func isCloser(c byte) bool { return c == ')' || c == ']' || c == '}' }

// flagValue is the value of `--password VALUE` on a command line, and of `password VALUE` in a .netrc.
func flagValue(b []byte, start, end int, w weight) (span, bool) {
	name := string(b[start:end])
	if !strings.HasPrefix(name, "--") && !strings.EqualFold(name, "password") || end >= len(b) || b[end] != ' ' && b[end] != '\t' {
		return span{}, false
	}
	at := skipBlanks(b, end)
	closing := until(b, at, scanLimit, func(c byte) bool { return isSpace(c) || isQuote(c) })
	value := strings.TrimRight(string(b[at:closing]), ",;)}]")
	if plainLetter.MatchString(value) || !strings.HasPrefix(name, "--") { // a sentence may go on behind the name
		w = key
	}
	return span{at, closing}, !strings.HasPrefix(value, "-") && isSecret(w, value, false)
}

// closingQuote returns the offset of the quote that ends a string, or of the line's end where there is none.
func closingQuote(b []byte, at int, quote byte) int {
	escaped := at >= 2 && b[at-2] == '\\'
	skip := false
	return until(b, at, scanLimit, func(c byte) bool {
		switch {
		case c == '\n' || c == '\r':
			return true
		case escaped && c == '\\': // \" ends a string inside a JSON string
			return true
		case skip:
			skip = false
			return false
		case c == '\\':
			skip = true
			return false
		}
		return c == quote
	})
}

// isEnvLine tells NAME=value on a line of its own, where the value is literal and runs to the end of the line.
func isEnvLine(b []byte, start, value int) bool {
	if name := b[start : value-1]; b[value-1] != '=' || !envName.Match(name) {
		return false
	}
	line := bytes.LastIndexByte(b[max(0, start-64):start], '\n')
	before := strings.TrimSpace(string(b[max(0, start-64)+line+1 : start]))
	return before == "" || before == "export" || before == "ENV"
}
