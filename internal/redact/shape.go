package redact

import "bytes"

// shape is a credential that its first letters give away. The prefixes are those which the issuers document for secret
// scanning.
type shape struct {
	prefix string
	member func(byte) bool // which bytes may follow the prefix
	least  int             // how many must follow
	most   int             // how many may follow at most; 0 is no limit
	digit  bool            // at least one must be a digit, for prefixes that ordinary words have too
}

var shapes = []shape{
	{prefix: "AKIA", member: isUpperDigit, least: 16, most: 16}, // AWS access key ids
	{prefix: "ASIA", member: isUpperDigit, least: 16, most: 16},
	{prefix: "ABIA", member: isUpperDigit, least: 16, most: 16},
	{prefix: "ACCA", member: isUpperDigit, least: 16, most: 16},
	{prefix: "ghp_", member: isAlnum, least: 30}, // GitHub
	{prefix: "gho_", member: isAlnum, least: 30},
	{prefix: "ghu_", member: isAlnum, least: 30},
	{prefix: "ghs_", member: isAlnum, least: 30},
	{prefix: "ghr_", member: isAlnum, least: 30},
	{prefix: "github_pat_", member: isWord, least: 22},
	{prefix: "glpat-", member: isWordDash, least: 20}, // GitLab
	{prefix: "gldt-", member: isWordDash, least: 20},
	{prefix: "glrt-", member: isWordDash, least: 20},
	{prefix: "glcbt-", member: isWordDash, least: 20},
	{prefix: "hf_", member: isAlnum, least: 30}, // Hugging Face
	{prefix: "api_org_", member: isAlnum, least: 30},
	{prefix: "sk-ant-", member: isWordDash, least: 20},  // Anthropic
	{prefix: "sk-proj-", member: isWordDash, least: 20}, // OpenAI
	{prefix: "sk-svcacct-", member: isWordDash, least: 20},
	{prefix: "sk-admin-", member: isWordDash, least: 20},
	{prefix: "sk-or-v1-", member: isAlnum, least: 32},
	{prefix: "sk-", member: isAlnum, least: 32, digit: true},
	{prefix: "xoxb-", member: isWordDash, least: 10, digit: true}, // Slack
	{prefix: "xoxp-", member: isWordDash, least: 10, digit: true},
	{prefix: "xoxa-", member: isWordDash, least: 10, digit: true},
	{prefix: "xoxr-", member: isWordDash, least: 10, digit: true},
	{prefix: "xoxs-", member: isWordDash, least: 10, digit: true},
	{prefix: "xapp-", member: isWordDash, least: 20, digit: true},
	{prefix: "hooks.slack.com/services/", member: isWordSlash, least: 20},
	{prefix: "wandb_v1_", member: isWordDash, least: 20}, // Weights & Biases
	{prefix: "local-wandb_v1_", member: isWordDash, least: 20},
	{prefix: "AIza", member: isWordDash, least: 35, most: 35}, // Google
	{prefix: "npm_", member: isAlnum, least: 36},
	{prefix: "pypi-AgE", member: isWordDash, least: 50},
	{prefix: "dop_v1_", member: isAlnum, least: 64},
	{prefix: "nvapi-", member: isWordDash, least: 40},
	{prefix: "sk_live_", member: isAlnum, least: 20},
	{prefix: "rk_live_", member: isAlnum, least: 20},
}

func (w *window) shapes() {
	b := w.b
	for _, s := range shapes {
		w.each(b, s.prefix, func(at int) {
			if at > 0 && isWord(b[at-1]) {
				return
			}
			body := at + len(s.prefix)
			end := until(b, body, scanLimit, func(c byte) bool { return !s.member(c) })
			size := end - body
			if size < s.least || s.most > 0 && size > s.most || s.digit && !bytes.ContainsFunc(b[body:end], isDigitRune) {
				return
			}
			w.found = append(w.found, span{at, end})
		})
	}
}

// webTokens finds JSON Web Tokens (RFC 7519): three base64url parts, the first of which is a JSON object and so
// begins with "eyJ".
func (w *window) webTokens() {
	b := w.b
	w.each(b, "eyJ", func(at int) {
		if at > 0 && isWord(b[at-1]) {
			return
		}
		part := func(from int) int { return until(b, from, scanLimit, func(c byte) bool { return !isWordDash(c) }) }
		head := part(at)
		if head-at < 10 || head >= len(b) || b[head] != '.' {
			return
		}
		claims := part(head + 1)
		if claims-head-1 >= 10 && claims < len(b) && b[claims] == '.' {
			w.found = append(w.found, span{at, part(claims + 1)})
		}
	})
}

