package tools

import "github.com/trainwright/trainwright/internal/trainer"

func dataAndSplit(deps Deps) Tool {
	return trainerTool(deps, "phase_2_data_and_split", "Reads the data whole, profiles it, settles id, features and target, splits it without leaks and fits statistics on the training part.", writesRun, []string{"data", "edited"}, false, (*trainer.Trainer).DataAndSplit)
}
