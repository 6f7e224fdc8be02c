package tools

import (
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/trainer"
)

// Deps is what the tools work with. Trainer opens the workspace on its first use, so that a server starts without
// touching the disk, and gives the same value every time.
type Deps struct {
	Trainer func() (*trainer.Trainer, error)
	// SkillFindings tells what was noticed when the skills were loaded; it is asked after Trainer, and may be nil.
	SkillFindings func() []finding.Finding
}

// engine is the engine of the workspace.
func (d Deps) engine() (*engine.Engine, error) {
	t, err := d.Trainer()
	if err != nil {
		return nil, err
	}
	return t.Engine, nil
}

// All lists every tool in a fixed order.
func All(deps Deps) []Tool {
	return []Tool{
		trainerWalk(deps),
		inputAcquisition(deps),
		trainingKnowledge(deps),
		dataAndSplit(deps),
		trainingStrategy(deps),
		codegenPhase(deps),
		executionPhase(deps),
		validationPhase(deps),
		runList(deps),
		runStatus(deps),
		verifyClaims(deps),
		runtime(deps),
		coderTool(deps),
		jobStatus(deps),
		jobLogs(deps),
		jobCancel(deps),
		jobList(deps),
		inspectProject(deps),
		inspectDataset(deps),
		inspectCheckpoint(deps),
		readMetrics(deps),
		skillList(deps),
		skillGet(deps),
		recallTool(deps),
	}
}
