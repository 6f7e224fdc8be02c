package contract

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file under testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

// indented writes a value as the files of a run are written.
func indented(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestHandoffSchemas(t *testing.T) {
	full, shallow := FullHandoffSchema(), ShallowHandoffSchema()
	golden(t, "step_handoff.schema.json", indented(t, full))
	golden(t, "step_handoff_shallow.schema.json", indented(t, shallow))
	if tokens := len(full) / 4; tokens > 1200 {
		t.Errorf("the full schema has %d tokens", tokens)
	}
	if tokens := len(shallow) / 4; tokens > 300 {
		t.Errorf("the shallow schema has %d tokens", tokens)
	}
}

// Both schemas have the eight names of the struct, with the same types.
func TestHandoffSchemasAgree(t *testing.T) {
	type shape struct {
		Properties map[string]struct{ Type string }
	}
	var full, shallow shape
	for schema, into := range map[*json.RawMessage]*shape{ptr(FullHandoffSchema()): &full, ptr(ShallowHandoffSchema()): &shallow} {
		if err := json.Unmarshal(*schema, into); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(full, shallow); diff != "" || len(full.Properties) != 8 {
		t.Error(diff, len(full.Properties))
	}
	for _, name := range handoffFields() {
		if _, there := shallow.Properties[name]; !there {
			t.Errorf("%s is missing", name)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestSchemaOfEveryWrittenType(t *testing.T) {
	for _, v := range writtenTypes() {
		if _, err := Schema(v); err != nil {
			t.Error(err)
		}
	}
}

func TestSchemaIsPortable(t *testing.T) {
	type inner struct {
		Value any             `json:"value"`
		Raw   json.RawMessage `json:"raw,omitempty" jsonschema_description:"a, b <= c"`
	}
	type awkward struct {
		Any    any              `json:"any"`
		List   []any            `json:"list"`
		Open   map[string]any   `json:"open"`
		Typed  map[string]int   `json:"typed"`
		Nested map[string]inner `json:"nested"`
		Maybe  *string          `json:"maybe" jsonschema:"nullable"`
		Three  Tristate         `json:"three"`
		Inner  inner            `json:"inner,omitzero"`
	}
	schema, err := Schema(&awkward{})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "awkward.schema.json", indented(t, schema))
}

type looped struct {
	Next []*looped `json:"next"`
}

func TestSchemaRefusesWhatItCannotWrite(t *testing.T) {
	for _, v := range []any{nil, looped{}, "text", []int{1}} {
		if schema, err := Schema(v); err == nil {
			t.Errorf("%T gives %s", v, schema)
		}
	}
}

func TestLintSchema(t *testing.T) {
	for _, c := range []struct {
		schema string
		want   []string
	}{
		{`{"type": "object", "properties": {}}`, nil},
		{`{"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}, "b": {"description": "Any JSON value."}, "c": {"oneOf": [{"type": "string"}, {"type": "null"}]}}}`, nil},
		{`true`, []string{"$: the root is a boolean where an object schema is needed"}},
		{`{`, []string{"$: malformed_json"}},
		{`{"type": "array", "items": {"type": "string"}}`, []string{`$: the root needs "type": "object"`, "$: the root needs explicit properties"}},
		{`{"type": "object", "properties": {}, "anyOf": [{"type": "object", "properties": {}}]}`, []string{"$: the root has anyOf"}},
		{`{"type": "object", "properties": {}, "oneOf": [], "allOf": []}`, []string{"$: the root has oneOf", "$: the root has allOf"}},
		{`{"type": "object", "properties": {"a": true, "b": {"type": "array", "items": false}}}`, []string{"$.properties.a: true where a schema object is needed", "$.properties.b.items: false where a schema object is needed"}},
		{`{"type": "object", "properties": {"a": {}}}`, []string{"$.properties.a: an empty schema, which is written as true"}},
		{`{"type": "object", "properties": {"a": {"type": ["string", "null"]}}}`, []string{"$.properties.a: a list of types"}},
		{`{"type": "object", "properties": {"a": {"type": "object"}}}`, []string{"$.properties.a: an object without properties"}},
		{`{"type": "object", "properties": {}, "additionalProperties": false}`, []string{"$.additionalProperties: false where a schema object is needed"}},
		{`{"$schema": "x", "$id": "y", "type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}}`, []string{"$: has $schema", "$: has $id", "$: has $defs", "$.properties.a: has $ref"}},
		{`{"type": "object", "properties": {"a b": {"type": "string"}}}`, []string{`$.properties: the name "a b" has signs`}},
		{`{"type": "object", "properties": {"a": {"oneOf": [true, {"type": "null"}]}}}`, []string{"$.properties.a.oneOf[0]: true where a schema object is needed"}},
	} {
		got := LintSchema(json.RawMessage(c.schema))
		agree := slices.EqualFunc(got, c.want, func(message, want string) bool { return strings.HasPrefix(message, want) })
		if !agree {
			t.Errorf("%s\n got %q\nwant %q", c.schema, got, c.want)
		}
	}
}

// A struct of the contract that lacks its methods would lose unknown fields inside a foreign struct.
func TestEveryTypeKeepsUnknownFields(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(kind reflect.Type) {
		switch kind.Kind() {
		case reflect.Slice, reflect.Map, reflect.Pointer:
			walk(kind.Elem())
		case reflect.Struct:
			if seen[kind] {
				return
			}
			seen[kind] = true
			checkKeepsUnknown(t, kind)
			for i := range kind.NumField() {
				walk(kind.Field(i).Type)
			}
		}
	}
	for _, v := range writtenTypes() {
		walk(reflect.TypeOf(v))
	}
	if len(seen) < 30 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}

func checkKeepsUnknown(t *testing.T, kind reflect.Type) {
	v := reflect.New(kind)
	if err := json.Unmarshal([]byte(`{"zz_new": [1, {"a": 2}], "aa_new": "x"}`), v.Interface()); err != nil {
		t.Errorf("%s: %v", kind, err)
		return
	}
	data, err := json.Marshal(v.Elem().Interface())
	if err != nil || !strings.HasSuffix(string(data), `"aa_new":"x","zz_new":[1,{"a":2}]}`) {
		t.Errorf("%s is written as %s, %v", kind, data, err)
	}
}
