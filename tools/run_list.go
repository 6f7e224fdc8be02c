package tools

import (
	"context"
	"fmt"

	"github.com/trainwright/trainwright/internal/engine"
)

// runList is the tool run_list.
func runList(deps Deps) Tool {
	return typedTool("run_list",
		"Lists the training runs of this workspace, newest first: where each stands and the next call. Use it to find work again after a break.",
		Annotations{ReadOnly: true, Idempotent: true},
		func(ctx context.Context, _ engine.Caller, in engine.ListRequest) (engine.RunList, error) {
			e, err := deps.engine()
			if err != nil {
				return engine.RunList{}, err
			}
			return e.ListRuns(ctx, in)
		},
		more[engine.RunList]{toolset: SetTrainer, rest: "call run_list with a smaller limit, then with cursor = next_cursor",
			text: func(l engine.RunList) string {
				return fmt.Sprintf("%d of %d runs", len(l.Runs), l.Total)
			}})
}
