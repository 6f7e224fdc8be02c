package project

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// evaluate reads tokens as a Python literal: None, booleans, numbers with + - * / // ** and brackets, strings with implicit
// joining, lists and tuples. ok is false for everything else, f-strings, bytes, sets and dictionaries among it: better no
// value than a wrong one.
func evaluate(src string, tokens []token) (value any, ok bool) {
	e := evaluator{src: src, tokens: tokens}
	value, ok = e.sum()
	if !ok || e.at != len(tokens) {
		return nil, false
	}
	return value, true
}

type evaluator struct {
	src    string
	tokens []token
	at     int
	depth  int
}

func (e *evaluator) peek() string {
	if e.at >= len(e.tokens) {
		return ""
	}
	return e.src[e.tokens[e.at].start:e.tokens[e.at].end]
}

// accept steps over the next token if it is the operator op.
func (e *evaluator) accept(op string) bool {
	if e.at < len(e.tokens) && e.tokens[e.at].kind == tokenOp && e.peek() == op {
		e.at++
		return true
	}
	return false
}

func (e *evaluator) sum() (any, bool) {
	left, ok := e.product()
	for ok {
		op := e.peek()
		if op != "+" && op != "-" {
			return left, true
		}
		e.at++
		var right any
		if right, ok = e.product(); ok {
			left, ok = arithmetic(op, left, right)
		}
	}
	return nil, false
}

func (e *evaluator) product() (any, bool) {
	left, ok := e.unary()
	for ok {
		op := e.peek()
		if op != "*" && op != "/" && op != "//" {
			return left, true
		}
		e.at++
		var right any
		if right, ok = e.unary(); ok {
			left, ok = arithmetic(op, left, right)
		}
	}
	return nil, false
}

func (e *evaluator) unary() (any, bool) {
	negative := false
	for e.peek() == "-" || e.peek() == "+" {
		negative = negative != (e.peek() == "-")
		e.at++
	}
	value, ok := e.power()
	if !ok || !negative {
		return value, ok
	}
	return arithmetic("-", int64(0), value)
}

// power binds tighter than a sign on its left and less tight than one on its right, as in Python.
func (e *evaluator) power() (any, bool) {
	if e.depth++; e.depth > maxNesting {
		return nil, false
	}
	defer func() { e.depth-- }()
	base, ok := e.atom()
	if !ok || !e.accept("**") {
		return base, ok
	}
	exponent, ok := e.unary()
	if !ok {
		return nil, false
	}
	return arithmetic("**", base, exponent)
}

func (e *evaluator) atom() (any, bool) {
	if e.at >= len(e.tokens) {
		return nil, false
	}
	tok, text := e.tokens[e.at], e.peek()
	e.at++
	switch tok.kind {
	case tokenName:
		switch text {
		case "None":
			return nil, true
		case "True", "False":
			return text == "True", true
		}
	case tokenNumber:
		return numberValue(text)
	case tokenString:
		e.at--
		return e.strings()
	case tokenOp:
		switch text {
		case "(":
			return e.sequence(")")
		case "[":
			return e.sequence("]")
		}
	}
	return nil, false
}

// strings joins adjacent literals.
func (e *evaluator) strings() (any, bool) {
	var joined strings.Builder
	for e.at < len(e.tokens) && e.tokens[e.at].kind == tokenString {
		part, ok := stringValue(e.peek())
		if !ok {
			return nil, false
		}
		joined.WriteString(part)
		e.at++
	}
	return joined.String(), true
}

// sequence reads the elements of a list or tuple after its opening bracket. Round brackets around one element without a
// comma are the element itself.
func (e *evaluator) sequence(end string) (any, bool) {
	elements, comma := []any{}, false
	for !e.accept(end) {
		if len(elements) > 0 && !comma {
			return nil, false
		}
		element, ok := e.sum()
		if !ok {
			return nil, false
		}
		elements = append(elements, element)
		comma = e.accept(",")
	}
	if end == ")" && len(elements) == 1 && !comma {
		return elements[0], true
	}
	return elements, true
}

