package trainer

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/baseline"
	"github.com/trainwright/trainwright/internal/checkpoint"
	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// workOn is phase 6 of a run that exists in memory alone.
func workOn(handoff contract.StepHandoff) *validationWork {
	return &validationWork{out: &engine.Outcome{}, step: &engine.Step{Run: &engine.Run{Dir: rundir.Dir{Path: "run"}, Handoff: handoff}}, base: "code"}
}

// A script that leaves no metrics file is judged by what it printed, each number with its place in the log.
func TestMetricsOfWhatTheJobPrinted(t *testing.T) {
	f := lineProject(t)
	f.edit("line/train.py", `log.write(json.dumps({"step": epoch, "epoch": epoch, "split": "test", "name": "rmse", "value": rmse}) + "\n")`, `print(f"Epoch {epoch}: test_rmse={rmse:.6f}")`)
	f.edit("line/train.py", `"metrics.jsonl"`, `"notes.txt"`)
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	wantCode(t, answer.Findings, "criterion_logged_only")
	for _, c := range readClaims(t, f, f.file(answer, claimsFile)) {
		if c.Metric != "rmse" || c.Split != "test" || c.Level != evidence.Logged {
			continue
		}
		if from := c.From[0]; !strings.HasPrefix(from.Path, "logs/j-") || !strings.HasPrefix(f.read(f.code(answer, from.Path))[from.Start:from.End], "Epoch 40: test_rmse=") {
			t.Errorf("the number is said to be from %+v", c.From)
		}
		return
	}
	t.Error("no claim about test/rmse")
}

// What has a time is forecast: the trivial models know the last value and the season.
func TestBaselinesOfAForecast(t *testing.T) {
	files := []contract.DataFile{{Path: "code/data/train.csv", Part: "train"}, {Path: "code/data/test.csv", Part: "test"}}
	for _, c := range []struct {
		name, task, time, target string
		horizon                  any
		want                     baseline.Spec
	}{
		{"a forecast", "forecast", "date", "number", 3, baseline.Spec{Kind: baseline.Forecast, Time: "date", Group: "station", Horizon: 3}},
		{"a horizon that is none", "", "date", "number", "soon", baseline.Spec{Kind: baseline.Forecast, Time: "date", Group: "station", Horizon: 1}},
		{"a regression by its task", "regression", "date", "number", nil, baseline.Spec{Kind: baseline.Regression}},
		{"no time", "", "", "number", nil, baseline.Spec{Kind: baseline.Regression}},
		{"a class has no last value", "", "date", "text", nil, baseline.Spec{Kind: baseline.Classification}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := workOn(contract.StepHandoff{Inputs: contract.Inputs{Model: contract.Model{TaskType: c.task}}})
			w.manifest = contract.DataManifest{Files: files, DomainMetadata: map[string]any{"forecast_horizon": c.horizon},
				Schema: contract.DataSchema{ID: "row-<n>", Time: c.time, Group: "station", Target: contract.TargetColumn{Name: "sst", Type: c.target}}}
			got, ok := w.baselineSpec("test", []string{"rmse"})
			c.want.Target, c.want.Metrics, c.want.Train, c.want.Test = "sst", []string{"rmse"}, got.Train, got.Test
			if diff := cmp.Diff(c.want, got); !ok || diff != "" {
				t.Errorf("%v %s", ok, diff)
			}
		})
	}
}

// A model that is worse than a trivial one has a finding; one that is as good is told so in the summary; neither is hidden.
func TestModelBesideTheBestTrivialOne(t *testing.T) {
	for _, c := range []struct {
		metric      string
		model, base float64
		said        int
		code        string
	}{
		{"accuracy", 0.99, 0.98, 0, ""},
		{"accuracy", 0.98, 0.98, 1, ""},
		{"accuracy", 0.97, 0.98, 1, "baseline_not_beaten"},
		{"rmse", 0.4, 0.5, 0, ""},
		{"rmse", 0.6, 0.5, 1, "baseline_not_beaten"},
	} {
		w := workOn(contract.StepHandoff{})
		w.againstBaseline(&evidence.Claim{Split: "test", Metric: c.metric, Value: c.model}, baseline.Result{Name: baseline.Ridge, Value: c.base})
		if len(w.notBetter) != c.said || hasCode(w.out.Findings, "baseline_not_beaten") != (c.code != "") {
			t.Errorf("%s %v beside %v: said %q, findings %v", c.metric, c.model, c.base, w.notBetter, w.out.Findings)
		}
	}
}

// A job that stopped saving long before its end is told, not one that is short, saves rarely, or keeps its best alone.
func TestCheckpointAge(t *testing.T) {
	start := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name    string
		minutes float64   // the job's length
		saved   []float64 // minutes after its start
		best    float64   // epoch that the script calls the best
		want    bool
	}{
		{"saves to its end", 100, []float64{20, 40, 60, 80, 99}, 5, false},
		{"stopped saving", 100, []float64{10, 20}, 1, true},
		{"saves rarely", 100, []float64{45}, 0, false},
		{"short", 5, []float64{0.1}, 0, false},
		{"keeps the best alone", 100, []float64{10}, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := workOn(contract.StepHandoff{})
			at := func(minutes float64) time.Time { return start.Add(time.Duration(minutes * float64(time.Minute))) }
			w.exit = &jobs.Exit{StartedAt: start, EndedAt: at(c.minutes)}
			for i, minutes := range c.saved {
				epoch := float64(i + 1)
				w.checkpoints = append(w.checkpoints, checkpoint.Info{Epoch: &epoch, ModTime: at(minutes)})
			}
			if c.best > 0 {
				w.best = bestEpoch{Epoch: &c.best, From: "outputs/summary.json"}
			}
			w.checkpointAge()
			if got := hasCode(w.out.Findings, "checkpoint_stale"); got != c.want {
				t.Errorf("stale %v: %v", got, w.out.Findings)
			}
		})
	}
}
