package contract

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// field is one JSON field of a struct, as its tags describe it.
type field struct {
	name      string
	index     []int
	omitEmpty bool     // the tag says omitempty
	omitZero  bool     // the tag says omitzero
	enum      []string // the values the schema tag allows, nil for any
}

// fieldTable is what encoding and decoding need to know of a struct type.
type fieldTable struct {
	fields  []field
	byName  map[string]int
	byFold  map[string]int // folded name → field, for other spellings
	names   []string
	unknown []int // index of the Unknown field, nil where the struct has none
	lone    int   // the field that a lone string stands for, -1 where there is none
}

var unknownType = reflect.TypeFor[Unknown]()

var tables sync.Map // reflect.Type → *fieldTable

// fieldsOf returns the table of a struct type; it is built once.
func fieldsOf(t reflect.Type) *fieldTable {
	if known, ok := tables.Load(t); ok {
		return known.(*fieldTable)
	}
	table := &fieldTable{byName: map[string]int{}, byFold: map[string]int{}, lone: -1}
	table.add(t, nil)
	stored, _ := tables.LoadOrStore(t, table)
	return stored.(*fieldTable)
}

// add collects the fields of t; index leads from the outermost struct to t.
func (table *fieldTable) add(t reflect.Type, index []int) {
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(slices.Clone(index), i)
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		switch {
		case sf.Type == unknownType:
			table.unknown = at
			continue
		case sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct:
			table.add(sf.Type, at)
			continue
		case !sf.IsExported() || name == "-":
			continue
		case name == "":
			name = sf.Name
		}
		if _, taken := table.byName[name]; taken {
			continue // an outer field hides the embedded one, as in encoding/json
		}
		if sf.Tag.Get("lone") == "true" {
			table.lone = len(table.fields)
		}
		table.byName[name] = len(table.fields)
		table.byFold[foldName(name)] = len(table.fields)
		table.names = append(table.names, name)
		table.fields = append(table.fields, field{
			name: name, index: at, enum: enumOf(sf.Tag),
			omitEmpty: hasOption(options, "omitempty"), omitZero: hasOption(options, "omitzero"),
		})
	}
}

// knowsAny reports whether an object has at least one field of the struct, in any spelling.
func (table *fieldTable) knowsAny(object map[string]any) bool {
	for key := range object {
		if _, ok := table.byFold[foldName(cut(key))]; ok {
			return true
		}
	}
	return false
}

func hasOption(options, want string) bool {
	return slices.Contains(strings.Split(options, ","), want)
}

// enumOf reads the enum values of a jsonschema tag.
func enumOf(tag reflect.StructTag) []string {
	var values []string
	for part := range strings.SplitSeq(tag.Get("jsonschema"), ",") {
		if value, ok := strings.CutPrefix(part, "enum="); ok {
			values = append(values, value)
		}
	}
	return values
}

// foldName brings the spellings of one name together: "Step-ID", "stepId" and "step id" are all step_id.
func foldName(name string) string {
	var b strings.Builder
	var previous rune
	for _, r := range strings.TrimSpace(name) {
		switch {
		case r == '-' || r == ' ':
			r = '_'
		case unicode.IsUpper(r) && (unicode.IsLower(previous) || unicode.IsDigit(previous)):
			b.WriteByte('_')
		}
		previous = r
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
