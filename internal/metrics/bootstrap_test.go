package metrics

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

// manyOf makes n predictions and targets.
func manyOf(n int, f func(i int) (prediction any, target string)) (*Predictions, map[string]string) {
	preds, targets := &Predictions{Path: "predictions-test.jsonl"}, map[string]string{}
	for i := range n {
		id := fmt.Sprintf("row-%d", i)
		prediction, target := f(i)
		preds.Rows = append(preds.Rows, Prediction{ID: id, Prediction: prediction, Line: i + 1})
		targets[id] = target
	}
	return preds, targets
}

// The width of the interval is that of theory, and the very same numbers come out each time and everywhere.
func TestBootstrapInterval(t *testing.T) {
	const n = 400
	classes, classTargets := manyOf(n, func(i int) (any, string) { return float64(i % 2), fmt.Sprint((i + i/5%5/4) % 2) }) // 80 % right
	numbers, numberTargets := manyOf(n, func(i int) (any, string) { return float64(i) + 2*wobble(i), fmt.Sprint(i) })
	scores, scoreTargets := manyOf(n, func(i int) (any, string) { return float64(i%2) + 3*wobble(i), fmt.Sprint(i % 2) })
	accuracy := 1.96 * math.Sqrt(0.8*0.2/n) // normal approximation of the binomial
	for _, c := range []struct {
		metric  string
		preds   *Predictions
		targets map[string]string
		half    float64 // of the interval
		within  float64 // relative
	}{
		{"accuracy", classes, classTargets, accuracy, 0.15},
		{"balanced_accuracy", classes, classTargets, accuracy, 0.15},
		{"f1_macro", classes, classTargets, accuracy, 0.2},
		{"mae", numbers, numberTargets, 1.96 * (1 / math.Sqrt(12)) / math.Sqrt(n), 0.15}, // |error| uniform on [0,1]
		{"rmse", numbers, numberTargets, 0.0253, 0.2},                                    // delta method: sd(error²) / (2 rmse √n)
		{"roc_auc", scores, scoreTargets, 0.047, 0.25},                                   // Hanley and McNeil at an area of 0.76
	} {
		got, found, err := Recompute(c.metric, c.preds, c.targets)
		if err != nil || !got.Whole {
			t.Fatalf("%s: %v %v", c.metric, found, err)
		}
		half := (got.Interval[1] - got.Interval[0]) / 2
		if math.Abs(half-c.half) > c.within*c.half || got.Interval[0] >= got.Value || got.Interval[1] <= got.Value || got.Resamples != maxResamples {
			t.Errorf("%s = %v in %v (half %v, want about %v), %d draws", c.metric, got.Value, got.Interval, half, c.half, got.Resamples)
		}
		again, _, _ := Recompute(c.metric, c.preds, c.targets)
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("%s: %s", c.metric, diff)
		}
	}
	pinned, _, err := Recompute("accuracy", classes, classTargets)
	if err != nil || fmt.Sprintf("%.4f %.4f", pinned.Interval[0], pinned.Interval[1]) != "0.7600 0.8400" {
		t.Errorf("%v %v", pinned.Interval, err)
	}
}

func TestNoIntervalWhereItWouldMislead(t *testing.T) {
	few, fewTargets := manyOf(9, func(i int) (any, string) { return float64(i), fmt.Sprint(i) })
	lone, loneTargets := manyOf(30, func(i int) (any, string) { return float64(i), fmt.Sprint(i / 29) }) // r2 and area need the last one
	for _, c := range []struct {
		name, metric string
		preds        *Predictions
		targets      map[string]string
	}{
		{"nine samples", "mae", few, fewTargets}, {"most draws are constant", "r2", lone, loneTargets}, {"one sample of class 1", "roc_auc", lone, loneTargets},
	} {
		got, _, err := Recompute(c.metric, c.preds, c.targets)
		if err != nil || got.Resamples != 0 || got.Interval != [2]float64{} {
			t.Errorf("%s: %+v %v", c.name, got, err)
		}
	}
}

