package contract

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Decode reads raw into the value that into points to, as forgivingly as a caller that is a language model needs. raw is
// []byte, json.RawMessage or string holding JSON or YAML text, or a value such as map[string]any. Null, an empty text and
// an absent field leave what into holds. An object under its own name, such as {"execution_result": {…}}, is unwrapped.
//
// The findings tell what was noticed. The error is a *finding.Refused with those that are errors; into then holds what
// could be read. Any struct type works: where it has no Unknown field, an unknown name is a warning unknown_field.
func Decode(raw any, into any) ([]finding.Finding, error) {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return nil, fmt.Errorf("decode into %T: need a pointer", into)
	}
	out := &findings{}
	tree, err := parse(raw, out)
	if err != nil {
		if !out.take(err, "") {
			return nil, err
		}
		return out.result()
	}
	return decodeTree(tree, target.Elem(), out)
}

// DecodeHandoff reads a step_handoff, under its own name or bare.
func DecodeHandoff(raw any) (StepHandoff, []finding.Finding, error) {
	var handoff StepHandoff
	found, err := Decode(raw, &handoff)
	return handoff, found, err
}

func decodeTree(tree any, target reflect.Value, out *findings) ([]finding.Finding, error) {
	d := decoder{out: out}
	d.value("", unwrap(tree, wrapperOf(target.Type())), target, field{})
	return out.result()
}

// unmarshal reads JSON for the UnmarshalJSON methods; only what can't be used is an error.
func unmarshal(data []byte, into any) error {
	out := &findings{}
	tree, err := parseJSON(string(data), out, 2*maxDepth)
	if err != nil {
		return err
	}
	_, err = decodeTree(tree, reflect.ValueOf(into).Elem(), out)
	return err
}

// wrapperOf is the name under which the contract shows a type.
func wrapperOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[StepHandoff]():
		return "step_handoff"
	case reflect.TypeFor[ExecutionResult]():
		return "execution_result"
	case reflect.TypeFor[RetrievalRequest]():
		return "resource_retrieval_request"
	case reflect.TypeFor[RetrievalResult]():
		return "resource_retrieval_result"
	}
	return ""
}

// unwrap takes the object out from under its own name, as often as it is wrapped; what stands beside the name is kept
// where the inner object does not say it itself.
func unwrap(tree any, name string) any {
	for range maxDepth {
		object, ok := tree.(map[string]any)
		if !ok || name == "" {
			return tree
		}
		inner, ok := object[name]
		if !ok {
			return tree
		}
		if inner == nil { // null is absent, so what stands beside it is the object
			rest := maps.Clone(object)
			delete(rest, name)
			return rest
		}
		if text, ok := inner.(string); ok {
			if object, err := objectIn(text); err == nil && object != nil {
				inner = object
			}
		}
		nested, ok := inner.(map[string]any)
		if !ok {
			return inner
		}
		merged := maps.Clone(nested)
		for key, value := range object {
			if _, own := merged[key]; key != name && !own {
				merged[key] = value
			}
		}
		tree = merged
	}
	return tree
}

// decoder fills Go values from a tree and notes what does not fit.
type decoder struct{ out *findings }

var (
	tristateType   = reflect.TypeFor[Tristate]()
	rawMessageType = reflect.TypeFor[json.RawMessage]()
)

// value decodes a tree into v and reports whether it fitted. f carries the enum of the field, if any.
func (d *decoder) value(path string, tree any, v reflect.Value, f field) bool {
	if tree == nil {
		return true
	}
	switch {
	case v.Type() == tristateType:
		read, ok := tristateOf(tree)
		if !ok {
			return d.wrong(path, tree, `true, false or "unknown"`, `"unknown"`)
		}
		v.SetString(string(read))
		return true
	case v.Type() == rawMessageType:
		v.SetBytes(rawOf(tree))
		return true
	case v.Kind() == reflect.Pointer:
		if v.Type().Elem().Kind() != reflect.String && isBlank(tree) {
			return true // not given
		}
		fresh := reflect.New(v.Type().Elem())
		if !d.value(path, tree, fresh.Elem(), f) {
			return false
		}
		v.Set(fresh)
		return true
	case v.Kind() == reflect.Struct && fieldsOf(v.Type()).unknown != nil:
		return d.object(path, tree, v)
	}
	if done, ok := d.ownDecoding(path, tree, v); done {
		return ok
	}
	switch v.Kind() {
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf(plain(tree)))
			return true
		}
	case reflect.Struct:
		return d.object(path, tree, v)
	case reflect.Slice:
		return d.list(path, tree, v, f)
	case reflect.Map:
		return d.mapping(path, tree, v)
	default:
		return d.scalar(path, tree, v, f)
	}
	return d.wrong(path, tree, "a value of "+v.Type().String(), "another value")
}

