package tools

import (
	"context"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/trainer"
)

// runsCode are the annotations of a tool that may start the project's own code.
var runsCode = Annotations{OpenWorld: true, Idempotent: true}

// writesRun are the annotations of a tool that writes into the run's folder and nowhere else.
var writesRun = Annotations{Idempotent: true}

// trainerMethod is a phase of the trainer, or its walk, as a method that takes its own input.
type trainerMethod[In any] func(*trainer.Trainer, context.Context, engine.Caller, contract.Call, In) (engine.Envelope, error)

// trainerTool makes a skill tool of one of the trainer's methods.
func trainerTool[In any](deps Deps, name, sentence string, ann Annotations, section []string, full bool, method trainerMethod[In]) Tool {
	return skillTool(deps, name, sentence, ann, section, full, func(ctx context.Context, caller engine.Caller, call contract.Call, in In) (engine.Envelope, error) {
		t, err := deps.Trainer()
		if err != nil {
			return engine.Envelope{}, err
		}
		return method(t, ctx, caller, call, in)
	})
}

// trainCall starts a step with these inputs; what the step is for only the user can say.
func trainCall(inputs map[string]any) *engine.NextCall {
	return &engine.NextCall{Tool: "trainer", Arguments: map[string]any{"request": "<what to train, and how good it has to be>", "step_handoff": map[string]any{"inputs": inputs}}}
}

func trainerWalk(deps Deps) Tool {
	return trainerTool(deps, "trainer", "Start here. Takes a step_handoff (or a request in plain words), walks the seven phases from input to validated training run as far as evidence reaches, "+
		"and answers with an execution_result and run.next_call. Call it again with run_id to go on, also while a job runs.", runsCode, []string{"resolve"}, true, (*trainer.Trainer).Walk)
}
