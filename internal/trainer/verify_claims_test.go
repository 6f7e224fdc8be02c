package trainer

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/metrics"
)

// Statements about an honest run are derived anew, each with the bytes it rests on; what the files don't say stays unknown.
func TestVerifyClaims(t *testing.T) {
	f := newFixture(t)
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	var accuracy, loss float64
	for _, c := range readClaims(t, f, f.file(answer, claimsFile)) {
		switch {
		case c.Metric == "accuracy" && c.Split == "test" && c.Level == evidence.Recomputed:
			accuracy = c.Value
		case c.Metric == "loss" && c.Split == "val" && c.Level == evidence.Logged:
			loss = c.Value
		}
	}
	if accuracy < 0.5 || loss == 0 {
		t.Fatalf("accuracy %g, loss %g", accuracy, loss)
	}
	number := func(v float64) *float64 { return &v }
	said := math.Round(accuracy*1000) / 1000
	percent := fmt.Sprintf("test accuracy is %.1f%%", 100*accuracy)
	statements := []struct {
		say     Statement
		verdict string
		level   string
	}{
		{Statement{Metric: "accuracy", Split: "test", Value: number(said)}, Holds, evidence.Recomputed},
		{Statement{Metric: "test_acc", Value: &accuracy}, Holds, evidence.Recomputed},
		{Statement{Metric: "accuracy", Value: &accuracy}, Holds, evidence.Recomputed},
		{Statement{Metric: "test/accuracy", Value: number(said + 0.01)}, DoesNotHold, evidence.Recomputed},
		{Statement{Metric: "test/accuracy", Value: number(said + 0.01), Tolerance: number(0.02)}, Holds, evidence.Recomputed},
		{Statement{Metric: "test/accuracy", Value: number(100 * accuracy), Unit: "%"}, Holds, evidence.Recomputed},
		{Statement{Statement: percent}, Holds, evidence.Recomputed},
		{Statement{Metric: "test/accuracy", Value: number(100*accuracy - 5), Unit: "%", Tolerance: number(1)}, DoesNotHold, evidence.Recomputed},
		{Statement{Metric: "test/accuracy", Value: number(100*accuracy - 5), Unit: "%", Tolerance: number(6)}, Holds, evidence.Recomputed},
		{Statement{Statement: fmt.Sprintf("test accuracy is %.3f", accuracy-0.05), Tolerance: number(0.01)}, DoesNotHold, evidence.Recomputed},
		{Statement{Statement: fmt.Sprintf("test accuracy is %.3f", accuracy-0.05), Tolerance: number(0.06)}, Holds, evidence.Recomputed},
		{Statement{Statement: "test/accuracy >= 0.8", Tolerance: number(0.1)}, Unchecked, ""},
		{Statement{Metric: "test/accuracy", Value: &accuracy, Tolerance: number(-1)}, Unchecked, ""},
		{Statement{Statement: "test accuracy is 1"}, DoesNotHold, evidence.Recomputed},
		{Statement{Statement: "test/accuracy >= 0.8"}, Holds, evidence.Recomputed},
		{Statement{Statement: "test accuracy above 0.9999"}, DoesNotHold, evidence.Recomputed},
		{Statement{Metric: "loss", Split: "val", Value: &loss, Statistic: "min"}, Holds, evidence.Logged},
		{Statement{Metric: "loss", Split: "val", Value: &loss, Statistic: "max"}, DoesNotHold, evidence.Logged},
		{Statement{Metric: "loss", Split: "val", Value: &loss, Statistic: "best"}, Holds, evidence.Logged},
		{Statement{Statement: "the lowest validation loss was 17.5"}, DoesNotHold, evidence.Logged},
		{Statement{Statement: "test rmse reached 0.93"}, Unchecked, ""},
		{Statement{Statement: "it went rather well"}, Unchecked, ""},
		{Statement{Metric: "test/accuracy"}, Unchecked, ""},
	}
	var all []Statement
	for _, s := range statements {
		all = append(all, s.say)
	}
	got, err := f.trainer.VerifyClaims(context.Background(), answer.Run.RunID, all)
	if err != nil || len(got.Claims) != len(all) {
		t.Fatalf("%d answers, %v", len(got.Claims), err)
	}
	for i, want := range statements {
		c := got.Claims[i]
		if c.Verdict != want.verdict || c.Level != want.level || c.Why == "" || (want.level == "") != (len(c.From) == 0) {
			t.Errorf("%q: %s at level %q from %v (%s); want %s at %q", c.Statement, c.Verdict, c.Level, c.From, c.Why, want.verdict, want.level)
		}
	}
	// Evidence that changed since says nothing any more.
	if err := os.WriteFile(f.code(answer, got.Claims[0].From[0].Path), []byte(`{"id": "row-1", "target": 1, "prediction": 1}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := f.trainer.VerifyClaims(context.Background(), answer.Run.RunID, all[:1])
	if err != nil || again.Claims[0].Verdict != Unchecked {
		t.Errorf("%+v, %v", again.Claims, err)
	}
}

// A run that is not validated has no numbers to hold anything against; the answer says how to get there.
func TestVerifyClaimsOfAnOpenRun(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	answer := f.walk()
	got, err := f.trainer.VerifyClaims(context.Background(), answer.Run.RunID, []Statement{{Statement: "test/rmse <= 1"}})
	if err != nil || len(got.Claims) != 1 || got.Claims[0].Verdict != Unchecked {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range [][]Statement{nil, make([]Statement, mostStatements+1)} {
		_, err := f.trainer.VerifyClaims(context.Background(), answer.Run.RunID, bad)
		if err == nil || refusalOf(err)[0].Code != "claims_number" {
			t.Errorf("%d claims: %v", len(bad), err)
		}
	}
}

// What a statistic means, of a log whose last value is none and of one that is too long to be kept whole.
func TestPickOfALog(t *testing.T) {
	series := func(dropped int, points ...metrics.Point) *metrics.Log {
		log := &metrics.Log{Dropped: dropped}
		for i, p := range points {
			p.Split, p.Name, p.Start = "val", "loss", int64(10*i)
			log.Points = append(log.Points, p)
		}
		return log
	}
	falls := []metrics.Point{{Value: 3}, {Value: 1}, {Value: 2}}
	diverged := append(slices.Clone(falls), metrics.Point{NonFinite: "nan"})
	for _, c := range []struct {
		log       *metrics.Log
		statistic string
		start     int64
		want      float64 // 0: none
	}{
		{series(0, falls...), "last", 0, 2}, {series(0, falls...), "best", 0, 1}, {series(0, falls...), "min", 0, 1}, {series(0, falls...), "max", 0, 3},
		{series(0, falls...), "", 10, 1}, {series(0, falls...), "", 11, 0},
		{series(0, diverged...), "last", 0, 0}, {series(0, diverged...), "max", 0, 3}, {series(0, diverged...), "", 30, 0},
		{series(7, falls...), "last", 0, 2}, {series(7, falls...), "min", 0, 0}, {series(7, falls...), "best", 0, 0}, {series(7, falls...), "", 20, 2},
		{series(0), "last", 0, 0}, {series(0), "max", 0, 0},
	} {
		point, why := pick(c.log, metrics.Key{Split: "val", Name: "loss"}, c.statistic, c.start)
		if (why == "") != (c.want != 0) || why == "" && point.Value != c.want {
			t.Errorf("%q at %d of %d points, %d dropped: %g, %q; want %g", c.statistic, c.start, len(c.log.Points), c.log.Dropped, point.Value, why, c.want)
		}
	}
}
