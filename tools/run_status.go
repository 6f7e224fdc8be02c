package tools

import (
	"context"

	"github.com/trainwright/trainwright/internal/engine"
)

// RunStatusInput asks for one run.
type RunStatusInput struct {
	RunID string `json:"run_id" jsonschema:"required" jsonschema_description:"The run, e.g. r-20261130-7f3a; run_list has them."`
}

// runStatus is the tool run_status. It answers with the envelope of a skill tool, so that an agent goes on from it as
// from any other answer.
func runStatus(deps Deps) Tool {
	return typedTool("run_status",
		"Tells where one run stands without changing it: its phases and gates, what it waits for, and the very next call.",
		Annotations{ReadOnly: true, Idempotent: true},
		func(ctx context.Context, _ engine.Caller, in RunStatusInput) (engine.Envelope, error) {
			if in.RunID == "" {
				return engine.Envelope{}, missing("run_id", "the id of a run", "run_list has the ids")
			}
			e, err := deps.engine()
			if err != nil {
				return engine.Envelope{}, err
			}
			return e.RunStatus(ctx, in.RunID)
		},
		more[engine.Envelope]{toolset: SetTrainer, rest: skillRest, text: envelopeText, links: envelopeLinks, schema: envelopeSchema})
}
