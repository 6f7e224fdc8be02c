package diagnose

import (
	"path"
	"regexp"
	"strconv"
	"strings"
)

// The links between the exceptions of one traceback, as CPython's traceback module writes them, and the ones that PyTorch
// puts into a message.
const (
	linkNone     = iota
	linkDirect   // raise … from: the one before is the cause
	linkImplicit // raised while the one before was handled
	linkOriginal // the one before only carries this one from another process
)

// exception is one exception of a traceback.
type exception struct {
	// class is its dotted name, message the first line of its text, detail the indented lines below it.
	class, message, detail string
	frames                 []Frame
	row                    row
	// link is how it follows from the one before.
	link int
}

var (
	frameLine     = regexp.MustCompile(`^\s*File "([^"]+)", line (\d+)(?:,? in (.*))?$`)
	exceptionLine = regexp.MustCompile(`^([A-Za-z_][\w.]*)(?::(?: (.*))?)?$`)
	// exceptionName is what the last part of an exception's name looks like; lower case ones are dotted (socket.timeout).
	exceptionName = regexp.MustCompile(`^(?:[A-Za-z_][\w.]*\.\w+|_*[A-Z]\w*)$`)
)

const header = "Traceback (most recent call last)"

// traceback is a chain of exceptions as it stands in a log.
type traceback struct {
	chain      []exception
	prefix     string
	start, end int64
	// ignored is set where the interpreter says that it went on.
	ignored bool
}

// tracebackAt parses the traceback whose header is at offset. Its chain is empty where no exception follows, as when the
// process was killed while it wrote.
func (s *scanned) tracebackAt(offset int64) traceback {
	rows := s.rows(offset, offset+windowBytes)
	if len(rows) == 0 {
		return traceback{start: offset, end: offset}
	}
	t := traceback{prefix: rows[0].prefix, start: rows[0].offset, end: rows[0].end, ignored: s.ignoredBefore(rows[0].offset)}
	p := tracebackParser{}
	for _, r := range rows[1:] {
		if r.prefix != t.prefix {
			continue
		}
		if !p.row(r) {
			break
		}
		if p.taken {
			t.end = r.end
		}
	}
	t.chain = p.chain
	return t
}

// ignoredBefore reports whether the line before offset says that the exception did not end anything.
func (s *scanned) ignoredBefore(offset int64) bool {
	if offset == 0 {
		return false
	}
	rows := s.rows(offset-1, offset)
	return len(rows) > 0 && strings.HasPrefix(strings.TrimSpace(rows[0].text), "Exception ignored in")
}

// tracebackParser takes the lines behind a header.
type tracebackParser struct {
	chain   []exception
	current exception
	// after is set behind an exception's line; blank behind an empty line there; foreign counts lines of others.
	after, blank bool
	foreign      int
	// link is what the next header will be joined by; taken says that the last row belongs to the traceback.
	link  int
	taken bool
}

// foreignMost is how many lines of other writers may stand inside a traceback.
const foreignMost = 5

// row takes a line and reports whether the traceback may go on.
func (p *tracebackParser) row(r row) bool {
	p.taken = true
	if p.after {
		return p.behind(r)
	}
	if match := frameLine.FindStringSubmatch(r.text); match != nil {
		number, _ := strconv.Atoi(match[2]) // digits by the expression; too many of them are no line
		p.current.frames = append(p.current.frames, Frame{Path: match[1], Line: number, Function: strings.TrimPrefix(match[3], " ")})
		p.current.row = r
		return true
	}
	if strings.Contains(r.text, header) {
		return false
	}
	frames := p.current.frames
	if len(frames) > 0 && r.indent() == max(0, p.current.row.indent()-2) || len(frames) == 0 && r.indent() == 0 {
		if match := exceptionLine.FindStringSubmatch(strings.TrimSpace(r.text)); match != nil && exceptionName.MatchString(match[1]) {
			p.current.class, p.current.message, p.current.row = match[1], match[2], r
			p.chain = append(p.chain, p.current)
			p.after, p.blank, p.foreign = true, false, 0
			return true
		}
	}
	if r.indent() > 0 || r.blank() {
		if len(frames) > 0 && frames[len(frames)-1].Source == "" && strings.Trim(r.text, " ^~") != "" {
			frames[len(frames)-1].Source = clip(r.text)
		}
		return true
	}
	p.foreign++
	return p.foreign <= foreignMost
}

// behind takes the lines after an exception's own: the rest of its message, a link, the next header.
func (p *tracebackParser) behind(r row) bool {
	text := strings.TrimSpace(r.text)
	switch {
	case strings.HasPrefix(text, "The above exception was the direct cause of"):
		p.link = linkDirect
	case strings.HasPrefix(text, "During handling of the above exception"):
		p.link = linkImplicit
	case strings.HasPrefix(text, "-- Process ") && strings.HasSuffix(text, "terminated with the following error:"):
		p.link = linkOriginal
	case strings.HasPrefix(text, "Original "+header):
		p.next(linkOriginal)
	case strings.HasPrefix(text, header) && p.link != linkNone:
		p.next(p.link)
	case text == "":
		p.blank = true
	case p.blank || strings.Contains(text, header):
		p.taken = false
		return false
	case r.indent() > 0:
		last := &p.chain[len(p.chain)-1]
		if p.foreign == 0 && len(last.detail) < textShown {
			last.detail += " " + text
		}
	default:
		p.taken = false
		p.foreign++
		return p.foreign <= foreignMost
	}
	return true
}

func (p *tracebackParser) next(link int) {
	p.current = exception{link: link}
	p.after, p.blank, p.foreign, p.link = false, false, 0, linkNone
}

// text is the exception's whole message on one line.
func (e exception) text() string { return strings.TrimSpace(e.message + e.detail) }

// name is the last part of the class.
func (e exception) name() string { return e.class[strings.LastIndexByte(e.class, '.')+1:] }

// own is the innermost frame of the user's own code.
func (e exception) own() *Frame {
	for i := len(e.frames) - 1; i >= 0; i-- {
		if !installed(e.frames[i].Path) {
			frame := e.frames[i]
			return &frame
		}
	}
	return nil
}

// main is the number of the exception that is the root cause of its chain, judged by the weights of their classes.
func (t traceback) main(weight func(int) int) int {
	main := len(t.chain) - 1
	for ; main > 0; main-- {
		switch t.chain[main].link {
		case linkOriginal:
			return main
		case linkImplicit:
			here, before := weight(main), weight(main-1)
			if here > weightConsequence && (before < weightResource || here >= weightResource) {
				return main
			}
		}
	}
	return main
}

// libraryPath is where CPython keeps its standard library: lib/pythonX.Y on POSIX systems, Lib on Windows.
var libraryPath = regexp.MustCompile(`/lib(?:64)?/python\d+(?:\.\d+)?/|(?i:\\lib\\)`)

// installed reports whether code at this path is not the user's own: packages, the standard library, a launcher, or text
// that is in no file.
func installed(file string) bool {
	slashed := strings.ReplaceAll(file, `\`, "/")
	if strings.Contains(slashed, "/site-packages/") || strings.Contains(slashed, "/dist-packages/") || libraryPath.MatchString(file) ||
		strings.HasPrefix(file, "<") {
		return true
	}
	folder := path.Base(path.Dir(slashed))
	return (folder == "bin" || folder == "Scripts") && path.Ext(slashed) == ""
}
