package clients

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlFormat is TOML, in which the entry is a table of its own: [mcp_servers.name].
var tomlFormat = format{
	parse: func(data []byte, at spot) (document, error) { return parseTOML(data, at) },
	fresh: func(at spot, entry any) []byte { return (&tomlText{at: at}).block(entry, "\n") },
}

// tomlText is a parsed TOML document. own are the lines of the entry, in runs that nothing else interrupts.
type tomlText struct {
	data  []byte
	at    spot
	value map[string]any
	own   []lines
}

// lines is a piece of the text that begins and ends with whole lines. table says that it begins with a table's header.
type lines struct {
	start, end int
	table      bool
}

func parseTOML(data []byte, at spot) (*tomlText, error) {
	d := &tomlText{data: data, at: at, value: map[string]any{}}
	if err := toml.Unmarshal(data, &d.value); err != nil {
		f := &fault{what: strings.TrimPrefix(err.Error(), "toml: ")}
		var decode *toml.DecodeError
		if errors.As(err, &decode) {
			f.line, f.column = decode.Position()
		}
		return nil, f
	}
	return d, d.scan()
}

// scan finds the lines of the entry: headers and keys whose full name begins with its.
func (d *tomlText) scan() error {
	var parser unstable.Parser
	parser.Reset(d.data)
	entry := d.path()
	var table []string
	inside := false
	for parser.NextExpression() {
		e := parser.Expression()
		var key []string
		start := -1
		for it := e.Key(); it.Next(); {
			key = append(key, string(it.Node().Data))
			if start < 0 {
				start = int(it.Node().Raw.Offset)
			}
		}
		isTable := e.Kind != unstable.KeyValue
		end := start
		if isTable {
			table = key
		} else {
			key, end = slices.Concat(table, key), int(e.Raw.Offset+e.Raw.Length)
		}
		ours := len(key) >= len(entry) && slices.Equal(key[:len(entry)], entry)
		if ours {
			piece := lines{bytes.LastIndexByte(d.data[:start], '\n') + 1, d.endOfLine(end), isTable}
			if inside {
				d.own[len(d.own)-1].end = piece.end
			} else {
				d.own = append(d.own, piece)
			}
		}
		inside = ours
	}
	return parser.Error()
}

func (d *tomlText) path() []string { return slices.Concat(d.at.keys, []string{d.at.name}) }

// endOfLine is the offset behind the line end that follows an offset.
func (d *tomlText) endOfLine(offset int) int {
	if i := bytes.IndexByte(d.data[offset:], '\n'); i >= 0 {
		return offset + i + 1
	}
	return len(d.data)
}

func (d *tomlText) entry() (any, verbatim) {
	var value any = d.value
	for _, key := range d.path() {
		table, _ := value.(map[string]any)
		if value = table[key]; value == nil {
			return nil, nil
		}
	}
	var text verbatim
	for _, piece := range d.own {
		text = append(text, d.data[piece.start:piece.end]...)
	}
	return value, text
}

// block writes the entry as a table.
func (d *tomlText) block(entry any, newline string) []byte {
	if text, isText := entry.(verbatim); isText {
		return text
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "[%s]%s", strings.Join(d.path(), "."), newline)
	for _, m := range entry.(members) {
		fmt.Fprintf(&b, "%s = %s%s", m.key, layout{}.inline(m.value), newline)
	}
	return b.Bytes()
}

func (d *tomlText) put(entry any) ([]byte, error) {
	newline := lineEnd(d.data)
	gap := ""
	if len(d.data) > 0 && !bytes.HasSuffix(d.data, []byte("\n")) {
		gap = newline
	}
	if text := string(d.data) + gap; strings.Trim(text, blanks) != "" && !strings.HasSuffix(text, newline+newline) {
		gap += newline
	}
	return slices.Concat(d.data, []byte(gap), d.block(entry, newline)), nil
}

// errForm is the fault of an entry that is there in another form than a table of its own.
var errForm = &fault{what: "the entry is not written as a table of its own"}

func (d *tomlText) replace(entry any) ([]byte, error) {
	if len(d.own) == 0 || !d.own[0].table {
		return nil, errForm
	}
	var edits []edit
	for i, piece := range d.own {
		text := ""
		if i == 0 {
			text = string(d.block(entry, lineEnd(d.data)))
		}
		edits = append(edits, edit{piece.start, piece.end, text})
	}
	return apply(d.data, edits...), nil
}

// remove takes the lines of the entry out, and the blank line before each run of them.
func (d *tomlText) remove() ([][]byte, error) {
	if len(d.own) == 0 {
		return nil, errForm
	}
	newline := lineEnd(d.data)
	var edits []edit
	for _, piece := range d.own {
		before := d.data[:piece.start]
		switch {
		case bytes.HasSuffix(before, []byte(newline+newline)):
			piece.start -= len(newline)
		case len(before) == 0 && bytes.HasPrefix(d.data[piece.end:], []byte(newline)):
			piece.end += len(newline)
		}
		edits = append(edits, edit{piece.start, piece.end, ""})
	}
	return [][]byte{apply(d.data, edits...)}, nil
}

func (d *tomlText) others() any { return without(d.value, d.path()) }
