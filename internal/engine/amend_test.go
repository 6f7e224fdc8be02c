package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
)

// amended walks the run with a handoff beside its id.
func (k *kitchen) amended(id string, sent contract.StepHandoff, section map[string]any) (Envelope, error) {
	k.t.Helper()
	return k.engine.Walk(context.Background(), Silent, k.skill, contract.Call{RunID: id, Handoff: &sent, Section: section})
}

func refusal(t *testing.T, err error, code string) finding.Finding {
	t.Helper()
	var refused *finding.Refused
	if !errors.As(err, &refused) || refused.Findings[0].Code != code {
		t.Fatalf("not refused as %s: %v", code, err)
	}
	return refused.Findings[0]
}

// A changed value is refused with the call that settles it; that call takes it, and says so in the events.
func TestResolveSettlesTheHandoff(t *testing.T) {
	k := newKitchen(t)
	k.skill.Resolves = "facts"
	first := k.bake()
	sent := contract.StepHandoff{StepGoal: "bake twice"}
	_, err := k.amended(first.Run.RunID, sent, nil)
	f := refusal(t, err, "handoff_differs")
	if want := `send the same call to bake with "resolve": [{"field": "step_goal", "keep": "sent", "why": "…"}]`; !strings.Contains(f.Remedy, want) {
		t.Errorf("remedy %q", f.Remedy)
	}
	_, err = k.amended(first.Run.RunID, sent, resolving("step_goal", "f3"))
	refusal(t, err, "resolve_not_of_handoff")

	kept, err := k.amended(first.Run.RunID, sent, resolving("step_goal", "stored"))
	if err != nil || has(kept.Findings, "handoff_amended") {
		t.Fatal(kept.Findings, err)
	}
	taken, err := k.amended(first.Run.RunID, sent, resolving("step_handoff.step_goal", "sent"))
	if err != nil || !has(taken.Findings, "handoff_amended") || taken.Run.RunID != first.Run.RunID {
		t.Fatal(taken.Findings, err)
	}
	run, err := k.engine.Look(first.Run.RunID)
	if err != nil || run.Handoff.StepGoal != "bake twice" {
		t.Error(run.Handoff.StepGoal, err)
	}
	events, _, err := run.Dir.Events()
	if last := events[len(events)-1]; err != nil || last.Event != "handoff_amended" || last.Detail["settled"] == nil {
		t.Errorf("event %+v, %v", last, err)
	}
}

func resolving(field, keep string) map[string]any {
	return map[string]any{"resolve": []any{map[string]any{"field": field, "keep": keep, "why": "the user said so"}}}
}

// A handoff that is refused begins no attempt.
func TestRefusedHandoffBeginsNoAttempt(t *testing.T) {
	k := newAttempts(t)
	first := k.mustTry(1)
	sent := contract.StepHandoff{StepGoal: "bake twice", Inputs: contract.Inputs{Attempt: 2}}
	_, err := k.amended(first.Run.RunID, sent, nil)
	refusal(t, err, "handoff_differs")
	run, err := k.engine.Look(first.Run.RunID)
	if err != nil || run.Attempt != 1 {
		t.Errorf("attempt %d, %v", run.Attempt, err)
	}
	k.wantRan(1, 1, 1)
}

// A run stays in the folder it began in; naming that folder is no change.
func TestRunStaysWhereItIs(t *testing.T) {
	k := newKitchen(t)
	first := k.bake()
	run, err := k.engine.Look(first.Run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		runtime contract.Runtime
		code    string
	}{
		{"another code_save_dir", contract.Runtime{CodeSaveDir: "elsewhere"}, "run_placed"},
		{"another trainer_workdir", contract.Runtime{TrainerWorkdir: "elsewhere"}, "run_placed"},
		{"another workdir", contract.Runtime{Workdir: "elsewhere"}, "run_placed"},
		{"its own", contract.Runtime{TrainerWorkdir: run.Workdir}, ""},
	} {
		_, err := k.amended(first.Run.RunID, contract.StepHandoff{Inputs: contract.Inputs{Runtime: c.runtime}}, nil)
		if c.code == "" && err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if c.code != "" {
			refusal(t, err, c.code)
		}
	}
}

// A list that is sent with more in it adds to the run's.
func TestListsGrow(t *testing.T) {
	k := newKitchen(t)
	first := k.bake()
	for _, criteria := range [][]string{{"crust"}, {"crust", "crumb"}} {
		answer, err := k.amended(first.Run.RunID, contract.StepHandoff{CompletionCriteria: criteria}, nil)
		if err != nil || !has(answer.Findings, "handoff_amended") {
			t.Fatal(answer.Findings, err)
		}
	}
	_, err := k.amended(first.Run.RunID, contract.StepHandoff{CompletionCriteria: []string{"crumb"}}, nil)
	refusal(t, err, "handoff_differs")
}
