package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// encode writes a struct of the contract. With whole set, fields that were not given are written too, and an enum that
// nobody set is written "unknown" where that is one of its values; the nested structs follow suit.
func encode(v any, whole bool) ([]byte, error) {
	var b bytes.Buffer
	if err := writeStruct(&b, reflect.ValueOf(v), whole); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// encodeAny writes any value without indent and without HTML escaping.
func encodeAny(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := writePlain(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func writePlain(b *bytes.Buffer, v any) error {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the encoder ends with a newline
	return nil
}

func writeValue(b *bytes.Buffer, v reflect.Value, whole bool) error {
	t := v.Type()
	switch {
	case t.Kind() == reflect.Struct && fieldsOf(t).unknown != nil:
		return writeStruct(b, v, whole)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return writeList(b, v, whole)
	case t.Kind() == reflect.Map && v.IsNil():
		b.WriteString("{}")
		return nil
	}
	return writePlain(b, v.Interface())
}

func writeList(b *bytes.Buffer, v reflect.Value, whole bool) error {
	b.WriteByte('[')
	for i := range v.Len() {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeValue(b, v.Index(i), whole); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	b.WriteByte(']')
	return nil
}

func writeStruct(b *bytes.Buffer, v reflect.Value, whole bool) error {
	table := fieldsOf(v.Type())
	object := objectWriter{b: b}
	b.WriteByte('{')
	for _, f := range table.fields {
		fv := v.FieldByIndex(f.index)
		if whole && fv.Kind() == reflect.String && fv.Len() == 0 && slices.Contains(f.enum, "unknown") {
			fv = reflect.ValueOf("unknown")
		}
		if !whole && f.omitEmpty && isEmpty(fv) {
			continue
		}
		start := object.begin(f.name)
		body := b.Len()
		if err := writeValue(b, fv, whole); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		// A struct that came from {"data": {}} holds nothing either, and would not be there after the next reading.
		if !whole && f.omitZero && string(b.Bytes()[body:]) == "{}" {
			object.undo(start)
		}
	}
	unknown := v.FieldByIndex(table.unknown).Interface().(Unknown)
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		if _, known := table.byName[name]; known {
			continue
		}
		object.begin(name)
		if err := json.Compact(b, unknown[name]); err != nil {
			return fmt.Errorf("unknown field %s: %w", short(name), err)
		}
	}
	b.WriteByte('}')
	return nil
}

// objectWriter places the commas and names of one object.
type objectWriter struct {
	b     *bytes.Buffer
	count int
}

// begin writes the name of the next member and returns where it began, for undo.
func (o *objectWriter) begin(name string) int {
	start := o.b.Len()
	if o.count > 0 {
		o.b.WriteByte(',')
	}
	o.count++
	_ = writePlain(o.b, name) // a string always encodes
	o.b.WriteByte(':')
	return start
}

func (o *objectWriter) undo(start int) {
	o.b.Truncate(start)
	o.count--
}

// isEmpty is encoding/json's reading of omitempty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
