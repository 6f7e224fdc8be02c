package resources

import (
	"fmt"
	"strings"
)

// The marks between which the README's table of resources is generated.
const (
	TableBegin = "<!-- resources:begin -->"
	TableEnd   = "<!-- resources:end -->"
)

// Table renders the patterns of all addresses as a Markdown table.
func Table() string {
	var b strings.Builder
	b.WriteString("| address | gives |\n|---|---|\n")
	for _, t := range Templates() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", t.URITemplate, strings.NewReplacer("|", `\|`, "\n", " ").Replace(t.Description))
	}
	return b.String()
}

// WithTable puts the table of resources between the marks of a Markdown text.
func WithTable(text string) (string, error) {
	before, rest, ok := strings.Cut(text, TableBegin)
	_, after, ends := strings.Cut(rest, TableEnd)
	if !ok || !ends {
		return "", fmt.Errorf("the text has no %s followed by %s", TableBegin, TableEnd)
	}
	return before + TableBegin + "\n" + Table() + TableEnd + after, nil
}
