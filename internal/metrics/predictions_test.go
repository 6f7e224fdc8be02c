package metrics

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

func TestReadPredictions(t *testing.T) {
	text := `{"id": "row-0", "target": 1.2, "prediction": 1.1}
{"id": 17.0, "target": "cat", "prediction": [0.25, NaN]}

{"id": "row-2", "prediction": {"cat": 0.25, "dog": 0.75}, "extra": 1}
{"id": "row-0", "target": null, "prediction": null}
{"id": "row-4", "target": true, "prediction": "dog"}
{"id": "row-5", "target": 1}
{"target": 1, "prediction": 1}
{"id": "row-7", "prediction": ["a"]}
{"id": "row-8", "prediction": 1`
	preds, found, err := ReadPredictions(writeFile(t, "predictions-validation.jsonl", text), "")
	if err != nil {
		t.Fatal(err)
	}
	want := []Prediction{
		{ID: "row-0", Target: 1.2, Prediction: 1.1, Line: 1, Start: 0, End: 49},
		{ID: "17", Target: "cat", Prediction: []float64{0.25, math.NaN()}, Line: 2, Start: 50, End: 106},
		{ID: "row-2", Prediction: map[string]float64{"cat": 0.25, "dog": 0.75}, Line: 4, Start: 108, End: 177},
		{ID: "row-0", Prediction: math.NaN(), Line: 5, Start: 178, End: 229},
		{ID: "row-4", Target: true, Prediction: "dog", Line: 6, Start: 230, End: 282},
	}
	equalNaN := cmp.Comparer(func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })
	if diff := cmp.Diff(want, preds.Rows, equalNaN); diff != "" {
		t.Error(diff)
	}
	if preds.Split != "val" || preds.Bytes != int64(len(text)) {
		t.Errorf("split %q, %d bytes", preds.Split, preds.Bytes)
	}
	wantCodes := []string{"predictions_line_malformed", "predictions_line_malformed", "predictions_line_malformed", "line_truncated", "prediction_id_duplicate"}
	if diff := cmp.Diff(wantCodes, codes(found)); diff != "" {
		t.Error(diff)
	}
	for _, f := range found {
		if f.Severity != finding.Error {
			t.Errorf("a lost sample is no error: %s", f)
		}
	}
	if last := found[len(found)-1]; last.What != `1 rows repeat an id: "row-0" (lines 1 and 5)` || last.Where.Line != 5 {
		t.Errorf("duplicate: %+v", last)
	}
	if found[0].Where.Line != 7 || !strings.Contains(found[0].What, `no "prediction"`) {
		t.Errorf("first malformed: %+v", found[0])
	}
}

