package contract

import (
	"encoding/json"
	"fmt"

	"github.com/invopop/jsonschema"
)

// Tristate is true, false or "unknown", written as the JSON boolean or that string. The zero value is unknown.
type Tristate string

// The three values.
const (
	TristateTrue    Tristate = "true"
	TristateFalse   Tristate = "false"
	TristateUnknown Tristate = "unknown"
)

// TristateOf returns the Tristate of a known boolean.
func TristateOf(b bool) Tristate {
	if b {
		return TristateTrue
	}
	return TristateFalse
}

// MarshalJSON writes the boolean or "unknown".
func (t Tristate) MarshalJSON() ([]byte, error) {
	switch t {
	case TristateTrue, TristateFalse:
		return []byte(t), nil
	case TristateUnknown, "":
		return []byte(`"unknown"`), nil
	}
	return nil, fmt.Errorf("tristate %q: expected true, false or unknown", string(t))
}

// UnmarshalJSON reads a boolean, "unknown" or any spelling of a boolean that Decode takes.
func (t *Tristate) UnmarshalJSON(data []byte) error {
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		return err
	}
	read, ok := tristateOf(tree)
	if !ok {
		return fmt.Errorf("tristate %s: expected true, false or unknown", short(tree))
	}
	*t = read
	return nil
}

// JSONSchema describes the value in words, since a list of types is not portable.
func (Tristate) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Description: `true, false or "unknown".`}
}

// tristateOf reads a tree value; null and "" are unknown.
func tristateOf(tree any) (Tristate, bool) {
	if tree == nil {
		return TristateUnknown, true
	}
	if text, ok := tree.(string); ok && (text == "" || foldName(text) == "unknown") {
		return TristateUnknown, true
	}
	b, ok := boolOf(tree)
	return TristateOf(b), ok
}
