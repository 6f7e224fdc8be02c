package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
)

// try walks the kitchen's handoff with that attempt.
func (k *kitchen) try(attempt int) (Envelope, error) {
	k.t.Helper()
	handoff := contract.StepHandoff{StepID: "bread", StepGoal: "bake"}
	handoff.Inputs.Attempt = attempt
	return k.engine.Walk(context.Background(), Silent, k.skill, contract.Call{Handoff: &handoff})
}

func (k *kitchen) mustTry(attempt int) Envelope {
	k.t.Helper()
	answer, err := k.try(attempt)
	if err != nil {
		k.t.Fatal(err)
	}
	return answer
}

func newAttempts(t *testing.T) *kitchen {
	k := newKitchen(t)
	k.skill.Attempted = "b"
	return k
}

// A new attempt runs anew from the phase that attempts begin with; the one before it keeps its answer and its files.
func TestAttemptsAreKept(t *testing.T) {
	k := newAttempts(t)
	first := k.mustTry(1)
	k.wantRan(1, 1, 1)
	if first.Run.Attempt != 1 || *first.ExecutionResult.Attempt != 1 || len(first.ExecutionResult.Events) != 3 || first.ExecutionResult.Events[2]["phase"] != "c" {
		t.Fatalf("attempt 1: %+v", first)
	}
	second := k.mustTry(2)
	k.wantRan(1, 2, 2)
	if second.Run.RunID != first.Run.RunID || second.Run.Attempt != 2 || second.ExecutionResult.Status != contract.StatusSuccess {
		t.Fatalf("attempt 2: %+v", second.Run)
	}
	if events := second.ExecutionResult.Events; len(events) != 3 || events[0]["event"] != "attempt_begun" || events[1]["phase"] != "b" {
		t.Errorf("events of attempt 2: %v", events)
	}

	again := k.mustTry(1)
	k.wantRan(1, 2, 2)
	if !has(again.Findings, "attempt_repeated") || again.Run.Attempt != 1 || *again.ExecutionResult.Attempt != 1 || again.Run.NextCall != nil || len(again.ExecutionResult.Events) != 3 {
		t.Errorf("attempt 1 again: %+v", again)
	}
	bread := again.ExecutionResult.Artifacts["bread"]
	if !strings.HasSuffix(bread, filepath.FromSlash("/attempts/1/c.txt")) {
		t.Errorf("attempt 1's bread is %s", bread)
	}
	if _, err := os.Stat(bread); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"phases/b.json", "phases/c.json", "b.md", "execution_result.json", "answer.json"} {
		if _, err := os.Stat(filepath.Join(filepath.Dir(bread), name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(bread), "a.txt")); err == nil {
		t.Error("what holds for every attempt was copied")
	}
	if status, err := k.engine.RunStatus(context.Background(), first.Run.RunID); err != nil || status.Run.Attempt != 2 {
		t.Errorf("run_status: %+v %v", status.Run, err)
	}
}

// Attempts may skip numbers; one that never was is refused by name, and a handoff without a number goes on with the last.
func TestAttemptNumbers(t *testing.T) {
	k := newAttempts(t)
	k.mustTry(2)
	if last := k.mustTry(5); last.Run.Attempt != 5 {
		t.Errorf("attempt %d", last.Run.Attempt)
	}
	if plain := k.mustTry(0); plain.Run.Attempt != 5 || *plain.ExecutionResult.Attempt != 5 {
		t.Errorf("without a number: %+v", plain.Run)
	}
	if kept := k.mustTry(2); kept.Run.Attempt != 2 || !has(kept.Findings, "attempt_repeated") {
		t.Errorf("attempt 2: %+v", kept.Run)
	}
	_, err := k.try(3)
	var refused *finding.Refused
	if !errors.As(err, &refused) || refused.Findings[0].Code != "attempt_unknown" {
		t.Errorf("attempt 3: %v", err)
	}
	k.wantRan(1, 2, 2)
}

// A run without a number gets one when a caller sends it, and results carry it only from then on.
func TestAttemptGivenLater(t *testing.T) {
	k := newAttempts(t)
	if plain := k.mustTry(0); plain.ExecutionResult.Attempt != nil || plain.ExecutionResult.Events != nil {
		t.Errorf("a result without a number: %+v", plain.ExecutionResult)
	}
	if first := k.mustTry(1); first.ExecutionResult.Attempt == nil || *first.ExecutionResult.Attempt != 1 {
		t.Errorf("%+v", first.ExecutionResult)
	}
	k.wantRan(1, 1, 1)
	status, err := k.engine.RunStatus(context.Background(), k.mustTry(0).Run.RunID)
	if err != nil || status.ExecutionResult.Attempt == nil {
		t.Errorf("run_status %+v %v", status.ExecutionResult, err)
	}
}

