package clients

import (
	"strings"

	"github.com/trainwright/trainwright/internal/redact"
)

// What a difference shows: lines around the change, and characters of a line.
const (
	around  = 2
	longest = 200
)

// difference shows the lines that change, with some around them, as diff -u does. Our edits are close together, so one
// piece is enough. Secrets are masked.
func difference(before, after []byte) string {
	old, now := split(before), split(after)
	head := 0
	for head < min(len(old), len(now)) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < min(len(old), len(now))-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	gone, came := old[head:len(old)-tail], now[head:len(now)-tail]
	begin := 0
	if len(gone) == 1 && len(came) == 1 {
		begin = shared(gone[0], came[0]) - longest/2
	}
	var b strings.Builder
	show(&b, "  ", old[max(0, head-around):head], 0)
	show(&b, "- ", gone, begin)
	show(&b, "+ ", came, begin)
	show(&b, "  ", old[len(old)-tail:min(len(old), len(old)-tail+around)], 0)
	return b.String()
}

// show writes lines with a mark; of long ones the piece after the first begin characters.
func show(b *strings.Builder, mark string, lines []string, begin int) {
	for _, line := range lines {
		runes := []rune(redact.Text(line))
		front, end := "", ""
		if begin > 0 && begin < len(runes) {
			front, runes = "…", runes[begin:]
		}
		if len(runes) > longest {
			runes, end = runes[:longest], "…"
		}
		b.WriteString(mark + front + string(runes) + end + "\n")
	}
}

// shared counts the characters with which both lines begin.
func shared(a, b string) int {
	x, y := []rune(a), []rune(b)
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	return n
}

// split gives the lines of a text without their ends.
func split(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return lines
}
