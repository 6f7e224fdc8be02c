package project

import (
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// readTOML walks the expressions of a TOML file: tables, arrays of tables and keys with their values.
func (r *configReader) readTOML() {
	src := []byte(r.src)
	var whole map[string]any
	if err := toml.Unmarshal(src, &whole); err != nil {
		at := 0
		if broken, ok := err.(*toml.DecodeError); ok {
			line, column := broken.Position()
			at = min(r.lines[min(max(line, 1), len(r.lines))-1]+max(column-1, 0), len(r.src))
		}
		r.malformed(at, err.Error())
		return
	}
	parser := unstable.Parser{}
	parser.Reset(src)
	prefix, elements := "", map[string]int{}
	for parser.NextExpression() {
		e := parser.Expression()
		switch e.Kind {
		case unstable.Table:
			prefix = tomlKey(e)
		case unstable.ArrayTable:
			name := tomlKey(e)
			prefix = joinKey(name, strconv.Itoa(elements[name]))
			elements[name]++
		case unstable.KeyValue:
			r.tomlPair(prefix, e)
		}
	}
}

func tomlKey(n *unstable.Node) string {
	var parts []string
	for it := n.Key(); it.Next(); {
		parts = append(parts, string(it.Node().Data))
	}
	return strings.Join(parts, ".")
}

// tomlPair takes a key with its value; an inline table is walked.
func (r *configReader) tomlPair(prefix string, e *unstable.Node) {
	key, value := joinKey(prefix, tomlKey(e)), e.Value()
	if value.Kind == unstable.InlineTable {
		for it := value.Children(); it.Next(); {
			r.tomlPair(key, it.Node())
		}
		return
	}
	start := -1
	for it := e.Key(); it.Next() && start < 0; {
		start = int(it.Node().Raw.Offset)
	}
	end := start + strings.IndexByte(r.src[start:]+"\n", '\n') // a quote is one line
	text := strings.TrimRight(r.src[start:end], " \t\r,}")
	found, ok := tomlValue(value)
	if !ok || start < 0 {
		return
	}
	r.add(key, found, start, start+len(text))
}

// tomlValue is a scalar, or a list of scalars.
func tomlValue(n *unstable.Node) (any, bool) {
	switch n.Kind {
	case unstable.String:
		return string(n.Data), true
	case unstable.Bool:
		return string(n.Data) == "true", true
	case unstable.Integer, unstable.Float:
		var v struct{ V any }
		if toml.Unmarshal([]byte("V = "+string(n.Data)), &v) != nil {
			return nil, false
		}
		if f, isFloat := v.V.(float64); isFloat {
			return finite(f), true
		}
		return v.V, true
	case unstable.DateTime, unstable.LocalDate, unstable.LocalDateTime, unstable.LocalTime:
		return string(n.Data), true
	case unstable.Array:
		list := []any{}
		for it := n.Children(); it.Next(); {
			v, ok := tomlValue(it.Node())
			if !ok {
				return nil, false
			}
			list = append(list, v)
		}
		return list, true
	}
	return nil, false
}
