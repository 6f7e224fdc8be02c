package contract

import (
	"encoding/json"
	"maps"
)

// Unknown holds the fields of an object that this version does not know, each as compact JSON. Decode fills it and
// encoding writes it back after the known fields, sorted by name, so that newer revisions of the contract pass through.
type Unknown map[string]json.RawMessage

// StepHandoff is what an orchestrator hands to a skill: one step, its context, its inputs and what counts as done.
// A field that was not given is its zero value and is left out when written.
type StepHandoff struct {
	StepID             string            `json:"step_id,omitempty" jsonschema_description:"Identifier of the step in the orchestrator's plan."`
	ExecutionSkill     string            `json:"execution_skill,omitempty" jsonschema_description:"The skill that owns the step, e.g. onescience-trainer."`
	StepGoal           string            `json:"step_goal,omitempty" jsonschema_description:"What this step must reach, in one sentence."`
	TaskContext        TaskContext       `json:"task_context,omitzero"`
	ResourceBindings   []ResourceBinding `json:"resource_bindings,omitempty" jsonschema_description:"Resources bound to the step. A path is an identifier, never a licence to read."`
	Inputs             Inputs            `json:"inputs,omitzero" jsonschema_description:"The trainer's inputs; leave out what is not known."`
	RequiredOutputs    []string          `json:"required_outputs,omitempty" jsonschema_description:"Artifacts that must exist at the end."`
	CompletionCriteria []string          `json:"completion_criteria,omitempty" jsonschema_description:"Checkable criteria such as val/loss <= 0.35."`
	Unknown            Unknown           `json:"-"`
}

// TaskContext says what the user wants and under which constraints.
type TaskContext struct {
	UserGoal          string   `json:"user_goal,omitempty" jsonschema_description:"What the user wants, in their words."`
	Constraints       []string `json:"constraints,omitempty" jsonschema_description:"Limits the step must respect."`
	RelevantArtifacts []string `json:"relevant_artifacts,omitempty" jsonschema_description:"Paths that earlier steps left."`
	Unknown           Unknown  `json:"-"`
}

// ResourceBinding names a resource the orchestrator bound to the step. Path identifies it and is never a licence to
// read; Content, where present, is all that may be used of it. A lone string is taken as the path.
type ResourceBinding struct {
	Path    string  `json:"path,omitempty" lone:"true"`
	Type    string  `json:"type,omitempty"`
	Purpose string  `json:"purpose,omitempty"`
	Content string  `json:"content,omitempty"`
	Unknown Unknown `json:"-"`
}

// Inputs are the trainer's inputs. Attempt counts from 1 and 0 means not given; the budget is in seconds.
type Inputs struct {
	InstructionSource          InstructionSource `json:"instruction_source,omitzero" jsonschema_description:"Where the instructions come from."`
	Model                      Model             `json:"model,omitzero" jsonschema_description:"The model's code and what it is for."`
	Checkpoint                 Checkpoint        `json:"checkpoint,omitzero" jsonschema_description:"Weights or state to start from; none means from scratch."`
	Data                       Data              `json:"data,omitzero" jsonschema_description:"The training data and how it is divided."`
	Parameters                 Parameters        `json:"parameters,omitzero" jsonschema_description:"The training strategy as far as it is fixed."`
	Runtime                    Runtime           `json:"runtime,omitzero" jsonschema_description:"How far to go, where to run and where files belong."`
	Attempt                    int               `json:"attempt,omitempty" jsonschema_description:"Attempt number; a repeated one returns the stored result."`
	StepWallclockBudgetSeconds int               `json:"step_wallclock_budget_seconds,omitempty"`
	ExecutionFlags             ExecutionFlags    `json:"execution_flags,omitzero"`
	Unknown                    Unknown           `json:"-"`
}

// ExecutionFlags are switches of newer revisions.
type ExecutionFlags struct {
	AutonomousMode bool    `json:"autonomous_mode,omitempty" jsonschema_description:"Go on with labelled assumptions instead of asking."`
	Unknown        Unknown `json:"-"`
}

// InstructionSource is where the instructions come from. A lone string is taken as the text.
type InstructionSource struct {
	SourceType string  `json:"source_type,omitempty" jsonschema:"enum=text,enum=url,enum=local_file,enum=handoff,enum=mixed,enum=unknown"`
	Text       string  `json:"text,omitempty" lone:"true"`
	URL        string  `json:"url,omitempty"`
	LocalPath  string  `json:"local_path,omitempty"`
	Notes      string  `json:"notes,omitempty"`
	Unknown    Unknown `json:"-"`
}

