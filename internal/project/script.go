package project

import (
	"sort"
	"strings"
)

// script is one Python file, cut into statements.
type script struct {
	path       string
	src        string
	lines      lineIndex
	statements []statement
	constants  map[string]constant
}

// constant is a name that is bound once in the whole file, at the top level, to a literal.
type constant struct {
	value any
	place Place
}

func newScript(path, src string) (*script, *tokenError) {
	statements, err := tokenize(src)
	s := &script{path: path, src: src, lines: indexLines(src), statements: statements}
	s.constants = s.findConstants()
	return s, err
}

func (s *script) text(t token) string { return s.src[t.start:t.end] }

// is reports whether the token at i is the word or operator text (never a string literal).
func (s *script) is(tokens []token, i int, text string) bool {
	return i >= 0 && i < len(tokens) && tokens[i].kind != tokenString && s.text(tokens[i]) == text
}

// isName reports whether the token at i is a name and no keyword that matters here.
func (s *script) isName(tokens []token, i int) bool {
	return i >= 0 && i < len(tokens) && tokens[i].kind == tokenName
}

func (s *script) place(start, end int) Place {
	return Place{Path: s.path, Line: s.lines.line(start), Start: start, End: end}
}

// quote returns the source between two bytes as it may go into JSON.
func (s *script) quote(p Place) string { return strings.ToValidUTF8(s.src[p.Start:p.End], "\ufffd") }

// sourceText returns the source of tokens on one line: what stands between them is kept, line ends become spaces.
func (s *script) sourceText(tokens []token) string {
	if len(tokens) == 0 {
		return ""
	}
	text := s.src[tokens[0].start:tokens[len(tokens)-1].end]
	return strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\ufffd")
}

// block returns the statements that belong to the compound statement at i.
func (s *script) block(i int) []statement {
	end := i + 1
	for end < len(s.statements) && s.statements[end].indent > s.statements[i].indent {
		end++
	}
	return s.statements[i+1 : end]
}

// findConstants collects the names bound exactly once in the file, at its top level and to a literal. A name that is
// bound anywhere else too (a loop, a parameter, a function's own variable) is left out: which value counts would be a guess.
func (s *script) findConstants() map[string]constant {
	bound := map[string]int{}
	found := map[string]constant{}
	for _, st := range s.statements {
		for _, name := range s.bindings(st.tokens) {
			bound[name]++
		}
		if st.indent > 0 || !s.isName(st.tokens, 0) {
			continue
		}
		equals := s.find(st.tokens, "=")
		if equals < 0 || equals > 1 && !s.is(st.tokens, 1, ":") {
			continue
		}
		if value, ok := evaluate(s.src, st.tokens[equals+1:]); ok {
			found[s.text(st.tokens[0])] = constant{value, s.place(st.tokens[0].start, st.tokens[len(st.tokens)-1].end)}
		}
	}
	for name := range found {
		if bound[name] != 1 {
			delete(found, name)
		}
	}
	return found
}

// find returns the position of an operator at the statement's own depth, or -1.
func (s *script) find(tokens []token, op string) int {
	for i := range tokens {
		if tokens[i].kind == tokenOp && tokens[i].depth == 0 && s.text(tokens[i]) == op {
			return i
		}
	}
	return -1
}

// bindings names what a statement may bind, rather too much than too little.
func (s *script) bindings(tokens []token) []string {
	var names []string
	header := s.is(tokens, 0, "def") || s.is(tokens, 1, "def") || s.is(tokens, 0, "class")
	assigned := -1 // the last "=" or "+=" at depth 0: the names before it are targets
	if !header {
		for i, tok := range tokens {
			text := s.text(tok)
			if tok.kind == tokenOp && tok.depth == 0 && strings.HasSuffix(text, "=") && !strings.ContainsAny(text, "!<>:") && text != "==" || text == ">>=" || text == "<<=" {
				assigned = i
			}
		}
	}
	for i := range tokens {
		if !s.isName(tokens, i) {
			continue
		}
		before := func(word string) bool { return s.is(tokens, i-1, word) }
		switch {
		case i < assigned && !before("."),
			before("for"), before("as"), before("def"), before("class"), before("global"), before("nonlocal"), before("import"), before("del"),
			s.is(tokens, i+1, ":="),
			header && (before("(") || before(",") || before("*") || before("**")):
			names = append(names, s.text(tokens[i]))
		case before(",") && (s.is(tokens, 0, "for") || s.is(tokens, 0, "from") || s.is(tokens, 0, "import") || s.is(tokens, 0, "global") || s.is(tokens, 0, "with")):
			names = append(names, s.text(tokens[i]))
		}
	}
	return names
}

// hasMain reports whether the file has `if __name__ == "__main__":` at its top level, either way round.
func (s *script) hasMain() bool {
	for _, st := range s.statements {
		if st.indent != 0 || !s.is(st.tokens, 0, "if") {
			continue
		}
		name, main := false, false
		for _, tok := range st.tokens {
			name = name || tok.kind == tokenName && s.text(tok) == "__name__"
			if tok.kind == tokenString {
				value, _ := stringValue(s.text(tok))
				main = main || value == "__main__"
			}
		}
		if name && main {
			return true
		}
	}
	return false
}

// definitions lists the functions and classes at the top level.
func (s *script) definitions() []Definition {
	found := []Definition{}
	for _, st := range s.statements {
		at := 0
		if s.is(st.tokens, 0, "async") {
			at = 1
		}
		if st.indent != 0 || !s.isName(st.tokens, at+1) {
			continue
		}
		kind := map[bool]string{s.is(st.tokens, at, "def"): "function", s.is(st.tokens, at, "class"): "class"}[true]
		if kind != "" {
			found = append(found, Definition{s.text(st.tokens[at+1]), kind, s.place(st.tokens[0].start, st.tokens[len(st.tokens)-1].end)})
		}
	}
	return found
}

// importedModule is a top-level module name and where it is first imported.
type importedModule struct {
	name  string
	place Place
}

// imports lists the modules imported anywhere in the file, each once, by name. Relative imports are the project's own.
func (s *script) imports() []importedModule {
	seen := map[string]Place{}
	for _, st := range s.statements {
		place := s.place(st.tokens[0].start, st.tokens[len(st.tokens)-1].end)
		for _, name := range s.importedNames(st.tokens) {
			if _, known := seen[name]; !known {
				seen[name] = place
			}
		}
	}
	found := make([]importedModule, 0, len(seen))
	for name, place := range seen {
		found = append(found, importedModule{name, place})
	}
	sort.Slice(found, func(i, j int) bool { return found[i].name < found[j].name })
	return found
}

func (s *script) importedNames(tokens []token) []string {
	switch {
	case s.is(tokens, 0, "from") && s.isName(tokens, 1):
		return []string{s.text(tokens[1])}
	case s.is(tokens, 0, "import"):
		var names []string
		for i := range tokens {
			if (i == 1 || s.is(tokens, i-1, ",")) && s.isName(tokens, i) {
				names = append(names, s.text(tokens[i]))
			}
		}
		return names
	}
	return nil
}

// lineIndex holds the offset at which each physical line begins; a lone carriage return ends a line, as in Python.
type lineIndex []int

func indexLines(src string) lineIndex {
	starts := lineIndex{0}
	for i := 0; i < len(src); i++ {
		if src[i] == '\n' || src[i] == '\r' {
			end := afterLineEnd(src, i)
			starts = append(starts, end)
			i = end - 1
		}
	}
	return starts
}

// line returns the physical line of an offset, counted from 1.
func (l lineIndex) line(offset int) int {
	return sort.SearchInts(l, offset+1)
}
