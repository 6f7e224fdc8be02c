package tools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trainwright/trainwright/internal/finding"
)

// maxResult is the longest structured result in bytes of JSON. Clients put away what is above about 50,000 characters
// and show a 2 KB preview instead, so that an agent would not even learn that something is missing.
const maxResult = 40_000

// smallest is the size below which a list or text is not worth cutting.
const smallest = 256

// protected are the fields that are never cut: half a call can't be made, and half a verdict misleads.
var protected = []string{"run", "next_call", "execution_result.status", "execution_result.skill"}

// cut is one shortened field.
type cut struct {
	field       string
	shown, from int
	unit        string
}

// Fit marshals a result and, when it is longer than maxResult, shortens its largest lists and texts until it fits. What
// was cut, how much of it, and the way to the rest is told in a finding of code result_cut. A result that fits is left
// as it is.
func Fit(structured any, rest string) (any, error) {
	encoded, err := marshal(structured)
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	if len(encoded) <= maxResult {
		return json.RawMessage(encoded), nil
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var root map[string]any
	if err := decoder.Decode(&root); err != nil {
		return nil, fmt.Errorf("a result must be a JSON object: %w", err)
	}
	cuts := map[string]cut{}
	const room = 2000 // for the finding itself
	over := size(root) - (maxResult - room)
	const turns = 40
	for turn := 0; turn < turns && over > 0; turn++ {
		largest := largestPart(root, "")
		if largest == nil || largest.bytes < over/turns {
			break // so many small parts that shortening them one by one would not end
		}
		c := largest.shorten(over)
		if earlier, ok := cuts[c.field]; ok {
			c.from = earlier.from
		}
		cuts[c.field] = c
		over = size(root) - (maxResult - room)
	}
	dropFields(root, over, cuts)
	addCutFinding(root, cuts, rest)
	return root, nil
}

// dropFields leaves out whole fields at the root, largest first, where shortening was not enough.
func dropFields(root map[string]any, over int, cuts map[string]cut) {
	if over <= 0 {
		return
	}
	sizes := map[string]int{}
	for key, v := range root {
		if !slices.Contains(protected, key) {
			sizes[key] = size(v) + len(key) + 4
		}
	}
	keys := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), strings.Compare(a, b))
	})
	for _, key := range keys {
		if over <= 0 {
			return
		}
		over -= sizes[key]
		delete(root, key)
		cuts[key] = cut{key, 0, 1, "fields"}
	}
}

func addCutFinding(root map[string]any, cuts map[string]cut, rest string) {
	if len(cuts) == 0 {
		return
	}
	said := make([]string, 0, len(cuts))
	for _, c := range cuts {
		said = append(said, fmt.Sprintf("%s: the first %d of %d %s", c.field, c.shown, c.from, c.unit))
	}
	slices.Sort(said)
	if len(said) > 8 {
		said = append(said[:8], fmt.Sprintf("and %d more fields", len(said)-8))
	}
	f := finding.Finding{Code: "result_cut", Severity: finding.Note, What: "the result was too long and is cut: " + strings.Join(said, "; "), Remedy: rest}
	list, _ := root["findings"].([]any)
	root["findings"] = append(list, f)
}

// part is a list or a text somewhere in a result, with the way to put a shorter one in its place.
type part struct {
	field string
	bytes int
	list  []any
	text  string
	put   func(any)
}

// largestPart finds the list or text of most bytes whose own parts are each small, so that a long list loses
// elements while a list of one long text loses text. nil when nothing is worth cutting.
func largestPart(v any, field string) *part {
	var best *part
	consider := func(p *part) {
		if p != nil && p.bytes >= smallest && (best == nil || p.bytes > best.bytes) {
			best = p
		}
	}
	descend := func(child any, name string, put func(any)) {
		if slices.Contains(protected, name) {
			return
		}
		switch c := child.(type) {
		case string:
			consider(&part{field: name, bytes: size(c), text: c, put: put})
		case []any:
			inner := largestPart(c, name)
			if whole := size(c); inner != nil && (len(c) == 1 || inner.bytes > whole/2) {
				consider(inner)
			} else if len(c) > 1 {
				consider(&part{field: name, bytes: whole, list: c, put: put})
			}
		case map[string]any:
			consider(largestPart(c, name))
		}
	}
	switch x := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			child := x[key]
			descend(child, strings.TrimPrefix(field+"."+key, "."), func(n any) { x[key] = n })
		}
	case []any:
		for i, child := range x {
			descend(child, fmt.Sprintf("%s[%d]", field, i), func(n any) { x[i] = n })
		}
	}
	return best
}

// shorten takes about over bytes away, at least a sixteenth, so that the loop ends.
func (p *part) shorten(over int) cut {
	keep := float64(max(0, p.bytes-max(over, p.bytes/16))) / float64(p.bytes)
	if p.list != nil {
		n := max(1, min(int(keep*float64(len(p.list))), len(p.list)-1))
		p.put(p.list[:n])
		return cut{p.field, n, len(p.list), "entries"}
	}
	runes := utf8.RuneCountInString(p.text)
	n := max(smallest/4, min(int(keep*float64(runes)), runes-1))
	p.put(string([]rune(p.text)[:n]))
	return cut{p.field, n, runes, "characters"}
}

func size(v any) int {
	encoded, err := marshal(v)
	if err != nil {
		return 0
	}
	return len(encoded)
}

// marshal encodes without HTML escaping, as everything trainwright writes.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
