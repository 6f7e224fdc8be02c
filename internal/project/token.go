package project

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind tells the tokens of Python apart as far as reading declarations needs it.
type tokenKind uint8

const (
	tokenName tokenKind = iota
	tokenNumber
	tokenString // whole literal with prefix and quotes
	tokenOp
)

// token is a stretch of source: src[start:end]. depth counts the brackets open around it; a bracket itself has the depth
// outside of it.
type token struct {
	kind       tokenKind
	start, end int
	depth      int
}

// statement is a logical line, or a part of one between semicolons or after the colon of a one-line block. indent is the
// column of the line it stands on, one more for what follows a colon on the same line, so that a block is what is deeper.
type statement struct {
	tokens []token
	indent int
}

// tokenError is a syntax that can't be closed: at is the byte where the open thing begins.
type tokenError struct {
	at   int
	what string
}

func (e *tokenError) Error() string { return e.what }

// maxNesting bounds brackets and nested f-string fields; CPython itself stops at 200 brackets and 150 f-strings.
const maxNesting = 200

// tokenizer cuts Python source (3.0–3.14) into statements after the lexical analysis chapter of the language reference.
// It never fails on what it does not know: an odd byte becomes an operator.
type tokenizer struct {
	src        string
	pos        int
	lineStart  int
	brackets   []int // offsets of the open ones
	current    statement
	statements []statement
}

// tokenize returns the statements of src. On an unterminated string or bracket it returns those before it and the error.
func tokenize(src string) ([]statement, *tokenError) {
	t := &tokenizer{src: src}
	if strings.HasPrefix(src, "\ufeff") {
		t.pos, t.lineStart = 3, 3
	}
	for t.pos < len(t.src) {
		if err := t.next(); err != nil {
			return t.statements, err
		}
	}
	if n := len(t.brackets); n > 0 {
		at := t.brackets[n-1]
		return t.statements, &tokenError{at, fmt.Sprintf("%q is never closed", t.src[at:at+1])}
	}
	t.endStatement()
	return t.statements, nil
}

// next consumes one token, a stretch of white space, a comment or a line end.
func (t *tokenizer) next() *tokenError {
	c := t.src[t.pos]
	switch {
	case c == '\n' || c == '\r':
		t.newline()
	case c == ' ' || c == '\t' || c == '\f':
		t.pos++
	case c == '#':
		for t.pos < len(t.src) && t.src[t.pos] != '\n' && t.src[t.pos] != '\r' {
			t.pos++
		}
	case c == '\\' && t.continuation():
	case c == '"' || c == '\'':
		return t.text(t.pos)
	case isDigit(c) || c == '.' && t.pos+1 < len(t.src) && isDigit(t.src[t.pos+1]):
		t.number()
	case isNameByte(c):
		return t.name()
	default:
		return t.operator()
	}
	return nil
}

// newline ends the statement unless a bracket is open. "\r\n", "\n" and a lone "\r" end a line, as in Python.
func (t *tokenizer) newline() {
	t.pos = afterLineEnd(t.src, t.pos)
	t.lineStart = t.pos
	if len(t.brackets) == 0 {
		t.endStatement()
	}
}

// continuation consumes a backslash at the end of a line.
func (t *tokenizer) continuation() bool {
	next := t.pos + 1
	if next < len(t.src) && t.src[next] != '\n' && t.src[next] != '\r' {
		return false
	}
	t.pos = next
	if next < len(t.src) {
		t.pos = afterLineEnd(t.src, next)
	}
	return true
}

func (t *tokenizer) add(kind tokenKind, start, end int) {
	if len(t.current.tokens) == 0 {
		if t.current.indent == 0 { // not set by a semicolon or a colon before
			t.current.indent = column(t.src[t.lineStart:start])
		}
	}
	t.current.tokens = append(t.current.tokens, token{kind, start, end, len(t.brackets)})
	t.pos = end
}

func (t *tokenizer) endStatement() {
	if len(t.current.tokens) > 0 {
		t.statements = append(t.statements, t.current)
	}
	t.current = statement{}
}

func (t *tokenizer) name() *tokenError {
	start := t.pos
	end := start
	for end < len(t.src) && (isNameByte(t.src[end]) || isDigit(t.src[end])) {
		end++
	}
	if end < len(t.src) && (t.src[end] == '"' || t.src[end] == '\'') && isStringPrefix(t.src[start:end]) {
		return t.text(start)
	}
	t.add(tokenName, start, end)
	return nil
}

