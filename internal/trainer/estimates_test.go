package trainer

import (
	"slices"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/rundir"
)

// What the smoke run showed and the plan says becomes what the preflight asks of the machine.
func TestEstimates(t *testing.T) {
	dir := t.TempDir()
	roots, err := rundir.NewRoots(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := &engine.Run{Workdir: dir, Dir: rundir.Dir{Path: dir}, Roots: roots}
	run.Handoff.Inputs.Checkpoint.FinetuneCheckpoint = "base.pt"
	leaf := func(v any, status string) Leaf { return Leaf{Value: v, Status: status} }
	w := &launchWork{step: &engine.Step{Run: run}, plan: Plan{Leaves: map[string]Leaf{"epochs": leaf(20, evidence.Confirmed), "checkpoint.every_epochs": leaf(3, evidence.Confirmed), "checkpoint.keep": leaf(2, evidence.Assumption)}}}
	ask := func() local.PreflightSpec {
		var spec local.PreflightSpec
		if err := w.estimate(&spec); err != nil {
			t.Fatal(err)
		}
		return spec
	}
	if spec := ask(); spec.CheckpointMB != 0 || spec.MemoryEstimateMB != 0 || len(spec.Checkpoints) != 1 {
		t.Errorf("without a smoke run: %+v", spec)
	}
	if err := rundir.WriteJSON(run.File(smokeFile), Smoke{State: jobs.StateSucceeded, PeakRSSBytes: 50 << 20, CheckpointBytes: 3<<20 + 1}); err != nil {
		t.Fatal(err)
	}
	if spec := ask(); spec.CheckpointMB != 4 || spec.KeptCheckpoints != 1 || spec.MemoryEstimateMB != 50 {
		t.Errorf("with one, nobody says how many are kept: %+v", spec)
	}
	w.plan.Leaves["checkpoint.keep"] = leaf(2.0, evidence.Confirmed)
	if spec := ask(); spec.KeptCheckpoints != 2 {
		t.Errorf("keeping two: %+v", spec)
	}
}

// The job that the example starts was asked for with the smoke run's figures.
func TestPreflightHasEstimates(t *testing.T) {
	f := newFixture(t)
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	var record rundir.Record
	if err := rundir.ReadJSON(f.file(answer, "phases/"+contract.PhaseExecution+".json"), &record); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"preflight_disk", "preflight_memory_estimate"} {
		if !slices.ContainsFunc(record.Gate.Checks, func(c rundir.Check) bool { return c.Name == name && c.OK }) {
			t.Errorf("no check %s in %+v", name, record.Gate.Checks)
		}
	}
}