func TestForecasts(t *testing.T) {
	preds, targets := manyOf(20, func(i int) (any, string) {
		x := float64(i)
		return []float64{x + 1, x + 3}, fmt.Sprintf("[%v, %v]", x, x+1)
	})
	preds.Rows[0].Target = []float64{0, 1.000001}
	got, found, err := Recompute("rmse", preds, targets)
	if err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
	// errors 1 and 2 at every sample: no sample differs from another, so the interval is a point
	want := Result{Metric: "rmse", Value: math.Sqrt(2.5), N: 20, Whole: true, From: Range{Path: "predictions-test.jsonl"},
		Interval: [2]float64{math.Sqrt(2.5), math.Sqrt(2.5)}, Resamples: maxResamples, ByStep: []float64{1, 2}}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })); diff != "" {
		t.Error(diff)
	}
	preds.Rows[3].Prediction = []float64{1, 2, 3}
	preds.Rows[4].Prediction = []float64{1, math.NaN()}
	preds.Rows[5].Prediction = "high"
	preds.Rows[6].Target = []float64{6, 8}
	got, found, err = Recompute("mae", preds, targets)
	if err != nil || got.Whole || got.N != 17 {
		t.Errorf("%+v %v", got, err)
	}
	if diff := cmp.Diff([]string{"target_mismatch", "prediction_nonfinite", "prediction_not_number", "prediction_shape_mismatch"}, codes(found)); diff != "" {
		t.Error(diff)
	}
}

func TestROCAUC(t *testing.T) {
	targets := targetsOf("0", "0", "1", "1")
	for _, c := range []struct {
		name  string
		preds *Predictions
		want  float64
	}{
		{"probabilities", predictionsOf(0.1, 0.4, 0.35, 0.8), 0.75},
		{"logits", predictionsOf(-3.0, 0.0, -1.0, 9.0), 0.75},
		{"ties count half", predictionsOf(0.5, 0.5, 0.5, 0.8), 0.75},
		{"both classes", predictionsOf([]float64{0.9, 0.1}, []float64{0.6, 0.4}, []float64{0.65, 0.35}, []float64{0.2, 0.8}), 0.75},
		{"by label", predictionsOf(map[string]float64{"0": 0.9, "1": 0.1}, map[string]float64{"0": 0.6, "1": 0.4}, map[string]float64{"0": 0.65, "1": 0.35}, map[string]float64{"0": 0.2, "1": 0.8}), 0.75},
		{"upside down", predictionsOf(0.9, 0.8, 0.2, 0.1), 0},
	} {
		got, found, err := Recompute("roc_auc", c.preds, targets)
		if err != nil || len(found) > 0 || math.Abs(got.Value-c.want) > 1e-12 || got.N != 4 {
			t.Errorf("%s: %+v %v %v", c.name, got, found, err)
		}
	}
	for name, c := range map[string]struct {
		preds   *Predictions
		targets map[string]string
	}{
		"classes":   {predictionsOf(0.0, 1.0, 1.0, 0.0), targets},
		"labels":    {predictionsOf("a", "b", "a", "b"), targetsOf("a", "b", "a", "b")},
		"one class": {predictionsOf(0.1, 0.2), targetsOf("0", "0")},
	} {
		_, _, err := Recompute("roc_auc", c.preds, c.targets)
		var refused *finding.Refused
		if !errors.As(err, &refused) || refused.Findings[0].Code != "metric_not_recomputable" || refused.Findings[0].Severity != finding.Warning {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBalancedAccuracy(t *testing.T) {
	got, _, err := Recompute("balanced_accuracy", predictionsOf("a", "a", "b", "c"), targetsOf("a", "a", "a", "b"))
	if err != nil || math.Abs(got.Value-1.0/3) > 1e-12 { // recall 2/3 of a, 0 of b; c has no samples
		t.Errorf("%+v %v", got, err)
	}
}

func BenchmarkInterval(b *testing.B) {
	preds, targets := manyOf(100_000, func(i int) (any, string) { return float64(i) + wobble(i), fmt.Sprint(i) })
	for b.Loop() {
		if _, _, err := Recompute("rmse", preds, targets); err != nil {
			b.Fatal(err)
		}
	}
}
