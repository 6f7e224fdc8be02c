package tools

import "github.com/trainwright/trainwright/internal/trainer"

func validationPhase(deps Deps) Tool {
	return trainerTool(deps, "phase_6_validation", "Validates what the job left: unchanged outputs, checkpoint, metrics, numbers computed anew from the predictions, criteria; writes validation_report.md.", writesRun, []string{"checks", "adopt", "edited"}, false, (*trainer.Trainer).Validation)
}
