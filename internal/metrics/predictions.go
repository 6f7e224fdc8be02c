package metrics

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// MaxPredictions is the most rows of a predictions file that are read.
const MaxPredictions = 2_000_000

// maxScores bounds the class scores of one prediction.
const maxScores = 100_000

// Prediction is one sample's row. Target (nil when the row has none) and Prediction are float64, string, bool,
// []float64 (class scores by class index) or map[string]float64 (class scores by label). A null or NaN is math.NaN().
// The row's bytes are [Start, End).
type Prediction struct {
	ID         string `json:"id"`
	Target     any    `json:"target"`
	Prediction any    `json:"prediction"`
	Line       int    `json:"line"`
	Start      int64  `json:"start"`
	End        int64  `json:"end"`
}

// Predictions is a predictions file. Split comes from its name, predictions-<split>.jsonl, and is "" for another name.
type Predictions struct {
	Path   string       `json:"path"`
	Split  string       `json:"split,omitempty"`
	SHA256 string       `json:"sha256"`
	Bytes  int64        `json:"bytes"`
	Rows   []Prediction `json:"rows"`
}

var predictionRowShape = `{"id": "row-17", "target": 1.2, "prediction": 1.1}`

// ReadPredictions reads a predictions file in JSON lines. Every row is kept, also a second one of an id.
//
// Findings, errors all of them, since a lost row is a lost sample: file_empty, not_text, line_truncated, line_too_long,
// predictions_line_malformed, prediction_id_duplicate, predictions_too_many. An error is a *finding.Refused
// (file_missing, file_unreadable, not_a_file) or of the disk.
// The id may also stand under the name of the data's own id column, and target and prediction under the names that are usual
// elsewhere (otherNames), where a row does not have them under their own.
func ReadPredictions(path, idColumn string) (*Predictions, []finding.Finding, error) {
	return readPredictions(path, idColumn, MaxPredictions)
}

// otherNames are the usual names of target and prediction: those of scikit-learn's arguments and of common exports.
var otherNames = map[string]string{"sample_id": "id", "sample": "id", "y_true": "target", "truth": "target", "actual": "target", "y_pred": "prediction", "pred": "prediction", "predicted": "prediction", "yhat": "prediction", "y_hat": "prediction"}

// canonicalFields gives the fields of a row the names of formats.md where they have other ones.
func canonicalFields(row []field, idColumn string) []field {
	has := func(name string) bool { return slices.ContainsFunc(row, func(f field) bool { return f.name == name }) }
	for i, f := range row {
		name := otherNames[f.name]
		if f.name == idColumn && idColumn != "" {
			name = "id"
		}
		if name != "" && !has(name) {
			row[i].name = name
		}
	}
	return row
}

