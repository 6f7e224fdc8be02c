package project

// call is one call expression: what is called, and its arguments as token ranges.
type call struct {
	receiver   string // the name before the dot, "" where that is an expression
	name       string // the last name before the bracket
	start, end int    // bytes of the whole expression, receiver to closing bracket
	positional [][]token
	keywords   map[string][]token
	spread     bool // holds *args or **kwargs
	target     string
}

// calls lists the calls of the given functions or methods in a statement, from left to right.
func (s *script) calls(st statement, wanted func(name string) bool) []call {
	var found []call
	for i := 0; i+1 < len(st.tokens); i++ {
		if !s.isName(st.tokens, i) || !s.is(st.tokens, i+1, "(") || !wanted(s.text(st.tokens[i])) {
			continue
		}
		if s.is(st.tokens, i-1, "def") || s.is(st.tokens, i-1, "class") {
			continue
		}
		if c, ok := s.callAt(st.tokens, i); ok {
			found = append(found, c)
		}
	}
	return found
}

// callAt reads the call whose function name is the token at i. It is not ok when the bracket is not closed.
func (s *script) callAt(tokens []token, i int) (call, bool) {
	open := i + 1
	end := s.closingBracket(tokens, open)
	if end < 0 {
		return call{}, false
	}
	first := s.receiverStart(tokens, i)
	c := call{name: s.text(tokens[i]), start: tokens[first].start, end: tokens[end].end, keywords: map[string][]token{}}
	if first == i-2 {
		c.receiver = s.text(tokens[first])
	} else if first < i { // self.parser.add_argument: the whole dotted text tells receivers apart
		c.receiver = s.src[tokens[first].start:tokens[i-2].end]
	}
	if first >= 2 && s.is(tokens, first-1, "=") && tokens[first].depth == 0 {
		c.target = s.src[tokens[s.receiverStart(tokens, first-2)].start:tokens[first-2].end]
	}
	for _, argument := range s.splitArguments(tokens[open+1:end], tokens[open].depth+1) {
		switch {
		case s.is(argument, 0, "*") || s.is(argument, 0, "**"):
			c.spread = true
		case len(argument) > 1 && s.isName(argument, 0) && s.is(argument, 1, "="):
			c.keywords[s.text(argument[0])] = argument[2:]
		default:
			c.positional = append(c.positional, argument)
		}
	}
	return c, true
}

// closingBracket returns the position of the bracket that closes the one at open, or -1.
func (s *script) closingBracket(tokens []token, open int) int {
	for i := open + 1; i < len(tokens); i++ {
		if tokens[i].kind == tokenOp && tokens[i].depth == tokens[open].depth {
			return i // the first operator at the bracket's own depth is the one that closes it
		}
	}
	return -1
}

// receiverStart walks back from the name at i over "a.b(c)[d]." to where the expression begins.
func (s *script) receiverStart(tokens []token, i int) int {
	for i >= 2 && s.is(tokens, i-1, ".") {
		i -= 2
		for i > 0 && (s.is(tokens, i, ")") || s.is(tokens, i, "]")) {
			depth := tokens[i].depth
			for i--; i > 0 && tokens[i].depth > depth; i-- {
			}
			if i > 0 && (tokens[i-1].kind == tokenName || s.is(tokens, i-1, ")") || s.is(tokens, i-1, "]")) {
				i--
			} else {
				break
			}
		}
	}
	return i
}

// splitArguments cuts the tokens inside a call's brackets at its commas.
func (s *script) splitArguments(tokens []token, depth int) [][]token {
	var parts [][]token
	from := 0
	for i := 0; i <= len(tokens); i++ {
		if i < len(tokens) && !(tokens[i].depth == depth && s.is(tokens, i, ",")) {
			continue
		}
		if i > from {
			parts = append(parts, tokens[from:i])
		}
		from = i + 1
	}
	return parts
}
