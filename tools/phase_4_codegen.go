package tools

import "github.com/trainwright/trainwright/internal/trainer"

func codegenPhase(deps Deps) Tool {
	return trainerTool(deps, "phase_4_codegen", "Prepares the command: the project's own entry point with this run's values, or files you send; reviews the code and, when the job will run, asks it for --help and tries it for one epoch on a few rows.", runsCode, []string{"generate", "files", "entrypoint", "arguments", "land_in", "smoke", "edited"}, false, (*trainer.Trainer).Codegen)
}