const (
	keyDashes = "-----"
	keyBegin  = keyDashes + "BEGIN "
)

// keyBlocks finds private keys in PEM or PGP armour (RFC 7468, RFC 9580), also as one string with \n escapes, and also
// when the end of the block was cut off.
func (w *window) keyBlocks() {
	w.each(w.b, keyBegin, func(at int) {
		if s, ok := keyBlock(w.b, at); ok {
			w.found = append(w.found, s)
		}
	})
}

// keyBlock judges the block whose mark begins at `at`.
func keyBlock(b []byte, at int) (s span, ok bool) {
	body, ok, _ := keyLabel(b, at)
	if !ok {
		return span{}, false
	}
	if end, whole := keyEnd(b, body); whole {
		return span{body, end}, true
	}
	s, _ = cutKeyBlock(b, body)
	return s, true
}

// keyBlockSettled reports whether no bytes appended to b can change what keyBlock says of it.
func keyBlockSettled(b []byte, at int) bool {
	body, ok, settled := keyLabel(b, at)
	if !ok {
		return settled
	}
	end, whole := keyEnd(b, body)
	if whole {
		return true
	}
	window := b[body:min(len(b), body+keyBlockLimit)]
	noEndComes := end > 0 || len(window) == keyBlockLimit || otherThanKey(window) >= 0
	_, stopped := cutKeyBlock(b, body)
	return noEndComes && stopped
}

// keyLabel reads the label of a mark: where the body begins, and whether it is that of a private key.
func keyLabel(b []byte, at int) (body int, ok, settled bool) {
	const labelMost = 80
	label := at + len(keyBegin)
	closing := bytes.Index(b[label:min(len(b), label+labelMost)], []byte(keyDashes))
	if closing < 0 {
		return 0, false, len(b) >= label+labelMost
	}
	return label + closing + len(keyDashes), bytes.Contains(b[label:label+closing], []byte("PRIVATE KEY")), true
}

// keyEnd finds the mark that ends a block, 0 where there is none; whole tells that nothing but a key stands before it.
func keyEnd(b []byte, body int) (end int, whole bool) {
	window := b[body:min(len(b), body+keyBlockLimit)]
	n := bytes.Index(window, []byte(keyDashes+"END "))
	if n < 0 {
		return 0, false
	}
	return body + n, otherThanKey(window[:n]) < 0
}

// otherThanKey finds text between the two marks that is no key, such as code that searches for them; -1 where all may be.
func otherThanKey(b []byte) int {
	for i, c := range b {
		if !inKeyBlock[c] {
			return i
		}
	}
	return -1
}

// inKeyBlock are the bytes of keys, of their headers and of the strings they are quoted in.
var inKeyBlock = func() (in [256]bool) {
	for c := range 128 {
		in[c] = isAlnum(byte(c)) || bytes.IndexByte([]byte("+/=\\\"',:;.- \t\r\n"), byte(c)) >= 0
	}
	return in
}()

// cutKeyBlock masks the lines of base64 that follow a header without an end. stopped says that something else than the end
// of b ended them.
func cutKeyBlock(b []byte, at int) (s span, stopped bool) {
	start := at
	for at < len(b) && at-start < keyBlockLimit {
		end := until(b, at, scanLimit, func(c byte) bool { return c == '\n' })
		line := bytes.TrimSpace(b[at:end])
		if len(line) > 0 && bytes.ContainsFunc(line, func(r rune) bool {
			return r > 0x7e || !isAlnum(byte(r)) && !bytes.ContainsRune([]byte("+/=\\"), r)
		}) {
			return span{start, at}, end < len(b)
		}
		if end >= len(b) {
			return span{start, end}, false
		}
		at = end + 1
	}
	return span{start, at}, at-start >= keyBlockLimit
}

func isUpperDigit(c byte) bool { return 'A' <= c && c <= 'Z' || isDigit(c) }

func isWordDash(c byte) bool { return isWord(c) || c == '-' }

func isWordSlash(c byte) bool { return isWord(c) || c == '/' }

func isDigitRune(r rune) bool { return '0' <= r && r <= '9' }
