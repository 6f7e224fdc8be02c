package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// single takes the only item out of a list, since a model may wrap one value.
func single(tree any) any {
	if list, ok := tree.([]any); ok && len(list) == 1 {
		return list[0]
	}
	return tree
}

// list decodes into a slice: a lone value is a list of one, null items are dropped, text may hold a list.
func (d *decoder) list(path string, tree any, v reflect.Value, f field) bool {
	element := v.Type().Elem()
	if element.Kind() == reflect.Uint8 {
		text, ok := textOf(tree)
		if !ok {
			return d.wrong(path, tree, "text", `"…"`)
		}
		v.SetBytes([]byte(text))
		return true
	}
	items, ok := tree.([]any)
	if !ok {
		items = listIn(tree, element)
	}
	if _, isObject := tree.(map[string]any); isObject && scalarKind(element) {
		return d.wrong(path, tree, "a list of "+nounOf(element), "["+valueOf(element, f)+"]")
	}
	made := reflect.MakeSlice(v.Type(), 0, len(items))
	ok = true
	for i, item := range items {
		if item == nil {
			continue
		}
		one := reflect.New(element).Elem()
		if !d.value(join(path, fmt.Sprint(i)), item, one, field{enum: f.enum}) {
			ok = false
			continue
		}
		made = reflect.Append(made, one)
	}
	if made.Len() > 0 || !f.omitEmpty {
		v.Set(made)
	}
	return ok
}

// listIn finds the list that a lone value stands for. Text is read as a list where it is written as one: JSON in
// brackets, or lines that each begin with a dash.
func listIn(tree any, element reflect.Type) []any {
	text, ok := tree.(string)
	if !ok {
		return []any{tree}
	}
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return nil
	}
	written := strings.HasPrefix(trimmed, "[") || strings.HasPrefix(trimmed, "- ")
	if written {
		parsed, err := parseText(text, &findings{}, 0, textDepth)
		items, isList := parsed.([]any)
		if err == nil && isList && (!scalarKind(element) || allScalar(items)) {
			return items
		}
	}
	return []any{tree}
}

func allScalar(items []any) bool {
	return !slices.ContainsFunc(items, func(item any) bool {
		_, ok := textOf(item)
		return !ok
	})
}

func scalarKind(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Interface, reflect.Pointer:
		return false
	}
	return true
}

// mapping decodes into a map with string keys; text may hold it.
func (d *decoder) mapping(path string, tree any, v reflect.Value) bool {
	if v.Type().Key().Kind() != reflect.String {
		return d.wrong(path, tree, "a value of "+v.Type().String(), "another value")
	}
	object, ok := d.objectOf(path, tree, &fieldTable{lone: -1})
	if !ok {
		return false
	}
	element := v.Type().Elem()
	if len(object) == 0 {
		return true
	}
	made := reflect.MakeMapWithSize(v.Type(), len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		one := reflect.New(element).Elem()
		if d.value(join(path, key), object[key], one, field{}) {
			made.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), one)
			continue
		}
		ok = false
	}
	v.Set(made)
	return ok
}

// scalar decodes into a string, boolean or number.
func (d *decoder) scalar(path string, tree any, v reflect.Value, f field) bool {
	tree = single(tree)
	if tree == nil {
		return true
	}
	fits := false
	switch {
	case v.Kind() == reflect.String:
		text, ok := textOf(tree)
		if ok && f.enum != nil {
			return d.enum(path, text, v, f.enum)
		}
		if ok {
			v.SetString(text)
		}
		fits = ok
	case v.Kind() == reflect.Bool:
		b, ok := boolOf(tree)
		if ok {
			v.SetBool(b)
		}
		fits = ok
	case v.CanInt():
		n, ok := intOf(tree)
		fits = ok && !v.OverflowInt(n)
		if fits {
			v.SetInt(n)
		}
	case v.CanUint():
		n, ok := intOf(tree)
		fits = ok && n >= 0 && !v.OverflowUint(uint64(n))
		if fits {
			v.SetUint(uint64(n))
		}
	case v.CanFloat():
		x, ok := floatOf(tree)
		fits = ok && !v.OverflowFloat(x)
		if fits {
			v.SetFloat(x)
		}
	}
	if !fits && isBlank(tree) && v.Kind() != reflect.String {
		return true // an empty text for a number is a field that was not given
	}
	if !fits {
		return d.wrong(path, tree, nounOf(v.Type()), valueOf(v.Type(), f))
	}
	return true
}

// enum sets the allowed value that text spells; empty text is not given.
func (d *decoder) enum(path, text string, v reflect.Value, allowed []string) bool {
	if strings.TrimSpace(text) == "" {
		return true
	}
	for _, value := range allowed {
		if value == text || len(text) <= maxShort && foldName(value) == foldName(text) {
			v.SetString(value)
			return true
		}
	}
	d.out.add(unknownValue(path, text, allowed))
	return false
}

func isBlank(tree any) bool {
	text, ok := tree.(string)
	return ok && strings.TrimSpace(text) == ""
}

// nounOf and valueOf name and show what a type holds.
func nounOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "text"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number that is not negative"
	}
	return "a whole number"
}

func valueOf(t reflect.Type, f field) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true"
	case reflect.Float32, reflect.Float64:
		return "0.5"
	case reflect.String:
		if len(f.enum) > 0 {
			return strconv.Quote(f.enum[0])
		}
		return `"some text"`
	}
	return "32"
}

// textOf reads a scalar as text, as it was written.
func textOf(tree any) (string, bool) {
	switch x := tree.(type) {
	case string:
		return x, true
	case json.Number:
		return string(x), true
	case spelled:
		return x.text, true
	case bool:
		return strconv.FormatBool(x), true
	}
	return "", false
}

// boolOf reads true and false, their usual words, 1 and 0.
func boolOf(tree any) (value, ok bool) {
	if b, ok := tree.(bool); ok {
		return b, true
	}
	text, ok := textOf(tree)
	if !ok {
		if f, isFloat := tree.(float64); isFloat {
			return f == 1, f == 0 || f == 1
		}
		return false, false
	}
	switch strings.ToLower(strings.TrimSpace(cut(text))) {
	case "true", "yes", "y", "on", "1":
		return true, true
	case "false", "no", "n", "off", "0":
		return false, true
	}
	return false, false
}

// numberText is the text of a number, or of text that holds one; "1_000" is how Python writes it.
func numberText(tree any) (string, bool) {
	switch x := tree.(type) {
	case json.Number:
		return string(x), true
	case spelled:
		return string(x.number), true
	case string:
		text := strings.TrimSpace(cut(x))
		return strings.ReplaceAll(text, "_", ""), text != "" && len(x) <= maxShort
	}
	return "", false
}

// intOf reads a whole number, also one written as 32.0 or 1e3.
func intOf(tree any) (int64, bool) {
	text, ok := numberText(tree)
	if !ok {
		return 0, false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	x, err := strconv.ParseFloat(text, 64)
	whole := err == nil && x == math.Trunc(x) && math.Abs(x) < 1<<53
	if !whole {
		return 0, false
	}
	return int64(x), true
}

// floatOf reads a finite number.
func floatOf(tree any) (float64, bool) {
	text, ok := numberText(tree)
	if !ok {
		return 0, false
	}
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}
