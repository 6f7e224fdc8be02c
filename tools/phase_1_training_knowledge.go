package tools

import "github.com/trainwright/trainwright/internal/trainer"

func trainingKnowledge(deps Deps) Tool {
	return trainerTool(deps, "phase_1_training_knowledge", "Turns candidates and your facts into verified knowledge: every CONFIRMED fact needs a verbatim quote of a captured source. Names the checkpoint's role.", writesRun, []string{"accept", "facts", "resolve", "edited"}, false, (*trainer.Trainer).TrainingKnowledge)
}
