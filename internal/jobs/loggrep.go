package jobs

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// grepMost is how many bytes one request searches at most: a second or two where each line must be judged.
	grepMost = 64 << 20
	// grepBlock is how much is read at a time. A longer line is searched in pieces of this size.
	grepBlock = 256 << 10
	// grepLineMost is how many bytes of one line are shown, those around the match.
	grepLineMost = 1000
	// defaultContext is how many lines around a match are shown.
	defaultContext = 2
)

// grep reads the lines that match: forward from the cursor or the start, or the last matches where a tail is asked for.
func grep(log io.ReaderAt, size int64, req LogRequest, budget int) (LogSlice, error) {
	re, err := regexp.Compile(req.Grep)
	if err != nil {
		return LogSlice{}, fmt.Errorf("compile %q: %w", req.Grep, err) // check has refused it
	}
	g := &grepper{source: newSource(log, size), re: re, context: defaultContext, budget: budget, most: req.Head, searchMost: grepMost}
	if req.Context != nil {
		g.context = *req.Context
	}
	if req.searchMost > 0 {
		g.searchMost = req.searchMost
	}
	switch {
	case req.Cursor != nil && *req.Cursor > size:
		return pastEnd(size, *req.Cursor), nil
	case req.Cursor != nil:
		return g.forward(*req.Cursor)
	case req.Tail > 0:
		return g.tail(req.Tail)
	}
	return g.forward(0)
}

// grepper searches one log.
type grepper struct {
	*source
	re      *regexp.Regexp
	context int // lines before and after a match
	budget  int // bytes of text
	most    int // matches; 0 is no bound

	searchMost int64 // bytes that are searched

	text    strings.Builder
	matches int
	before  []rawLine // lines that were not shown, for the context of the next match
	after   int       // lines still to be shown behind the last match
	shownTo int64     // end of the last line that was shown
	next    int64     // where to read on
	full    bool      // a bound was met before the line at next
}

// rawLine is a line of raw bytes without its newline, and where it lies with it.
type rawLine struct {
	raw        []byte
	start, end int64
}

// open tells a line without a newline.
func (l rawLine) open() bool { return l.end-l.start == int64(len(l.raw)) }

// forward collects matches from start on.
func (g *grepper) forward(start int64) (LogSlice, error) {
	end := min(g.size, start+g.searchMost)
	g.next, g.shownTo = start, -1
	err := g.lines(start, end, g.passOver, func(l rawLine) (bool, error) {
		if l.end == end && end < g.size && l.start > start && l.open() {
			return false, nil // the bound of the search cut this line
		}
		return g.line(l)
	})
	if err != nil {
		return LogSlice{}, err
	}
	slice := LogSlice{Start: start, End: g.next, Size: g.size, NextCursor: g.next, Text: g.text.String(), Matches: g.matches, More: g.next < g.size}
	switch {
	case g.full && (g.most == 0 || g.matches < g.most):
		slice.Cut = &Cut{From: g.next, To: g.size, Why: fmt.Sprintf("the budget of %d tokens is used up; search on with cursor %d", g.budget/bytesPerToken, g.next)}
	case !g.full && slice.More:
		slice.Cut = &Cut{From: g.next, To: g.size, Why: fmt.Sprintf("%d bytes were searched; search on with cursor %d", g.next-start, g.next)}
	}
	return slice, nil
}

// passOver is how many bytes of whole lines at the start of a block lie before the first that can match, and before its
// context. It needs an expression that begins with literal text, and a block that is shown as it is.
func (g *grepper) passOver(block []byte) int {
	prefix, _ := g.re.LiteralPrefix()
	if prefix == "" || g.after > 0 || !plain(block) {
		return 0
	}
	before := bytes.Index(block, []byte(prefix))
	if before < 0 {
		before = len(bytes.TrimSuffix(block, []byte("\n"))) // the last line is visited, and tells where to read on
	}
	for range g.context + 1 {
		if before = bytes.LastIndexByte(block[:before], '\n'); before < 0 {
			return 0
		}
	}
	g.before = g.before[:0]
	return before + 1
}

// line judges one line and shows it where it matches or stands near a match. It reports false when a bound is met.
func (g *grepper) line(l rawLine) (bool, error) {
	text, is, err := g.match(l)
	if err != nil {
		return false, err
	}
	switch {
	case is && g.most > 0 && g.matches == g.most:
		return g.stop(l)
	case is:
		if ok, err := g.show(l, text); !ok || err != nil {
			return false, err
		}
		g.matches++
		g.after, g.before = g.context, g.before[:0]
	case g.after > 0:
		g.after--
		if text, err = g.shown(l); err != nil {
			return false, err
		}
		if !g.write(entry(l.start, '-', text)) {
			return g.stop(l)
		}
		g.shownTo = l.end
	default:
		g.remember(l)
	}
	g.next = l.end
	return true, nil
}

