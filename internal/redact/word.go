package redact

import (
	"regexp"
	"strconv"
	"strings"
)

// weight says how far the name alone is believed.
type weight int

const (
	// key names (token, credentials) are common in ordinary text: the value must look like a credential too.
	key weight = iota
	// credential names (api_key, access_token) are believed unless the value is a path, a variable's name, a placeholder or code.
	credential
	// working is pwd alone: a working directory, or a password where the value is no path.
	working
	// password names are believed unless the value is a placeholder or code.
	password
)

// nameWord is the end of a name that may hold a secret; weigh judges by what stands before it in the name.
type nameWord struct {
	text  string
	weigh func(before string) (weight, bool)
}

var (
	// tokenizers' are the tokens of text.
	tokenizers = strings.Fields("pad eos bos unk sep cls mask special image stop start end next prev")
	// issuers are whose tokens open something.
	issuers = strings.Fields("access auth api bearer refresh secret session csrf jwt oauth personal deploy private security registry hf hub " +
		"github gitlab slack wandb npm pypi aws")
	keyHolders  = strings.Fields("api secret access private auth")
	keyOwners   = strings.Fields("account signing encryption master service")
	passHolders = strings.Fields("db database sql pg postgres redis mongo smtp mail email ftp ldap ssh sudo http proxy user admin root auth login")
)

var nameWords = []nameWord{
	{"password", always(password)},
	{"passwd", always(password)},
	{"passphrase", always(password)},
	{"secret", always(password)},
	{"pwd", func(before string) (weight, bool) {
		if before == "" || before == "old" {
			return working, true
		}
		return password, true
	}},
	{"pass", func(before string) (weight, bool) { return password, endsIn(before, passHolders) }}, // first_pass is none
	{"token", func(before string) (weight, bool) {
		if endsIn(before, issuers) {
			return credential, true
		}
		return key, !endsIn(before, tokenizers)
	}},
	{"credential", always(key)},
	{"credentials", always(key)},
	{"key", func(before string) (weight, bool) { // primary_key, sort_key, public_key are ordinary
		if endsIn(before, keyHolders) {
			return credential, true
		}
		return key, endsIn(before, keyOwners)
	}},
}

func always(w weight) func(string) (weight, bool) {
	return func(string) (weight, bool) { return w, true }
}

// endsIn reports whether the name ends in one of the words.
func endsIn(name string, words []string) bool {
	name = strings.TrimRight(name, "_-.")
	for _, word := range words {
		if strings.HasSuffix(name, word) {
			return true
		}
	}
	return false
}

var (
	// codeCall is a call or an element, whole or cut where its first argument has a quote or a blank.
	codeCall    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*[(\[{](.*[(\[{,=]|.*[)\]}](\.[A-Za-z_]\w*)*[,;:]*)?$`)
	codePath    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
	codeSelf    = regexp.MustCompile(`(^|[_.])(?i:password|passwd|passphrase|secret|pwd|token|key)$|[a-z](Password|Passwd|Passphrase|Secret|Pwd|Token|Key)$`)
	codeOwner   = regexp.MustCompile(`^(self|args|opts?|cfg|conf|config|os|env|environ|settings|kwargs|params|request|ctx|this)\.`)
	variable    = regexp.MustCompile(`^(\$\{[^}]*\}|\$\(.*|\$[A-Za-z_][A-Za-z0-9_]*|<.*>|\{.*\}|\[.*\]|%\(.*|%[sdv]|%[A-Za-z_]+%|\*+|\.\.\.|…)$`)
	filePath    = regexp.MustCompile(`^(~|\.{1,2})?/|\.(json|ya?ml|toml|txt|pem|key|pub|crt|cfg|ini|py|md)$`)
	folderPath  = regexp.MustCompile(`^([/~.]|[A-Za-z]:)`)
	constant    = regexp.MustCompile(`^[A-Z_]+$`)
	envName     = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)
	plainLetter = regexp.MustCompile(`^[A-Za-z]+$`)
)

// plainWords are values that say something about a secret, or are a type or an empty value.
var plainWords = map[string]bool{
	"none": true, "null": true, "nil": true, "true": true, "false": true, "undefined": true, "str": true, "int": true, "bool": true,
	"bytes": true, "string": true, "any": true, "optional": true, "required": true, "yes": true, "no": true, "on": true, "off": true,
	"~": true, "|": true, ">": true, "-": true, "[": true, "(": true, "{": true, "hidden": true, "redacted": true, "missing": true, "expired": true,
	"invalid": true, "unset": true, "is": true, "not": true,
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
	switch w {
	case password:
		return !number || len(value) >= 4
	case working:
		return !number && !folderPath.MatchString(value)
	case credential:
		return !isName(value) && (!number || len(value) >= 6)
	}
	return !number && !isName(value) && looksLikeKey(value)
}

// isName reports whether a value is a text, a path or the name of a variable.
func isName(value string) bool {
	const shortest = 12 // letters of a key that has nothing but capitals
	return strings.ContainsAny(value, " \t") || isWide(value) || constant.MatchString(value) && (len(value) < shortest || strings.Contains(value, "_")) ||
		filePath.MatchString(value) && len(value) != awsSecretLength
}

// looksLikeKey tells a credential from a word.
func looksLikeKey(value string) bool {
	digits := strings.ContainsFunc(value, isDigitRune)
	letters := strings.ContainsFunc(value, func(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' })
	return digits && (len(value) >= 8 || letters && len(value) >= 6) || len(value) >= 16
}

// awsSecretLength is the length of an AWS secret access key in bytes: base64, so that it may begin with a slash like a path.
const awsSecretLength = 40

func isWide(value string) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return r > 0x7e })
}