func readPredictions(path, idColumn string, limit int) (*Predictions, []finding.Finding, error) {
	preds := &Predictions{Path: path, Split: predictionSplit(path)}
	first := map[string]int{}
	twice := problem{}
	beyond := 0
	file := rowFile{path: path, malformed: "predictions_line_malformed", severity: finding.Error, rowShape: predictionRowShape, form: "JSON lines"}
	read, err := file.each(func(at line, row []field) *rowProblem {
		prediction, bad := predictionRow(at, canonicalFields(row, idColumn))
		if bad != nil {
			return bad
		}
		if len(preds.Rows) >= limit {
			beyond++
			return nil
		}
		if before, ok := first[prediction.ID]; ok {
			twice.add(fmt.Sprintf("%q (lines %d and %d)", clip(prediction.ID), before, at.number), finding.Where{Path: path, Line: at.number, Byte: at.start})
		} else {
			first[prediction.ID] = at.number
		}
		preds.Rows = append(preds.Rows, prediction)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	preds.SHA256, preds.Bytes = read.sha256, read.bytes
	found := read.findings
	if twice.count > 0 {
		found = append(found, twice.finding("prediction_id_duplicate",
			"%d rows repeat an id: %s", "one row per sample id", "write each sample once, in one process"))
	}
	if beyond > 0 {
		found = append(found, finding.Finding{
			Code: "predictions_too_many", Severity: finding.Error, Where: &finding.Where{Path: path},
			What: fmt.Sprintf("%d rows beyond the first %d are not read", beyond, limit), Remedy: "write predictions of a smaller split",
		})
	}
	return preds, found, nil
}

// predictionSplit reads the split from predictions-<split>.jsonl.
func predictionSplit(path string) string {
	name := strings.ToLower(filepath.Base(path))
	name = strings.TrimSuffix(name, filepath.Ext(name))
	for _, prefix := range []string{"predictions-", "predictions_", "predictions."} {
		if split, ok := strings.CutPrefix(name, prefix); ok {
			return canonicalSplit(split)
		}
	}
	return ""
}

// predictionRow takes id, target and prediction from a row.
func predictionRow(at line, row []field) (Prediction, *rowProblem) {
	made := Prediction{Line: at.number, Start: at.start, End: at.end}
	predicted := false
	for _, f := range row {
		switch f.name {
		case "id":
			id, ok := f.string()
			if !ok || id == "" {
				return made, &rowProblem{at: f.at, what: "the id is neither text nor a number"}
			}
			if n, whole := f.whole(); whole && f.kind == kindNumber {
				id = fmt.Sprint(n) // pandas writes integer ids as 17.0 once a column has gaps
			}
			made.ID = id
		case "target":
			if f.kind == kindNull {
				continue
			}
			value, ok := predictionValue(f)
			if !ok {
				return made, &rowProblem{at: f.at, what: "the target is neither number, text nor list of numbers"}
			}
			made.Target = value
		case "prediction":
			value, ok := predictionValue(f)
			if !ok {
				return made, &rowProblem{at: f.at, what: "the prediction is neither number, text nor class scores"}
			}
			made.Prediction, predicted = value, true
		}
	}
	if made.ID == "" {
		return made, &rowProblem{what: `the row has no "id"`}
	}
	if !predicted {
		return made, &rowProblem{what: `the row has no "prediction"`}
	}
	return made, nil
}

// predictionValue decodes a target or prediction; see Prediction for the types.
func predictionValue(f field) (any, bool) {
	switch f.kind {
	case kindNull:
		return math.NaN(), true
	case kindBool:
		return string(f.raw) == "true", true
	case kindNumber, kindNonFinite:
		value, _, _, ok := f.number()
		return value, ok
	case kindString:
		return decodeString(f.raw), true
	case kindArray:
		return scoreList(parseArray(f.raw))
	case kindObject:
		s := &scanner{text: f.raw}
		inner, bad := s.object(0, nil)
		if bad != nil || len(inner) == 0 || len(inner) > maxScores {
			return nil, false
		}
		scores := make(map[string]float64, len(inner))
		for _, score := range inner {
			value, ok := scoreValue(score)
			if !ok {
				return nil, false
			}
			scores[score.name] = value
		}
		return scores, true
	}
	return nil, false
}

func scoreList(elements []field) (any, bool) {
	if len(elements) == 0 || len(elements) > maxScores {
		return nil, false
	}
	scores := make([]float64, len(elements))
	for i, element := range elements {
		value, ok := scoreValue(element)
		if !ok {
			return nil, false
		}
		scores[i] = value
	}
	return scores, true
}

// scoreValue is a number; null is NaN. Numbers in quotes are labels and not scores.
func scoreValue(f field) (float64, bool) {
	if f.kind == kindNull {
		return math.NaN(), true
	}
	if f.kind != kindNumber && f.kind != kindNonFinite {
		return 0, false
	}
	value, _, _, ok := f.number()
	return value, ok
}

// problem counts samples with the same fault and keeps the first few as examples.
type problem struct {
	count    int
	examples []string
	first    *finding.Where
}

func (p *problem) add(example string, where finding.Where) {
	const most = 3
	p.count++
	if len(p.examples) < most {
		p.examples = append(p.examples, example)
	}
	if p.first == nil && where.Path != "" {
		p.first = &where
	}
}

// finding renders the problem; what has a %d for the count and a %s for the examples.
func (p *problem) finding(code, what, expected, remedy string) finding.Finding {
	examples := strings.Join(p.examples, ", ")
	if p.count > len(p.examples) {
		examples += ", …"
	}
	return finding.Finding{
		Code: code, Severity: finding.Error, What: fmt.Sprintf(what, p.count, examples),
		Where: p.first, Expected: expected, Remedy: remedy,
	}
}
