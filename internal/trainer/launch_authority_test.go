package trainer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/policy"
)

// The user's budget holds for the job of a run: nothing is started before it is known what the job may use.
func TestABudgetStopsPhase5(t *testing.T) {
	f := newFixture(t)
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte("budget: {core_hours: 1}"), 0o600); err != nil {
		t.Fatal(err)
	}
	budgeted, found, err := policy.Load(path, f.dir)
	if err != nil || finding.Has(found, finding.Error) {
		t.Fatal(err, found)
	}
	f.trainer.Authority.Policy = budgeted
	answer := f.walk()
	if answer.ExecutionResult.Status != contract.StatusBlocked || answer.Run.Phase != contract.PhaseExecution || !hasCode(answer.Findings, "budget_needs_time_limit") {
		t.Fatalf("%s %s %v", answer.ExecutionResult.Status, answer.Run.Phase, answer.Findings)
	}
	for _, c := range []struct{ limit, code string }{{"01:30:00", "budget_exceeded"}, {"00:30:00", ""}} {
		answer = f.phase(5, answer.Run.RunID, map[string]any{"launch": map[string]any{"resources": map[string]any{"time_limit": c.limit}}})
		if started := answer.Run.PhaseStatus[contract.PhaseExecution] == contract.StateSuccess; started != (c.code == "") || c.code != "" && !hasCode(answer.Findings, c.code) {
			t.Errorf("%s: %v %v", c.limit, answer.Run.PhaseStatus, answer.Findings)
		}
	}
	roots, err := f.trainer.JobRoots()
	if err != nil {
		t.Fatal(err)
	}
	if entries, _ := jobs.List(roots); len(entries) != 1 {
		t.Errorf("%d jobs", len(entries))
	}
}

// A rerun takes hours as any launch does.
func TestRerunKeepsToTheBudget(t *testing.T) {
	f := newFixture(t)
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	none := 0.0
	f.trainer.Authority.Policy = policy.Policy{Budget: policy.Budget{CoreHours: &none}}
	_, err := f.trainer.Rerun(t.Context(), engine.Silent, answer.Run.RunID, time.Minute)
	var refused *finding.Refused
	if !errors.As(err, &refused) || refused.Findings[0].Code != "budget_needs_time_limit" {
		t.Errorf("%v", err)
	}
	if n := jobCount(t, f, answer); n != 1 {
		t.Errorf("%d jobs", n)
	}
}
