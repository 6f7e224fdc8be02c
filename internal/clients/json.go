package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonFormat is JSON, with comments and trailing commas where the client knows them.
var jsonFormat = format{
	parse: func(data []byte, at spot) (document, error) { return parseJSON(data, at) },
	fresh: func(at spot, entry any) []byte {
		content := within(at.keys, at.name, entry)
		if at.schema != "" {
			content = append(members{{"$schema", at.schema}}, content...)
		}
		return append(layout{unit: "  ", newline: "\n"}.value(content, ""), '\n')
	},
}

// within wraps the entry in the objects that hold it.
func within(keys []string, name string, entry any) members {
	content := members{{name, entry}}
	for i := len(keys) - 1; i >= 0; i-- {
		content = members{{keys[i], content}}
	}
	return content
}

// jsonText is a parsed JSON document. path holds the objects on the way to the entry, as far as they are there: the
// root first, then the value of each key.
type jsonText struct {
	data   []byte
	at     spot
	layout layout
	path   []object
	index  int // of the entry in the last object; -1
	value  any
}

// object is an object and its place in the text.
type object struct {
	*hujson.Object
	start, end int
	index      int // among the members of the object that holds it
}

func parseJSON(data []byte, at spot) (*jsonText, error) {
	value, err := hujson.Parse(data)
	if err != nil {
		return nil, syntaxFault(data, err)
	}
	if at.strict && !value.IsStandard() {
		var any any
		return nil, strictFault(data, json.Unmarshal(data, &any))
	}
	d := &jsonText{data: data, at: at, index: -1}
	if d.value, err = decodeJSON(value); err != nil {
		return nil, err
	}
	if err := d.walk(value); err != nil {
		return nil, err
	}
	d.layout = layout{unit: "  ", newline: lineEnd(data)}
	if root := d.path[0]; len(root.Members) > 0 {
		if first := root.Members[0].Name.StartOffset; bytes.ContainsRune(data[root.start:first], '\n') && lineIndent(data, first) != "" {
			d.layout.unit = lineIndent(data, first)
		}
	}
	return d, nil
}

// decodeJSON gives the value that the clients see.
func decodeJSON(value hujson.Value) (any, error) {
	value = value.Clone()
	value.Standardize()
	decoder := json.NewDecoder(bytes.NewReader(value.Pack()))
	decoder.UseNumber()
	var out any
	if err := decoder.Decode(&out); err != nil {
		return nil, &fault{what: err.Error()}
	}
	return out, nil
}

// walk finds the objects on the way to the entry, and the entry.
func (d *jsonText) walk(value hujson.Value) error {
	here := 0
	for depth := 0; ; depth++ {
		o, isObject := value.Value.(*hujson.Object)
		if !isObject {
			line, column := place(d.data, value.StartOffset)
			return &fault{what: fmt.Sprintf("%s is not an object", strings.Join(append([]string{"the configuration"}, d.at.keys[:depth]...), " > ")), line: line, column: column}
		}
		d.path = append(d.path, object{o, value.StartOffset, value.EndOffset, here})
		key := d.at.name
		if depth < len(d.at.keys) {
			key = d.at.keys[depth]
		}
		i, err := d.find(o, key)
		switch {
		case err != nil:
			return err
		case depth == len(d.at.keys):
			d.index = i
			return nil
		case i < 0:
			return nil
		}
		here, value = i, o.Members[i].Value
	}
}

// find gives the index of a member, -1 if there is none. A key that comes twice is a fault: which of them counts is the
// client's secret.
func (d *jsonText) find(o *hujson.Object, key string) (int, error) {
	found := -1
	for i, m := range o.Members {
		if m.Name.Value.(hujson.Literal).String() != key {
			continue
		}
		if found >= 0 {
			line, column := place(d.data, m.Name.StartOffset)
			return 0, &fault{what: fmt.Sprintf("the key %q comes twice", key), line: line, column: column}
		}
		found = i
	}
	return found, nil
}

func (d *jsonText) last() object { return d.path[len(d.path)-1] }

