package tools

import (
	"fmt"
	"strings"
)

//go:generate go run ./gen ../README.md

// Table renders tools as a Markdown table: name, what it does, and the promises it makes about its effects.
func Table(all []Tool) string {
	var b strings.Builder
	b.WriteString("| tool | does | effects |\n|---|---|---|\n")
	for _, t := range all {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", t.Name, strings.NewReplacer("|", `\|`, "\n", " ").Replace(t.Description), t.Annotations)
	}
	return b.String()
}

// String says the annotations in words.
func (a Annotations) String() string {
	words := "writes"
	if a.ReadOnly {
		words = "read-only"
	}
	for _, w := range []struct {
		holds bool
		word  string
	}{{a.Destructive, "destructive"}, {a.Idempotent, "idempotent"}, {a.OpenWorld, "open-world"}} {
		if w.holds {
			words += ", " + w.word
		}
	}
	return words
}
