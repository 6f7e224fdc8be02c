package metrics

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Range is where a number came from: bytes [Start, End) of a file with that hash.
type Range struct {
	Path   string `json:"path"`
	Start  int64  `json:"start"`
	End    int64  `json:"end"`
	SHA256 string `json:"sha256"`
}

// Result is a recomputed metric. Value is over N samples, in the square of the target's unit for mse, its unit for rmse
// and mae, nats for logloss, a fraction for the others. Only a Whole result, over every target exactly once and without
// an error finding, may be called recomputed; another one is a hint for whoever repairs the predictions.
type Result struct {
	Metric string  `json:"metric"` // as computed: "f1" becomes f1_binary or f1_macro
	Value  float64 `json:"value"`
	N      int     `json:"n"`
	Whole  bool    `json:"whole"`
	From   Range   `json:"from"`
	// Interval is the 95 % percentile bootstrap interval over samples (a forecast of several steps is one sample), the
	// same for the same file; see IntervalLevel. Resamples is how many draws it rests on, 0 where there is no interval:
	// fewer than 10 samples, or a metric that has no value on many draws.
	Interval  [2]float64 `json:"interval"`
	Resamples int        `json:"resamples"`
	// ByStep is the metric at each step ahead, where every prediction is a list of the same length, at most 1000 long.
	ByStep []float64 `json:"by_step,omitempty"`
}

// sample is a prediction beside the server's own target for its id.
type sample struct {
	row    *Prediction
	target string
}

// Recompute computes a metric from predictions and the server's own targets (id → text as it stands in the data), matched
// by sample id. The target that the script wrote is only compared with ours. A forecast of several steps is one sample
// whose prediction is a list and whose target is the list of as many numbers in JSON ("[1.5, 1.7]").
//
// Findings: prediction_missing, prediction_id_foreign, prediction_id_duplicate, target_mismatch, target_missing, prediction_nonfinite,
// prediction_not_number, prediction_shape_mismatch, prediction_not_class, scores_not_probabilities (all errors, with counts and examples; Whole is
// false then), metric_average_assumed (note). It refuses, with a *finding.Refused, what can't be computed at all:
// metric_not_recomputable, targets_empty, target_not_numeric, metric_undefined, or no id in common.
func Recompute(name string, preds *Predictions, targets map[string]string) (Result, []finding.Finding, error) {
	metric := ParseKey(name).Name
	formula, ok := formulas[metric]
	if !ok {
		return Result{}, nil, finding.Refuse(finding.Finding{
			Code: "metric_not_recomputable", Severity: finding.Warning, What: clip(name) + " can't be recomputed from predictions",
			Expected: "one of " + strings.Join(recomputable(), ", "), Remedy: "its claims stay at the level logged",
		})
	}
	if len(targets) == 0 {
		return Result{}, nil, finding.Refuse(finding.Finding{
			Code: "targets_empty", Severity: finding.Error, What: "there are no targets to compare " + preds.Path + " with",
			Remedy: "the split of the data that the predictions are for must hold targets",
		})
	}
	samples, found := match(preds, targets)
	if len(samples) == 0 {
		return Result{}, nil, finding.Refuse(found...)
	}
	result := Result{Metric: metric, From: Range{Path: preds.Path, End: preds.Bytes, SHA256: preds.SHA256}}
	value, more, err := formula.compute(metric, preds.Path, samples, &result)
	if err != nil {
		return Result{}, nil, err
	}
	result.Interval, result.Resamples = interval(result.N, value)
	found = append(found, more...)
	result.Whole = !finding.Has(found, finding.Error) && result.N == len(targets)
	return result, found, nil
}

