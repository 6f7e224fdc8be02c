package jobs

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/redact"
)

// Script renders the request as a POSIX shell script for a person: it shows what runs, and running it by hand does the same
// without supervision. Secrets are masked, so that such a command must be completed by hand.
func Script(req Request) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# Job " + req.JobID)
	if req.RunID != "" {
		b.WriteString(" of run " + req.RunID)
	}
	b.WriteString(", rendered from " + RequestFile + ", which is what the supervisor reads.\n# To run it by hand: sh " + ScriptFile + "\n")
	if limit := req.WallTime(); limit > 0 {
		b.WriteString("# Wall time " + limit.String() + ", not enforced when run by hand.\n")
	}
	if len(req.PassEnv) > 0 {
		b.WriteString("# Needs from your environment: " + strings.Join(req.PassEnv, " ") + "\n")
	}
	body := "cd " + quote(req.WorkDir) + " || exit 126\n"
	for _, name := range slices.Sorted(maps.Keys(req.Env)) {
		body += "export " + name + "=" + quote(req.Env[name]) + "\n"
	}
	words := make([]string, len(req.Command))
	for i, word := range req.Command {
		words[i] = quote(word)
	}
	body += "exec " + strings.Join(words, " ") + "\n"
	if masked := redact.Text(body); masked != body {
		b.WriteString("# A value is masked with '*' here.\n")
		body = masked
	}
	return b.String() + body
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quote is a word for a POSIX shell: bare where nothing in it is special, else in single quotes.
func quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
