package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// formula computes a metric over samples, filling Value and N (and Metric, when the name left something open), and gives
// it as a statistic of the N samples for the bootstrap.
type formula struct {
	kind, mode string
	compute    func(metric, path string, samples []sample, result *Result) (statistic, []finding.Finding, error)
}

// formulas are the metrics that can be recomputed. Definitions follow scikit-learn's metrics module: macro averages over
// the labels of targets and predictions together, a class without prediction counts 0, r2 is 1 - SS_res/SS_tot, logloss is
// the mean negative natural logarithm of the target class's probability, balanced_accuracy the mean recall of the classes
// that have samples, roc_auc the chance that a sample of class 1 scores above one of class 0, ties counting half.
var formulas map[string]formula

func init() { // a literal would refer to itself through the error messages
	formulas = map[string]formula{
		"rmse": {"regression", "min", regression}, "mse": {"regression", "min", regression},
		"mae": {"regression", "min", regression}, "r2": {"regression", "max", regression},
		"accuracy": {"classification", "max", classification},
		"logloss":  {"classification", "min", logLoss},
		"roc_auc":  {"classification", "max", rocAUC}, "balanced_accuracy": {"classification", "max", classification},
	}
	for _, name := range []string{"precision", "recall", "f1"} {
		for _, average := range []string{"", "_macro", "_weighted", "_binary"} {
			formulas[name+average] = formula{"classification", "max", classification}
		}
	}
}

// directions are metrics that have a better side and can't be recomputed from predictions.
var directions = map[string][2]string{
	"loss": {"loss", "min"}, "perplexity": {"loss", "min"}, "cross_entropy": {"loss", "min"}, "mape": {"regression", "min"},
	"auc": {"classification", "max"}, // of which curve is not said
}

// MetricKind says what a metric is for (regression, classification, loss, or "" for an unknown name) and which side is
// better (max or min). known means that Recompute has a formula for it; kind and mode may be set without.
func MetricKind(name string) (kind string, mode string, known bool) {
	metric := ParseKey(name).Name
	if f, ok := formulas[metric]; ok {
		return f.kind, f.mode, true
	}
	direction := directions[metric]
	return direction[0], direction[1], false
}

func recomputable() []string {
	names := make([]string, 0, len(formulas))
	for name := range formulas {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// numeric reads a number from text as data files have it; NaN and infinities are no numbers here.
func numeric(text string) (float64, bool) {
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return value, err == nil && !math.IsNaN(value) && !math.IsInf(value, 0)
}

// pairsOfNumbers are targets and errors of samples, of a forecast one for each step; sample i has those from start[i] to
// start[i+1].
type pairsOfNumbers struct {
	targets, errors []float64
	start           []int
}

func (p *pairsOfNumbers) add(targets, predicted []float64) {
	if p.start == nil {
		p.start = []int{0}
	}
	for i, target := range targets {
		p.targets = append(p.targets, target)
		p.errors = append(p.errors, predicted[i]-target)
	}
	p.start = append(p.start, len(p.targets))
}

// regression computes rmse, mse, mae and r2, over all steps of forecasts together.
func regression(metric, path string, samples []sample, result *Result) (statistic, []finding.Finding, error) {
	var notNumber, notFinite, badTarget, badShape problem
	var pairs pairsOfNumbers
	for _, s := range samples {
		targets, ok := targetNumbers(s.target)
		if !ok {
			badTarget.add(fmt.Sprintf("%q: %q", clip(s.row.ID), clip(s.target)), finding.Where{})
			continue
		}
		values, ok := predictedNumbers(s.row.Prediction, len(targets))
		switch {
		case !ok:
			notNumber.add(s.example(), s.where(path))
		case len(values) != len(targets):
			badShape.add(fmt.Sprintf("%q: %d numbers for %d (line %d)", clip(s.row.ID), len(values), len(targets), s.row.Line), s.where(path))
		case slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }):
			notFinite.add(s.example(), s.where(path))
		default:
			pairs.add(targets, values)
			result.N++
		}
	}
	if badTarget.count > 0 {
		return nil, nil, finding.Refuse(badTarget.finding("target_not_numeric", "%d targets are no numbers: %s",
			"numbers for "+metric, "use a classification metric, or clean the target column"))
	}
	found := notFiniteFinding(notFinite)
	if notNumber.count > 0 {
		found = append(found, notNumber.finding("prediction_not_number", "%d predictions are not one number: %s",
			"one number per sample for "+metric, "write the predicted value, in the target's unit"))
	}
	if badShape.count > 0 {
		found = append(found, badShape.finding("prediction_shape_mismatch", "%d predictions have another length than their target: %s",
			"a number for each step of the target", "predict the whole horizon, and nothing beside it"))
	}
	if result.N == 0 {
		return nil, nil, finding.Refuse(found...)
	}
	value := pairs.statistic(metric)
	var ok bool
	if result.Value, ok = value(nil); !ok {
		return nil, nil, undefined(metric, path, "the targets are all equal (or the sums overflow)")
	}
	result.ByStep = pairs.bySteps(metric)
	return value, found, nil
}

