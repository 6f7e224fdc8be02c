package trainer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/evidence"
)

// example is a fixture of another example project.
func example(t *testing.T, name string) *fixture {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../examples", name))); err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, dir: dir}
	f.open()
	var err error
	if f.handoff, _, err = contract.DecodeHandoff([]byte(f.read(filepath.Join(dir, "step_handoff.yaml")))); err != nil {
		t.Fatal(err)
	}
	f.handoff.Inputs.Runtime.EnvironmentRequirements = map[string]any{"python": interpreter(t)}
	t.Cleanup(f.stopJobs)
	return f
}

// A forecast that is worse than saying "as last month" ends in partial, and says by how much.
func TestAForecastThatLosesToPersistence(t *testing.T) {
	t.Parallel()
	f := example(t, "mauna-loa")
	answer := f.walk()
	wantStatus(t, answer, contract.StatusPartial)
	found := wantCode(t, answer.Findings, "baseline_not_beaten")
	if !strings.Contains(found.What, "persistence") || !strings.Contains(answer.ExecutionResult.Observation.Summary, "0 of 1 criteria met") {
		t.Errorf("%s\n%s", found.What, answer.ExecutionResult.Observation.Summary)
	}
	for _, c := range readClaims(t, f, f.file(answer, claimsFile)) {
		if c.Metric == "rmse" && c.Split == "test" && c.Level == evidence.Recomputed {
			if base, _ := c.Baseline["value"].(float64); c.Unit != "ppm" || c.Value < 5 || base < 1.2 || base > 1.5 {
				t.Errorf("%+v", c)
			}
			return
		}
	}
	t.Error("the test rmse was not recomputed")
}

func TestPenguinsEndInSuccess(t *testing.T) {
	t.Parallel()
	f := example(t, "penguins")
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	if hasCode(answer.Findings, "no_error_at_all") {
		t.Error(listFindings(answer.Findings))
	}
}
