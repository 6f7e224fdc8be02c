package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
	"gopkg.in/yaml.v3"
)

// minExpansion is the size in bytes that aliases may always expand to; beyond it, to four times the text.
const minExpansion = 4 << 20

// yamlReader turns yaml nodes into a tree. Nodes are walked by hand, since yaml's own decoding loses the text of numbers
// and dates: a commit hash 0012345 and a date 2020-01-01 must reach a string field as they were written.
type yamlReader struct {
	text   string
	depth  int // how deep the text may nest
	size   int // bytes of the tree that came through aliases
	active map[*yaml.Node]bool
}

// parseYAML parses one YAML document; an error is a *finding.Refused with its line.
func parseYAML(text string, depth int) (tree any, err error) {
	r := &yamlReader{text: text, depth: depth, active: map[*yaml.Node]bool{}}
	defer func() { // the parser is known to panic on some malformed input
		if p := recover(); p != nil {
			tree, err = nil, r.refuse(0, "the text can't be read as YAML")
		}
	}()
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var document, second yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, r.syntax(err)
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, r.refuse(second.Line, "a second document begins here")
	} else if !errors.Is(err, io.EOF) {
		return nil, r.syntax(err)
	}
	return r.node(&document, 0)
}

var (
	yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	// What the library's parser says, unlike its scanner, it says with a line counted from 0 (yaml.v3, decode.go, fail).
	yamlParser = regexp.MustCompile(`^did not find expected (<|node|'-'|key|',')`)
)

func (r *yamlReader) syntax(err error) error {
	what := err.Error()
	line := 0
	if at := yamlLine.FindStringSubmatch(what); at != nil {
		line, _ = strconv.Atoi(at[1])
		what = what[len(at[0]):]
	}
	if yamlParser.MatchString(what) {
		line++
	}
	return r.refuse(line, what)
}

func (r *yamlReader) refuse(line int, what string) error {
	return finding.Refuse(finding.Finding{
		Code: "malformed_yaml", Severity: finding.Error,
		What: "not YAML: " + cut(what), Where: &finding.Where{Path: "input", Line: max(line, 1)},
		Expected: "one YAML mapping, indented with spaces",
		Remedy:   "mend that line (quote text that contains ': ' or begins with a special sign), or send JSON",
	})
}

func (r *yamlReader) node(n *yaml.Node, depth int) (any, error) {
	if depth > r.depth {
		return nil, finding.Refuse(tooDeep(r.depth, n.Line, 0))
	}
	if len(r.active) > 0 {
		r.size += 16 + len(n.Value)
	}
	if r.size > max(minExpansion, 4*len(r.text)) {
		return nil, finding.Refuse(finding.Finding{
			Code: "excessive_aliases", Severity: finding.Error,
			What: "the YAML aliases expand to far more than was sent", Where: &finding.Where{Path: "input", Line: n.Line},
			Expected: "aliases that repeat a little", Remedy: "write the values out, or send JSON",
		})
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return r.node(n.Content[0], depth)
	case yaml.AliasNode:
		if r.active[n.Alias] {
			return nil, r.refuse(n.Line, "alias *"+n.Value+" contains itself")
		}
		r.active[n.Alias] = true
		defer delete(r.active, n.Alias)
		return r.node(n.Alias, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			tree, err := r.node(item, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, tree)
		}
		return list, nil
	case yaml.MappingNode:
		return r.mapping(n, depth)
	}
	return r.scalar(n), nil
}

// mapping reads a mapping. Keys are taken as their text; << merges what the mapping does not say itself.
func (r *yamlReader) mapping(n *yaml.Node, depth int) (any, error) {
	object := make(map[string]any, len(n.Content)/2)
	var merged []any
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return nil, r.refuse(key.Line, "a list or mapping stands where a name is meant")
		}
		value, err := r.node(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if _, twice := object[key.Value]; twice {
			return nil, r.refuse(key.Line, "the name "+short(key.Value)+" stands twice in one mapping")
		}
		object[key.Value] = value
	}
	for len(merged) > 0 {
		switch from := merged[0].(type) {
		case []any:
			merged = append(from[:len(from):len(from)], merged[1:]...)
			continue
		case map[string]any:
			for key, value := range from {
				if _, own := object[key]; !own {
					object[key] = value
				}
			}
		default:
			return nil, r.refuse(n.Line, "<< merges something that is no mapping")
		}
		merged = merged[1:]
	}
	return object, nil
}

// scalar reads a scalar by YAML's core schema; dates and custom tags stay text.
func (r *yamlReader) scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int", "!!float":
		return yamlNumber(n)
	}
	return n.Value
}

func yamlNumber(n *yaml.Node) any {
	if json.Valid([]byte(n.Value)) && n.Value != "" {
		return json.Number(n.Value)
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return n.Value
	}
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return n.Value
	}
	switch x := v.(type) {
	case float64:
		return spelled{numberTree(x).(json.Number), n.Value}
	case int, int64, uint64:
		return spelled{json.Number(fmt.Sprint(x)), n.Value}
	}
	return n.Value
}
