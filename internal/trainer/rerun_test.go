package trainer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/snapshot"
)

// frozenJob runs a job of the run from a snapshot.
func (f *fixture) frozenJob(runID string) *jobs.Entry {
	f.t.Helper()
	ctx := f.t.Context()
	run, _, err := f.trainer.Engine.Open(ctx, f.trainer.skill, contract.Call{RunID: runID})
	if err != nil {
		f.t.Fatal(err)
	}
	var made Codegen
	if err := rundir.ReadJSON(run.File(codegenFile), &made); err != nil {
		f.t.Fatal(err)
	}
	var outcome engine.Outcome
	work := &launchWork{p: execution{f.trainer}, step: &engine.Step{Run: run, Caller: engine.Silent, Now: time.Now}, out: &outcome, made: made}
	if ok, err := work.clearOutputs(); err != nil || !ok {
		f.t.Fatal(err, outcome.Findings)
	}
	id, folder := work.freeID()
	command, taken, findings, err := f.trainer.freezeJob(ctx, run, made, folder)
	if err != nil || len(findings) > 0 {
		f.t.Fatal(err, findings)
	}
	if !strings.HasPrefix(command.Argv[1], folder) || len(taken.Inputs) == 0 || taken.Machine.CPUs == 0 || taken.Python.Version == "" {
		f.t.Errorf("command %v, snapshot %+v", command.Argv, taken)
	}
	before, _, err := inventory(run, made)
	if err == nil {
		err = rundir.WriteJSON(filepath.Join(folder, inventoryFile), before)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	request := jobs.Request{JobID: id, RunID: run.ID, Command: command.Argv, Env: command.Env, WorkDir: run.CodeSaveDir, ExpectedOutputs: made.Outputs, CreatedAt: time.Now()}
	if err := jobs.Create(folder, request); err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.trainer.Runtime.Submit(ctx, folder); err != nil {
		f.t.Fatal(err)
	}
	job := &jobs.Entry{JobID: id, RunID: run.ID, Folder: folder, Request: request}
	r := &repeat{t: f.trainer, run: run, last: job, made: made}
	if err := r.wait(ctx, job, time.Minute); err != nil || r.out.Job.State != jobs.StateSucceeded {
		f.t.Fatalf("%v, %+v", err, r.out.Job)
	}
	if _, _, err := collect(run, made, folder); err != nil {
		f.t.Fatal(err)
	}
	return job
}

func TestRerunRunsTheSnapshotAndNotTheTree(t *testing.T) {
	f := newFixture(t)
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	job := f.frozenJob(answer.Run.RunID)
	// The tree moves on: what was run can be run again all the same.
	f.write("train.py", "raise SystemExit('edited')\n")
	got, err := f.trainer.Rerun(t.Context(), engine.Silent, answer.Run.RunID, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got.Job.State != jobs.StateSucceeded || got.Repeats != job.JobID || got.Job.JobID == job.JobID || got.Snapshot == "" || len(got.Missing) > 0 {
		t.Errorf("got %+v", got)
	}
	if !slices.Contains(got.Same, "outputs/predictions-test.jsonl") || slices.Contains(got.Differ, "outputs/predictions-test.jsonl") {
		t.Errorf("same %v, differ %v", got.Same, got.Differ)
	}
	// The repetition has a snapshot of its own and can be repeated in turn.
	if _, findings, err := snapshot.Verify(got.Job.Folder, got.Snapshot); err != nil || len(findings) > 0 {
		t.Errorf("%v, %v", err, findings)
	}
	if !strings.HasPrefix(got.Job.Command[1], got.Job.Folder) {
		t.Errorf("it ran %v", got.Job.Command)
	}
	// What the repeated job had left is kept.
	if kept, _ := filepath.Glob(filepath.Join(filepath.Dir(job.Folder), "*", "superseded", "outputs", "predictions-test.jsonl")); len(kept) == 0 {
		t.Error("the outputs of the repeated job are gone")
	}

	t.Run("an input that changed", func(t *testing.T) {
		part := ""
		for _, input := range snapshotOf(t, got.Job.Folder).Inputs {
			part = input.Path
		}
		was := f.read(part)
		f.write(part, was+"\n")
		_, err := f.trainer.Rerun(t.Context(), engine.Silent, answer.Run.RunID, time.Minute)
		refusedWith(t, err, "snapshot_input_changed")
		f.write(part, was)
	})
	t.Run("an edited snapshot", func(t *testing.T) {
		f.edit(filepath.Join(got.Job.Folder, "snapshot", "project", "train.py"), "import", "import os  # edited\nimport")
		_, err := f.trainer.Rerun(t.Context(), engine.Silent, answer.Run.RunID, time.Minute)
		refusedWith(t, err, "snapshot_altered")
	})
	t.Run("no snapshot", func(t *testing.T) {
		if err := os.Remove(filepath.Join(got.Job.Folder, snapshot.File)); err != nil {
			t.Fatal(err)
		}
		_, err := f.trainer.Rerun(t.Context(), engine.Silent, answer.Run.RunID, time.Minute)
		refusedWith(t, err, "snapshot_missing")
	})
	entries, _ := os.ReadDir(filepath.Dir(got.Job.Folder))
	for _, entry := range entries {
		if _, err := os.Stat(filepath.Join(filepath.Dir(got.Job.Folder), entry.Name(), jobs.RequestFile)); err != nil {
			t.Errorf("a refused rerun left %s", entry.Name())
		}
	}
}

func snapshotOf(t *testing.T, folder string) snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRerunOfARunWithoutAJob(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	answer := f.walk()
	_, err := f.trainer.Rerun(t.Context(), engine.Silent, answer.Run.RunID, time.Minute)
	refusedWith(t, err, "job_unknown")
	_, err = f.trainer.Rerun(t.Context(), engine.Silent, "r-20260101-abcd", time.Minute)
	refusedWith(t, err, "run_unknown")
}
