package baseline

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/metrics"
)

// The kinds of task. A forecast is a regression whose rows have a time.
const (
	Classification = "classification"
	Regression     = "regression"
	Forecast       = "forecast"
)

// The names of the baselines.
const (
	MajorityClass    = "majority_class"
	Mean             = "mean"
	Median           = "median"
	Persistence      = "persistence"
	Climatology      = "seasonal_climatology"
	NearestNeighbour = "nearest_neighbour"
	Ridge            = "ridge"
)

// Spec asks for baselines. Train and Test are CSV or TSV files of one dataset; columns are named as in their headers.
type Spec struct {
	Train, Test string
	Between     []string // parts that lie between the two, such as val: a forecast of Test may look back on them; nothing is fitted there
	ID          string   // not a feature; may be empty
	Target      string   // what is predicted
	Features    []string // empty: every column but ID, Target, Time and Group
	Time        string   // empty: no persistence and no climatology
	Group       string   // persistence and climatology stay within it (a station); may be empty
	Horizon     int      // how many steps ahead a forecast looks; 0 is 1
	Metrics     []string // as people write them: "test/rmse", "acc"
	Kind        string   // Classification, Regression or Forecast
}

// Result is what one baseline reaches in one metric, over N rows of the test part. Metric is the name as it was computed
// (f1 becomes f1_macro); Why says how the baseline works and what was sampled or left out.
type Result struct {
	Name   string  `json:"name"`
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
	N      int     `json:"n"`
	Why    string  `json:"why"`
}

// Better says whether the model's value beats the baseline's in a metric. It is false where they are equal, where one is
// not a number, and where it is not known which side of the metric is better.
func Better(metric string, model, base float64) bool {
	if math.IsNaN(model) || math.IsNaN(base) {
		return false
	}
	switch _, mode, _ := metrics.MetricKind(metric); mode {
	case "max":
		return model > base
	case "min":
		return model < base
	}
	return false
}

// check refuses a spec that can't be used.
func (s Spec) check() error {
	refuse := func(code, field, what, expected, remedy string) error {
		return finding.Refuse(finding.Finding{Code: code, Severity: finding.Error, What: what, Where: &finding.Where{Field: field}, Expected: expected, Remedy: remedy})
	}
	switch {
	case !slices.Contains([]string{Classification, Regression, Forecast}, s.Kind):
		return refuse("baseline_kind_unknown", "kind", fmt.Sprintf("there is no kind %q", s.Kind), "classification, regression or forecast", "say what the model predicts")
	case s.Target == "":
		return refuse("baseline_target_missing", "target", "no target is named", "the column that the model predicts", "name it")
	case s.Train == "" || s.Test == "":
		return refuse("baseline_part_missing", "train, test", "a part of the split is missing", "a file of train and one of test", "make the split first")
	case s.Horizon < 0:
		return refuse("baseline_horizon_invalid", "horizon", fmt.Sprintf("the horizon is %d", s.Horizon), "steps ahead, 1 or more", "correct it")
	}
	return nil
}

// wanted are the metrics that can be computed for the kind, each once under its canonical name; the others are findings.
func (s Spec) wanted() (names []string, found []finding.Finding) {
	kind := Classification
	if s.Kind != Classification {
		kind = Regression
	}
	for _, name := range s.Metrics {
		of, _, known := metrics.MetricKind(name)
		canonical := metrics.ParseKey(name).Name
		switch {
		case slices.Contains(names, canonical):
		case !known || of != kind:
			found = append(found, finding.Finding{Code: "baseline_metric_not_computed", Severity: finding.Note,
				What: fmt.Sprintf("no baseline has a value of %.60q for a %s", name, s.Kind), Where: &finding.Where{Field: "metrics"},
				Expected: strings.Join(examples[kind], ", "), Remedy: "judge the model against baselines by one of these too"})
		default:
			names = append(names, canonical)
		}
	}
	return names, found
}

var examples = map[string][]string{
	Classification: {"accuracy", "f1_macro", "f1_weighted", "precision_macro", "recall_macro", "logloss"},
	Regression:     {"rmse", "mae", "mse", "r2"},
}
