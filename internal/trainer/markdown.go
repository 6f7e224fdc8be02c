package trainer

import (
	"fmt"
	"strings"
)

// markdown builds a Markdown artifact line by line.
type markdown struct{ strings.Builder }

func (m *markdown) line(format string, args ...any) {
	fmt.Fprintf(&m.Builder, format, args...)
	m.WriteByte('\n')
}

func (m *markdown) heading(level int, title string) {
	m.line("\n%s %s\n", strings.Repeat("#", level), title)
}

// table writes a table; a table without rows is written as the sentence that says so.
func (m *markdown) table(empty string, header []string, rows [][]string) {
	if len(rows) == 0 {
		m.line("%s", empty)
		return
	}
	m.line("| %s |", strings.Join(header, " | "))
	m.line("|%s", strings.Repeat("---|", len(header)))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = cellText(cell)
		}
		m.line("| %s |", strings.Join(cells, " | "))
	}
}

// list writes one bullet an item.
func (m *markdown) list(empty string, items []string) {
	if len(items) == 0 {
		m.line("%s", empty)
	}
	for _, item := range items {
		m.line("- %s", item)
	}
}

// cellText keeps a cell in one line, and whole words within 160 characters.
func cellText(s string) string {
	s = strings.Join(strings.Fields(strings.ReplaceAll(s, "|", "\\|")), " ")
	if runes := []rune(s); len(runes) > 160 {
		return string(runes[:159]) + "…"
	}
	return s
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(s, "`", "'") + "`"
}

// show writes a value the way a person reads it.
func show(v any) string {
	switch x := v.(type) {
	case nil:
		return "—"
	case string:
		return x
	case float64:
		return fmt.Sprintf("%g", x)
	}
	return jsonText(v)
}

func shortHash(sha string) string {
	sha = strings.TrimPrefix(sha, "sha256:")
	if len(sha) > 12 {
		sha = sha[:12]
	}
	return code(sha)
}

// some names the first n of a list and counts the rest.
func some(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, "; ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:n], "; "), len(list)-n)
}
