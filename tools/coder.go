package tools

import (
	"context"

	"github.com/trainwright/trainwright/internal/coder"
	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
)

// coderTool is the tool coder.
func coderTool(deps Deps) Tool {
	return skillTool(deps, "coder", "Lands files or search/replace edits in an existing repository, all or none: each against the bytes it was made for, Python parsed first, the difference returned, "+
		"earlier bytes kept, nothing staged or committed.", Annotations{Destructive: true, Idempotent: true}, []string{"changes"}, false,
		func(ctx context.Context, caller engine.Caller, call contract.Call, in coder.Input) (engine.Envelope, error) {
			t, err := deps.Trainer()
			if err != nil {
				return engine.Envelope{}, err
			}
			return t.Coder.Run(ctx, caller, call, in)
		})
}
