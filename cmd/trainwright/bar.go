package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
	"golang.org/x/text/width"

	"github.com/trainwright/trainwright/internal/engine"
)

// bar is one line at the foot of a terminal that tells how a step goes and is drawn over itself: phase, share done, time,
// newest metrics. It uses no escape sequences, only carriage returns and blanks, so that any console shows it.
type bar struct {
	out   io.Writer
	cells func() int // width of the terminal
	now   func() time.Time

	began   time.Time
	current engine.Progress
	drawn   int // cells that the line takes up on the terminal
}

// barFor is the bar of a terminal; nil where the writer is none, or one that can't overwrite a line.
func barFor(w io.Writer) *bar {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	cells := func() int {
		columns, _, err := term.GetSize(int(file.Fd()))
		if err != nil || columns <= 0 {
			return 80
		}
		return columns
	}
	return &bar{out: file, cells: cells, now: time.Now, began: time.Now()}
}

// show draws the line for p. A message without a share leaves that of its phase as it is.
func (b *bar) show(p engine.Progress) error {
	if p.Total <= 0 && p.Phase == b.current.Phase {
		p.Done, p.Total = b.current.Done, b.current.Total
	}
	b.current = p
	return b.draw()
}

// draw draws the line anew, with the time that has passed and the width that there is now.
func (b *bar) draw() error {
	if b.current.Phase == "" {
		return nil
	}
	line, cells := fit(b.line(), b.cells()-1) // the last cell stays free: some terminals wrap when it is used
	blanks := strings.Repeat(" ", max(0, b.drawn-cells))
	b.drawn = cells
	_, err := fmt.Fprint(b.out, "\r", line, blanks, strings.Repeat("\b", len(blanks)))
	return err
}

// clear takes the line away, so that something else can be written there.
func (b *bar) clear() error {
	if b.drawn == 0 {
		return nil
	}
	_, err := fmt.Fprint(b.out, "\r", strings.Repeat(" ", b.drawn), "\r")
	b.drawn = 0
	return err
}

// Widths in cells: below narrow there is no room for the bar itself.
const (
	narrow   = 60
	longest  = 24
	barShare = 5 // of the line, one part in so many
)

func (b *bar) line() string {
	p := b.current
	parts := []string{p.Phase}
	message := p.Message
	if message == "phase "+p.Phase {
		message = ""
	}
	if p.Total > 0 {
		if cells := b.cells(); cells >= narrow {
			length := min(longest, cells/barShare)
			done := int(float64(length) * min(1, max(0, p.Done/p.Total)))
			parts = append(parts, "["+strings.Repeat("#", done)+strings.Repeat("-", length-done)+"]")
		}
		if count := fmt.Sprintf("%g/%g", p.Done, p.Total); !strings.Contains(message, count) {
			message = strings.TrimSpace(count + " " + message)
		}
	}
	return strings.Join(append(parts, clock(b.now().Sub(b.began)), message), " ")
}

// clock is a time as 0:07, 12:03 or 1:02:03.
func clock(d time.Duration) string {
	s := int(d.Seconds())
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// fit cuts a line to so many cells and tells how many it takes. Control characters would move the cursor and are left out.
func fit(line string, cells int) (string, int) {
	var b strings.Builder
	used := 0
	for _, r := range strings.TrimRight(line, " ") {
		if r < ' ' || r == 0x7f {
			continue
		}
		wide := 1
		if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
			wide = 2
		}
		if used+wide > cells {
			break
		}
		b.WriteRune(r)
		used += wide
	}
	return b.String(), used
}
