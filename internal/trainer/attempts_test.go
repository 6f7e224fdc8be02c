package trainer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// A new attempt runs the job anew and says so; what was learned before the job stays, and the attempt before it can be
// asked for again with all that it came to.
func TestNewAttemptRunsAnew(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Attempt = 1
	first := f.walk()
	wantStatus(t, first, contract.StatusSuccess)
	f.handoff.Inputs.Attempt = 2
	second := f.walk()
	wantStatus(t, second, contract.StatusSuccess)
	if second.Run.RunID != first.Run.RunID || second.Run.Attempt != 2 || jobCount(t, f, second) != 2 {
		t.Errorf("attempt %d of %s with %d jobs", second.Run.Attempt, second.Run.RunID, jobCount(t, f, second))
	}
	status, err := f.trainer.Engine.RunStatus(t.Context(), first.Run.RunID)
	if err != nil || status.Run.Attempt != 2 || status.ExecutionResult.Status != contract.StatusSuccess {
		t.Errorf("run_status: attempt %d %s %v", status.Run.Attempt, status.ExecutionResult.Status, err)
	}
	f.handoff.Inputs.Attempt = 1
	again := f.walk()
	wantStatus(t, again, contract.StatusSuccess)
	wantCode(t, again.Findings, "attempt_repeated")
	if again.Run.Attempt != 1 || *again.ExecutionResult.Attempt != 1 || jobCount(t, f, again) != 2 {
		t.Errorf("attempt 1 again: %+v", again.Run)
	}
	for key, job := range map[string]string{"runtime_result": "-1", "validation_report": "-1"} {
		path := again.ExecutionResult.Artifacts[key]
		if !strings.Contains(path, filepath.FromSlash("/attempts/1/")) || !strings.Contains(f.read(path), "j-"+first.Run.RunID[len(first.Run.RunID)-8:]+job) {
			t.Errorf("%s of attempt 1 is %s", key, path)
		}
	}
}

// failsAt makes the script raise at the end of an epoch, as long as the file stop is in the workspace.
func (f *fixture) failsAt(epoch, exception string) {
	f.write(filepath.Join(f.dir, "stop"), "")
	f.edit("train.py", "    if not math.isfinite(val_loss):", "    if epoch == "+epoch+" and os.path.exists("+pyString(filepath.Join(f.dir, "stop"))+"):\n        "+exception+"\n    if not math.isfinite(val_loss):")
}

func pyString(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }

// What a failed job left is looked at all the same; the step stays failed, with the cause of the failure and the way out.
func TestFailedJobWithOutputIsLookedAt(t *testing.T) {
	f := newFixture(t)
	three := 3
	f.handoff.Inputs.Parameters.EpochsOrSteps, f.handoff.Inputs.Attempt = &three, 1
	f.failsAt("3", "raise RuntimeError('the disk is upside down')")
	answer := f.walk()
	wantStatus(t, answer, contract.StatusFailed)
	if answer.Run.Phase != contract.PhaseValidation || answer.Run.PhaseStatus[contract.PhaseExecution] != contract.StateFailed {
		t.Errorf("%+v", answer.Run)
	}
	if c := answer.ExecutionResult.FailureCategory; c == nil || *c != jobs.CategoryCode {
		t.Errorf("failure_category %v", c)
	}
	if next := answer.Run.NextCall; next == nil || next.Tool != "job_logs" {
		t.Errorf("next call %+v", next)
	}
	if !strings.Contains(listFindings(answer.Findings), "the disk is upside down") || !strings.Contains(answer.ExecutionResult.Observation.Summary, " failed after ") {
		t.Errorf("%s\n%s", answer.ExecutionResult.Observation.Summary, listFindings(answer.Findings))
	}
	report := f.read(f.file(answer, reportFile))
	for _, want := range []string{"The job failed", "train/loss", curveFile} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	// Nothing to inspect: phase 6 is not entered.
	g := newFixture(t)
	g.failsBefore("raise RuntimeError('nothing at all')")
	none := g.walk()
	wantStatus(t, none, contract.StatusFailed)
	if none.Run.Phase != contract.PhaseExecution || none.Run.PhaseStatus[contract.PhaseValidation] != contract.StatePending {
		t.Errorf("%+v", none.Run)
	}
}

// failsBefore makes the script raise before it has written anything, in a run of more than one epoch.
func (f *fixture) failsBefore(exception string) {
	f.edit("train.py", "    config = load_config(argv)\n    try:", "    config = load_config(argv)\n    if config.epochs > 1:\n        "+exception+"\n    try:")
}

// A job that the host's memory ended is started once more with twice as much, where the user lets the agent act on its own,
// and only once.
func TestRetryAfterOutOfMemory(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.ExecutionFlags.AutonomousMode = true
	f.failsAt("2", "os.remove("+pyString(filepath.Join(f.dir, "stop"))+"); raise MemoryError('Unable to allocate 8.00 GiB for an array')")
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	wantCode(t, answer.Findings, "job_retried")
	requests := requestsOf(t, f, f.file(answer, "jobs"))
	if len(requests) != 2 || requests[1].Resources.MemoryMB < 2 || requests[1].Marker != requests[0].Marker || requests[1].SubmittedBy != "trainwright, again after out_of_memory" {
		t.Errorf("%+v", requests)
	}

	g := newFixture(t)
	g.handoff.Inputs.ExecutionFlags.AutonomousMode = true
	g.failsAt("2", "raise MemoryError('Unable to allocate 8.00 GiB for an array')")
	twice := g.walk()
	wantStatus(t, twice, contract.StatusFailed)
	if n := jobCount(t, g, twice); n != 2 {
		t.Errorf("%d jobs, want 2", n)
	}
}

