package tools

import "github.com/trainwright/trainwright/internal/trainer"

func trainingStrategy(deps Deps) Tool {
	return trainerTool(deps, "phase_3_training_strategy", "Checks the training strategy against facts, data and script, or proposes one whose open fields are ASSUMPTIONs.", writesRun, []string{"propose", "strategy", "edited"}, false, (*trainer.Trainer).TrainingStrategy)
}
