package tools

import "github.com/trainwright/trainwright/internal/trainer"

func inputAcquisition(deps Deps) Tool {
	return trainerTool(deps, "phase_0_input_acquisition", "Captures every source with its hash, scans the project and finds candidate facts. Takes the step_handoff (fields as in tool trainer) and more sources.", writesRun, []string{"sources", "edited"}, true, (*trainer.Trainer).InputAcquisition)
}
