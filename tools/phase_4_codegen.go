package tools

import "github.com/trainwright/trainwright/internal/trainer"

func codegenPhase(deps Deps) Tool {
	return trainerTool(deps, "phase_4_codegen", "Prepares the command: the project's own entry point with this run's values, or files you send; compiles the script and, when the job will run, asks it for --help.", runsCode, []string{"generate", "files", "entrypoint", "arguments", "land_in"}, false, (*trainer.Trainer).Codegen)
}
