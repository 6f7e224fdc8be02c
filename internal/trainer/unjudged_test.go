package trainer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/jobs"
)

// A job is not lost because somebody goes on editing the code: it is judged by the snapshot it runs on, once, and only an
// explicit launch runs the changed code.
func TestEditsWhileAJobRuns(t *testing.T) {
	f := newFixture(t)
	f.hold()
	zero := 0
	answer, err := f.try(contract.Call{Handoff: &f.handoff, WaitSeconds: &zero})
	if err != nil || answer.Run.Job == nil {
		t.Fatalf("no job: %v %s", err, describe(answer))
	}
	f.edit("train.py", "import argparse", "# a comment\nimport argparse")
	f.release()
	answer, err = f.try(contract.Call{RunID: answer.Run.RunID})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, answer, contract.StatusSuccess)
	wantCode(t, answer.Findings, "code_changed_since_start")
	for range 2 {
		wantStatus(t, f.walk(), contract.StatusSuccess)
	}
	if n := jobCount(t, f, answer); n != 1 {
		t.Fatalf("%d jobs", n)
	}
	again := f.phase(5, answer.Run.RunID, map[string]any{"launch": map[string]any{"channel": "local_direct"}})
	if again.Run.PhaseStatus[contract.PhaseExecution] != contract.StateSuccess || jobCount(t, f, answer) != 2 {
		t.Errorf("%s", describe(again))
	}
}

// While a rerun is under way the run says so, and takes its outputs for the run's when it has ended.
func TestRunWhileARerunIsUnderWay(t *testing.T) {
	f := newFixture(t)
	f.hold()
	f.release()
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	f.must(os.Remove(filepath.Join(filepath.Dir(f.dir), f.gate())))
	if _, err := f.trainer.Rerun(t.Context(), engine.Silent, answer.Run.RunID, 0); err != nil {
		t.Fatal(err)
	}
	status, err := f.trainer.Engine.RunStatus(t.Context(), answer.Run.RunID)
	if err != nil || status.Run.Job == nil || status.Run.Job.State != jobs.StateRunning && status.Run.Job.State != jobs.StateQueued || status.ExecutionResult.Status != contract.StatusPartial {
		t.Errorf("%v %s", err, describe(status))
	}
	f.release()
	done := f.walk()
	wantStatus(t, done, contract.StatusSuccess)
	if text := f.read(f.file(done, runtimeResult)); !strings.Contains(text, "-2\"") || jobCount(t, f, done) != 2 {
		t.Errorf("the result is not the rerun's: %s", text)
	}
}

// A job that ran out of its time limit offers twice as much; one that ran out of the step's budget leaves that to the user.
func TestOutOfWallTime(t *testing.T) {
	sleeps := func(f *fixture) {
		f.edit("train.py", "    config = load_config(argv)\n    try:", "    config = load_config(argv)\n    if config.epochs > 1:\n        time.sleep(60)\n    try:")
	}
	f := newFixture(t)
	sleeps(f)
	f.handoff.Inputs.StepWallclockBudgetSeconds = 1
	answer := f.walk()
	wantStatus(t, answer, contract.StatusFailed)
	wantCode(t, answer.Findings, "wall_time_reached")
	if answer.Run.NextCall != nil {
		t.Errorf("next call %+v", answer.Run.NextCall)
	}
	g := newFixture(t)
	sleeps(g)
	zero := 0
	first, err := g.try(contract.Call{Handoff: &g.handoff, WaitSeconds: &zero})
	if err != nil || first.Run.Job == nil {
		t.Fatal(err, describe(first))
	}
	if _, err := g.trainer.Runtime.Cancel(t.Context(), g.file(first, "jobs/"+first.Run.Job.JobID)); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, g.walk(), contract.StatusFailed)
	start := time.Now()
	out := g.phase(5, first.Run.RunID, map[string]any{"launch": map[string]any{"resources": map[string]any{"time_limit": "00:00:01"}}})
	wantCode(t, out.Findings, "wall_time_reached")
	launch, _ := out.Run.NextCall.Arguments["launch"].(map[string]any)
	if r, ok := launch["resources"].(map[string]any); !ok || r["time_limit"] != "00:00:02" {
		t.Errorf("after %s the next call is %+v", time.Since(start), out.Run.NextCall)
	}
}

// A finished training is kept whatever is edited afterwards, in a source, the code or a configuration: nothing is trained
// anew unless it is asked for. What was asked for otherwise is another job.
func TestAFinishedTrainingIsKept(t *testing.T) {
	f := newFixture(t)
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	for _, edit := range []struct{ name, from, to string }{{"README.md", "# ", "# Once more: "}, {"train.py", "import argparse", "# a comment\nimport argparse"}} {
		f.edit(edit.name, edit.from, edit.to)
		again := f.walk()
		wantStatus(t, again, contract.StatusSuccess)
		if n := jobCount(t, f, again); n != 1 {
			t.Fatalf("%d jobs after %s was edited", n, edit.name)
		}
		if again.Run.PhaseStatus[contract.PhaseValidation] != contract.StateSuccess {
			t.Errorf("%s", describe(again))
		}
	}
	f.phase(4, answer.Run.RunID, map[string]any{"arguments": map[string]any{"--hidden-size": 12}})
	other, err := f.try(contract.Call{RunID: answer.Run.RunID})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, other, contract.StatusSuccess)
	if n := jobCount(t, f, other); n != 2 {
		t.Errorf("%d jobs after another value was asked for", n)
	}
}
