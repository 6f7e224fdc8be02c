package contract

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// A tree is what text was parsed to: nil, bool, string, json.Number, spelled, []any and map[string]any.

// spelled is a YAML number whose text is not a JSON number, such as 0017 or 1_000: the number for where a number is
// meant, the text for where a string is (a short commit hash may look like a number).
type spelled struct {
	number json.Number
	text   string
}

// treeOf brings a value a caller already holds into tree form. A value that is no plain JSON goes through its encoding.
func treeOf(v any) (any, error) {
	switch x := v.(type) {
	case nil, bool, string, json.Number, spelled:
		return x, nil
	case float64:
		return numberTree(x), nil
	case int:
		return json.Number(strconv.Itoa(x)), nil
	case []any:
		list := make([]any, len(x))
		for i, item := range x {
			tree, err := treeOf(item)
			if err != nil {
				return nil, err
			}
			list[i] = tree
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(x))
		for key, item := range x {
			tree, err := treeOf(item)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", short(key), err)
			}
			object[key] = tree
		}
		return object, nil
	}
	data, err := encodeAny(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", reflect.TypeOf(v), err)
	}
	return parseJSON(string(data), &findings{}, maxDepth)
}

// numberTree writes a float as JSON would; what JSON can't write stays as its name.
func numberTree(x float64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return json.Number(strconv.FormatFloat(x, 'g', -1, 64))
}

// plain turns a tree into ordinary Go values for a field of type any. Numbers become float64; an integer that a float64
// can't hold exactly and a number beyond its range stay json.Number, so that nothing changes on the way through.
func plain(tree any) any {
	switch x := tree.(type) {
	case spelled:
		return plain(x.number)
	case json.Number:
		f, err := x.Float64()
		if err != nil {
			return x
		}
		if integerText(string(x)) && math.Abs(f) >= 1<<53 && strconv.FormatFloat(f, 'f', 0, 64) != string(x) {
			return x
		}
		return f
	case []any:
		list := make([]any, len(x))
		for i, item := range x {
			list[i] = plain(item)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(x))
		for key, item := range x {
			object[key] = plain(item)
		}
		return object
	}
	return tree
}

func integerText(text string) bool { return !strings.ContainsAny(text, ".eE") }

// rawOf writes a tree as compact JSON with sorted keys.
func rawOf(tree any) json.RawMessage {
	data, err := encodeAny(withoutSpelling(tree))
	if err != nil { // a tree holds nothing that JSON can't write
		return json.RawMessage("null")
	}
	return data
}

func withoutSpelling(tree any) any {
	switch x := tree.(type) {
	case spelled:
		return x.number
	case []any:
		list := make([]any, len(x))
		for i, item := range x {
			list[i] = withoutSpelling(item)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(x))
		for key, item := range x {
			object[key] = withoutSpelling(item)
		}
		return object
	}
	return tree
}
