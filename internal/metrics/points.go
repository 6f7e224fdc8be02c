package metrics

import "strings"

// bookkeeping are the fields of a row that place it and are no metrics. _step, _timestamp and _runtime are W&B's.
var bookkeeping = map[string]string{
	"time": "time", "timestamp": "time", "ts": "time", "_timestamp": "time", "wall_time": "time",
	"step": "step", "global_step": "step", "iteration": "step", "iter": "step", "_step": "step",
	"epoch": "epoch", "split": "split", "unit": "unit", "nonfinite": "nonfinite",
	"_runtime": "skip",
}

// splitFields also name the row's split, where their text is a known one (OpenMMLab writes "mode": "train").
var splitFields = map[string]bool{"phase": true, "stage": true, "mode": true}

// maxNesting is how deep values in nested objects of a row are followed ({"val": {"loss": 0.3}}).
const maxNesting = 3

// keyCache remembers parsed names, since a log repeats a few of them for ever.
type keyCache map[[2]string]Key

func (c keyCache) key(split, name string) Key {
	key, ok := c[[2]string{split, name}]
	if !ok {
		key = rowKey(split, name)
		if len(c) < 2*MaxKeys {
			c[[2]string{split, name}] = key
		}
	}
	return key
}

// rowPoints turns a row into its points. empty are the keys whose value is null: the script had none to log.
func rowPoints(at line, row []field, keys keyCache) (points []Point, empty []Key, problem *rowProblem) {
	base := Point{Line: at.number, Start: at.start, End: at.end}
	split, nonFinite := "", ""
	var name, value *field
	for i := range row {
		f := &row[i]
		switch f.name {
		case "name", "metric":
			if f.kind == kindString {
				name = f
			}
		case "value":
			value = f
		}
		switch bookkeeping[strings.ToLower(f.name)] {
		case "split":
			if text, _ := f.string(); f.kind == kindString {
				split = text
			}
		case "nonfinite":
			text, _ := f.string()
			nonFinite = nonFiniteWord(text)
		default:
			place(&base, f)
		}
		if split == "" && splitFields[f.name] && f.kind == kindString {
			if text, _ := f.string(); splitAliases[strings.ToLower(text)] != "" {
				split = text
			}
		}
	}
	w := wideRow{base: base, split: split, nonFinite: nonFinite, keys: keys}
	if name == nil || value == nil && nonFinite == "" {
		w.fields("", row, 0)
		return w.points, w.empty, nil
	}
	text, _ := name.string()
	key := keys.key(split, text)
	if key.Name == "" {
		return nil, nil, &rowProblem{at: name.at, what: "the metric has no name"}
	}
	if value == nil {
		value = &field{kind: kindNull}
	}
	if !w.value(key, *value, true) {
		return nil, nil, &rowProblem{at: value.at, what: "the value of " + clip(key.String()) + " is not a number"}
	}
	return w.points, w.empty, nil
}

// place takes the time, step, epoch or unit that a field states.
func place(point *Point, f *field) {
	switch bookkeeping[strings.ToLower(f.name)] {
	case "time":
		if value, nonFinite, _, ok := f.number(); ok && nonFinite == "" && f.kind == kindNumber {
			point.Time = value
		}
	case "step":
		if n, ok := f.whole(); ok {
			point.Step = &n
		}
	case "epoch":
		if value, nonFinite, _, ok := f.number(); ok && nonFinite == "" {
			point.Epoch = &value
		}
	case "unit":
		point.Unit, _ = f.string()
	}
}

// wideRow collects the points of one row.
type wideRow struct {
	base      Point
	split     string
	nonFinite string
	keys      keyCache
	points    []Point
	empty     []Key
}

// fields takes every numeric field as a metric; text, flags and lists are not metrics.
func (w *wideRow) fields(prefix string, row []field, depth int) {
	for _, f := range row {
		if f.name == "" || depth == 0 && bookkeeping[strings.ToLower(f.name)] != "" {
			continue
		}
		name := prefix + f.name
		if f.kind == kindObject {
			if depth < maxNesting {
				nested := &scanner{text: f.raw}
				inner, _ := nested.object(0, nil) // well formed: the row was scanned whole
				w.fields(name+"/", inner, depth+1)
			}
			continue
		}
		if key := w.keys.key(w.split, name); key.Name != "" {
			w.value(key, f, false)
		}
	}
}

// value adds a point, or notes that there was none; false when the field is no number. Numbers in strings are only
// taken where a value is certain to be meant (lenient).
func (w *wideRow) value(key Key, f field, lenient bool) bool {
	point := w.base
	point.Split, point.Name = key.Split, key.Name
	switch {
	case f.kind == kindNull && w.nonFinite != "":
		point.NonFinite, point.Value, point.Text = w.nonFinite, nonFiniteValue(w.nonFinite), w.nonFinite
	case f.kind == kindNull:
		w.empty = append(w.empty, key)
		return true
	case f.kind == kindNumber, f.kind == kindNonFinite, f.kind == kindString && lenient:
		value, nonFinite, text, ok := f.number()
		if !ok {
			return false
		}
		point.Value, point.NonFinite, point.Text = value, nonFinite, text
		if nonFinite == "" {
			point.Digits = printedDecimals(text)
		}
	default:
		return false
	}
	w.points = append(w.points, point)
	return true
}

// clip shortens foreign text for a message.
func clip(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// Plain is the value as JSON can hold it: a number, or the text "nan", "inf" or "-inf".
func (p Point) Plain() any {
	if p.NonFinite != "" {
		return strings.ToLower(p.NonFinite)
	}
	return p.Value
}