// ownDecoding lets a foreign type that knows how to read itself do so, such as time.Time.
func (d *decoder) ownDecoding(path string, tree any, v reflect.Value) (done, ok bool) {
	if !v.CanAddr() {
		return false, false
	}
	var err error
	switch own := v.Addr().Interface().(type) {
	case json.Unmarshaler:
		err = own.UnmarshalJSON(rawOf(tree))
	case encoding.TextUnmarshaler:
		text, isText := textOf(tree)
		if !isText {
			return true, d.wrong(path, tree, "text", `"…"`)
		}
		err = own.UnmarshalText([]byte(text))
	default:
		return false, false
	}
	if err != nil {
		return true, d.wrong(path, tree, "a "+v.Type().String()+" ("+cut(err.Error())+")", "another value")
	}
	return true, true
}

func (d *decoder) wrong(path string, tree any, expected, value string) bool {
	d.out.add(wrongType(path, tree, expected, example(path, value)))
	return false
}

// object decodes into a struct. Text is read as YAML or JSON; a lone string may stand for one field.
func (d *decoder) object(path string, tree any, v reflect.Value) bool {
	table := fieldsOf(v.Type())
	object, ok := d.objectOf(path, tree, table)
	if !ok {
		return false
	}
	var unknown Unknown
	for _, key := range slices.Sorted(maps.Keys(object)) {
		at := join(path, key)
		i, known := table.byName[key]
		if !known {
			if i, known = d.folded(at, key, object, table); !known {
				unknown = d.unknown(at, key, object, table, unknown)
				continue
			}
		}
		f := table.fields[i]
		ok = d.value(join(path, f.name), object[key], v.FieldByIndex(f.index), f) && ok
	}
	if len(unknown) > 0 {
		v.FieldByIndex(table.unknown).Set(reflect.ValueOf(unknown))
	}
	return ok
}

// objectOf finds the object in a tree: itself, the only item of a list, text that holds one, or a lone string. Where
// there is none it says so.
func (d *decoder) objectOf(path string, tree any, table *fieldTable) (map[string]any, bool) {
	switch x := single(tree).(type) {
	case map[string]any:
		return x, true
	case string:
		if strings.TrimSpace(x) == "" {
			return nil, true
		}
		object, err := objectIn(x)
		if table.lone >= 0 && !table.knowsAny(object) {
			name := table.fields[table.lone].name
			d.out.add(finding.Finding{
				Code: "assumed_field", Severity: finding.Note, Where: &finding.Where{Field: path},
				What: fmt.Sprintf("%s is text and was taken as its %s", orInput(path), name),
			})
			return map[string]any{name: x}, true
		}
		if err != nil && d.out.take(err, path) {
			return nil, false
		}
		if object != nil {
			return object, true
		}
	}
	return nil, d.wrong(path, tree, "an object", exampleObject(path, table))
}

// folded finds the field that key spells in another way, unless the right spelling was sent as well.
func (d *decoder) folded(at, key string, object map[string]any, table *fieldTable) (int, bool) {
	i, ok := table.byFold[foldName(cut(key))]
	if !ok || len(key) > maxShort {
		return 0, false
	}
	name := table.fields[i].name
	if _, both := object[name]; both {
		return 0, false
	}
	for other := range object { // of two wrong spellings the first in order is taken
		if other < key && foldName(cut(other)) == foldName(key) {
			return 0, false
		}
	}
	d.out.add(finding.Finding{
		Code: "field_name_folded", Severity: finding.Note, Where: &finding.Where{Field: at},
		What: fmt.Sprintf("%s was read as %s", short(key), name), Remedy: "send it as " + name,
	})
	return i, true
}

// unknown keeps a field nobody knows where the struct can hold it, and says so where it looks like a mistake.
func (d *decoder) unknown(at, key string, object map[string]any, table *fieldTable, kept Unknown) Unknown {
	ranked := table.names
	suggest := len(object) <= maxSuggested
	if suggest {
		ranked = nearest(cut(key), ranked)
	}
	if table.unknown == nil {
		d.out.add(finding.Finding{
			Code: "unknown_field", Severity: finding.Warning, Where: &finding.Where{Field: at},
			What:     fmt.Sprintf("%s is no field here and was dropped", short(key)),
			Expected: "one of " + strings.Join(ranked[:min(len(ranked), 12)], ", "),
		})
		return kept
	}
	if meant := slices.IndexFunc(ranked, func(name string) bool { return suggest && near(key, name) }); meant >= 0 {
		d.out.add(finding.Finding{
			Code: "unknown_field", Severity: finding.Warning, Where: &finding.Where{Field: at},
			What:   fmt.Sprintf("%s is not known; it was kept and not used", short(key)),
			Remedy: "if it means " + ranked[meant] + ", send it under that name",
		})
	}
	if kept == nil {
		kept = Unknown{}
	}
	kept[key] = rawOf(object[key])
	return kept
}

// exampleObject shows an object with the first field of a struct as it would be sent.
func exampleObject(path string, table *fieldTable) string {
	name := "name"
	if len(table.names) > 0 {
		name = table.names[0]
	}
	return example(path, "{"+strconv.Quote(name)+": …}")
}