// numberValue reads an int64 or float64. Larger integers and imaginary numbers are not ok.
func numberValue(text string) (any, bool) {
	if strings.HasPrefix(text, "_") || strings.HasSuffix(text, "_") || strings.Contains(text, "__") {
		return nil, false
	}
	plain := strings.ToLower(strings.ReplaceAll(text, "_", ""))
	if len(plain) > 1 && plain[0] == '0' && strings.ContainsRune("xob", rune(plain[1])) {
		n, err := strconv.ParseInt(plain, 0, 64)
		return n, err == nil
	}
	if strings.Trim(plain, "0123456789") == "" {
		if len(plain) > 1 && plain[0] == '0' && strings.Trim(plain, "0") != "" {
			return nil, false // 010 is an error in Python 3
		}
		n, err := strconv.ParseInt(plain, 10, 64)
		return n, err == nil
	}
	if strings.Trim(plain, "0123456789.e+-") != "" {
		return nil, false
	}
	f, err := strconv.ParseFloat(plain, 64)
	return f, err == nil && !math.IsInf(f, 0)
}

// arithmetic computes as Python does: "/" gives a float, "//" rounds down, integers that outgrow int64 are not ok.
func arithmetic(op string, left, right any) (any, bool) {
	a, aInt := left.(int64)
	b, bInt := right.(int64)
	if aInt && bInt && op != "/" && !(op == "**" && b < 0) {
		return integerArithmetic(op, a, b)
	}
	x, ok := floatOf(left)
	y, ok2 := floatOf(right)
	if !ok || !ok2 || (op == "/" || op == "//") && y == 0 {
		return nil, false
	}
	var f float64
	switch op {
	case "+":
		f = x + y
	case "-":
		f = x - y
	case "*":
		f = x * y
	case "/":
		f = x / y
	case "//":
		f = math.Floor(x / y)
	case "**":
		f = math.Pow(x, y)
	}
	return f, !math.IsInf(f, 0) && !math.IsNaN(f)
}

func integerArithmetic(op string, a, b int64) (any, bool) {
	x, y, r := big.NewInt(a), big.NewInt(b), new(big.Int)
	switch op {
	case "+":
		r.Add(x, y)
	case "-":
		r.Sub(x, y)
	case "*":
		r.Mul(x, y)
	case "//":
		if b == 0 {
			return nil, false
		}
		m := new(big.Int)
		r.DivMod(x, y, m) // Euclidean: for a negative divisor the remainder makes it one too high
		if b < 0 && m.Sign() != 0 {
			r.Sub(r, big.NewInt(1))
		}
	case "**":
		if b > 64 && a != 0 && a != 1 && a != -1 {
			return nil, false
		}
		r.Exp(x, y, nil)
	}
	return r.Int64(), r.IsInt64()
}

func floatOf(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// stringValue decodes one string literal. f-strings, t-strings, bytes and invalid escapes of known letters are not ok.
func stringValue(literal string) (string, bool) {
	open := strings.IndexAny(literal, `"'`)
	prefix := strings.ToLower(literal[:open])
	if strings.ContainsAny(prefix, "fbt") {
		return "", false
	}
	width := 1
	if rest := literal[open:]; len(rest) >= 6 && rest[1] == rest[0] && rest[2] == rest[0] {
		width = 3
	}
	body := literal[open+width : len(literal)-width]
	body = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(body)
	if strings.Contains(prefix, "r") || !strings.Contains(body, `\`) {
		return body, true
	}
	return unescape(body)
}

var simpleEscapes = map[byte]string{'\n': "", '\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v"}

func unescape(body string) (string, bool) {
	var out strings.Builder
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			out.WriteByte(body[i])
			continue
		}
		i++
		if i == len(body) {
			return "", false
		}
		c := body[i]
		if text, ok := simpleEscapes[c]; ok {
			out.WriteString(text)
			continue
		}
		digits, base := 0, 16
		first := i + 1
		switch {
		case c == 'x':
			digits = 2
		case c == 'u':
			digits = 4
		case c == 'U':
			digits = 8
		case c == 'N':
			return "", false
		case '0' <= c && c <= '7':
			base, first = 8, i
			for digits < 3 && i+digits < len(body) && '0' <= body[i+digits] && body[i+digits] <= '7' {
				digits++
			}
		default:
			out.WriteByte('\\') // Python keeps the backslash of an unknown escape
			out.WriteByte(c)
			continue
		}
		if first+digits > len(body) {
			return "", false
		}
		n, err := strconv.ParseUint(body[first:first+digits], base, 32)
		if err != nil || !utf8.ValidRune(rune(n)) {
			return "", false
		}
		out.WriteRune(rune(n))
		i = first + digits - 1
	}
	return out.String(), true
}
