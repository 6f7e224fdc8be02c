package metrics

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// formula computes a metric over samples, filling Value and N (and Metric, when the name left something open).
type formula struct {
	kind, mode string
	compute    func(metric, path string, samples []sample, result *Result) ([]finding.Finding, error)
}

// formulas are the metrics that can be recomputed. Definitions follow scikit-learn's metrics module: macro averages over
// the labels of targets and predictions together, a class without prediction counts 0, r2 is 1 - SS_res/SS_tot, logloss is
// the mean negative natural logarithm of the target class's probability.
var formulas map[string]formula

func init() { // a literal would refer to itself through the error messages
	formulas = map[string]formula{
		"rmse": {"regression", "min", regression}, "mse": {"regression", "min", regression},
		"mae": {"regression", "min", regression}, "r2": {"regression", "max", regression},
		"accuracy": {"classification", "max", classification},
		"logloss":  {"classification", "min", logLoss},
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
	"auc": {"classification", "max"}, "roc_auc": {"classification", "max"}, "balanced_accuracy": {"classification", "max"},
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

// regression computes rmse, mse, mae and r2.
func regression(metric, path string, samples []sample, result *Result) ([]finding.Finding, error) {
	var notNumber, notFinite, badTarget problem
	var targets, errorsOf []float64
	for _, s := range samples {
		target, ok := numeric(s.target)
		if !ok {
			badTarget.add(fmt.Sprintf("%q: %q", clip(s.row.ID), clip(s.target)), finding.Where{})
			continue
		}
		value, ok := scalar(s.row.Prediction)
		switch {
		case !ok:
			notNumber.add(s.example(), s.where(path))
		case math.IsNaN(value) || math.IsInf(value, 0):
			notFinite.add(s.example(), s.where(path))
		default:
			targets = append(targets, target)
			errorsOf = append(errorsOf, value-target)
		}
	}
	if badTarget.count > 0 {
		return nil, finding.Refuse(badTarget.finding("target_not_numeric", "%d targets are no numbers: %s",
			"numbers for "+metric, "use a classification metric, or clean the target column"))
	}
	found := notFiniteFinding(notFinite)
	if notNumber.count > 0 {
		found = append(found, notNumber.finding("prediction_not_number", "%d predictions are not one number: %s",
			"one number per sample for "+metric, "write the predicted value, in the target's unit"))
	}
	if len(targets) == 0 {
		return nil, finding.Refuse(found...)
	}
	value, ok := regressionValue(metric, targets, errorsOf)
	if !ok {
		return nil, undefined(metric, path, "the targets are all equal (or the sums overflow)")
	}
	result.Value, result.N = value, len(targets)
	return found, nil
}

func regressionValue(metric string, targets, errorsOf []float64) (float64, bool) {
	n := float64(len(targets))
	mean, squares, absolute, total := 0.0, 0.0, 0.0, 0.0
	for _, target := range targets {
		mean += target / n
	}
	for i, target := range targets {
		squares += errorsOf[i] * errorsOf[i]
		absolute += math.Abs(errorsOf[i])
		total += (target - mean) * (target - mean)
	}
	value := 0.0
	switch metric {
	case "mse":
		value = squares / n
	case "rmse":
		value = math.Sqrt(squares / n)
	case "mae":
		value = absolute / n
	case "r2":
		value = 1 - squares/total // NaN or -Inf when total is 0
	}
	return value, !math.IsNaN(value) && !math.IsInf(value, 0)
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
