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

func appendShapes(found []span, b []byte) []span {
	for _, s := range shapes {
		each(b, s.prefix, func(at int) {
			if at > 0 && isWord(b[at-1]) {
				return
			}
			body := at + len(s.prefix)
			end := until(b, body, scanLimit, func(c byte) bool { return !s.member(c) })
			size := end - body
			if size < s.least || s.most > 0 && size > s.most || s.digit && !bytes.ContainsFunc(b[body:end], isDigitRune) {
				return
			}
			found = append(found, span{at, end})
		})
	}
	return found
}

// appendWebTokens finds JSON Web Tokens (RFC 7519): three base64url parts, the first of which is a JSON object and so
// begins with "eyJ".
func appendWebTokens(found []span, b []byte) []span {
	each(b, "eyJ", func(at int) {
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
			found = append(found, span{at, part(claims + 1)})
		}
	})
	return found
}

// appendKeyBlocks finds private keys in PEM or PGP armour (RFC 7468, RFC 9580), also as one string with \n escapes, and
// also when the end of the block was cut off.
func appendKeyBlocks(found []span, b []byte) []span {
	const dashes = "-----"
	each(b, dashes+"BEGIN ", func(at int) {
		label := at + len(dashes+"BEGIN ")
		closing := bytes.Index(b[label:min(len(b), label+80)], []byte(dashes))
		if closing < 0 || !bytes.Contains(b[label:label+closing], []byte("PRIVATE KEY")) {
			return
		}
		body := label + closing + len(dashes)
		window := b[body:min(len(b), body+keyBlockLimit)]
		if end := bytes.Index(window, []byte(dashes+"END ")); end >= 0 && !bytes.ContainsFunc(window[:end], notKeyBlock) {
			found = append(found, span{body, body + end})
			return
		}
		found = append(found, cutKeyBlock(b, body)...)
	})
	return found
}

// notKeyBlock tells text between the two marks that is no key, such as code that searches for them.
func notKeyBlock(r rune) bool {
	return r > 0x7e || !isAlnum(byte(r)) && !bytes.ContainsRune([]byte("+/=\\\"',:;.- \t\r\n"), r)
}

// cutKeyBlock masks the lines of base64 that follow a header without an end.
func cutKeyBlock(b []byte, at int) []span {
	start := at
	for at < len(b) && at-start < keyBlockLimit {
		end := until(b, at, scanLimit, func(c byte) bool { return c == '\n' })
		line := bytes.TrimSpace(b[at:end])
		if len(line) > 0 && bytes.ContainsFunc(line, func(r rune) bool {
			return r > 0x7e || !isAlnum(byte(r)) && !bytes.ContainsRune([]byte("+/=\\"), r)
		}) {
			break
		}
		if end >= len(b) {
			at = end
			break
		}
		at = end + 1
	}
	return []span{{start, at}}
}

func isUpperDigit(c byte) bool { return 'A' <= c && c <= 'Z' || isDigit(c) }

func isWordDash(c byte) bool { return isWord(c) || c == '-' }

func isWordSlash(c byte) bool { return isWord(c) || c == '/' }

func isDigitRune(r rune) bool { return '0' <= r && r <= '9' }
