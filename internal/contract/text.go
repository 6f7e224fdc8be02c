package contract

import (
	"encoding/json"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// maxQuoting bounds how often text may hold text that holds the value: a model may quote its JSON twice.
const maxQuoting = 3

// parse brings whatever Decode was given into a tree.
func parse(raw any, out *findings) (any, error) {
	switch x := raw.(type) {
	case []byte:
		return parseText(string(x), out, 0, maxDepth)
	case json.RawMessage:
		return parseText(string(x), out, 0, maxDepth)
	case string:
		return parseText(x, out, 0, maxDepth)
	}
	return treeOf(raw)
}

// parseText reads text as JSON where it looks like JSON, and as YAML otherwise. Text that JSON refuses may still be a
// YAML flow mapping; where neither reads it, the error is of the notation that it looks most like.
func parseText(text string, out *findings, quoting, depth int) (any, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	trimmed := strings.TrimSpace(text)
	if fenced, ok := insideFence(trimmed); ok {
		text, trimmed = fenced, strings.TrimSpace(fenced)
	}
	if trimmed == "" {
		return nil, nil
	}
	if !strings.ContainsAny(trimmed[:1], `{["`) {
		return parseYAML(text, depth)
	}
	seen := &findings{}
	tree, err := parseJSON(text, seen, depth)
	if err != nil && isTooDeep(err) {
		return nil, err
	}
	if err != nil {
		tree, yamlErr := parseYAML(text, depth)
		switch {
		case yamlErr == nil:
			return tree, nil
		case looksLikeJSON(trimmed):
			return nil, err
		}
		return nil, yamlErr
	}
	for _, f := range seen.list {
		out.add(f)
	}
	if inner, ok := tree.(string); ok && quoting < maxQuoting {
		return parseText(inner, out, quoting+1, depth)
	}
	return tree, nil
}

func isTooDeep(err error) bool {
	refused, ok := err.(*finding.Refused)
	return ok && refused.Findings[0].Code == "too_deep"
}

// insideFence returns what stands inside a Markdown code fence that encloses the whole text.
func insideFence(text string) (string, bool) {
	body, ok := strings.CutPrefix(text, "```")
	if !ok {
		return "", false
	}
	body, ok = strings.CutSuffix(body, "```")
	language, rest, newline := strings.Cut(body, "\n")
	if !ok || !newline || strings.ContainsAny(language, "{[: ") {
		return "", false
	}
	return rest, true
}

// looksLikeJSON reports whether the first name or value is written as JSON writes it.
func looksLikeJSON(trimmed string) bool {
	rest := strings.TrimLeft(trimmed[1:], " \t\r\n")
	return trimmed[0] == '"' || rest == "" || strings.ContainsAny(rest[:1], `"{[]}`)
}

// objectIn returns the object that text holds as JSON or YAML, nil where it holds something else. An error is of text
// that was meant to be one and is malformed.
func objectIn(text string) (map[string]any, error) {
	if !strings.ContainsAny(text, ":{") {
		return nil, nil
	}
	tree, err := parseText(text, &findings{}, 0, textDepth)
	object, _ := tree.(map[string]any)
	return object, err
}