// show writes a match with the lines before it.
func (g *grepper) show(l rawLine, text string) (bool, error) {
	first := l.start
	if len(g.before) > 0 {
		first = g.before[0].start
	}
	var all strings.Builder
	if g.shownTo >= 0 && first > g.shownTo {
		all.WriteString("--\n")
	}
	for _, b := range g.before {
		shown, err := g.shown(b)
		if err != nil {
			return false, err
		}
		all.WriteString(entry(b.start, '-', shown))
	}
	all.WriteString(entry(l.start, ':', text))
	if !g.write(all.String()) {
		if g.text.Len() > 0 {
			return g.stop(rawLine{start: first})
		}
		whole := entry(l.start, ':', text) // nothing fits: the start of the match alone, so that a reader gets on
		cut := min(len(whole), g.budget)
		for cut > 0 && cut < len(whole) && !utf8.RuneStart(whole[cut]) {
			cut--
		}
		g.text.WriteString(whole[:cut])
	}
	g.shownTo = l.end
	return true, nil
}

// stop ends the search before a line.
func (g *grepper) stop(l rawLine) (bool, error) {
	g.full, g.next = true, l.start
	return false, nil
}

func (g *grepper) write(text string) bool {
	if g.text.Len()+len(text) > g.budget {
		return false
	}
	g.text.WriteString(text)
	return true
}

func (g *grepper) remember(l rawLine) {
	if g.context == 0 {
		return
	}
	if len(g.before) == g.context {
		g.before = append(g.before[:0], g.before[1:]...)
	}
	l.raw = nil
	g.before = append(g.before, l)
}

// entry is a line of the text as `grep -b` writes it.
func entry(start int64, mark byte, text string) string {
	return fmt.Sprintf("%d%c%s\n", start, mark, text)
}

// match judges a line by what is shown of it: colours do not hide a match, and what is masked can't be found out by asking
// for it. The raw line is judged first, since most lines match in no form and masking costs far more.
func (g *grepper) match(l rawLine) (text string, is bool, err error) {
	if plain(l.raw) {
		is = g.re.Match(l.raw)
	} else {
		is = g.re.MatchString(terminal(l.raw))
	}
	if !is {
		return "", false, nil
	}
	whole, err := g.lineText(l)
	if err != nil {
		return "", false, err
	}
	at := g.re.FindStringIndex(whole)
	if at == nil {
		return "", false, nil
	}
	return around(whole, at[0]), true, nil
}

func (g *grepper) shown(l rawLine) (string, error) {
	whole, err := g.lineText(l)
	return around(whole, 0), err
}

// lineText is the whole text of a line.
func (g *grepper) lineText(l rawLine) (string, error) { return g.source.text(l.start, l.end) }

// around is the part of a long line around an offset.
func around(text string, at int) string {
	if len(text) <= grepLineMost {
		return text
	}
	from := max(0, min(at-grepLineMost/4, len(text)-grepLineMost))
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	to := min(len(text), from+grepLineMost)
	for to < len(text) && to > from && !utf8.RuneStart(text[to]) {
		to--
	}
	part := text[from:to]
	if from > 0 {
		part = "…" + part
	}
	if to < len(text) {
		part += "…"
	}
	return part
}

// tail collects the last matches: it searches backwards for where they begin, then forward from there. Where their text is
// too long it begins later.
func (g *grepper) tail(most int) (LogSlice, error) {
	starts, searched, err := g.lastMatches(most)
	if err != nil {
		return LogSlice{}, err
	}
	slice := LogSlice{Start: searched, End: g.size, Size: g.size, NextCursor: g.size}
	if len(starts) < most && searched > 0 {
		slice.Cut = &Cut{From: max(0, searched-g.searchMost), To: searched, Why: fmt.Sprintf("the last %d bytes were searched; the %d before can be searched with a cursor", g.size-searched, searched)}
	}
	for len(starts) > 0 {
		from := starts[0]
		if g.context > 0 {
			if from, _, err = tailStart(g.log, from, g.context); err != nil {
				return LogSlice{}, err
			}
		}
		again := &grepper{source: g.source, re: g.re, context: g.context, budget: g.budget, searchMost: g.searchMost}
		found, err := again.forward(from)
		if err != nil {
			return LogSlice{}, err
		}
		slice.Start, slice.Text, slice.Matches = from, found.Text, found.Matches
		if !again.full || len(starts) == 1 {
			break
		}
		starts = starts[len(starts)-min(len(starts)-1, max(1, again.matches)):]
		slice.Cut = &Cut{From: searched, To: starts[0], Why: fmt.Sprintf("the budget of %d tokens is used up; the matches before are found from cursor %d on", g.budget/bytesPerToken, searched)}
	}
	return slice, nil
}

// lastMatches finds the starts of the last matching lines, in order, and how far back it searched.
func (g *grepper) lastMatches(most int) (starts []int64, searched int64, err error) {
	lowest := max(0, g.size-g.searchMost)
	for high := g.size; high > lowest; {
		low := max(lowest, high-grepBlock)
		var inBlock []int64
		first := true
		err := g.lines(low, high, nil, func(l rawLine) (bool, error) {
			if first && low > 0 && l.end < high { // it may begin before the block
				first = false
				low = l.end
				return true, nil
			}
			first = false
			_, is, err := g.match(l)
			if is {
				inBlock = append(inBlock, l.start)
			}
			return true, err
		})
		if err != nil {
			return nil, 0, err
		}
		starts = append(inBlock, starts...)
		if over := len(starts) - most; over >= 0 {
			return starts[over:], starts[over], nil
		}
		high = low
	}
	return starts, lowest, nil
}
