package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
)

// more is what a typed tool says of itself beside name, sentence and annotations.
type more[Out any] struct {
	toolset string
	// rest says how to get what a result leaves out when it is cut.
	rest string
	// text renders a result in a line or two for people.
	text func(Out) string
	// links names the resources that a result speaks of; nil for none.
	links func(Out) []Link
	// images are the pictures of a result; nil for none.
	images func(Out) []Image
	// schema replaces the output schema made of Out.
	schema Schema
}

// typedTool makes a tool of a typed function: the input schema comes from In, the output schema from Out. A schema that
// can't be made is a mistake in the program and panics.
func typedTool[In, Out any](name, sentence string, ann Annotations, fn func(context.Context, engine.Caller, In) (Out, error), m more[Out]) Tool {
	input := sync.OnceValue(func() json.RawMessage { return mustSchema(new(In)) })
	output := m.schema
	if output == nil {
		output = sync.OnceValue(func() json.RawMessage { return shallow(mustSchema(new(Out))) })
	}
	valid := argumentNames(reflect.TypeFor[In]())
	return Tool{
		Name: name, Title: title(name), Description: sentence, Annotations: ann, Toolset: m.toolset,
		InputSchema: input, OutputSchema: output,
		Call: func(ctx context.Context, caller engine.Caller, arguments json.RawMessage) (Result, error) {
			root, err := object(arguments)
			if err != nil {
				return Result{}, err
			}
			if err := knownNames(root, valid); err != nil {
				return Result{}, err
			}
			var in In
			if _, err := contract.Decode(root, &in); err != nil {
				return Result{}, err
			}
			out, err := fn(ctx, caller, in)
			if err != nil {
				return Result{}, err
			}
			result := Result{Text: m.text(out)}
			if m.links != nil {
				result.Links = m.links(out)
			}
			if m.images != nil {
				result.Images = m.images(out)
			}
			result.Structured, err = Fit(out, m.rest)
			return result, err
		},
	}
}

// title is the name as people read it: job_status is "Job status".
func title(name string) string {
	words := strings.ReplaceAll(name, "_", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}

// object reads the arguments of a call as a JSON object. Some clients send it as JSON inside a string.
func object(arguments json.RawMessage) (map[string]any, error) {
	var root map[string]any
	text := string(arguments)
	var inner string
	if json.Unmarshal(arguments, &inner) == nil {
		text = inner
	}
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&root); err != nil {
		return nil, finding.Refuse(finding.Finding{Code: "arguments_not_an_object", Severity: finding.Error,
			What: fmt.Sprintf("the arguments are no JSON object: %v", err), Expected: `a JSON object such as {"run_id": "r-…"}`, Remedy: "send the arguments as one object"})
	}
	if root == nil {
		root = map[string]any{}
	}
	return root, nil
}

// knownNames refuses arguments of names that the tool does not have: a misspelt one would silently do nothing.
func knownNames(root map[string]any, valid []string) error {
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(root)) {
		if slices.ContainsFunc(valid, func(v string) bool { return fold(v) == fold(name) }) { // jobIds is job_ids; Decode reads it so
			continue
		}
		f := finding.Finding{Code: "unknown_argument", Severity: finding.Error, What: fmt.Sprintf("there is no argument %q", name),
			Where: &finding.Where{Field: name}, Expected: "one of " + strings.Join(valid, ", "), Remedy: "send it under a valid name, or leave it out"}
		if len(valid) == 0 {
			f.Expected = "no arguments"
		}
		if near := finding.Nearest(name, valid); near != "" {
			f.Remedy = fmt.Sprintf("did you mean %q?", near)
		}
		findings = append(findings, f)
	}
	if len(findings) > 0 {
		return finding.Refuse(findings...)
	}
	return nil
}

// fold is a name as contract.Decode compares names: jobIds and job-ids are job_ids.
func fold(name string) string {
	var b strings.Builder
	var previous rune
	for _, r := range name {
		switch {
		case r == '-' || r == ' ':
			r = '_'
		case unicode.IsUpper(r) && unicode.IsLower(previous):
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
		previous = r
	}
	return b.String()
}

// missing refuses a call that lacks an argument.
func missing(name, expected, remedy string) error {
	return finding.Refuse(finding.Finding{Code: "missing_argument", Severity: finding.Error, What: "the argument " + name + " is missing",
		Where: &finding.Where{Field: name}, Expected: expected, Remedy: remedy})
}

func mustSchema(v any) json.RawMessage {
	schema, err := contract.Schema(v)
	if err != nil {
		panic(fmt.Sprintf("schema of %T: %v", v, err))
	}
	return schema
}

// argumentNames lists the JSON names of a struct's fields, in their order.
func argumentNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// shallow makes the output schema of a tool from its type: names and types down to the entries of a list, and nothing
// below. What an answer means is told by its names; the words would be paid for by every client on every tools/list.
// Nothing is required, since a refused call answers with findings alone and clients check that too.
func shallow(schema json.RawMessage) json.RawMessage {
	var full map[string]any
	if err := json.Unmarshal(schema, &full); err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	root := outline(full, 2)
	if p, ok := root["properties"].(map[string]any); ok {
		if _, has := p["findings"]; !has {
			p["findings"] = map[string]any{"type": "array", "items": map[string]any{"type": "object", "properties": map[string]any{}}}
		}
	}
	encoded, err := marshal(root)
	if err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	return encoded
}

// brief is the output schema of Out with these properties told by their type alone: their names say enough, and an output
// schema has a budget.
func brief[Out any](properties ...string) Schema {
	return sync.OnceValue(func() json.RawMessage {
		var schema map[string]any
		if err := json.Unmarshal(shallow(mustSchema(new(Out))), &schema); err != nil {
			panic(fmt.Sprintf("schema: %v", err))
		}
		all, _ := schema["properties"].(map[string]any)
		for _, name := range properties {
			of, _ := all[name].(map[string]any)
			entry := map[string]any{"type": "object", "properties": map[string]any{}}
			if all[name] = any(entry); of["type"] == "array" {
				all[name] = map[string]any{"type": "array", "items": entry}
			}
		}
		encoded, err := marshal(schema)
		if err != nil {
			panic(fmt.Sprintf("schema: %v", err))
		}
		return encoded
	})
}

// outline keeps the types and names of a schema down to depth objects.
func outline(schema map[string]any, depth int) map[string]any {
	out := map[string]any{}
	for _, keep := range []string{"type", "enum"} {
		if v, ok := schema[keep]; ok {
			out[keep] = v
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		out["items"] = outline(items, depth)
	}
	if out["type"] != "object" {
		return out
	}
	kept := map[string]any{}
	if inner, ok := schema["properties"].(map[string]any); ok && depth > 0 {
		for name, p := range inner {
			child, ok := p.(map[string]any)
			switch {
			case !ok:
			case name == "findings" || name == "next_call": // the same in every answer, and told in the instructions
				kept[name] = outline(child, 0)
			default:
				kept[name] = outline(child, depth-1)
			}
		}
	}
	out["properties"] = kept
	return out
}
