package trainer

import (
	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/recall"
)

// trainingRequest is training_request.json: the handoff in the trainer's own order, with nothing filled in that nobody
// said.
func trainingRequest(run *engine.Run, c *capture) contract.TrainingRequest {
	h, in := run.Handoff, run.Handoff.Inputs
	domain := text(in.Data.DomainMetadata["domain"])
	model := in.Model
	if model.TrainingEntrypoint == "" && c.entry != "" {
		model.TrainingEntrypoint = c.entry
	}
	return contract.TrainingRequest{
		SchemaVersion: contract.RequestSchemaVersion, SourceHandoffPath: contract.FileStepHandoff,
		Step:              contract.RequestStep{StepID: h.StepID, StepGoal: h.StepGoal, UserGoal: h.TaskContext.UserGoal, CompletionCriteria: h.CompletionCriteria},
		InstructionSource: in.InstructionSource, Model: model, Checkpoint: in.Checkpoint,
		Task: contract.RequestTask{Domain: knownDomain(domain), Objective: h.StepGoal, RequestedOutputs: h.RequiredOutputs},
		Data: contract.RequestData{TrainSource: in.Data.TrainSource, ValSource: in.Data.ValSource, TestSource: in.Data.TestSource,
			InputFormat: in.Data.InputFormat, SplitHint: in.Data.SplitHint, DomainMetadata: in.Data.DomainMetadata, PreprocessingConstraints: []string{}},
		Training: contract.RequestTraining{Optimizer: in.Parameters.Optimizer, Scheduler: in.Parameters.Scheduler, BatchSize: in.Parameters.BatchSize,
			EpochsOrSteps: in.Parameters.EpochsOrSteps, Precision: in.Parameters.Precision, DistributedMode: orUnknown(in.Parameters.DistributedMode), Extra: in.Parameters.Others()},
		Runtime: contract.RequestRuntime{ExecutionIntent: orUnknown(in.Runtime.ExecutionIntent), ExecutionMode: orUnknown(in.Runtime.ExecutionMode),
			CodeSaveDir: run.CodeSaveDir, TrainerWorkdir: run.Workdir, Workdir: run.Workdir, PackageRequirements: in.Runtime.PackageRequirements,
			EnvironmentRequirements: in.Runtime.EnvironmentRequirements, Hardware: hardware(in.Runtime.EnvironmentRequirements)},
		// No grant is asked for here: what a policy allows is not the handoff's to say.
		Constraints:      contract.RequestConstraints{NetworkAllowed: contract.TristateUnknown, LargeDownloadAllowed: contract.TristateUnknown, RemoteSubmissionAllowed: contract.TristateUnknown},
		ResourceBindings: h.ResourceBindings,
	}
}

// knownDomain is the one name of a domain under any of its spellings, else unknown.
func knownDomain(domain string) string {
	if known := recall.NormalizeDomain(domain); known != "" {
		return known
	}
	return contract.DomainUnknown
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// hardware is what the environment requirements ask for, in the contract's words.
func hardware(environment map[string]any) string {
	asked, _ := environment["accelerator"].(string)
	switch asked {
	case contract.HardwareCPU, contract.HardwareCUDA, contract.HardwareDCU, contract.HardwareTPU:
		return asked
	case "none":
		return contract.HardwareCPU
	}
	return contract.HardwareUnknown
}

// text is v where it is a string.
func text(v any) string {
	s, _ := v.(string)
	return s
}
