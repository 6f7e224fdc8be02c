package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// propertyName is what a property may be called; some clients pass names on to models whose own rules are this strict.
var propertyName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// Where schemas stand inside a schema: as the value of a keyword, as items of a list, or under names.
var (
	schemaKeywords = []string{"items", "additionalProperties", "not", "contains", "if", "then", "else", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema"}
	schemaLists    = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
	schemaMaps     = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
)

// LintSchema returns what a known MCP client would trip over in the schema of a tool's input or output, each as a path
// and what is wrong there; none for a portable one. The rules: the root is an object with properties and no choice, no
// reference, no bare boolean schema, no list of types, no object without properties, no boolean additionalProperties, no
// $schema or $id, and plain property names.
func LintSchema(schema json.RawMessage) []string {
	tree, err := parseJSON(string(schema), &findings{}, maxDepth)
	if err != nil {
		return []string{"$: " + err.Error()}
	}
	root, ok := tree.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("$: the root is %s where an object schema is needed", kindOf(tree))}
	}
	var l linter
	if root["type"] != "object" {
		l.say("$", `the root needs "type": "object"`)
	}
	if _, ok := root["properties"].(map[string]any); !ok {
		l.say("$", "the root needs explicit properties")
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		if _, there := root[keyword]; there {
			l.say("$", "the root has "+keyword)
		}
	}
	l.schema("$", root)
	return l.problems
}

type linter struct{ problems []string }

func (l *linter) say(path, what string) { l.problems = append(l.problems, path+": "+what) }

// schema checks one schema and those inside it.
func (l *linter) schema(path string, tree any) {
	s, ok := tree.(map[string]any)
	if !ok {
		l.say(path, fmt.Sprintf("%s where a schema object is needed", short(tree)))
		return
	}
	if len(s) == 0 {
		l.say(path, "an empty schema, which is written as true")
	}
	for _, keyword := range []string{"$ref", "$dynamicRef", "$schema", "$id", "$defs", "definitions"} {
		if _, there := s[keyword]; there {
			l.say(path, "has "+keyword)
		}
	}
	if _, list := s["type"].([]any); list {
		l.say(path, "a list of types")
	}
	if _, there := s["properties"]; !there && s["type"] == "object" && path != "$" {
		l.say(path, "an object without properties")
	}
	for _, keyword := range schemaKeywords {
		if inner, there := s[keyword]; there {
			l.schema(path+"."+keyword, inner)
		}
	}
	for _, keyword := range schemaLists {
		l.list(path+"."+keyword, s, keyword)
	}
	for _, keyword := range schemaMaps {
		l.named(path+"."+keyword, s, keyword)
	}
}

func (l *linter) list(path string, s map[string]any, keyword string) {
	choices, there := s[keyword]
	list, ok := choices.([]any)
	if there && !ok {
		l.say(path, "needs a list")
	}
	for i, inner := range list {
		l.schema(fmt.Sprintf("%s[%d]", path, i), inner)
	}
}

func (l *linter) named(path string, s map[string]any, keyword string) {
	members, there := s[keyword]
	object, ok := members.(map[string]any)
	if there && !ok {
		l.say(path, "needs an object")
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if keyword == "properties" && !propertyName.MatchString(name) {
			l.say(path, fmt.Sprintf("the name %s has signs outside A-Z a-z 0-9 _ . -, or more than 64", short(name)))
		}
		l.schema(path+"."+name, object[name])
	}
}
