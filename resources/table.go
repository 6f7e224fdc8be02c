package resources

import (
	"fmt"
	"strings"
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
