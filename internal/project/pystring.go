package project

import "strings"

// stringEnd returns the offset after the string literal that begins at start (prefix included). depth counts the f-string
// fields around it: since Python 3.12 a field may hold strings with the same quotes (PEP 701).
func stringEnd(src string, start, depth int) (int, *tokenError) {
	open := start
	for src[open] != '"' && src[open] != '\'' {
		open++
	}
	prefix := strings.ToLower(src[start:open])
	quote := src[open : open+1]
	if strings.HasPrefix(src[open:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	s := stringScan{src: src, start: start, quote: quote, depth: depth, formatted: strings.ContainsAny(prefix, "ft")}
	return s.body(open+len(quote), false)
}

// stringScan is one literal under way.
type stringScan struct {
	src       string
	start     int
	quote     string
	depth     int
	formatted bool
}

func (s stringScan) unterminated() *tokenError {
	return &tokenError{s.start, "the string is never closed"}
}

// body scans the text part from pos to the closing quote, or in a format spec to the brace that ends its field.
func (s stringScan) body(pos int, spec bool) (int, *tokenError) {
	if s.depth > maxNesting {
		return 0, &tokenError{s.start, "f-strings are nested too deeply"}
	}
	for pos < len(s.src) {
		c := s.src[pos]
		switch {
		case !spec && strings.HasPrefix(s.src[pos:], s.quote):
			return pos + len(s.quote), nil
		case spec && (c == '}' || strings.HasPrefix(s.src[pos:], s.quote)):
			return pos, nil
		case c == '\\' && s.formatted && strings.HasPrefix(s.src[pos+1:], "{"):
			pos++ // no escape: the field begins all the same
		case c == '\\' && pos+1 < len(s.src):
			// A raw string keeps the backslash but can't end after it either. A line end of two bytes is one character.
			pos = afterLineEnd(s.src, pos+1)
		case (c == '\n' || c == '\r') && len(s.quote) == 1:
			return 0, s.unterminated()
		case s.formatted && c == '{' && !spec && strings.HasPrefix(s.src[pos:], "{{"):
			pos += 2
		case s.formatted && c == '{':
			var err *tokenError
			if pos, err = s.field(pos + 1); err != nil {
				return 0, err
			}
		default:
			pos++
		}
	}
	return 0, s.unterminated()
}

// field scans a replacement field from after its opening brace to after the closing one.
func (s stringScan) field(pos int) (int, *tokenError) {
	nesting := 0
	for pos < len(s.src) {
		c := s.src[pos]
		switch {
		case c == '"' || c == '\'':
			if nesting == 0 && strings.HasPrefix(s.src[pos:], s.quote) && !closesLater(s.src[pos+len(s.quote):], s.quote) {
				return 0, s.unterminated()
			}
			end, err := stringEnd(s.src, pos, s.depth+1)
			if err != nil {
				return 0, err
			}
			pos = end
			continue
		case isNameByte(c):
			end := pos
			for end < len(s.src) && (isNameByte(s.src[end]) || isDigit(s.src[end])) {
				end++
			}
			if end < len(s.src) && (s.src[end] == '"' || s.src[end] == '\'') && isStringPrefix(s.src[pos:end]) {
				var err *tokenError
				if end, err = stringEnd(s.src, pos, s.depth+1); err != nil {
					return 0, err
				}
			}
			pos = end
			continue
		case c == '#':
			for pos < len(s.src) && s.src[pos] != '\n' && s.src[pos] != '\r' {
				pos++
			}
			continue
		case strings.IndexByte("([{", c) >= 0:
			nesting++
		case strings.IndexByte(")]", c) >= 0 || c == '}' && nesting > 0:
			nesting--
		case c == '}':
			return pos + 1, nil
		case c == ':' && nesting == 0:
			end, err := s.nested().body(pos+1, true)
			if err != nil {
				return 0, err
			}
			if s.src[end] != '}' {
				return 0, s.unterminated()
			}
			return end + 1, nil
		}
		pos++
	}
	return 0, s.unterminated()
}

func (s stringScan) nested() stringScan {
	s.depth++
	return s
}

// closesLater reports whether quote occurs again on the same line (anywhere for a triple quote).
func closesLater(rest, quote string) bool {
	if len(quote) == 1 {
		if end := strings.IndexAny(rest, "\r\n"); end >= 0 {
			rest = rest[:end]
		}
	}
	return strings.Contains(rest, quote)
}
