package prompts

import (
	"fmt"
	"strings"
)

// The marks between which the README's table of prompts is generated (tools/gen).
const (
	TableBegin = "<!-- prompts:begin -->"
	TableEnd   = "<!-- prompts:end -->"
)

// Table renders the prompts as a Markdown table: name, what it is for, and its arguments, the required ones in bold.
func Table() string {
	var b strings.Builder
	b.WriteString("| prompt | for | arguments |\n|---|---|---|\n")
	for _, p := range All() {
		var arguments []string
		for _, a := range p.Arguments {
			name := "`" + a.Name + "`"
			if a.Required {
				name = "**" + name + "**"
			}
			arguments = append(arguments, name)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.Name, p.Description, strings.Join(arguments, ", "))
	}
	return b.String()
}

// WithTable puts the table between the marks of a Markdown text.
func WithTable(text string) (string, error) {
	before, rest, ok := strings.Cut(text, TableBegin)
	_, after, ends := strings.Cut(rest, TableEnd)
	if !ok || !ends {
		return "", fmt.Errorf("the text has no %s followed by %s", TableBegin, TableEnd)
	}
	return before + TableBegin + "\n" + Table() + TableEnd + after, nil
}