// number takes the longest run that can belong to a number; whether it is one is decided when it is evaluated.
func (t *tokenizer) number() {
	start, end := t.pos, t.pos
	hex := strings.HasPrefix(strings.ToLower(t.src[start:min(start+2, len(t.src))]), "0x")
	for end < len(t.src) {
		c := t.src[end]
		sign := (c == '+' || c == '-') && !hex && end > start && (t.src[end-1]|0x20) == 'e'
		if !(isDigit(c) || c == '.' || c == '_' || sign || c < utf8.RuneSelf && isNameByte(c)) {
			break
		}
		end++
	}
	t.add(tokenNumber, start, end)
}

// text consumes the string literal that begins at start, prefix included.
func (t *tokenizer) text(start int) *tokenError {
	end, err := stringEnd(t.src, start, 0)
	if err != nil {
		return err
	}
	t.add(tokenString, start, end)
	// A string over several lines moves the line on; only the indent of what begins a statement depends on it.
	return nil
}

var closing = map[byte]byte{')': '(', ']': '[', '}': '{'}

// operator consumes one operator. Longer ones are joined where reading depends on it: "==" is not "=", ":=" no colon.
func (t *tokenizer) operator() *tokenError {
	start, c := t.pos, t.src[t.pos]
	switch c {
	case '(', '[', '{':
		t.add(tokenOp, start, start+1)
		if t.brackets = append(t.brackets, start); len(t.brackets) > maxNesting {
			return &tokenError{start, "brackets are nested too deeply"}
		}
		return nil
	case ')', ']', '}':
		n := len(t.brackets)
		if n == 0 || t.src[t.brackets[n-1]] != closing[c] {
			return &tokenError{start, fmt.Sprintf("%q closes nothing", string(c))}
		}
		t.brackets = t.brackets[:n-1]
		t.add(tokenOp, start, start+1)
		return nil
	}
	for _, op := range []string{"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "==", "!=", "<=", ">=", "->", ":=", "+=", "-=", "*=", "/=", "%=", "@=", "&=", "|=", "^="} {
		if strings.HasPrefix(t.src[start:], op) {
			t.add(tokenOp, start, start+len(op))
			return nil
		}
	}
	_, size := utf8.DecodeRuneInString(t.src[start:])
	if len(t.brackets) == 0 && (c == ';' || c == ':') {
		t.split(c, start)
		return nil
	}
	t.add(tokenOp, start, start+size)
	return nil
}

// split ends a statement at a semicolon, and at the colon that opens a block. What follows a block's colon on the same
// line is deeper by one. The colons of annotations and lambdas do not split.
func (t *tokenizer) split(c byte, start int) {
	indent := t.current.indent
	if c == ';' {
		t.pos++
		t.endStatement()
		t.current.indent = indent
		return
	}
	opens := opensBlock(t.src, t.current.tokens)
	t.add(tokenOp, start, start+1)
	if opens {
		t.endStatement()
		t.current.indent = indent + 1
	}
}

// blockWords begin the statements whose colon opens a block. "match" and "case" are soft keywords: they count where a
// name, literal or opening bracket follows.
var blockWords = map[string]bool{"if": true, "elif": true, "else": true, "for": true, "while": true, "try": true, "except": true,
	"finally": true, "with": true, "def": true, "class": true, "async": true, "match": true, "case": true}

func opensBlock(src string, tokens []token) bool {
	if len(tokens) == 0 || !blockWords[src[tokens[0].start:tokens[0].end]] {
		return false
	}
	first := src[tokens[0].start:tokens[0].end]
	if (first == "match" || first == "case") && (len(tokens) == 1 || tokens[1].kind == tokenOp && !strings.ContainsAny(src[tokens[1].start:tokens[1].end], "([{-*")) {
		return false
	}
	lambdas := 0 // each lambda owns one colon
	for _, tok := range tokens {
		if tok.depth > 0 {
			continue
		}
		switch src[tok.start:tok.end] {
		case "lambda":
			lambdas++
		case ":":
			lambdas--
		}
	}
	return lambdas <= 0
}

// column is the indent of a line's leading white space: a tab goes to the next multiple of eight.
func column(lead string) int {
	n := 0
	for _, c := range lead {
		switch c {
		case '\t':
			n = (n/8 + 1) * 8
		case '\f':
			n = 0
		case ' ':
			n++
		default:
			return n
		}
	}
	return n
}

func afterLineEnd(src string, pos int) int {
	if src[pos] == '\r' && pos+1 < len(src) && src[pos+1] == '\n' {
		return pos + 2
	}
	return pos + 1
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isNameByte takes every byte above ASCII as part of a name: which letters Python allows there changes nothing for us.
func isNameByte(c byte) bool {
	return c == '_' || c >= utf8.RuneSelf || unicode.IsLetter(rune(c))
}

func isStringPrefix(s string) bool {
	switch strings.ToLower(s) {
	case "r", "b", "u", "f", "t", "rb", "br", "rf", "fr", "rt", "tr":
		return true
	}
	return false
}
