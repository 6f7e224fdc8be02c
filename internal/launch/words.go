package launch

import (
	"fmt"
	"strings"
)

// Join shows an argv as a person would type it for a shell.
func Join(argv []string) string {
	quoted := make([]string, len(argv))
	for i, word := range argv {
		quoted[i] = word
		if word == "" || i == 0 && assigns(word) || strings.ContainsAny(word, " \t\n'\"\\$`*?[]{}()<>|&;#~!") {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// Split takes a command line apart into words as a POSIX shell does, quotes and backslashes included. It expands nothing:
// a line in which a shell would do more than that is an error that says what.
func Split(line string) ([]string, error) {
	s := splitter{line: []rune(strings.TrimSpace(line))}
	for s.at < len(s.line) {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	s.end()
	if len(s.words) > 0 && assigns(s.words[0]) && !s.quoted[0] {
		return nil, fmt.Errorf("%s sets a variable", s.words[0])
	}
	return s.words, nil
}

// assigns says whether a first word is one that a shell takes as NAME=value.
func assigns(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") == ""
}

// splitter is where Split stands.
type splitter struct {
	line   []rune
	at     int
	words  []string
	quoted []bool // the word has quotes
	word   strings.Builder
	inside bool // a word has begun, an empty quoted one too
	quotes bool
}

// end closes the word that has begun.
func (s *splitter) end() {
	if s.inside {
		s.words, s.quoted = append(s.words, s.word.String()), append(s.quoted, s.quotes)
		s.word.Reset()
		s.inside, s.quotes = false, false
	}
}

// next takes one character outside quotes, or a whole quoted part.
func (s *splitter) next() error {
	r := s.line[s.at]
	s.at++
	switch {
	case r == ' ' || r == '\t':
		s.end()
		return nil
	case r == '\'' || r == '"':
		s.quotes, s.inside = true, true
		return s.quote(r)
	case r == '\\' && s.at < len(s.line):
		r = s.line[s.at]
		s.at++
	case r == '\\':
		return fmt.Errorf("it ends with a backslash")
	case strings.ContainsRune("|&;<>()$`*?[{\n\r", r):
		return fmt.Errorf("%q means something to a shell", string(r))
	case (r == '~' || r == '#') && !s.inside:
		return fmt.Errorf("%q means something to a shell", string(r))
	}
	s.inside = true
	s.word.WriteRune(r)
	return nil
}

// quote takes everything up to the closing quote.
func (s *splitter) quote(mark rune) error {
	for s.at < len(s.line) {
		r := s.line[s.at]
		s.at++
		switch {
		case r == mark:
			return nil
		case mark == '"' && (r == '$' || r == '`'):
			return fmt.Errorf("%q means something to a shell", string(r))
		case mark == '"' && r == '\\' && s.at < len(s.line) && strings.ContainsRune("\"\\", s.line[s.at]):
			r = s.line[s.at]
			s.at++
		}
		s.word.WriteRune(r)
	}
	return fmt.Errorf("the quote %c is not closed", mark)
}
