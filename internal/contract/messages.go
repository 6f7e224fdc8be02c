package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/trainwright/trainwright/internal/finding"
)

const (
	maxFindings  = 50  // findings told of input that is wrong everywhere
	maxShort     = 80  // bytes of a quoted value
	maxSuggested = 200 // names in an object for which misspellings are still looked for
)

// findings collects what decoding noticed, up to maxFindings, and counts the rest.
type findings struct {
	list   []finding.Finding
	errors []finding.Finding
	more   int
}

func (c *findings) add(f finding.Finding) {
	switch {
	case f.Severity == finding.Error && len(c.errors) < maxFindings:
		c.errors = append(c.errors, f)
	case f.Severity == finding.Error || len(c.list)-len(c.errors) >= maxFindings:
		c.more++
		return
	}
	c.list = append(c.list, f)
}

// result returns everything, and the errors among it as a Refused where there are any.
func (c *findings) result() ([]finding.Finding, error) {
	list := c.list
	if c.more > 0 {
		list = append(slices.Clip(list), finding.Finding{
			Code: "more_findings", Severity: finding.Note,
			What: fmt.Sprintf("%d more findings are not shown", c.more), Remedy: "mend the ones shown and send again",
		})
	}
	if len(c.errors) > 0 {
		return list, finding.Refuse(c.errors...)
	}
	return list, nil
}

// take adds the findings of a refused parse and reports whether err was one.
func (c *findings) take(err error, path string) bool {
	refused, ok := err.(*finding.Refused)
	if !ok {
		return false
	}
	for _, f := range refused.Findings {
		if f.Where != nil && path != "" {
			where := *f.Where
			where.Path, where.Field = "", path
			f.Where = &where
		}
		c.add(f)
	}
	return true
}

// wrongType is the finding of a value that can't be read as what the field holds.
func wrongType(path string, got any, expected, example string) finding.Finding {
	return finding.Finding{
		Code: "wrong_type", Severity: finding.Error,
		What:     fmt.Sprintf("%s is %s: %s", orInput(path), kindOf(got), short(got)),
		Where:    &finding.Where{Field: path},
		Expected: expected,
		Remedy:   "send e.g. " + example,
	}
}

func orInput(path string) string {
	if path == "" {
		return "the input"
	}
	return path
}

// unknownValue is the finding of a value outside an enum; the nearest allowed one comes first.
func unknownValue(path, got string, allowed []string) finding.Finding {
	ranked := nearest(foldName(cut(got)), allowed)
	return finding.Finding{
		Code: "unknown_value", Severity: finding.Error,
		What:     fmt.Sprintf("%s is %s, which it can't be", path, short(got)),
		Where:    &finding.Where{Field: path},
		Expected: "one of " + strings.Join(allowed, ", "),
		Remedy:   fmt.Sprintf("send e.g. %s, or leave the field out", example(path, strconv.Quote(ranked[0]))),
	}
}

// example shows a field as it would be sent.
func example(path, value string) string {
	name := path[strings.LastIndexByte(path, '.')+1:]
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return value
	}
	return strconv.Quote(name) + ": " + value
}

func kindOf(tree any) string {
	switch tree.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "text"
	case json.Number, spelled, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("a %T", tree)
}

// short shows a value in at most about maxShort bytes; it never renders more of a large one than that.
func short(tree any) string {
	var b strings.Builder
	writeShort(&b, tree)
	if text := b.String(); len(text) > maxShort {
		return cut(text) + "…"
	}
	return b.String()
}

func writeShort(b *strings.Builder, tree any) {
	if b.Len() > maxShort {
		return
	}
	switch x := tree.(type) {
	case string:
		b.WriteString(strconv.Quote(cut(x)))
		if len(x) > maxShort {
			fmt.Fprintf(b, "… (%d bytes)", len(x))
		}
	case spelled:
		b.WriteString(cut(x.text))
	case json.Number:
		b.WriteString(cut(string(x)))
	case []any:
		b.WriteByte('[')
		for i, item := range x {
			if b.Len() > maxShort {
				break
			}
			if i > 0 {
				b.WriteString(", ")
			}
			writeShort(b, item)
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, key := range smallestKeys(x) {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(strconv.Quote(cut(key)) + ": ")
			writeShort(b, x[key])
		}
		b.WriteByte('}')
	default:
		b.WriteString(cut(fmt.Sprint(x)))
	}
}

// smallestKeys returns the first keys in order, as many as can be shown.
func smallestKeys(object map[string]any) []string {
	keys := slices.Sorted(maps.Keys(object))
	return keys[:min(len(keys), maxShort/4)]
}

// cut shortens text to maxShort bytes without breaking a character.
func cut(text string) string {
	if len(text) <= maxShort {
		return text
	}
	end := maxShort
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// nearest sorts names by edit distance to name, nearest first.
func nearest(name string, names []string) []string {
	ranked := slices.Clone(names)
	distances := make(map[string]int, len(names))
	for _, n := range names {
		distances[n] = finding.Distance(cut(name), cut(n))
	}
	slices.SortStableFunc(ranked, func(a, b string) int { return distances[a] - distances[b] })
	return ranked
}

// near reports whether candidate looks like what name was meant to be: misspelled, or shortened behind its first word.
func near(name, candidate string) bool {
	name, candidate = foldName(cut(name)), foldName(cut(candidate))
	shorter, longer := min(len(name), len(candidate)), max(len(name), len(candidate))
	most := max(1, shorter/5)
	return longer-shorter <= most && edits(name, candidate) <= most || shortens(name, candidate)
}

// edits is the distance of two names in which two swapped neighbours count once.
func edits(name, candidate string) int {
	least := finding.Distance(name, candidate)
	for i := 0; i+1 < len(name); i++ {
		pair := name[i+1:i+2] + name[i:i+1]
		if strings.Contains(candidate, pair) {
			least = min(least, 1+finding.Distance(name[:i]+pair+name[i+2:], candidate))
		}
	}
	return least
}

// shortens reports whether name is candidate with letters left out behind the first word: train_src for train_source. One
// letter is no abbreviation.
func shortens(name, candidate string) bool {
	first, short, ok := strings.Cut(name, "_")
	word, long, both := strings.Cut(candidate, "_")
	if !ok || !both || first != word || len(short) < 2 {
		return false
	}
	for i := range len(short) {
		at := strings.IndexByte(long, short[i])
		if at < 0 {
			return false
		}
		long = long[at+1:]
	}
	return true
}

// join extends a dotted path; names are cut so that a message stays short.
func join(path, name string) string {
	name = cut(name)
	if path == "" {
		return name
	}
	return path + "." + name
}
