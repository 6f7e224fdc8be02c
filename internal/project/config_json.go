package project

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// readJSON walks the tokens of a JSON file, which knows where each of them ends.
func (r *configReader) readJSON() {
	if !strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(r.src, "\ufeff"), " \t\r\n"), "{") {
		if json.Valid([]byte(r.src)) {
			return // a list or a scalar: data
		}
	}
	w := jsonWalk{configReader: r, decoder: json.NewDecoder(strings.NewReader(r.src))}
	w.decoder.UseNumber()
	if strings.HasPrefix(r.src, "\ufeff") {
		r.malformed(0, "it begins with a byte order mark, which JSON does not allow")
		return
	}
	tok, _, _, err := w.next()
	if err == nil {
		err = w.value("", tok, 0, 0, 0)
	}
	if err == nil {
		if _, _, _, end := w.next(); end != io.EOF {
			err = errors.New("something follows the value")
		}
	}
	if err != nil {
		r.malformed(w.faultAt(err), err.Error())
	}
}

type jsonWalk struct {
	*configReader
	decoder *json.Decoder
}

// next returns a token and its bytes. The decoder tells only where a token ends; it begins after white space and separators.
func (w jsonWalk) next() (tok json.Token, start, end int, err error) {
	start = int(w.decoder.InputOffset())
	tok, err = w.decoder.Token()
	end = int(w.decoder.InputOffset())
	for start < end && strings.IndexByte(" \t\r\n,:", w.src[start]) >= 0 {
		start++
	}
	return tok, start, end, err
}

func (w jsonWalk) faultAt(err error) int {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return min(max(int(syntax.Offset)-1, 0), len(w.src))
	}
	return min(int(w.decoder.InputOffset()), len(w.src))
}

// value takes the value that begins with tok. keyStart is the first byte of its key.
func (w jsonWalk) value(key string, tok json.Token, keyStart, end, depth int) error {
	if depth > maxConfigDepth {
		return fmt.Errorf("it is nested deeper than %d levels", maxConfigDepth)
	}
	switch tok {
	case json.Delim('{'):
		return w.object(key, depth)
	case json.Delim('['):
		return w.list(key, keyStart, depth)
	}
	if key != "" {
		w.add(key, jsonScalar(tok), keyStart, end)
	}
	return nil
}

func (w jsonWalk) object(prefix string, depth int) error {
	for w.decoder.More() {
		keyToken, start, _, err := w.next()
		if err != nil {
			return err
		}
		name, _ := keyToken.(string)
		tok, _, end, err := w.next()
		if err != nil {
			return err
		}
		if err := w.value(joinKey(prefix, name), tok, start, end, depth+1); err != nil {
			return err
		}
	}
	_, _, _, err := w.next()
	return err
}

// list takes a list of scalars as one value, and the objects and lists in a list by their position.
func (w jsonWalk) list(key string, keyStart, depth int) error {
	values, nested := []any{}, false
	for i := 0; w.decoder.More(); i++ {
		tok, start, end, err := w.next()
		if err != nil {
			return err
		}
		if _, opens := tok.(json.Delim); opens {
			nested = true
			if err := w.value(joinKey(key, strconv.Itoa(i)), tok, start, end, depth+1); err != nil {
				return err
			}
			continue
		}
		values = append(values, jsonScalar(tok))
	}
	_, _, end, err := w.next()
	if err == nil && !nested && key != "" {
		w.add(key, values, keyStart, end)
	}
	return err
}

func jsonScalar(tok json.Token) any {
	number, ok := tok.(json.Number)
	if !ok {
		return tok
	}
	if n, err := number.Int64(); err == nil {
		return n
	}
	if f, err := number.Float64(); err == nil {
		return f
	}
	return number.String()
}
