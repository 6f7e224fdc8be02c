package contract

// RequestSchemaVersion is the schema_version of training_request.json.
const RequestSchemaVersion = "onescience-trainer-request-v1"

// TrainingRequest is training_request.json: the handoff normalised for the phases. It is written whole: every field is
// present, an enum that nobody set is "unknown", a number that nobody set is null.
type TrainingRequest struct {
	SchemaVersion     string             `json:"schema_version"`
	SourceHandoffPath string             `json:"source_handoff_path"`
	Step              RequestStep        `json:"step"`
	InstructionSource InstructionSource  `json:"instruction_source"`
	Model             Model              `json:"model"`
	Checkpoint        Checkpoint         `json:"checkpoint"`
	Task              RequestTask        `json:"task"`
	Data              RequestData        `json:"data"`
	Training          RequestTraining    `json:"training"`
	Runtime           RequestRuntime     `json:"runtime"`
	Constraints       RequestConstraints `json:"constraints"`
	ResourceBindings  []ResourceBinding  `json:"resource_bindings"`
	Unknown           Unknown            `json:"-"`
}

// RequestStep repeats what identifies the step.
type RequestStep struct {
	StepID             string   `json:"step_id"`
	StepGoal           string   `json:"step_goal"`
	UserGoal           string   `json:"user_goal"`
	CompletionCriteria []string `json:"completion_criteria"`
	Unknown            Unknown  `json:"-"`
}

// RequestTask says what the training is for.
type RequestTask struct {
	Domain           string   `json:"domain" jsonschema:"enum=earth,enum=biology,enum=materials,enum=cfd,enum=general-science,enum=unknown"`
	Objective        string   `json:"objective"`
	RequestedOutputs []string `json:"requested_outputs"`
	Unknown          Unknown  `json:"-"`
}

// RequestData is the handoff's data with the preprocessing the caller asked for.
type RequestData struct {
	TrainSource              string         `json:"train_source"`
	ValSource                string         `json:"val_source"`
	TestSource               string         `json:"test_source"`
	InputFormat              string         `json:"input_format"`
	SplitHint                string         `json:"split_hint"`
	DomainMetadata           map[string]any `json:"domain_metadata"`
	PreprocessingConstraints []string       `json:"preprocessing_constraints"`
	Unknown                  Unknown        `json:"-"`
}

// RequestTraining is the training strategy as far as it is known. Extra carries the handoff's other parameters.
type RequestTraining struct {
	Optimizer       string         `json:"optimizer"`
	Scheduler       string         `json:"scheduler"`
	BatchSize       *int           `json:"batch_size"`
	EpochsOrSteps   *int           `json:"epochs_or_steps"`
	Precision       string         `json:"precision"`
	DistributedMode string         `json:"distributed_mode" jsonschema:"enum=single,enum=ddp,enum=deepspeed,enum=fsdp,enum=megatron,enum=unknown"`
	ResumeSemantics string         `json:"resume_semantics"`
	Extra           map[string]any `json:"extra"`
	Unknown         Unknown        `json:"-"`
}

// RequestRuntime is the handoff's runtime with the hardware the training needs.
type RequestRuntime struct {
	ExecutionIntent         string         `json:"execution_intent" jsonschema:"enum=plan_only,enum=generate_code,enum=run_local,enum=run_remote,enum=validate_only,enum=unknown"`
	ExecutionMode           string         `json:"execution_mode" jsonschema:"enum=local,enum=local_slurm,enum=remote_slurm,enum=remote_direct,enum=unknown"`
	CodeSaveDir             string         `json:"code_save_dir"`
	TrainerWorkdir          string         `json:"trainer_workdir"`
	Workdir                 string         `json:"workdir"`
	PackageRequirements     []string       `json:"package_requirements"`
	EnvironmentRequirements map[string]any `json:"environment_requirements"`
	Hardware                string         `json:"hardware" jsonschema:"enum=cpu,enum=cuda,enum=dcu,enum=tpu,enum=unknown"`
	Unknown                 Unknown        `json:"-"`
}

// RequestConstraints says what the caller allows. Each is true, false or "unknown".
type RequestConstraints struct {
	NetworkAllowed          Tristate `json:"network_allowed" jsonschema_description:"true, false or \"unknown\"."`
	LargeDownloadAllowed    Tristate `json:"large_download_allowed" jsonschema_description:"true, false or \"unknown\"."`
	RemoteSubmissionAllowed Tristate `json:"remote_submission_allowed" jsonschema_description:"true, false or \"unknown\"."`
	Unknown                 Unknown  `json:"-"`
}

// The scientific domains of a request.
const (
	DomainEarth          = "earth"
	DomainBiology        = "biology"
	DomainMaterials      = "materials"
	DomainCFD            = "cfd"
	DomainGeneralScience = "general-science"
	DomainUnknown        = "unknown"
)

// The hardware a training needs.
const (
	HardwareCPU     = "cpu"
	HardwareCUDA    = "cuda"
	HardwareDCU     = "dcu"
	HardwareTPU     = "tpu"
	HardwareUnknown = "unknown"
)
