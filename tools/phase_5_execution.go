package tools

import "github.com/trainwright/trainwright/internal/trainer"

func executionPhase(deps Deps) Tool {
	return trainerTool(deps, "phase_5_execution", "Checks what the job needs, starts it once as a process that outlives this server, waits wait_seconds and answers partial with its handle while it runs.", runsCode, []string{"launch"}, false, (*trainer.Trainer).Execution)
}
