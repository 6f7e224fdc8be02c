package redact

import "bytes"

// urlPasswords finds the password of a URL's user information (RFC 3986, section 3.2.1), and a token that stands
// alone in the place of the user.
func (w *window) urlPasswords() {
	b := w.b
	const loneToken = 20 // bytes; shorter ones are user names
	w.each(b, "://", func(at int) {
		start := at + len("://")
		end := until(b, start, 1024, func(c byte) bool {
			return isSpace(c) || isQuote(c) || bytes.IndexByte([]byte("/?#<>\\"), c) >= 0
		})
		host := bytes.LastIndexByte(b[start:end], '@')
		if host < 0 {
			host = slashedPassword(b, start, end)
		}
		if host < 0 {
			return
		}
		user := b[start : start+host]
		colon := bytes.IndexByte(user, ':')
		if colon >= 0 && colon+1 < len(user) && !isPlaceholder(string(user[colon+1:])) {
			w.found = append(w.found, span{start + colon + 1, start + host})
		}
		if colon < 0 && len(user) >= loneToken && bytes.ContainsFunc(user, isDigitRune) {
			w.found = append(w.found, span{start, start + host})
		}
	})
}

// slashedPassword finds the end of user information whose password has a slash or the like in it, which belongs escaped,
// counted from start; -1 for none. A port is a number, and what has a dot is a host.
func slashedPassword(b []byte, start, end int) int {
	user, rest, ok := bytes.Cut(b[start:end], []byte(":"))
	if !ok || len(user) == 0 || end >= len(b) || bytes.IndexByte([]byte("/?#"), b[end]) < 0 || bytes.IndexByte(user, '.') >= 0 || user[0] == '[' ||
		isPlaceholder(string(rest)) || !bytes.ContainsFunc(rest, func(r rune) bool { return !isDigitRune(r) }) {
		return -1
	}
	whole := until(b, start, 1024, func(c byte) bool { return isSpace(c) || isQuote(c) || c == '<' || c == '>' || c == '\\' })
	return bytes.LastIndexByte(b[start:whole], '@')
}

// headers finds what follows "Authorization:" (RFC 9110, section 11.6.2), however it is written down, and a bearer
// token that stands without its header.
func (w *window) headers() {
	b, lower := w.b, w.lower
	w.each(lower, "authorization", func(at int) {
		value, ok := afterSeparator(b, at+len("authorization"))
		if !ok {
			return
		}
		value = skipOpening(b, value)
		scheme := until(b, value, 16, func(c byte) bool { return !isWordDash(c) })
		named := scheme < len(b) && b[scheme] == ' ' && isScheme(string(lower[value:scheme]))
		if named {
			value = skipBlanks(b, scheme)
		}
		end := until(b, value, scanLimit, func(c byte) bool { return isSpace(c) || isQuote(c) || c == ',' || c == '\\' })
		credential := string(b[value:end])
		if isSecret(key, credential, false) || named && len(credential) >= 8 && !isPlaceholder(credential) && !isCode(credential) {
			w.found = append(w.found, span{value, end})
		}
	})
	w.each(lower, "bearer ", func(at int) {
		start := skipBlanks(b, at+len("bearer "))
		end := until(b, start, scanLimit, func(c byte) bool {
			return !isAlnum(c) && bytes.IndexByte([]byte("._~+/=-"), c) < 0
		})
		if end-start >= 16 && bytes.ContainsFunc(b[start:end], isDigitRune) {
			w.found = append(w.found, span{start, end})
		}
	})
}

func isScheme(word string) bool {
	switch word {
	case "bearer", "basic", "token", "apikey", "digest":
		return true
	}
	return false
}

// logins finds the key given to a `wandb login` or wandb.login(key=…): 40 hex digits that have no shape of their own.
func (w *window) logins() {
	b, lower := w.b, w.lower
	w.each(lower, "wandb", func(at int) {
		rest := lower[at+len("wandb") : min(len(b), at+120)]
		login := bytes.Index(rest, []byte("login"))
		if login < 0 || login > 1 {
			return
		}
		line := until(b, at, 160, func(c byte) bool { return c == '\n' })
		for i := at + len("wandb") + login + len("login"); i < line; {
			end := until(b, i, scanLimit, func(c byte) bool { return !isAlnum(c) })
			if end-i >= 32 && !isWord(b[i-1]) && bytes.ContainsFunc(b[i:end], isDigitRune) {
				w.found = append(w.found, span{i, end})
			}
			i = max(end, i) + 1
		}
	})
}

// skipOpening passes the quote that opens a value, with the letters Python and others put before it (f"…", b'…') and the
// backslash of a quote inside a JSON string.
func skipOpening(b []byte, at int) int {
	i := at
	for n := 0; n < 2 && i < len(b) && bytes.IndexByte([]byte("fFbBrRuU"), b[i]) >= 0; n++ {
		i++
	}
	if i < len(b) && b[i] == '\\' {
		i++
	}
	if i < len(b) && isQuote(b[i]) {
		return i + 1
	}
	return at
}

// afterSeparator finds where a value begins after the name that ends at `at`: name = v, name: v, "name": v, name := v,
// name => v, ["name"] = v, name: type = "v". A line end separates nothing.
func afterSeparator(b []byte, at int) (int, bool) {
	if at < len(b) && b[at] == '\\' {
		at++
	}
	if at < len(b) && isQuote(b[at]) {
		at++
	}
	if at < len(b) && b[at] == ']' {
		at++
	}
	at = skipBlanks(b, at)
	if at >= len(b) || b[at] != ':' && b[at] != '=' {
		return 0, false
	}
	separator := b[at]
	at++
	if at < len(b) && (b[at] == '=' || separator == '=' && b[at] == '>') {
		at++
	}
	at = skipBlanks(b, at)
	if separator == ':' {
		if value, ok := afterAnnotation(b, at); ok {
			return value, true
		}
	}
	return at, at < len(b) && b[at] != '\n' && b[at] != '\r'
}

// afterAnnotation passes a type as in `password: str = "…"`. Only a quoted value counts, since YAML may have an equals
// sign in a value.
func afterAnnotation(b []byte, at int) (int, bool) {
	end := until(b, at, 64, func(c byte) bool { return !isWord(c) && bytes.IndexByte([]byte(".[]| "), c) < 0 })
	if end == at || end >= len(b) || b[end] != '=' {
		return 0, false
	}
	value := skipBlanks(b, end+1)
	return value, skipOpening(b, value) != value
}
