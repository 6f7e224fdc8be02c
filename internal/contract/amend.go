package contract

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Conflict is a field that an amendment would change. The stored value stands until the conflict is resolved.
type Conflict struct {
	Field  string `json:"field"`
	Stored any    `json:"stored"`
	Sent   any    `json:"sent"`
}

// What may be kept of a Conflict.
const (
	KeepSent   = "sent"
	KeepStored = "stored"
)

// Amend merges a handoff that was sent along with a run into the stored one. added are the dotted fields that were newly
// filled, conflicts those whose value differs; both are sorted. Null, "" and empty lists and objects are not given, and
// neither is "unknown" in an enum, so an intent that was unknown can still be told. A list that holds the stored one and
// more adds to it; any other list is another value. The attempt is taken from what was sent and is in neither list.
// settled says by dotted field what is kept of a conflict (KeepSent, KeepStored): such a field is no conflict, and one that
// takes what was sent is among the added.
func Amend(stored, sent StepHandoff, settled map[string]string) (merged StepHandoff, added []string, conflicts []Conflict, err error) {
	old, err := encodedTree(stored)
	if err != nil {
		return stored, nil, nil, fmt.Errorf("read the stored handoff: %w", err)
	}
	fresh, err := encodedTree(sent)
	if err != nil {
		return stored, nil, nil, fmt.Errorf("read the handoff that was sent: %w", err)
	}
	m := merger{settled: settled, unknowable: unknowable(reflect.TypeFor[StepHandoff](), "")}
	tree := m.merge("", old, fresh)
	if _, err := Decode(tree, &merged); err != nil {
		return stored, nil, nil, fmt.Errorf("read the merged handoff: %w", err)
	}
	if sent.Inputs.Attempt != 0 {
		merged.Inputs.Attempt = sent.Inputs.Attempt
	}
	return merged, m.added, m.conflicts, nil
}

// attemptField may change without being a conflict.
const attemptField = "inputs.attempt"

// merger fills a tree from another and notes what it did.
type merger struct {
	unknowable map[string]bool // dotted paths of enums that have the value unknown
	settled    map[string]string
	added      []string
	conflicts  []Conflict
}

// merge returns stored with what sent adds to it.
func (m *merger) merge(path string, stored, sent any) any {
	if path == attemptField || m.absent(path, sent) {
		return stored
	}
	old, oldIsObject := stored.(map[string]any)
	fresh, freshIsObject := sent.(map[string]any)
	if oldIsObject && freshIsObject {
		merged := maps.Clone(old)
		for _, key := range slices.Sorted(maps.Keys(fresh)) {
			if value := m.merge(joinWhole(path, key), old[key], fresh[key]); value != nil {
				merged[key] = value
			}
		}
		return merged
	}
	if m.absent(path, stored) {
		m.fill(path, sent)
		return sent
	}
	if same(stored, sent) || m.settled[path] == KeepStored {
		return stored
	}
	if longer := union(stored, sent); longer != nil {
		m.added = append(m.added, path)
		return longer
	}
	if m.settled[path] == KeepSent {
		m.added = append(m.added, path)
		return sent
	}
	m.conflicts = append(m.conflicts, Conflict{Field: path, Stored: plain(stored), Sent: plain(sent)})
	return stored
}

// union is the stored list with what the sent one adds; nil unless the sent one holds all of the stored and more. A list of
// numbers is one value (the betas of an optimizer) and does not grow.
func union(stored, sent any) []any {
	old, isList := stored.([]any)
	fresh, bothAre := sent.([]any)
	if !isList || !bothAre {
		return nil
	}
	holds := func(list []any, x any) bool { return slices.ContainsFunc(list, func(y any) bool { return same(x, y) }) }
	number := func(x any) bool {
		switch withoutSpelling(x).(type) {
		case string, map[string]any:
			return false
		}
		return true
	}
	if slices.ContainsFunc(old, func(x any) bool { return number(x) || !holds(fresh, x) }) {
		return nil
	}
	longer := slices.Clone(old)
	for _, x := range fresh {
		if !holds(longer, x) {
			longer = append(longer, x)
		}
	}
	if len(longer) == len(old) {
		return nil
	}
	return longer
}

// fill notes each leaf that was newly given.
func (m *merger) fill(path string, sent any) {
	object, ok := sent.(map[string]any)
	if !ok {
		m.added = append(m.added, path)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if at := joinWhole(path, key); at != attemptField && !m.absent(at, object[key]) {
			m.fill(at, object[key])
		}
	}
}

// absent reports whether a value says nothing.
func (m *merger) absent(path string, tree any) bool {
	switch x := tree.(type) {
	case nil:
		return true
	case string:
		return x == "" || x == "unknown" && m.unknowable[path]
	case []any:
		return len(x) == 0
	case map[string]any:
		for key, value := range x {
			if !m.absent(joinWhole(path, key), value) {
				return false
			}
		}
		return true
	}
	return false
}

func same(a, b any) bool {
	left, errLeft := Canonical(withoutSpelling(a))
	right, errRight := Canonical(withoutSpelling(b))
	return errLeft == nil && errRight == nil && bytes.Equal(left, right)
}

// unknowable collects the dotted paths of the enums in t that have the value unknown.
func unknowable(t reflect.Type, path string) map[string]bool {
	found := map[string]bool{}
	for _, f := range fieldsOf(t).fields {
		at := joinWhole(path, f.name)
		if slices.Contains(f.enum, "unknown") {
			found[at] = true
		}
		if inner := t.FieldByIndex(f.index).Type; inner.Kind() == reflect.Struct {
			maps.Copy(found, unknowable(inner, at))
		}
	}
	return found
}

// joinWhole extends a dotted path without cutting the name.
func joinWhole(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