func TestPredictionSplitFromTheName(t *testing.T) {
	for name, want := range map[string]string{
		"predictions-test.jsonl": "test", "a/predictions_eval.jsonl": "val", "predictions-ood.jsonl": "ood", "preds.jsonl": "", "predictions.jsonl": "",
	} {
		if got := predictionSplit(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestTooManyPredictionsAreAnError(t *testing.T) {
	preds, found, err := readPredictions(writeFile(t, "predictions-test.jsonl", `{"id":"a","prediction":1}
{"id":"b","prediction":1}
{"id":"c","prediction":1}
`), "", 2)
	if err != nil || len(preds.Rows) != 2 || !cmp.Equal(codes(found), []string{"predictions_too_many"}) {
		t.Errorf("%v %v %v", preds, codes(found), err)
	}
}

// predictionsOf makes predictions a, b, c, … of the given values.
func predictionsOf(values ...any) *Predictions {
	preds := &Predictions{Path: "predictions-test.jsonl", Bytes: 99, SHA256: "sha256:00"}
	for i, value := range values {
		preds.Rows = append(preds.Rows, Prediction{ID: string(rune('a' + i)), Prediction: value, Line: i + 1})
	}
	return preds
}

func targetsOf(values ...string) map[string]string {
	targets := map[string]string{}
	for i, value := range values {
		targets[string(rune('a'+i))] = value
	}
	return targets
}

// The expected numbers are worked out by hand from the definitions.
func TestRecompute(t *testing.T) {
	numbers, numberTargets := predictionsOf(1.1, "1.9", []float64{3.2}, 3.8), targetsOf("1", " 2.0", "3e0", "4")
	labels, labelTargets := predictionsOf("a", "b", "b", " b", "a"), targetsOf("a", "a", "b", "b", "c")
	binary, binaryTargets := predictionsOf(1.0, "0", 1.0, false, true), targetsOf("1", "1", "0", "0.0", "1")
	scores, scoreTargets := predictionsOf([]float64{0.8, 0.2}, []float64{0.3, 0.7}), targetsOf("0", "1")
	named, namedTargets := predictionsOf(map[string]float64{"cat": 0.8, "dog": 0.2}, map[string]float64{"cat": 0.6, "dog": 0.4}), targetsOf("cat", "dog")
	for _, c := range []struct {
		metric  string
		preds   *Predictions
		targets map[string]string
		want    float64
		as      string
	}{
		{"mse", numbers, numberTargets, 0.025, "mse"},
		{"test/rmse", numbers, numberTargets, 0.158113883008419, "rmse"},
		{"mean_absolute_error", numbers, numberTargets, 0.15, "mae"},
		{"r2", numbers, numberTargets, 0.98, "r2"},
		{"acc", labels, labelTargets, 0.6, "accuracy"},
		{"precision", labels, labelTargets, 7.0 / 18, "precision_macro"},
		{"recall_macro", labels, labelTargets, 0.5, "recall_macro"},
		{"macro_f1", labels, labelTargets, 1.3 / 3, "f1_macro"},
		{"f1_weighted", labels, labelTargets, 0.52, "f1_weighted"},
		{"f1", binary, binaryTargets, 2.0 / 3, "f1_binary"},
		{"f1_macro", binary, binaryTargets, (2.0/3 + 0.5) / 2, "f1_macro"},
		{"accuracy", binary, binaryTargets, 0.6, "accuracy"},
		{"accuracy", scores, scoreTargets, 1, "accuracy"},
		{"log_loss", scores, scoreTargets, 0.2899092476264711, "logloss"},
		{"logloss", predictionsOf(0.2, 0.7), scoreTargets, 0.2899092476264711, "logloss"},
		{"accuracy", named, namedTargets, 0.5, "accuracy"},
		{"logloss", named, namedTargets, 0.569717141594182, "logloss"},
		{"accuracy", predictionsOf(1.0, 0.0), targetsOf("True", "False"), 1, "accuracy"},
	} {
		got, found, err := Recompute(c.metric, c.preds, c.targets)
		if err != nil {
			t.Errorf("%s: %v", c.metric, err)
			continue
		}
		if math.Abs(got.Value-c.want) > 1e-12 || got.Metric != c.as || got.N != len(c.targets) || !got.Whole {
			t.Errorf("%s: %+v, want %s = %v; %v", c.metric, got, c.as, c.want, found)
		}
		if got.From != (Range{Path: "predictions-test.jsonl", End: 99, SHA256: "sha256:00"}) {
			t.Errorf("%s comes from %+v", c.metric, got.From)
		}
		if assumed := c.metric == "precision" || c.metric == "f1"; assumed != hasCode(found, "metric_average_assumed") {
			t.Errorf("%s: findings %v", c.metric, codes(found))
		}
	}
}

func TestRecomputeFindsWhatDoesNotPair(t *testing.T) {
	withTarget := func(p *Predictions, targets ...any) *Predictions {
		for i, target := range targets {
			p.Rows[i].Target = target
		}
		return p
	}
	repeated := predictionsOf(1.0, 2.0, 9.0)
	repeated.Rows[2].ID = "a"
	for _, c := range []struct {
		name, metric string
		preds        *Predictions
		targets      map[string]string
		codes        []string
		what         string
		value        float64
		n            int
	}{
		{"one sample silently missing", "mae", predictionsOf(1.0), targetsOf("1", "5", "7"), []string{"prediction_missing"},
			`2 of 3 samples have no prediction: "b", "c"`, 0, 1},
		{"foreign ids", "mae", predictionsOf(1.0, 2.0), targetsOf("1"), []string{"prediction_id_foreign"},
			`1 predictions have an id that this split lacks: "b" (line 2)`, 0, 1},
		{"an id twice counts once", "mae", repeated, targetsOf("1", "2"), []string{"prediction_id_duplicate"},
			`1 rows repeat an id: "a" (line 3)`, 0, 2},
		{"target of the script differs", "mae", withTarget(predictionsOf(1.0, 2.0), 1.0, 2.5), targetsOf("1", "2"), []string{"target_mismatch"},
			`1 targets contradict the data: "b": 2.5 in the file, 2 in the data (line 2)`, 0, 2},
		{"label encoded targets", "accuracy", withTarget(predictionsOf("cat"), 0.0), targetsOf("cat"), []string{"target_mismatch"},
			`1 targets contradict the data: "a": 0 in the file, cat in the data (line 1)`, 1, 1},
		{"NaN is not dropped", "mae", predictionsOf(1.0, math.NaN()), targetsOf("1", "2"), []string{"prediction_nonfinite"},
			`1 predictions are NaN, infinite or null: "b": NaN (line 2)`, 0, 1},
		{"text for a number", "mae", predictionsOf(1.0, "high"), targetsOf("1", "2"), []string{"prediction_not_number"},
			`1 predictions are not one number: "b": high (line 2)`, 0, 1},
		{"a probability is not thresholded", "accuracy", predictionsOf(1.0, 0.93), targetsOf("1", "1"), []string{"prediction_not_class"},
			`1 predictions are not a class of the data: "b": 0.93 (line 2)`, 1, 1},
		{"score lists need class indices", "accuracy", predictionsOf("cat", []float64{0.1, 0.9}), targetsOf("cat", "dog"), []string{"prediction_not_class"},
			`1 predictions are not a class of the data: "b": [0.1 0.9] (line 2)`, 1, 1},
		{"logits", "logloss", predictionsOf(1.0, []float64{-3, 4}), targetsOf("1", "1"), []string{"scores_not_probabilities"},
			`1 predictions are not class probabilities: "b": [-3 4] (line 2)`, 2.220446049250313e-16, 1},
		{"a sample without target", "mae", predictionsOf(1.0, 2.0), targetsOf("1", " "), []string{"target_missing"},
			`1 samples have no target in the data: "b"`, 0, 1},
	} {
		got, found, err := Recompute(c.metric, c.preds, c.targets)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !cmp.Equal(codes(found), c.codes) || found[0].What != c.what || found[0].Severity != finding.Error {
			t.Errorf("%s: %v", c.name, found)
		}
		if got.Whole || got.N != c.n || math.Abs(got.Value-c.value) > 1e-15 {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// float32 arithmetic in the script is no contradiction.
func TestTargetsOfFloat32ScriptsMatch(t *testing.T) {
	for _, c := range []struct {
		inFile any
		ours   string
		want   bool
	}{
		{1.2000000476837158, "1.2", true}, {2.9999984, "3", true}, {1.21, "1.2", false}, {"1.20", "1.2", true}, {true, "True", true},
		{true, "1", true}, {1.0, "true", true}, {"setosa ", "setosa", true}, {2.0, "setosa", false}, {[]float64{1.2}, "1.2", true}, {0.00002, "0", true}, {0.01, "0", false},
	} {
		if got := sameTarget(c.inFile, c.ours, 300); got != c.want {
			t.Errorf("sameTarget(%v, %q) = %v", c.inFile, c.ours, got)
		}
	}
}

func TestRecomputeRefuses(t *testing.T) {
	for _, c := range []struct {
		name, metric string
		preds        *Predictions
		targets      map[string]string
		code         string
	}{
		{"a loss", "val_loss", predictionsOf(1.0), targetsOf("1"), "metric_not_recomputable"},
		{"no targets", "mae", predictionsOf(1.0), nil, "targets_empty"},
		{"labels", "rmse", predictionsOf(1.0), targetsOf("cat"), "target_not_numeric"},
		{"no id in common", "mae", predictionsOf(1.0), map[string]string{"row-0": "1"}, "prediction_missing"},
		{"constant target", "r2", predictionsOf(1.0, 2.0), targetsOf("3", "3"), "metric_undefined"},
		{"which class is positive", "f1_binary", predictionsOf("a"), targetsOf("a"), "metric_undefined"},
		{"nothing finite", "mae", predictionsOf(math.NaN()), targetsOf("3"), "prediction_nonfinite"},
	} {
		_, _, err := Recompute(c.metric, c.preds, c.targets)
		var refused *finding.Refused
		if !errors.As(err, &refused) || refused.Findings[0].Code != c.code {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestMetricKind(t *testing.T) {
	for name, want := range map[string]string{
		"acc": "classification max true", "test/f1_macro": "classification max true", "precision": "classification max true", "rmse": "regression min true",
		"r2": "regression max true", "logloss": "classification min true", "val_loss": "loss min false", "auc": "classification max false", "foo": "  false",
	} {
		kind, mode, known := MetricKind(name)
		got := kind + " " + mode + " false"
		if known {
			got = kind + " " + mode + " true"
		}
		if got != want {
			t.Errorf("MetricKind(%q) = %q, want %q", name, got, want)
		}
	}
}

// Rows may use the name of the data's id column and the usual names of other tools; formats.md's own names win.
func TestPredictionsUnderOtherNames(t *testing.T) {
	text := `{"patient": "p1", "y_true": 1, "y_pred": 0.9}` + "\n" + `{"id": "p2", "patient": "x", "target": 2, "prediction": 2.1, "y_pred": 7}` + "\n"
	preds, found, err := ReadPredictions(writeFile(t, "predictions-test.jsonl", text), "patient")
	if err != nil || len(found) > 0 || len(preds.Rows) != 2 {
		t.Fatalf("%v %v %+v", err, found, preds)
	}
	for i, want := range []Prediction{{ID: "p1", Target: 1.0, Prediction: 0.9}, {ID: "p2", Target: 2.0, Prediction: 2.1}} {
		if got := preds.Rows[i]; got.ID != want.ID || got.Target != want.Target || got.Prediction != want.Prediction {
			t.Errorf("%+v", got)
		}
	}
}