// Model says where the model's code is and what kind of task it solves.
type Model struct {
	CodePath           string  `json:"code_path,omitempty" jsonschema_description:"Folder or file with the model's code."`
	TrainingEntrypoint string  `json:"training_entrypoint,omitempty" jsonschema_description:"Script that trains, relative to code_path."`
	SourceType         string  `json:"source_type,omitempty" jsonschema:"enum=repository,enum=local,enum=package,enum=paper,enum=unknown"`
	ConfigHint         string  `json:"config_hint,omitempty"`
	TaskType           string  `json:"task_type,omitempty" jsonschema:"enum=forecast,enum=classification,enum=regression,enum=generation,enum=simulation,enum=unknown"`
	Unknown            Unknown `json:"-"`
}

// Checkpoint names the weights or state to start from. At most one of the three paths is normally given; which one it
// is decides the checkpoint role.
type Checkpoint struct {
	InitCheckpoint     string  `json:"init_checkpoint,omitempty" jsonschema_description:"Weights to start from; optimizer state is not restored."`
	ResumeCheckpoint   string  `json:"resume_checkpoint,omitempty" jsonschema_description:"Full state to continue an interrupted run."`
	FinetuneCheckpoint string  `json:"finetune_checkpoint,omitempty" jsonschema_description:"Pretrained weights to fine-tune."`
	RevisionOrHash     string  `json:"revision_or_hash,omitempty"`
	Unknown            Unknown `json:"-"`
}

// Data names the data sources. DomainMetadata is free: numbers in it are float64, or json.Number where a float64 would
// change an integer.
type Data struct {
	TrainSource    string         `json:"train_source,omitempty" jsonschema_description:"Path or URL of the training data."`
	ValSource      string         `json:"val_source,omitempty"`
	TestSource     string         `json:"test_source,omitempty"`
	InputFormat    string         `json:"input_format,omitempty" jsonschema_description:"csv, jsonl, netcdf, …"`
	SplitHint      string         `json:"split_hint,omitempty" jsonschema_description:"How to divide the data, in words."`
	DomainMetadata map[string]any `json:"domain_metadata,omitempty" jsonschema_description:"Domain facts: target, id, group, time, variables, units, grid."`
	Unknown        Unknown        `json:"-"`
}

// Parameters is the training strategy as far as the caller fixed it. BatchSize and EpochsOrSteps are nil when not given.
type Parameters struct {
	Optimizer       string         `json:"optimizer,omitempty"`
	Scheduler       string         `json:"scheduler,omitempty"`
	BatchSize       *int           `json:"batch_size,omitempty"`
	EpochsOrSteps   *int           `json:"epochs_or_steps,omitempty"`
	Precision       string         `json:"precision,omitempty" jsonschema_description:"fp32, bf16, fp16, …"`
	DistributedMode string         `json:"distributed_mode,omitempty" jsonschema:"enum=single,enum=ddp,enum=deepspeed,enum=fsdp,enum=megatron,enum=unknown"`
	Extra           map[string]any `json:"extra,omitempty" jsonschema_description:"Any other parameter by name."`
	Unknown         Unknown        `json:"-"`
}

// Others are the parameters beyond the named ones: those of extra, and those that stand beside it, as most callers send
// learning_rate. What extra says wins.
func (p Parameters) Others() map[string]any {
	if len(p.Extra)+len(p.Unknown) == 0 {
		return nil
	}
	all := map[string]any{}
	for name, raw := range p.Unknown {
		var value any
		if json.Unmarshal(raw, &value) == nil { // it was read from JSON
			all[name] = value
		}
	}
	maps.Copy(all, p.Extra)
	return all
}

// Runtime says how far the step may go, where it runs and where files belong. As an input, Workdir ranks third after
// TrainerWorkdir and CodeSaveDir; in every file trainwright writes it equals TrainerWorkdir.
type Runtime struct {
	ExecutionIntent         string         `json:"execution_intent,omitempty" jsonschema:"enum=plan_only,enum=generate_code,enum=run_local,enum=run_remote,enum=validate_only,enum=unknown" jsonschema_description:"How far to go."`
	ExecutionMode           string         `json:"execution_mode,omitempty" jsonschema:"enum=local,enum=local_slurm,enum=remote_slurm,enum=remote_direct,enum=unknown" jsonschema_description:"Where to run."`
	CodeSaveDir             string         `json:"code_save_dir,omitempty" jsonschema_description:"Folder for final code, configs and outputs."`
	TrainerWorkdir          string         `json:"trainer_workdir,omitempty" jsonschema_description:"Folder for the run's knowledge artifacts."`
	Workdir                 string         `json:"workdir,omitempty" jsonschema_description:"Older name of trainer_workdir."`
	PackageRequirements     []string       `json:"package_requirements,omitempty"`
	EnvironmentRequirements map[string]any `json:"environment_requirements,omitempty" jsonschema_description:"python, frameworks, accelerator, memory, modules, conda, container."`
	Unknown                 Unknown        `json:"-"`
}
