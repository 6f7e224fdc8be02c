package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// layMetrics writes files below the workspace.
func layFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// series makes a metrics file of n epochs whose validation loss ends at low.
func lossFile(n int, low float64) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, `{"step": %d, "epoch": %d, "split": "train", "name": "loss", "value": %.6f}`+"\n", 10*i, i, low/2+1/float64(i))
		fmt.Fprintf(&b, `{"step": %d, "epoch": %d, "split": "val", "name": "loss", "value": %.6f}`+"\n", 10*i, i, low+1/float64(i))
	}
	return b.String()
}

func codesOf(findings []finding.Finding) []string {
	codes := []string{}
	for _, f := range findings {
		codes = append(codes, f.Code)
	}
	return codes
}

func TestReadMetricsOfARun(t *testing.T) {
	dir, all := workspaceTools(t)
	layFiles(t, dir, map[string]string{
		"exp1/outputs/metrics.jsonl":                 lossFile(500, 0.1),
		"exp2/lightning_logs/version_9/metrics.csv":  "epoch,step,val_loss\n0,9,5\n",
		"exp2/lightning_logs/version_10/metrics.csv": "epoch,step,val_loss\n0,9,0.5\n1,19,nan\n",
		"exp3/train.log":                             "Epoch 1 val loss: 0.05\n",
	})
	index := rundir.Index{Workspace: dir}
	if err := index.Put(rundir.IndexEntry{RunID: "r-20261130-7f3a", HandoffSHA256: "sha256:" + strings.Repeat("7", 64), CodeSaveDir: "exp1", TrainerWorkdir: "exp1/.trainer_work/x", CreatedAt: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)}); err != nil {
		t.Fatal(err)
	}
	got, err := call[ReadMetricsOutput](t, all, "read_metrics", `{"run_id": "r-20261130-7f3a"}`)
	if err != nil || got.Path != "exp1/outputs/metrics.jsonl" || got.Shape != "jsonl" || len(got.Series) != 2 || len(got.Findings) != 0 || got.Points != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	val := got.Series[1]
	if val.Key != "val/loss" || val.Better != "min" || val.Count != 500 || val.Best == nil || *val.Best.Value != 0.102 || val.Last.Line != 1000 || *val.First.Step != 10 {
		t.Errorf("%+v", val)
	}
	got, err = call[ReadMetricsOutput](t, all, "read_metrics", `{"run_id": "r-20261130-7f3a", "metric": "loss", "compare": ["exp2", "exp3/train.log", "exp4"]}`)
	if err != nil || got.Metric != "val/loss" || len(got.Series) != 1 || len(got.Points) != mostPoints || *got.Points[mostPoints-1].Value != 0.102 {
		t.Fatalf("%+v, %v", got, err)
	}
	if len(got.Compared) != 2 || got.Compared[0].Path != "exp2/lightning_logs/version_10/metrics.csv" || got.Compared[0].Better != "first" || got.Compared[1].Better != "this" {
		t.Errorf("%+v", got.Compared)
	}
	if d := got.Compared[1].Difference; d == nil || *d > -0.0519 || *d < -0.0521 {
		t.Errorf("%+v", d)
	}
	if codes := codesOf(got.Findings); !slices.Equal(codes, []string{"metric_nonfinite", "file_missing"}) {
		t.Error(codes)
	}
	got, err = call[ReadMetricsOutput](t, all, "read_metrics", `{"path": "exp1", "split": "training"}`)
	if err != nil || len(got.Series) != 1 || got.Series[0].Key != "train/loss" {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = call[ReadMetricsOutput](t, all, "read_metrics", `{"path": "exp1", "compare": "exp1"}`)
	if err != nil || got.Metric != "val/loss" || len(got.Compared) != 1 || got.Compared[0].Better != "equal" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReadMetricsRefuses(t *testing.T) {
	dir, all := workspaceTools(t)
	layFiles(t, dir, map[string]string{"m.jsonl": lossFile(3, 0.1), "empty/x.txt": ""})
	for arguments, code := range map[string]string{
		`{}`: "missing_argument",
		`{"run_id": "r-20261130-aaaa", "path": "m.jsonl"}`:                        "arguments_contradict",
		`{"run_id": "r-20261130-aaaa"}`:                                           "run_unknown",
		`{"path": "none.jsonl"}`:                                                  "file_missing",
		`{"path": "empty"}`:                                                       "metrics_missing",
		`{"path": "m.jsonl", "metric": "rmse"}`:                                   "metric_unknown",
		`{"path": "m.jsonl", "metric": "val/loss", "split": "train"}`:             "arguments_contradict",
		`{"path": "../m.jsonl"}`:                                                  "path_outside_roots",
		`{"path": "m.jsonl", "compare": [` + strings.Repeat(`"a",`, 20) + `"a"]}`: "too_many_compared",
	} {
		if _, err := call[ReadMetricsOutput](t, all, "read_metrics", arguments); !refusedWith(err, code) {
			t.Errorf("%s: %v, want %s", arguments, err, code)
		}
	}
}

// A log of very many names still fits an answer, and says how to get the rest.
func TestReadMetricsOfManyNames(t *testing.T) {
	dir, all := workspaceTools(t)
	var b strings.Builder
	b.WriteString(`{"step": 1`)
	for i := range 1500 {
		fmt.Fprintf(&b, `, "val/m%d": %d`, i, i)
	}
	b.WriteString("}\n")
	layFiles(t, dir, map[string]string{"m.jsonl": b.String()})
	got, err := call[ReadMetricsOutput](t, all, "read_metrics", `{"path": "m.jsonl"}`)
	if err != nil || len(got.Series) < 50 || !slices.Contains(codesOf(got.Findings), "result_cut") {
		t.Errorf("%d series, %v, %v", len(got.Series), codesOf(got.Findings), err)
	}
}
