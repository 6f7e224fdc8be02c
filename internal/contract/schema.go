package contract

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/invopop/jsonschema"
)

// Schema returns the JSON Schema of a struct in the dialect that every known MCP client accepts: inlined, without $schema
// and $id, every object with properties, no boolean schema and no boolean additionalProperties. A field of type any
// becomes a schema that has a description alone. It fails where LintSchema finds something.
func Schema(v any) (json.RawMessage, error) {
	t := reflect.TypeOf(v)
	if t == nil {
		return nil, fmt.Errorf("schema of %T: need a struct", v)
	}
	if cycle := recursion(t, nil); cycle != nil {
		return nil, fmt.Errorf("schema of %s: it contains itself through %s, which can't be inlined", t, cycle)
	}
	reflector := jsonschema.Reflector{DoNotReference: true, Anonymous: true, AllowAdditionalProperties: true}
	return finish(t.String(), reflector.ReflectFromType(t))
}

// finish makes a schema portable and writes it.
func finish(name string, s *jsonschema.Schema) (json.RawMessage, error) {
	s.Version, s.ID, s.Definitions = "", "", nil
	data, err := encodeAny(portable(s))
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", name, err)
	}
	data = []byte(withoutHTMLEscapes.Replace(string(data)))
	if problems := LintSchema(data); len(problems) > 0 {
		return nil, fmt.Errorf("schema of %s: %s", name, strings.Join(problems, "; "))
	}
	return data, nil
}

// withoutHTMLEscapes undoes what the schema type's own encoding does to "<="; an escaped backslash is stepped over.
var withoutHTMLEscapes = strings.NewReplacer(`\\`, `\\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// anyValue is what stands for a schema without constraints; a bare true makes some clients reject the whole list.
const anyValue = "Any JSON value."

// portable rewrites a schema in place. The reflector's Mapper can't do this, since the empty tag of an any field
// overwrites what it returns.
func portable(s *jsonschema.Schema) *jsonschema.Schema {
	if s == nil {
		return nil
	}
	if isBoolean(s) {
		return &jsonschema.Schema{Description: anyValue}
	}
	if s.AdditionalProperties != nil {
		if isBoolean(s.AdditionalProperties) {
			s.AdditionalProperties = nil
		}
		s.AdditionalProperties = portable(s.AdditionalProperties)
	}
	if s.Type == "object" && s.Properties == nil {
		s.Properties = jsonschema.NewProperties()
	}
	if s.Properties != nil {
		for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
			pair.Value = portable(pair.Value)
		}
	}
	s.Items = portable(s.Items)
	for _, choices := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf, s.AllOf, s.PrefixItems} {
		for i := range choices {
			choices[i] = portable(choices[i])
		}
	}
	return s
}

// isBoolean reports whether a schema would be written as a bare true or false.
func isBoolean(s *jsonschema.Schema) bool {
	data, err := json.Marshal(s)
	return err == nil && (string(data) == "true" || string(data) == "false")
}

// recursion returns a struct type that contains itself, nil where there is none.
func recursion(t reflect.Type, above []reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return recursion(t.Elem(), above)
	case reflect.Struct:
		for _, outer := range above {
			if outer == t {
				return t
			}
		}
		above = append(above[:len(above):len(above)], t)
		for i := range t.NumField() {
			f := t.Field(i)
			if tag := f.Tag.Get("json"); !f.IsExported() || tag == "-" {
				continue
			}
			if cycle := recursion(f.Type, above); cycle != nil {
				return cycle
			}
		}
	}
	return nil
}

var fullHandoffSchema = sync.OnceValues(func() (json.RawMessage, error) { return Schema(StepHandoff{}) })

// FullHandoffSchema is the schema of a step_handoff with every field of the contract.
func FullHandoffSchema() json.RawMessage { return mustSchema(fullHandoffSchema()) }

var shallowHandoffSchema = sync.OnceValues(func() (json.RawMessage, error) {
	reflector := jsonschema.Reflector{DoNotReference: true, Anonymous: true, AllowAdditionalProperties: true}
	s := reflector.Reflect(StepHandoff{})
	s.Description = "The step as the orchestrator sent it, on the first call; later send run_id."
	for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
		pair.Value.Description = ""
		if pair.Key == "inputs" {
			pair.Value.Properties = jsonschema.NewProperties()
			pair.Value.Description = "The skill's inputs; tool trainer shows them all: " + strings.Join(inputFields(), ", ") + "."
		}
	}
	return finish("the shallow step_handoff", s)
})

// ShallowHandoffSchema is the schema of a step_handoff for the tools that need not repeat it all: the same eight names
// and types, inputs open.
func ShallowHandoffSchema() json.RawMessage { return mustSchema(shallowHandoffSchema()) }

// mustSchema returns a copy of a schema of this package; the tests make every one of them.
func mustSchema(schema json.RawMessage, err error) json.RawMessage {
	if err != nil {
		panic(err)
	}
	return append(json.RawMessage(nil), schema...)
}
