package project

import (
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// readYAML walks the nodes of every document in the file.
func (r *configReader) readYAML() {
	decoder := yaml.NewDecoder(strings.NewReader(r.src))
	for document := 0; ; document++ {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			line, message := yamlFault(err)
			r.malformed(r.lines[min(line, len(r.lines))-1], message)
			return
		}
		prefix := ""
		if document > 0 {
			prefix = strconv.Itoa(document)
		}
		if len(root.Content) == 1 && root.Content[0].Kind == yaml.MappingNode {
			r.mapping(prefix, root.Content[0], 0, nil)
		}
	}
}

var (
	yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)
	// yamlParserFault tells the messages of yaml.v3's parser from those of its scanner: only for the latter does the
	// library add the one that makes its line count from 1 (yaml.v3 decode.go, parser.fail).
	yamlParserFault = regexp.MustCompile(`did not find expected (',' or|key|'-'|node content|<)`)
)

// yamlFault returns the physical line a yaml.v3 error speaks of and its message. A message without a line means the first.
func yamlFault(err error) (line int, message string) {
	message = strings.TrimPrefix(err.Error(), "yaml: ")
	m := yamlLine.FindStringSubmatch(message)
	if m == nil {
		return 1, message
	}
	line, _ = strconv.Atoi(m[1])
	message = strings.TrimPrefix(message, m[0])
	if yamlParserFault.MatchString(message) {
		line++
	}
	return line, message
}

// mapping takes the pairs of a mapping; keys in own (set by the mapping that merges this one) are left out.
func (r *configReader) mapping(prefix string, node *yaml.Node, depth int, own map[string]bool) {
	if depth > maxConfigDepth || r.full {
		r.full = true
		return
	}
	keys := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Tag == "!!merge" || own[key.Value] {
			continue
		}
		keys[key.Value] = true
		r.value(joinKey(prefix, key.Value), key, value, depth+1)
	}
	for name := range own {
		keys[name] = true
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Tag == "!!merge" {
			r.merge(prefix, node.Content[i+1], depth+1, keys)
		}
	}
}

// merge takes what "<<: *base" brings in; its places are where base is written. Of several bases the first one counts.
func (r *configReader) merge(prefix string, node *yaml.Node, depth int, keys map[string]bool) {
	switch base := resolved(node); base.Kind {
	case yaml.MappingNode:
		r.mapping(prefix, base, depth, keys)
		for i := 0; i+1 < len(base.Content); i += 2 {
			keys[base.Content[i].Value] = true
		}
	case yaml.SequenceNode:
		for _, element := range base.Content {
			if depth <= maxConfigDepth {
				r.merge(prefix, element, depth+1, keys)
			}
		}
	}
}

func resolved(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode && node.Alias != nil {
		node = node.Alias
	}
	return node
}

func (r *configReader) value(name string, key, node *yaml.Node, depth int) {
	node = resolved(node)
	switch node.Kind {
	case yaml.MappingNode:
		r.mapping(name, node, depth, nil)
	case yaml.SequenceNode:
		values, nested := []any{}, false
		for i, element := range node.Content {
			element = resolved(element)
			if element.Kind == yaml.ScalarNode {
				values = append(values, r.scalar(element))
				continue
			}
			nested = true
			if depth > maxConfigDepth {
				r.full = true
				return
			}
			r.value(joinKey(name, strconv.Itoa(i)), element, element, depth+1)
		}
		if !nested {
			r.leaf(name, values, key, node)
		}
	case yaml.ScalarNode:
		r.leaf(name, r.scalar(node), key, node)
		if at, known := r.index[name]; known && node.Tag == "!include" {
			r.values[at].Include, r.values[at].Value = true, node.Value
		}
	}
}

// leaf adds a value with the text from its key to the end of the last line it is written on.
func (r *configReader) leaf(name string, value any, key, node *yaml.Node) {
	start := r.offset(key)
	last := max(key.Line, lastLine(node))
	if node.Line < key.Line { // an alias: its own line says where it comes from
		last = key.Line
	}
	end := len(r.src)
	if last < len(r.lines) {
		end = r.lines[last]
	}
	if first := strings.IndexAny(r.src[start:end], "\r\n"); last == key.Line && first >= 0 {
		end = start + first
	}
	for end > start && strings.IndexByte(" \t\r\n", r.src[end-1]) >= 0 {
		end--
	}
	r.add(name, value, start, end)
}

// lastLine is the last line a node's own text reaches; a block scalar's lines are counted from its value.
func lastLine(node *yaml.Node) int {
	line := node.Line
	if node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		line += strings.Count(strings.TrimRight(node.Value, "\n"), "\n") + 1
	}
	for _, child := range node.Content {
		if child.Kind != yaml.AliasNode {
			line = max(line, lastLine(child))
		}
	}
	return line
}

// offset turns a node's line and column (characters, from 1) into a byte.
func (r *configReader) offset(node *yaml.Node) int {
	if node.Line < 1 || node.Line > len(r.lines) {
		return 0
	}
	at := r.lines[node.Line-1]
	if node.Line == 1 && strings.HasPrefix(r.src, "\ufeff") {
		at += len("\ufeff")
	}
	for range node.Column - 1 {
		if at < len(r.src) {
			at++
			for at < len(r.src) && r.src[at]&0xC0 == 0x80 {
				at++
			}
		}
	}
	return at
}

// textNumber is what YAML 1.2 and a reader take for a number while PyYAML, which follows YAML 1.1 and wants a dot and a
// signed exponent, makes it a text.
var textNumber = regexp.MustCompile(`^[-+]?([0-9]+[eE][-+]?[0-9]+|[0-9]*\.[0-9]+[eE][0-9]+)$`)

var yamlBools = map[string]bool{"yes": true, "on": true, "no": false, "off": false}

// scalar reads a scalar as Python's loaders do, except for a number that PyYAML would take for a text: that is a trap.
func (r *configReader) scalar(node *yaml.Node) any {
	if node.Style == 0 {
		if b, ok := yamlBools[strings.ToLower(node.Value)]; ok && node.Tag == "!!str" {
			return b
		}
		if textNumber.MatchString(node.Value) {
			at := r.offset(node)
			r.traps = append(r.traps, Trap{TrapYAMLText, "PyYAML reads " + node.Value + " as a text; write it with a dot and a signed exponent, such as 1.0e-3",
				Place{r.path, node.Line, at, min(at+len(node.Value), len(r.src))}})
		}
	}
	var value any
	if err := node.Decode(&value); err != nil {
		return node.Value
	}
	switch n := value.(type) {
	case nil, bool, string:
		return value
	case int:
		return int64(n)
	case int64:
		return n
	case float64:
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return node.Value
		}
		return n
	}
	return node.Value // dates, unsigned numbers beyond int64, binary
}
