package trainer

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/dataset"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/metrics"
	"github.com/trainwright/trainwright/internal/rundir"
)

// One call walks all seven phases to success, and every number of the report can be derived from the files again.
func TestWalkEndsInSuccessWithClaimsThatHold(t *testing.T) {
	f := newFixture(t)
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	for _, phase := range contract.Phases {
		if got := answer.Run.PhaseStatus[phase]; got != contract.StateSuccess {
			t.Errorf("%s is %s", phase, got)
		}
	}
	if answer.Run.NextCall != nil {
		t.Errorf("a finished step asks for another call: %+v", answer.Run.NextCall)
	}
	for _, name := range f.trainer.skill.Canonical {
		if name == contract.FileCoderTask || name == coderHandoffFile {
			continue // only where a repository must change
		}
		if _, err := os.Stat(f.file(answer, name)); err != nil {
			t.Errorf("artifact %s: %v", name, err)
		}
	}
	if _, err := os.Stat(f.file(answer, contract.FileCoderTask)); err == nil {
		t.Error("coder_task_description.md was written although nothing must change")
	}
	claims := readClaims(t, f, f.file(answer, claimsFile))
	var recomputed *evidence.Claim
	for i, c := range claims {
		if c.Split == "test" && c.Metric == "accuracy" && c.Level == evidence.Recomputed {
			recomputed = &claims[i]
		}
	}
	if recomputed == nil {
		t.Fatalf("no recomputed test accuracy among %+v", claims)
	}
	if got := ownAccuracy(t, f.code(answer, "outputs/predictions-test.jsonl"), f.code(answer, "data/test.csv")); got != recomputed.Value {
		t.Errorf("claimed accuracy %v, own count %v", recomputed.Value, got)
	}
	report := f.read(f.file(answer, contract.FileValidationReport))
	if want := regexp.MustCompile(`test/accuracy >= 0\.8.*met.*recomputed`); !want.MatchString(report) {
		t.Errorf("the report does not say at which level the criterion is met:\n%s", report)
	}
	again := f.walk()
	if again.Run.RunID != answer.Run.RunID || again.ExecutionResult.Status != contract.StatusSuccess {
		t.Errorf("the same handoff again: run %s %s", again.Run.RunID, again.ExecutionResult.Status)
	}
	if folders, _ := filepath.Glob(f.file(answer, "jobs/*")); len(folders) != 1 {
		t.Errorf("%d job folders", len(folders))
	}
}

func readClaims(t *testing.T, f *fixture, path string) []evidence.Claim {
	t.Helper()
	var claims []evidence.Claim
	if err := rundir.ReadJSON(path, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

// ownAccuracy counts without the code under test.
func ownAccuracy(t *testing.T, predictions, part string) float64 {
	t.Helper()
	targets := map[string]string{}
	lines := strings.Split(strings.TrimSpace(mustRead(t, part)), "\n")
	for _, line := range lines[1:] {
		fields := strings.Split(line, ",")
		targets[fields[0]] = strings.TrimSpace(fields[len(fields)-1])
	}
	hits, n := 0, 0
	row := regexp.MustCompile(`"id": "(\d+)".*"prediction": "(\w+)"`)
	for _, line := range strings.Split(strings.TrimSpace(mustRead(t, predictions)), "\n") {
		m := row.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("prediction line %q", line)
		}
		n++
		if targets[m[1]] == m[2] {
			hits++
		}
	}
	if n != len(targets) {
		t.Fatalf("%d predictions for %d rows", n, len(targets))
	}
	return float64(hits) / float64(n)
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Another seed is another run with other numbers; the report follows the run.
func TestSeedChangesTheNumbers(t *testing.T) {
	a, b := newFixture(t), newFixture(t)
	b.handoff.Inputs.Parameters.Extra = map[string]any{"seed": 4}
	first, second := a.walk(), b.walk()
	wantStatus(t, first, contract.StatusSuccess)
	wantStatus(t, second, contract.StatusSuccess)
	if first.Run.RunID == second.Run.RunID {
		t.Error("another seed is the same run")
	}
	if x, y := lossOf(t, a, first.ExecutionResult.Artifacts["trainer_workdir"]), lossOf(t, b, second.ExecutionResult.Artifacts["trainer_workdir"]); x == y {
		t.Errorf("test loss %v with both seeds", x)
	}
	var made Codegen
	if err := rundir.ReadJSON(b.file(second, codegenFile), &made); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(made.Command, " "), "--seed 4") {
		t.Errorf("the seed does not reach the script: %v", made.Command)
	}
}

func lossOf(t *testing.T, f *fixture, workdir string) float64 {
	t.Helper()
	for _, c := range readClaims(t, f, filepath.Join(workdir, claimsFile)) {
		if c.Split == "test" && c.Metric == "loss" {
			return c.Value
		}
	}
	t.Fatal("no test loss")
	return 0
}

// A changed row makes the run's later phases stale; the next call trains on the new data, keeps the old job's outputs apart,
// and the report follows.
func TestChangedRowIsTrainedAnew(t *testing.T) {
	f := newFixture(t)
	first := f.walk()
	wantStatus(t, first, contract.StatusSuccess)
	before := lossOf(t, f, first.ExecutionResult.Artifacts["trainer_workdir"])
	stats := f.read(f.file(first, splitFile))
	f.edit("data/wdbc.csv", "\n0,17.99,", "\n0,91.99,")
	status, err := f.trainer.Engine.RunStatus(t.Context(), first.Run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, status.Findings, "phase_stale")
	if got := status.Run.PhaseStatus[contract.PhaseValidation]; got != contract.StatePending {
		t.Errorf("validation of the old data is still %s", got)
	}
	second := f.walk()
	wantStatus(t, second, contract.StatusSuccess)
	if second.Run.RunID != first.Run.RunID {
		t.Error("the same handoff made another run")
	}
	if f.read(f.file(second, splitFile)) == stats {
		t.Error("statistics are those of the old data")
	}
	if after := lossOf(t, f, second.ExecutionResult.Artifacts["trainer_workdir"]); after == before {
		t.Errorf("test loss %v before and after", before)
	}
	if kept, _ := filepath.Glob(f.file(second, "jobs/*/superseded/outputs/metrics.jsonl")); len(kept) != 1 {
		t.Errorf("the first job's outputs were not kept apart: %v", kept)
	}
}

// One flipped prediction changes the recomputed number.
func TestFlippedPredictionChangesTheNumber(t *testing.T) {
	f := newFixture(t)
	answer := f.walk()
	path := f.code(answer, "outputs/predictions-test.jsonl")
	targets, err := dataset.Targets(t.Context(), f.code(answer, "data/test.csv"), "sample", "diagnosis")
	if err != nil {
		t.Fatal(err)
	}
	value := func() float64 {
		preds, _, err := metrics.ReadPredictions(path, "")
		if err != nil {
			t.Fatal(err)
		}
		result, _, err := metrics.Recompute("accuracy", preds, targets)
		if err != nil {
			t.Fatal(err)
		}
		return result.Value
	}
	before := value()
	line := strings.SplitAfter(f.read(path), "\n")[0]
	flipped := strings.Replace(line, `"prediction": "benign"`, `"prediction": "malignant"`, 1)
	if flipped == line {
		flipped = strings.Replace(line, `"prediction": "malignant"`, `"prediction": "benign"`, 1)
	}
	f.edit(path, line, flipped)
	if after := value(); after == before {
		t.Errorf("accuracy stays %v", before)
	}
}