// A new attempt does not begin while a job of the last one has not been judged: nothing of it gets lost.
func TestAttemptWaitsForTheJob(t *testing.T) {
	k := newAttempts(t)
	job := &JobHandle{JobID: "j-1", State: "running"}
	k.skill.Phases[1] = &oven{copier: k.skill.Phases[1].(copier), job: &job}
	if first := k.mustTry(1); first.ExecutionResult.Status != contract.StatusPartial || first.Run.Job == nil {
		t.Fatalf("%+v", first.Run)
	}
	second := k.mustTry(2)
	if second.Run.Attempt != 1 || !has(second.Findings, "attempt_under_way") || second.ExecutionResult.Status != contract.StatusPartial {
		t.Errorf("%+v", second)
	}
	job = nil
	if first := k.mustTry(1); first.ExecutionResult.Status != contract.StatusSuccess || first.Run.Attempt != 1 {
		t.Errorf("%+v", first.Run)
	}
	if second := k.mustTry(2); second.Run.Attempt != 2 || second.ExecutionResult.Status != contract.StatusSuccess {
		t.Errorf("%+v", second.Run)
	}
}

// oven is a phase whose work goes on while job is there.
type oven struct {
	copier
	job **JobHandle
}

func (o *oven) Job(context.Context, *Run) *JobHandle { return *o.job }

func (o *oven) Run(ctx context.Context, step *Step) (Outcome, error) {
	if *o.job != nil {
		return Outcome{Job: *o.job, Summary: "baking"}, nil
	}
	return o.copier.Run(ctx, step)
}

// Two callers who send the same new attempt begin it once.
func TestTwoCallersBeginOneAttempt(t *testing.T) {
	k := newAttempts(t)
	k.mustTry(1)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if answer, err := k.try(2); err != nil || answer.Run.Attempt != 2 || answer.ExecutionResult.Status != contract.StatusSuccess {
				t.Errorf("%+v %v", answer.Run, err)
			}
		})
	}
	group.Wait()
	begun := 0
	for _, event := range k.mustTry(2).ExecutionResult.Events {
		if event["event"] == "attempt_begun" {
			begun++
		}
	}
	if begun != 1 {
		t.Errorf("the attempt began %d times", begun)
	}
}

// burner is a phase that fails and leaves something to look at.
type burner struct{ copier }

func (b burner) Run(ctx context.Context, step *Step) (Outcome, error) {
	out, err := b.copier.Run(ctx, step)
	out.Findings = []finding.Finding{{Code: "burnt", Severity: finding.Error, What: "the loaf is black"}}
	out.Decide()
	out.Status, out.Step, out.Category, out.Judged, out.Summary = contract.StateFailed, contract.StatusFailed, "data", true, "burnt"
	out.Next = &NextCall{Tool: "call_the_fire_brigade"}
	return out, err
}

// A failed phase that left something to inspect lets the next one look at it; the step stays failed.
func TestFailedPhaseIsJudged(t *testing.T) {
	k := newKitchen(t)
	k.skill.Phases[1] = burner{k.skill.Phases[1].(copier)}
	answer := k.mustTry(1)
	k.wantRan(1, 1, 1)
	result := answer.ExecutionResult
	if result.Status != contract.StatusFailed || result.FailureCategory == nil || *result.FailureCategory != "data" || !has(answer.Findings, "burnt") || answer.Run.Phase != "c" {
		t.Errorf("%+v", answer)
	}
	if result.Observation.Summary != "burnt; copied" || answer.Run.NextCall == nil || answer.Run.NextCall.Tool != "call_the_fire_brigade" {
		t.Errorf("summary %q, next %+v", result.Observation.Summary, answer.Run.NextCall)
	}
	if got := answer.Run.PhaseStatus; got["b"] != contract.StateFailed || got["c"] != contract.StateSuccess {
		t.Errorf("phases %v", got)
	}
	again := k.mustTry(1)
	k.wantRan(1, 1, 1)
	if again.ExecutionResult.Status != contract.StatusFailed {
		t.Errorf("again %s", again.ExecutionResult.Status)
	}
	status, err := k.engine.RunStatus(context.Background(), answer.Run.RunID)
	if err != nil || status.ExecutionResult.Status != contract.StatusFailed || status.Run.NextCall.Tool != "call_the_fire_brigade" {
		t.Errorf("run_status %+v %v", status.Run, err)
	}
	// Phase by phase, the failed one leads on to the one that looks at what it left.
	one, err := k.engine.RunPhase(context.Background(), Silent, k.skill, "b", contract.Call{RunID: answer.Run.RunID, Section: map[string]any{"again": true}})
	if err != nil || one.ExecutionResult.Status != contract.StatusFailed {
		t.Errorf("%+v %v", one.Run, err)
	}
}