// Without that word the retry is the next call, ready to be sent.
func TestRetryIsOffered(t *testing.T) {
	f := newFixture(t)
	f.failsAt("2", "raise MemoryError('Unable to allocate 8.00 GiB for an array')")
	answer := f.walk()
	wantStatus(t, answer, contract.StatusFailed)
	wantCode(t, answer.Findings, "out_of_memory")
	if n := jobCount(t, f, answer); n != 1 {
		t.Errorf("%d jobs, want 1", n)
	}
	next := answer.Run.NextCall
	if next == nil || next.Tool != "phase_5_execution" {
		t.Fatalf("next call %+v", next)
	}
	if err := os.Remove(filepath.Join(f.dir, "stop")); err != nil {
		t.Fatal(err)
	}
	launch, _ := next.Arguments["launch"].(map[string]any)
	again := f.phase(5, answer.Run.RunID, map[string]any{"launch": launch})
	if again.Run.PhaseStatus[contract.PhaseExecution] != contract.StateSuccess {
		t.Errorf("%s", describe(again))
	}
	wantStatus(t, f.walk(), contract.StatusSuccess)
}

func requestsOf(t *testing.T, f *fixture, folder string) []jobs.Request {
	t.Helper()
	var out []jobs.Request
	paths, _ := filepath.Glob(filepath.Join(folder, "*", jobs.RequestFile))
	for _, path := range paths {
		var r jobs.Request
		if err := rundir.ReadJSON(path, &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// The rules of contracts.md: what may be started again, how often, and with what.
func TestAnotherTry(t *testing.T) {
	had := jobs.Resources{GPUsPerNode: 4, MemoryMB: 1000, CPUs: 2}
	for _, c := range []struct {
		cause  string
		peak   int64
		tries  int
		ok     bool
		memory int64
	}{
		{"out_of_memory", 900, 0, true, 2000}, {"out_of_memory", 3000, 0, true, 6000}, {"out_of_memory", 900, 1, false, 2000},
		{"slurm_resource_unavailable", 0, 0, true, 1000}, {"slurm_resource_unavailable", 0, 1, true, 1000}, {"slurm_resource_unavailable", 0, 2, false, 1000},
		{"gpu_out_of_memory", 900, 0, false, 1000}, {"python_exception", 0, 0, false, 1000},
	} {
		got, ok := anotherTry(c.cause, had, c.peak, c.tries)
		if ok != c.ok || got.MemoryMB != c.memory || got.GPUsPerNode != 4 || got.CPUs != 2 {
			t.Errorf("%+v: %v %+v", c, ok, got)
		}
	}
	if _, ok := anotherTry("out_of_memory", jobs.Resources{}, 0, 0); ok {
		t.Error("a retry with no more memory than before")
	}
}

// What is offered as the next call is bounded too: after the second failure for want of memory nothing is offered again.
func TestRetryIsOfferedOnce(t *testing.T) {
	f := newFixture(t)
	f.failsAt("2", "raise MemoryError('Unable to allocate 8.00 GiB for an array')")
	answer := f.walk()
	launch, _ := answer.Run.NextCall.Arguments["launch"].(map[string]any)
	if len(launch) == 0 {
		t.Fatalf("no launch is offered: %+v", answer.Run.NextCall)
	}
	again := f.phase(5, answer.Run.RunID, map[string]any{"launch": launch})
	if again.ExecutionResult.Status != contract.StatusFailed || jobCount(t, f, answer) != 2 {
		t.Fatalf("%s", describe(again))
	}
	if next := f.walk().Run.NextCall; next == nil || next.Tool != "job_logs" {
		t.Errorf("next call %+v", next)
	}
}

// A try that is started again begins where the user said, not where the try that failed had come to.
func TestRetryOfAResume(t *testing.T) {
	f := newFixture(t)
	f.edit("train.py", `"--checkpoint-every", type=int, default=5`, `"--checkpoint-every", type=int, default=1`)
	first := f.walk()
	wantStatus(t, first, contract.StatusSuccess)
	for _, name := range []string{"epoch-0001.json", "epoch-0001.json.complete.json"} {
		f.write(filepath.Join(f.dir, "start", name), f.read(f.code(first, "checkpoints/"+name)))
	}
	f.failsOnce("third")
	f.handoff.StepID, f.handoff.Inputs.Runtime.CodeSaveDir = "resumed", "third"
	f.handoff.Inputs.Checkpoint.ResumeCheckpoint = "start/epoch-0001.json"
	f.handoff.Inputs.ExecutionFlags.AutonomousMode = true
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	wantCode(t, answer.Findings, "job_retried")
}

// failsOnce makes the real job in that code_save_dir raise MemoryError after its first checkpoint, once.
func (f *fixture) failsOnce(codeSaveDir string) {
	stop := pyString(filepath.Join(f.dir, "stop"))
	f.write(filepath.Join(f.dir, "stop"), "")
	f.edit("train.py", "            save_checkpoint(config, state)\n", "            save_checkpoint(config, state)\n            if config.output_dir.endswith('"+codeSaveDir+"/outputs') and os.path.exists("+stop+"):\n                os.remove("+stop+")\n                raise MemoryError('Unable to allocate 8.00 GiB for an array')\n")
}
