package contract

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Canonical writes a value as JSON in one form only: keys sorted, no white space, no HTML escaping, numbers without
// redundant digits, so that 1, 1.0 and 10e-1 are the same bytes.
func Canonical(v any) ([]byte, error) {
	tree, err := encodedTree(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := writeCanonical(&b, tree); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// HandoffSHA256 identifies a handoff as "sha256:" and 64 hex digits, whichever way it was spelled. inputs.attempt does not
// count, since attempts live inside a run. It is empty only where a map of the handoff holds a value that JSON can't
// write, which no decoded handoff does.
func HandoffSHA256(handoff StepHandoff) string {
	handoff.Inputs.Attempt = 0
	data, err := Canonical(handoff)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// encodedTree is the tree of a value as it would be written.
func encodedTree(v any) (any, error) {
	data, err := encodeAny(v)
	if err != nil {
		return nil, err
	}
	return parseJSON(string(data), &findings{}, 2*maxDepth)
}

func writeCanonical(b *bytes.Buffer, tree any) error {
	switch x := tree.(type) {
	case json.Number:
		b.WriteString(canonicalNumber(string(x)))
		return nil
	case []any:
		b.WriteByte('[')
		for i, item := range x {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeCanonical(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case map[string]any:
		object := objectWriter{b: b}
		b.WriteByte('{')
		for _, key := range slices.Sorted(maps.Keys(x)) {
			object.begin(key)
			if err := writeCanonical(b, x[key]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	}
	return writePlain(b, tree)
}

// canonicalNumber normalises the text of a JSON number exactly, without passing through a float: digits without leading
// or trailing zeros and a power of ten, written plainly where that is short.
func canonicalNumber(text string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	power, err := strconv.Atoi("0" + strings.TrimLeft(exponent, "+-"))
	if err != nil || power > 1<<30 {
		return strings.ToLower(text) // beyond any number that means something
	}
	if strings.HasPrefix(exponent, "-") {
		power = -power
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	power -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	power += len(digits) - len(trimmed)
	if trimmed == "" {
		return "0"
	}
	sign := ""
	if negative {
		sign = "-"
	}
	point := len(trimmed) + power // where the decimal point stands, counted from the first digit
	switch {
	case power >= 0 && point <= 21:
		return sign + trimmed + strings.Repeat("0", power)
	case power < 0 && point > 0:
		return sign + trimmed[:point] + "." + trimmed[point:]
	case power < 0 && point > -6:
		return sign + "0." + strings.Repeat("0", -point) + trimmed
	}
	rest := ""
	if len(trimmed) > 1 {
		rest = "." + trimmed[1:]
	}
	return sign + trimmed[:1] + rest + "e" + strconv.Itoa(point-1)
}