func (d *jsonText) entry() (any, verbatim) {
	if d.index < 0 {
		return nil, nil
	}
	m := d.last().Members[d.index]
	value, err := decodeJSON(m.Value)
	if err != nil || value == nil {
		value = false // it is there, and is nothing that could be an entry
	}
	return value, verbatim(d.data[m.Value.StartOffset:m.Value.EndOffset])
}

func (d *jsonText) put(entry any) ([]byte, error) {
	missing := d.at.keys[len(d.path)-1:]
	content := within(missing, d.at.name, entry)
	return d.insert(d.last(), content[0]), nil
}

// insert puts a member behind the others of an object.
func (d *jsonText) insert(o object, m member) []byte {
	base := lineIndent(d.data, o.start)
	if len(o.Members) == 0 {
		return d.fill(o, m, base)
	}
	last := o.Members[len(o.Members)-1]
	tail, trailing := last.Value.EndOffset, last.Value.AfterExtra != nil
	if trailing {
		tail += len(last.Value.AfterExtra) + 1
	}
	extra := bytes.TrimRight(d.data[tail:o.end-1], blanks)
	at := tail + len(extra) // behind the comments that belong to the last member
	edits := []edit{{at, at, ""}}
	comma := ""
	if trailing {
		comma = ","
	} else {
		edits = []edit{{last.Value.EndOffset, last.Value.EndOffset, ","}, {at, at, ""}}
	}
	text := &edits[len(edits)-1].text
	if !bytes.ContainsRune(d.data[o.start:o.Members[0].Name.StartOffset], '\n') && !bytes.Contains(extra, []byte("//")) {
		*text = " " + d.layout.pairs(members{m}) + comma
		return apply(d.data, edits...)
	}
	indent := lineIndent(d.data, last.Name.StartOffset)
	if indent == base {
		indent = base + d.layout.unit
	}
	*text = d.layout.newline + indent + string(d.layout.member(m, indent)) + comma
	if !bytes.ContainsRune(d.data[at:o.end-1], '\n') {
		*text += d.layout.newline + base
	}
	return apply(d.data, edits...)
}

// fill puts the first member into an object.
func (d *jsonText) fill(o object, m member, base string) []byte {
	at := o.start + 1 + len(bytes.TrimRight(d.data[o.start+1:o.end-1], blanks))
	root := d.path[0]
	if o.start != root.start && !bytes.ContainsRune(d.data[root.start:root.end], '\n') {
		return apply(d.data, edit{at, at, d.layout.pairs(members{m})})
	}
	indent := base + d.layout.unit
	text := d.layout.newline + indent + string(d.layout.member(m, indent))
	if !bytes.ContainsRune(d.data[at:o.end-1], '\n') {
		text += d.layout.newline + base
	}
	return apply(d.data, edit{at, at, text})
}

func (d *jsonText) replace(entry any) ([]byte, error) {
	m := d.last().Members[d.index]
	text := []byte(d.layout.inline(entry))
	if bytes.ContainsRune(d.data[m.Value.StartOffset:m.Value.EndOffset], '\n') || d.ownLine(m.Name.StartOffset) {
		text = d.layout.value(entry, lineIndent(d.data, m.Name.StartOffset))
	}
	return apply(d.data, edit{m.Value.StartOffset, m.Value.EndOffset, string(text)}), nil
}

// ownLine reports whether nothing but white space is before an offset in its line.
func (d *jsonText) ownLine(offset int) bool {
	begin := bytes.LastIndexByte(d.data[:offset], '\n')
	return begin >= 0 && len(bytes.Trim(d.data[begin:offset], blanks)) == 0
}

func (d *jsonText) remove() ([][]byte, error) {
	texts := [][]byte{d.cut(d.last(), d.index)}
	for i := len(d.path) - 1; i > 0 && len(d.path[i].Members) == 1; i-- {
		texts = append([][]byte{d.cut(d.path[i-1], d.path[i].index)}, texts...)
	}
	return texts, nil
}

