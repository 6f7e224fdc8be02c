package redact

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// weight says how far the name alone is believed.
type weight int

const (
	// key names (token, api_key) are common in ordinary code: the value must look like a credential too.
	key weight = iota
	// password names are believed unless the value is a placeholder or code.
	password
)

// nameWord is the end of a name that may hold a secret; weigh judges by what stands before it in the name.
type nameWord struct {
	text  string
	weigh func(before string) (weight, bool)
}

var nameWords = []nameWord{
	{"password", always(password)},
	{"passwd", always(password)},
	{"passphrase", always(password)},
	{"secret", always(password)},
	{"pwd", func(before string) (weight, bool) { // PWD and OLDPWD are working directories
		return password, before != "" && before != "old"
	}},
	{"token", func(before string) (weight, bool) { // pad_token, eos_token, … are a tokenizer's
		for _, special := range []string{"pad", "eos", "bos", "unk", "sep", "cls", "mask", "special", "image", "stop", "start", "end", "next", "prev"} {
			if strings.HasSuffix(strings.TrimRight(before, "_-"), special) {
				return key, false
			}
		}
		return key, true
	}},
	{"key", func(before string) (weight, bool) { // primary_key, sort_key, public_key are ordinary
		for _, holder := range []string{"api", "secret", "access", "private", "auth", "account", "signing", "encryption", "master", "service"} {
			if strings.HasSuffix(strings.TrimRight(before, "_-."), holder) {
				return key, true
			}
		}
		return key, false
	}},
}

func always(w weight) func(string) (weight, bool) {
	return func(string) (weight, bool) { return w, true }
}

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
			if s, ok := namedValue(b, start, end, weight); ok {
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

// namedValue returns the span of the secret after the name b[start:end].
func namedValue(b []byte, start, end int, w weight) (span, bool) {
	at, ok := afterSeparator(b, end)
	if !ok {
		return flagValue(b, start, end)
	}
	if open := skipOpening(b, at); open != at {
		closing := closingQuote(b, open, b[open-1])
		return span{open, closing}, isSecret(w, string(b[open:closing]), true)
	}
	closing := until(b, at, scanLimit, func(c byte) bool { return isSpace(c) || isQuote(c) || c == '\\' })
	if b[at] == '<' { // <your password>
		closing = until(b, at, scanLimit, func(c byte) bool { return c == '\n' || c == '>' })
		closing = min(closing+1, len(b))
	}
	value := b[at:closing]
	literal := isEnvLine(b, start, at)
	if !literal && !isPlaceholder(string(value)) && !isCode(string(value)) {
		if cut := bytes.IndexAny(value, ",;&)}]"); cut >= 0 {
			value = value[:cut]
		}
	}
	if !isPlaceholder(string(value)) {
		value = bytes.TrimRight(value, ",;)}]")
	}
	return span{at, at + len(value)}, isSecret(w, string(value), literal)
}

// flagValue is the value of `--password VALUE` on a command line, and of `password VALUE` in a .netrc.
func flagValue(b []byte, start, end int) (span, bool) {
	name := string(b[start:end])
	if !strings.HasPrefix(name, "--") && !strings.EqualFold(name, "password") || end >= len(b) || b[end] != ' ' && b[end] != '\t' {
		return span{}, false
	}
	at := skipBlanks(b, end)
	closing := until(b, at, scanLimit, func(c byte) bool { return isSpace(c) || isQuote(c) })
	value := string(b[at:closing])
	return span{at, closing}, !strings.HasPrefix(value, "-") && isSecret(key, value, false)
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

var (
	codeCall    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*[(\[{]`)
	codePath    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
	codeSelf    = regexp.MustCompile(`(?i)(password|passwd|passphrase|secret|pwd|token|key)$`)
	codeOwner   = regexp.MustCompile(`^(self|args|opts?|cfg|conf|config|os|env|environ|settings|kwargs|params|request|ctx|this)\.`)
	variable    = regexp.MustCompile(`^(\$\{[^}]*\}|\$\(.*|\$[A-Za-z_][A-Za-z0-9_]*|<.*>|\{.*\}|\[.*\]|%\(.*|%[sdv]|%[A-Za-z_]+%|\*+|\.\.\.|…)$`)
	filePath    = regexp.MustCompile(`^(~|\.{1,2})?/|\.(json|ya?ml|toml|txt|pem|key|pub|crt|cfg|ini|py|md)$`)
	constant    = regexp.MustCompile(`^[A-Z_]+$`)
	envName     = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)
	lowerOnly   = regexp.MustCompile(`^[a-z]+$`)
	plainLetter = regexp.MustCompile(`^[A-Za-z]+$`)
)

// plainWords are values that say something about a secret, or are a type or an empty value.
var plainWords = map[string]bool{
	"none": true, "null": true, "nil": true, "true": true, "false": true, "undefined": true, "str": true, "int": true, "bool": true,
	"bytes": true, "string": true, "any": true, "optional": true, "required": true, "yes": true, "no": true, "on": true, "off": true,
	"~": true, "|": true, ">": true, "-": true, "hidden": true, "redacted": true,
}

func isPlaceholder(value string) bool {
	return value == "" || plainWords[strings.ToLower(value)] || variable.MatchString(value)
}

// isCode tells an expression from a literal; only unquoted values can be one.
func isCode(value string) bool {
	return codeCall.MatchString(value) || codeOwner.MatchString(value) ||
		codePath.MatchString(value) && codeSelf.MatchString(value)
}

// isSecret judges a value whose name has the given weight; the beginning of a long one is enough.
func isSecret(w weight, value string, quoted bool) bool {
	const enough = 512
	value = value[:min(len(value), enough)]
	if isPlaceholder(value) || !quoted && isCode(value) {
		return false
	}
	if strings.ContainsRune("),;]}", rune(value[0])) { // the quote closed a prompt such as "Password: "
		return false
	}
	_, err := strconv.ParseFloat(value, 64)
	number := err == nil
	if w == password {
		return !number || len(value) >= 4
	}
	if number || strings.ContainsAny(value, " \t") || isWide(value) || constant.MatchString(value) {
		return false
	}
	if filePath.MatchString(value) && len(value) != awsSecretLength {
		return false
	}
	digits := strings.ContainsFunc(value, isDigitRune)
	switch {
	case digits && len(value) >= 8:
		return true
	case lowerOnly.MatchString(value) || plainLetter.MatchString(value) && len(value) < 24:
		return false
	}
	return len(value) >= 16
}

// awsSecretLength is the length of an AWS secret access key in bytes: base64, so that it may begin with a slash like a path.
const awsSecretLength = 40

func isWide(value string) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return r > 0x7e })
}
