package prompts

import (
	"fmt"
	"strings"
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
