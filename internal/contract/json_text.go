package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// maxDepth bounds the nesting of what callers send; the contract itself needs six levels.
const maxDepth = 100

// textDepth bounds the nesting of text that stands where an object is meant, so that it still fits where it is put.
const textDepth = maxDepth - 20

// jsonReader parses JSON text token by token, so that depth is bounded and a key that occurs twice is noticed.
type jsonReader struct {
	text    string
	decoder *json.Decoder
	depth   int // how deep the text may nest
	out     *findings
}

var errTooDeep = errors.New("nested too deeply")

// parseJSON parses one JSON value; an error is a *finding.Refused with line and byte.
func parseJSON(text string, out *findings, depth int) (any, error) {
	r := &jsonReader{text: text, decoder: json.NewDecoder(strings.NewReader(text)), depth: depth, out: out}
	r.decoder.UseNumber()
	tree, err := r.value(0, "")
	if err == nil {
		if _, extra := r.decoder.Token(); !errors.Is(extra, io.EOF) {
			err = errors.New("more text after the value")
		}
	}
	if err != nil {
		return nil, r.refuse(err)
	}
	return tree, nil
}

func (r *jsonReader) value(depth int, path string) (any, error) {
	if depth > r.depth {
		return nil, errTooDeep
	}
	token, err := r.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return r.object(depth, path)
	case json.Delim('['):
		list := []any{}
		for r.decoder.More() {
			item, err := r.value(depth+1, join(path, fmt.Sprint(len(list))))
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err := r.decoder.Token()
		return list, err
	}
	return token, nil
}

func (r *jsonReader) object(depth int, path string) (any, error) {
	object := map[string]any{}
	for r.decoder.More() {
		token, err := r.decoder.Token()
		if err != nil {
			return nil, err
		}
		key, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("%v where a name is meant", token)
		}
		at := join(path, key)
		if _, twice := object[key]; twice {
			r.out.add(finding.Finding{
				Code: "duplicate_key", Severity: finding.Warning, Where: &finding.Where{Field: at},
				What: at + " was sent twice; the last one counts", Remedy: "send each name once",
			})
		}
		if object[key], err = r.value(depth+1, at); err != nil {
			return nil, err
		}
	}
	_, err := r.decoder.Token()
	return object, err
}

func (r *jsonReader) refuse(err error) error {
	at := int(r.decoder.InputOffset())
	if errors.Is(err, errTooDeep) {
		return finding.Refuse(tooDeep(r.depth, lineAt(r.text, at), int64(at)))
	}
	// The token reader's offset is that of the last token; a scan of the whole text knows the very byte.
	var whole json.RawMessage
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal([]byte(r.text), &whole), &syntax) {
		at, err = max(int(syntax.Offset)-1, 0), syntax
	}
	if strings.HasPrefix(err.Error(), "unexpected end") {
		at = len(r.text)
	}
	return finding.Refuse(finding.Finding{
		Code: "malformed_json", Severity: finding.Error,
		What:     fmt.Sprintf("not JSON: %s, near %s", err, short(around(r.text, at))),
		Where:    &finding.Where{Path: "input", Line: lineAt(r.text, at), Byte: int64(at)},
		Expected: "one JSON object",
		Remedy:   `mend the text there and send it again, e.g. {"request": "train … on …"}`,
	})
}

func tooDeep(limit, line int, at int64) finding.Finding {
	return finding.Finding{
		Code: "too_deep", Severity: finding.Error,
		What:     fmt.Sprintf("the input is nested deeper than %d levels", limit),
		Where:    &finding.Where{Path: "input", Line: line, Byte: at},
		Expected: fmt.Sprintf("at most %d levels", limit),
		Remedy:   "flatten the value, or put it in a file and send the path",
	}
}

// lineAt returns the 1-based line of a byte offset.
func lineAt(text string, at int) int {
	return 1 + strings.Count(text[:min(at, len(text))], "\n")
}

// around returns the text beside an offset.
func around(text string, at int) string {
	return strings.ToValidUTF8(text[max(0, min(at, len(text))-20):min(len(text), at+20)], "")
}
