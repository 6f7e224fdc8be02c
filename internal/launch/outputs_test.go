//go:build unix

package launch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/jobs"
)

// A resumed step goes on with what is there; merely having been there is no output.
func TestAnOutputThatWasThereBefore(t *testing.T) {
	b := newBench(t)
	b.write("out/metrics.jsonl", "old\n")
	b.write("last.pt", "weights")
	inOut := func(h *contract.StepHandoff) { h.Inputs.Runtime.CodeSaveDir = "out" }
	resumes := func(h *contract.StepHandoff) { inOut(h); h.Inputs.Checkpoint.ResumeCheckpoint = "last.pt" }
	expected := []string{"metrics.jsonl"}
	answer := b.call(step(inOut), Order{Command: shell("echo new >>metrics.jsonl"), ExpectedOutputs: expected}, 60)
	want(t, answer, contract.StatusBlocked, "output_exists")
	if _, err := os.Stat(filepath.Join(answer.ExecutionResult.Artifacts["workdir"], jobs.RequestFile)); err == nil {
		t.Error("a blocked launch made a job")
	}
	want(t, b.call(step(resumes), Order{Command: shell("touch metrics.jsonl"), ExpectedOutputs: expected}, 60), contract.StatusFailed, "expected_output_unchanged")
	want(t, b.call(step(resumes), Order{Command: shell("echo new >>metrics.jsonl"), ExpectedOutputs: expected}, 60), contract.StatusSuccess, "")
	if err := os.Remove(filepath.Join(b.dir, "out/metrics.jsonl")); err != nil {
		t.Fatal(err)
	}
	want(t, b.back(answer.Run.NextCall.Arguments["job_id"].(string), 60), contract.StatusSuccess, "") // the blocked one, once nothing is in the way
}

// What an earlier attempt left does not stand in the way of the next, and is not its output.
func TestTheNextAttemptSetsAsideWhatTheLastLeft(t *testing.T) {
	b := newBench(t)
	order := Order{Command: shell("[ -e ../mended ] && echo good >result || { echo bad >result; exit 1; }"), ExpectedOutputs: []string{"result"}}
	attempt := func(n int) *contract.StepHandoff {
		return step(func(h *contract.StepHandoff) { h.Inputs.Runtime.CodeSaveDir = "out"; h.Inputs.Attempt = n })
	}
	first := b.call(attempt(1), order, 60)
	if first.ExecutionResult.Status != contract.StatusFailed {
		t.Fatal(first.Findings)
	}
	b.write("mended", "")
	want(t, b.call(attempt(2), order, 60), contract.StatusSuccess, "")
	kept, err := os.ReadFile(filepath.Join(first.ExecutionResult.Artifacts["workdir"], "superseded", "result"))
	if err != nil || string(kept) != "bad\n" {
		t.Errorf("%q %v", kept, err)
	}
}

// Without a handoff nothing says that two launches are the same step: what one left is in the way of another.
func TestALaunchAloneTakesOnlyItsOwnOutputsAway(t *testing.T) {
	b := newBench(t)
	if err := os.MkdirAll(filepath.Join(b.dir, "empty", "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	alone := func(command []string, attempt int) engine.Envelope {
		return b.call(&contract.StepHandoff{Inputs: contract.Inputs{Attempt: attempt}}, Order{Command: command, ExpectedOutputs: []string{"result", "empty"}}, 60)
	}
	mine := shell("echo x >result; echo x >empty/file")
	want(t, alone(mine, 1), contract.StatusSuccess, "")
	want(t, alone(shell("echo y >result; echo y >empty/file"), 1), contract.StatusBlocked, "output_exists output_exists")
	want(t, alone(mine, 2), contract.StatusSuccess, "")
	b.write("empty/mine.txt", "a person's") // then the folder is not the job's alone, and stays as it is
	want(t, alone(mine, 3), contract.StatusBlocked, "output_exists")
	if text, err := os.ReadFile(filepath.Join(b.dir, "empty", "mine.txt")); err != nil || string(text) != "a person's" {
		t.Errorf("%q %v", text, err)
	}
}

// What is changed in the working folder after the job is not the job's.
func TestFilesOfAfterTheJob(t *testing.T) {
	b := newBench(t)
	handoff := step(func(h *contract.StepHandoff) { h.Inputs.Runtime.CodeSaveDir = "out" })
	order := Order{Command: shell("sleep 1; echo x >result; echo x >other"), ExpectedOutputs: []string{"result"}}
	answer := b.call(handoff, order, 0)
	id := answer.Run.NextCall.Arguments["job_id"].(string)
	done, err := jobs.Await(t.Context(), time.Minute, func() (bool, error) {
		exit, err := jobs.ReadExit(filepath.Join(b.c.root(), id))
		return exit != nil, err
	})
	if err != nil || !done {
		t.Fatal(done, err)
	}
	later := time.Now().Add(time.Hour)
	b.write("out/note.txt", "a person's")
	for _, name := range []string{"out/note.txt", "out/result"} {
		if err := os.Chtimes(filepath.Join(b.dir, name), later, later); err != nil {
			t.Fatal(err)
		}
	}
	answer = b.back(id, 60)
	want(t, answer, contract.StatusFailed, "artifact_changed_after_run")
	if r := result(t, answer); !slices.Equal(r.OutputFiles, []string{"other", "result"}) {
		t.Error(r.OutputFiles)
	}
}

func TestAnotherJobThatWritesTheSame(t *testing.T) {
	b := newBench(t)
	order := Order{Command: shell("while [ ! -e go ]; do sleep 0.05; done; echo x >result"), ExpectedOutputs: []string{"result"}}
	first := b.call(step(), order, 0)
	want(t, first, contract.StatusPartial, "")
	other := b.call(step(), Order{Command: shell("echo y >result"), ExpectedOutputs: []string{"result"}}, 0)
	want(t, other, contract.StatusBlocked, "job_under_way")
	if other.Run.NextCall == nil || other.Run.NextCall.Tool != "job_status" {
		t.Errorf("%+v", other.Run.NextCall)
	}
	want(t, b.call(step(), Order{Command: shell("echo z >else"), ExpectedOutputs: []string{"else"}}, 60), contract.StatusSuccess, "")
	b.write("go", "")
	want(t, b.back(first.Run.Job.JobID, 60), contract.StatusSuccess, "")
}

func TestWhatRuntimeDoesNotJudgeIsSaid(t *testing.T) {
	b := newBench(t)
	answer := b.call(step(func(h *contract.StepHandoff) {
		h.RequiredOutputs = []string{"a trained model", "runtime_result.json", "there.txt", "absent/x.txt"}
		h.CompletionCriteria = []string{"accuracy >= 0.9"}
	}), Order{Command: shell("echo x >there.txt")}, 60)
	want(t, answer, contract.StatusPartial, "required_output_missing criteria_unchecked")
	if !slices.Equal(answer.ExecutionResult.Observation.Missing, []string{"absent/x.txt"}) {
		t.Error(answer.ExecutionResult.Observation.Missing)
	}
}