// statistic is rmse, mse, mae or r2 over samples.
func (p *pairsOfNumbers) statistic(metric string) statistic {
	return func(weights []int32) (float64, bool) {
		n, mean, squares, absolute, total := 0.0, 0.0, 0.0, 0.0, 0.0
		for i := range len(p.start) - 1 {
			w := weightOf(weights, i)
			if w == 0 {
				continue
			}
			for j := p.start[i]; j < p.start[i+1]; j++ {
				n += w
				mean += w * p.targets[j]
				squares += w * p.errors[j] * p.errors[j]
				absolute += w * math.Abs(p.errors[j])
			}
		}
		mean /= n
		value := 0.0
		switch metric {
		case "mse":
			value = squares / n
		case "rmse":
			value = math.Sqrt(squares / n)
		case "mae":
			value = absolute / n
		case "r2":
			for i := range len(p.start) - 1 {
				w := weightOf(weights, i)
				for j := p.start[i]; j < p.start[i+1]; j++ {
					total += w * (p.targets[j] - mean) * (p.targets[j] - mean)
				}
			}
			value = 1 - squares/total // NaN or -Inf when total is 0
		}
		return value, !math.IsNaN(value) && !math.IsInf(value, 0)
	}
}

// maxSteps bounds the steps that are told one by one.
const maxSteps = 1000

// bySteps is the metric at each step of forecasts that all have as many; nil for single numbers.
func (p *pairsOfNumbers) bySteps(metric string) []float64 {
	steps := p.start[1]
	for i := range len(p.start) - 1 {
		if p.start[i+1]-p.start[i] != steps {
			return nil
		}
	}
	if steps < 2 || steps > maxSteps {
		return nil
	}
	values := make([]float64, 0, steps)
	for step := range steps {
		var one pairsOfNumbers
		for i := range len(p.start) - 1 {
			j := p.start[i] + step
			one.add(p.targets[j:j+1], []float64{p.targets[j] + p.errors[j]})
		}
		value, ok := one.statistic(metric)(nil)
		if !ok {
			return nil
		}
		values = append(values, value)
	}
	return values
}

// targetNumbers reads a target as a number, or as the list of numbers of a forecast.
func targetNumbers(text string) ([]float64, bool) {
	if number, ok := numeric(text); ok {
		return []float64{number}, true
	}
	var numbers []float64
	if text = strings.TrimSpace(text); !strings.HasPrefix(text, "[") || json.Unmarshal([]byte(text), &numbers) != nil || len(numbers) == 0 {
		return nil, false
	}
	return numbers, true
}

// predictedNumbers reads a prediction as numbers; one alone where one is asked for.
func predictedNumbers(value any, asked int) ([]float64, bool) {
	if list, ok := value.([]float64); ok && asked > 1 {
		return list, true
	}
	number, ok := scalar(value)
	return []float64{number}, ok
}

// scalar reads a prediction as one number; a list of one element is what a tensor of shape (1,) becomes.
func scalar(value any) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v, true
	case string:
		return numeric(v)
	case []float64:
		if len(v) == 1 {
			return v[0], true
		}
	}
	return 0, false
}

func (s sample) example() string {
	return fmt.Sprintf("%q: %s (line %d)", clip(s.row.ID), clip(fmt.Sprint(s.row.Prediction)), s.row.Line)
}

func (s sample) where(path string) finding.Where {
	return finding.Where{Path: path, Line: s.row.Line, Byte: s.row.Start}
}

func notFiniteFinding(notFinite problem) []finding.Finding {
	if notFinite.count == 0 {
		return nil
	}
	return []finding.Finding{notFinite.finding("prediction_nonfinite", "%d predictions are NaN, infinite or null: %s",
		"finite predictions", "the model diverged or a sample failed: find out which, and do not drop it")}
}

func undefined(metric, path, why string) error {
	return finding.Refuse(finding.Finding{
		Code: "metric_undefined", Severity: finding.Error, What: metric + " has no value here: " + why,
		Where: &finding.Where{Path: path}, Remedy: "judge by another metric",
	})
}