// cut takes a member out: the white space before it, and the comma that is then too many. Comments stay.
func (d *jsonText) cut(o object, i int) []byte {
	m, from, comma := o.Members[i], o.start+1, -1
	if i > 0 {
		previous := o.Members[i-1].Value
		comma = previous.EndOffset + len(previous.AfterExtra)
		from = comma + 1
	}
	from += len(bytes.TrimRight(d.data[from:m.Name.StartOffset], blanks))
	own := m.Value.EndOffset + len(m.Value.AfterExtra)
	switch {
	case i < len(o.Members)-1 || m.Value.AfterExtra != nil:
		if len(o.Members) == 1 && len(bytes.Trim(d.data[own+1:o.end-1], blanks)) == 0 && from == o.start+1 {
			return apply(d.data, edit{from, o.end - 1, ""})
		}
		return apply(d.data, edit{from, m.Value.EndOffset, ""}, edit{own, own + 1, ""})
	case i > 0:
		return apply(d.data, edit{comma, comma + 1, ""}, edit{from, m.Value.EndOffset, ""})
	case from == o.start+1 && len(bytes.Trim(d.data[m.Value.EndOffset:o.end-1], blanks)) == 0:
		return apply(d.data, edit{from, o.end - 1, ""})
	}
	return apply(d.data, edit{from, m.Value.EndOffset, ""})
}

func (d *jsonText) others() any {
	return without(d.value, slices.Concat(d.at.keys, []string{d.at.name}))
}

// without gives a copy of a tree that lacks what lies at a path, and the maps on the way that hold nothing else.
func without(tree any, path []string) any {
	table, isTable := tree.(map[string]any)
	if len(path) == 0 || !isTable {
		return nil
	}
	table = maps.Clone(table)
	delete(table, path[0])
	if inner := without(tree.(map[string]any)[path[0]], path[1:]); inner != nil {
		table[path[0]] = inner
	}
	if len(table) == 0 {
		return nil
	}
	return table
}

// layout is how a document is written.
type layout struct{ unit, newline string }

// value writes a value whose line has this indent.
func (l layout) value(v any, indent string) []byte {
	fields, isObject := v.(members)
	if !isObject {
		return []byte(l.inline(v))
	}
	var b bytes.Buffer
	b.WriteString("{")
	for i, m := range fields {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(l.newline + indent + l.unit)
		b.Write(l.member(m, indent+l.unit))
	}
	b.WriteString(l.newline + indent + "}")
	return b.Bytes()
}

func (l layout) member(m member, indent string) []byte {
	return append([]byte(quote(m.key)+": "), l.value(m.value, indent)...)
}

// inline writes a value on one line.
func (l layout) inline(v any) string {
	switch x := v.(type) {
	case verbatim:
		return string(x)
	case members:
		return "{" + l.pairs(x) + "}"
	case []string:
		parts := make([]string, len(x))
		for i, s := range x {
			parts[i] = quote(s)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return quote(x)
	}
	return fmt.Sprint(v)
}

// pairs writes members on one line, without braces.
func (l layout) pairs(fields members) string {
	parts := make([]string, len(fields))
	for i, m := range fields {
		parts[i] = quote(m.key) + ": " + l.inline(m.value)
	}
	return strings.Join(parts, ", ")
}

// quote writes a JSON string, which is a basic string of TOML too.
func quote(s string) string { return string(hujson.String(s)) }

// syntaxFault finds the place in an error of hujson: "hujson: line 1, column 2: …".
func syntaxFault(data []byte, err error) error {
	f := &fault{what: err.Error()}
	if n, _ := fmt.Sscanf(f.what, "hujson: line %d, column %d:", &f.line, &f.column); n == 2 {
		_, f.what, _ = strings.Cut(f.what, fmt.Sprintf("column %d: ", f.column))
	} else {
		f.line, f.column = place(data, len(data))
	}
	return f
}

// strictFault says where a text stops to be JSON proper.
func strictFault(data []byte, err error) error {
	f := &fault{what: "a comment or a trailing comma, which this client can't read"}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		f.line, f.column = place(data, int(syntax.Offset)-1)
	}
	return f
}
