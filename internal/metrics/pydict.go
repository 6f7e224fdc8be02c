package metrics

import "strings"

// dictPairs reads a Python dict as print shows it ({'loss': 0.31, 'epoch': 1.0}), which is what the Hugging Face Trainer
// logs. Numbers may be in quotes (its fifth version prints them so) or wrapped: np.float64(0.31), tensor(0.31). ok is
// false where the text is no whole dict; entries that are no numbers are left out.
func dictPairs(text string) (pairs []pair, ok bool) {
	s := dictScanner{text: text}
	if !s.take('{') {
		return nil, false
	}
	for {
		s.space()
		if s.take('}') {
			return pairs, true
		}
		name, quoted := s.quoted()
		s.space()
		if !quoted || !s.take(':') {
			return nil, false
		}
		s.space()
		at := s.at
		word, whole := s.value(0)
		if !whole {
			return nil, false
		}
		if size := numberPrefix(word); size > 0 && size == len(word) {
			f := field{name: name, kind: kindNumber, raw: []byte(word), at: at, loose: true}
			if nonFiniteWord(word) != "" {
				f.kind = kindNonFinite
			}
			pairs = append(pairs, pair{name: name, value: f, at: at, sure: true})
		}
		s.space()
		if !s.take(',') && (s.at >= len(text) || text[s.at] != '}') {
			return nil, false
		}
	}
}

type dictScanner struct {
	text string
	at   int
}

func (s *dictScanner) space() {
	for s.at < len(s.text) && s.text[s.at] == ' ' {
		s.at++
	}
}

func (s *dictScanner) take(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *dictScanner) quoted() (string, bool) {
	if s.at >= len(s.text) || s.text[s.at] != '\'' && s.text[s.at] != '"' {
		return "", false
	}
	quote := s.text[s.at]
	for end := s.at + 1; end < len(s.text); end++ {
		switch s.text[end] {
		case '\\':
			end++
		case quote:
			word := s.text[s.at+1 : end]
			s.at = end + 1
			return word, true
		}
	}
	return "", false
}

// value reads one value and gives its number's text, "" for anything else.
func (s *dictScanner) value(depth int) (word string, ok bool) {
	if s.at >= len(s.text) || depth > maxDepth {
		return "", false
	}
	switch s.text[s.at] {
	case '\'', '"':
		word, ok = s.quoted()
		return strings.TrimSpace(word), ok
	case '[', '(', '{':
		return "", s.nested(depth)
	}
	from := s.at
	for s.at < len(s.text) && !strings.ContainsRune(",}]) (:", rune(s.text[s.at])) {
		s.at++
	}
	word = s.text[from:s.at]
	if s.at > from && s.at < len(s.text) && s.text[s.at] == '(' { // np.float64(0.31), tensor(0.31, device='cuda:0')
		inner := s.text[s.at+1:]
		word = inner[:numberPrefix(inner)]
		return word, s.nested(depth)
	}
	return word, s.at > from
}

// nested steps over a list, tuple, dict or call.
func (s *dictScanner) nested(depth int) bool {
	for open := 0; s.at < len(s.text); {
		switch s.text[s.at] {
		case '\'', '"':
			if _, ok := s.quoted(); !ok {
				return false
			}
			continue
		case '[', '(', '{':
			if open++; open+depth > maxDepth {
				return false
			}
		case ']', ')', '}':
			open--
		}
		s.at++
		if open == 0 {
			return true
		}
	}
	return false
}
