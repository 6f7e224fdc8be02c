package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/trainwright/trainwright/internal/finding"
)

// maxFile bounds a policy file, in bytes.
const maxFile = 1 << 20

// document is one file, read along its nodes, so that every finding has its line. refused gathers what makes the file
// unusable.
type document struct {
	path    string
	root    *yaml.Node
	found   []finding.Finding
	refused []finding.Finding
}

// readDocument parses a file; nil where there is none.
func readDocument(path string) (*document, error) {
	d := &document{path: path}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	switch {
	case err != nil:
		d.refuse(nil, "it can't be looked up: "+err.Error(), "a file that can be read")
	case !info.Mode().IsRegular():
		d.refuse(nil, "it is no regular file", "a YAML file")
	case info.Size() > maxFile:
		d.refuse(nil, fmt.Sprintf("it has %d bytes", info.Size()), fmt.Sprintf("at most %d", maxFile))
	default:
		d.parse()
	}
	return d, d.refusal()
}

func (d *document) parse() {
	defer func() { // the parser is known to panic on some malformed input
		if p := recover(); p != nil {
			d.refuse(nil, "it can't be read as YAML", "a YAML mapping")
		}
	}()
	file, err := os.Open(d.path)
	if err != nil {
		d.refuse(nil, "it can't be opened: "+err.Error(), "a file that can be read")
		return
	}
	defer file.Close()
	decoder := yaml.NewDecoder(io.LimitReader(file, maxFile))
	var node, second yaml.Node
	if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
		return // empty
	} else if err != nil {
		d.syntax(err)
		return
	}
	if err := decoder.Decode(&second); err == nil {
		d.refuse(&second, "a second document begins here", "one document")
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err)
	}
	if len(node.Content) == 1 && node.Content[0].Tag != "!!null" {
		d.root = node.Content[0]
	}
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

func (d *document) syntax(err error) {
	at := &yaml.Node{}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		at.Line, _ = strconv.Atoi(m[1])
	}
	d.refuse(at, "it is not YAML: "+yamlLine.ReplaceAllString(err.Error(), ""), "a YAML mapping")
}

func (d *document) where(at *yaml.Node, field string) *finding.Where {
	w := &finding.Where{Path: d.path, Field: field}
	if at != nil {
		w.Line = at.Line
	}
	return w
}

func (d *document) refuse(at *yaml.Node, what, expected string) {
	d.refused = append(d.refused, finding.Finding{Code: "policy_unreadable", Severity: finding.Error, What: what, Where: d.where(at, ""), Expected: expected,
		Remedy: "repair the file, or have the user remove it; nothing is allowed while it can't be read"})
}

func (d *document) refusal() error {
	if len(d.refused) > 0 {
		return finding.Refuse(d.refused...)
	}
	return nil
}

// value tells of a value that can't be used; the strictest reading holds.
func (d *document) value(at *yaml.Node, field, what, expected string) {
	d.found = append(d.found, finding.Finding{Code: "policy_value_unknown", Severity: finding.Error, What: what, Where: d.where(at, field), Expected: expected,
		Remedy: "correct the value; until then the strictest reading holds"})
}

// entry is a key of a mapping with its value.
type entry struct {
	name       string
	key, value *yaml.Node
}

// entries reads a mapping whose keys are among valid, nil for any. A key twice is refused: which one was meant can't be
// known. Aliases are followed once, since no shape here is deeper than the file says.
func (d *document) entries(node *yaml.Node, field string, valid []string) []entry {
	node = follow(node)
	if node == nil || node.Tag == "!!null" {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		d.refuse(node, fmt.Sprintf("%s is no mapping", name(field)), "keys and values")
		return nil
	}
	var list []entry
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yaml.ScalarNode {
			d.refuse(key, "a key is no text", "names")
			continue
		}
		if seen[key.Value] {
			d.refuse(key, fmt.Sprintf("the key %.60q stands twice in %s", key.Value, name(field)), "each key once")
			continue
		}
		seen[key.Value] = true
		if valid != nil && !slices.Contains(valid, key.Value) {
			f := finding.Finding{Code: "policy_key_unknown", Severity: finding.Warning, What: fmt.Sprintf("there is no key %.60q in %s; it is ignored", key.Value, name(field)),
				Where: d.where(key, join(field, key.Value)), Expected: "one of " + strings.Join(valid, ", "), Remedy: "remove it"}
			if near := finding.Nearest(key.Value, valid); near != "" {
				f.Remedy = fmt.Sprintf("did you mean %q?", near)
			}
			d.found = append(d.found, f)
			continue
		}
		list = append(list, entry{key.Value, key, follow(node.Content[i+1])})
	}
	return list
}

func follow(node *yaml.Node) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func name(field string) string {
	if field == "" {
		return "the file"
	}
	return field
}

func join(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}

// text reads a scalar as it is written.
func (d *document) text(node *yaml.Node, field string) (string, bool) {
	if node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		d.value(node, field, field+" is no text", "a text")
		return "", false
	}
	return node.Value, true
}

// texts reads a list of texts; one text alone is a list of it.
func (d *document) texts(node *yaml.Node, field string) (nodes []*yaml.Node) {
	switch {
	case node.Tag == "!!null":
	case node.Kind == yaml.ScalarNode:
		return []*yaml.Node{node}
	case node.Kind == yaml.SequenceNode:
		for _, item := range node.Content {
			if item = follow(item); item.Kind == yaml.ScalarNode && item.Tag != "!!null" {
				nodes = append(nodes, item)
				continue
			}
			d.value(item, field, "an entry of "+field+" is no text", "a list of texts (a bare ~ means nothing in YAML)")
		}
	default:
		d.value(node, field, field+" is no list", "a list of texts")
	}
	return nodes
}

// decision reads ask, yes or no, and the spellings of a truth value. Anything else is no.
func (d *document) decision(node *yaml.Node, field string) Decision {
	if node.Kind == yaml.ScalarNode {
		switch strings.ToLower(strings.TrimSpace(node.Value)) {
		case "yes", "true", "on":
			return Yes
		case "ask":
			return Ask
		case "no", "false", "off":
			return No
		}
	}
	d.value(node, field, fmt.Sprintf("%s is %.40q, which counts as no", field, node.Value), "ask, yes or no")
	return No
}

// truth reads true or false; anything else is false.
func (d *document) truth(node *yaml.Node, field string) bool {
	if node.Kind == yaml.ScalarNode {
		switch strings.ToLower(node.Value) {
		case "yes", "true", "on":
			return true
		case "no", "false", "off":
			return false
		}
	}
	d.value(node, field, fmt.Sprintf("%s is %.40q, which counts as false", field, node.Value), "true or false")
	return false
}

// hours reads a number of hours; one that is none counts as 0.
func (d *document) hours(node *yaml.Node, field string) *float64 {
	hours, err := strconv.ParseFloat(node.Value, 64)
	if node.Kind != yaml.ScalarNode || err != nil || math.IsNaN(hours) || math.IsInf(hours, 0) || hours < 0 {
		d.value(node, field, fmt.Sprintf("%s is %.40q, which counts as 0", field, node.Value), "hours, 0 or more")
		hours = 0
	}
	return &hours
}