// match pairs predictions with targets by id, the first row of an id only, and reports what does not pair.
func match(preds *Predictions, targets map[string]string) ([]sample, []finding.Finding) {
	var foreign, twice, differs, blank problem
	largest := largestMagnitude(targets)
	seen := make(map[string]bool, len(preds.Rows))
	samples := make([]sample, 0, len(preds.Rows))
	for i := range preds.Rows {
		row := &preds.Rows[i]
		where := finding.Where{Path: preds.Path, Line: row.Line, Byte: row.Start}
		target, known := targets[row.ID]
		switch {
		case !known:
			foreign.add(fmt.Sprintf("%q (line %d)", clip(row.ID), row.Line), where)
			continue
		case seen[row.ID]:
			twice.add(fmt.Sprintf("%q (line %d)", clip(row.ID), row.Line), where)
			continue
		}
		seen[row.ID] = true
		if strings.TrimSpace(target) == "" {
			blank.add(fmt.Sprintf("%q", clip(row.ID)), finding.Where{})
			continue
		}
		if row.Target != nil && !sameTarget(row.Target, target, largest) {
			differs.add(fmt.Sprintf("%q: %s in the file, %s in the data (line %d)", clip(row.ID), clip(fmt.Sprint(row.Target)), clip(target), row.Line), where)
		}
		samples = append(samples, sample{row: row, target: target})
	}
	found := missing(preds.Path, targets, seen)
	if foreign.count > 0 {
		found = append(found, foreign.finding("prediction_id_foreign", "%d predictions have an id that this split lacks: %s",
			"ids such as "+exampleID(targets), "predict the split's own samples, under the ids of the data"))
	}
	if twice.count > 0 {
		found = append(found, twice.finding("prediction_id_duplicate", "%d rows repeat an id: %s",
			"one row per sample id", "write each sample once, in one process"))
	}
	if blank.count > 0 {
		found = append(found, blank.finding("target_missing", "%d samples have no target in the data: %s",
			"a target for every sample of the split", "leave samples without a target out of the split"))
	}
	if differs.count > 0 {
		found = append(found, differs.finding("target_mismatch", "%d targets contradict the data: %s",
			"the target as it stands in the data", "check row order, scaling and label encoding in the script; the metric is computed on the data's targets"))
	}
	return samples, found
}

// missing reports the targets without a prediction.
func missing(path string, targets map[string]string, seen map[string]bool) []finding.Finding {
	if len(seen) == len(targets) {
		return nil
	}
	var ids []string
	for id := range targets {
		if !seen[id] {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	var lacking problem
	for _, id := range ids {
		lacking.add(fmt.Sprintf("%q", clip(id)), finding.Where{Path: path})
	}
	return []finding.Finding{lacking.finding("prediction_missing",
		fmt.Sprintf("%%d of %d samples have no prediction: %%s", len(targets)),
		"a row for every sample of the split", "predict all of them (no dropped last batch), and see the log for samples that failed")}
}

// exampleID is one id of the data, the same each time.
func exampleID(targets map[string]string) string {
	first, found := "", false
	for id := range targets {
		if !found || id < first {
			first, found = id, true
		}
	}
	return fmt.Sprintf("%q", clip(first))
}

// largestMagnitude is the scale of numeric targets, 0 when they are labels.
func largestMagnitude(targets map[string]string) float64 {
	largest := 0.0
	for _, text := range targets {
		numbers, _ := targetNumbers(text)
		for _, value := range numbers {
			largest = math.Max(largest, math.Abs(value))
		}
	}
	return largest
}

// sameTarget compares a target from the file with ours. Numbers may differ by what float32 arithmetic in the script
// loses: 1e-5 of the number, and 1e-7 of the largest target where values were scaled and scaled back.
func sameTarget(inFile any, ours string, largest float64) bool {
	text := strings.TrimSpace(ours)
	switch value := inFile.(type) {
	case float64:
		if number, ok := numeric(text); ok {
			return math.Abs(value-number) <= 1e-5*math.Abs(number)+1e-7*largest
		}
		return sameClass(value, text)
	case bool:
		return sameClass(value, text)
	case []float64: // a target of shape (1,), or the steps of a forecast
		numbers, ok := targetNumbers(ours)
		if !ok || len(numbers) != len(value) {
			return len(value) == 1 && sameTarget(value[0], ours, largest)
		}
		for i, number := range numbers {
			if !(math.Abs(value[i]-number) <= 1e-5*math.Abs(number)+1e-7*largest) {
				return false
			}
		}
		return true
	case string:
		if number, ok := numeric(value); ok {
			return sameTarget(number, ours, largest)
		}
		return strings.TrimSpace(value) == text || sameClass(value, text)
	}
	return false
}

// sameClass compares labels, true and True and 1 being one.
func sameClass(value any, text string) bool {
	truth := func(label string) string {
		switch label {
		case "true":
			return "1"
		case "false":
			return "0"
		}
		return label
	}
	return truth(classOf(value)) == truth(classOf(text))
}
