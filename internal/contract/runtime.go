package contract

// RuntimeRequest is runtime_request.json: everything a runtime needs to run the training, complete enough to be handed to
// a channel that is not built in. Command and TrainCommand are one shell-quoted line each.
type RuntimeRequest struct {
	Task                    string                  `json:"task"`
	CodeSaveDir             string                  `json:"code_save_dir"`
	TrainerWorkdir          string                  `json:"trainer_workdir"`
	Workdir                 string                  `json:"workdir"`
	Entrypoint              string                  `json:"entrypoint"`
	Command                 string                  `json:"command"`
	ExecutionMode           string                  `json:"execution_mode" jsonschema:"enum=local,enum=local_slurm,enum=remote_slurm,enum=remote_direct,enum=unknown"`
	Hardware                string                  `json:"hardware" jsonschema:"enum=cpu,enum=cuda,enum=dcu,enum=tpu,enum=unknown"`
	PackageRequirements     []string                `json:"package_requirements"`
	EnvironmentRequirements EnvironmentRequirements `json:"environment_requirements"`
	KnowledgeInputs         KnowledgeInputs         `json:"knowledge_inputs"`
	PreflightChecks         []string                `json:"preflight_checks"`
	ExpectedOutputs         []string                `json:"expected_outputs"`
	InitCheckpoint          string                  `json:"init_checkpoint"`
	ResumeCheckpoint        string                  `json:"resume_checkpoint"`
	TrainCommand            string                  `json:"train_command"`
	ExpectedCheckpoints     []string                `json:"expected_checkpoints"`
	ExpectedMetrics         []string                `json:"expected_metrics"`
	LogDir                  string                  `json:"log_dir"`
	ManifestPath            string                  `json:"manifest_path"`
	Unknown                 Unknown                 `json:"-"`
}

// EnvironmentRequirements is what the training needs around it, in the words of the request: a Python version or path,
// an accelerator, memory such as "16 GB", a conda environment, a container or image.
type EnvironmentRequirements struct {
	Python           string   `json:"python"`
	Frameworks       []string `json:"frameworks"`
	Accelerator      string   `json:"accelerator"`
	Memory           string   `json:"memory"`
	Modules          []string `json:"modules"`
	Conda            string   `json:"conda"`
	ContainerOrImage string   `json:"container_or_image"`
	Unknown          Unknown  `json:"-"`
}

// KnowledgeInputs are the paths of the artifacts the runtime may consult.
type KnowledgeInputs struct {
	SourceCapturePath     string  `json:"source_capture_path"`
	TrainingKnowledgePath string  `json:"training_knowledge_path"`
	DataManifestPath      string  `json:"data_manifest_path"`
	TrainingPlanPath      string  `json:"training_plan_path"`
	Unknown               Unknown `json:"-"`
}

// RuntimeResult is runtime_result.json: one real execution, nothing back-filled. ExitCode is null while nothing proved
// an exit; times are RFC 3339 UTC or empty; PeakRSSBytes is the peak of the process tree, null where it was not measured;
// Snapshot is the path of the code snapshot that ran.
type RuntimeResult struct {
	Command          string            `json:"command"`
	SubmissionScript string            `json:"submission_script"`
	Channel          string            `json:"channel"`
	Target           string            `json:"target"`
	JobID            string            `json:"job_id"`
	ExitCode         *int              `json:"exit_code"`
	Signal           string            `json:"signal"`
	StartedAt        string            `json:"started_at"`
	EndedAt          string            `json:"ended_at"`
	WallSeconds      *float64          `json:"wall_seconds"`
	PeakRSSBytes     *int64            `json:"peak_rss_bytes"`
	LogPaths         []string          `json:"log_paths"`
	SyncedLogPaths   []string          `json:"synced_log_paths"`
	OutputFiles      []string          `json:"output_files"`
	Checkpoints      []string          `json:"checkpoints"`
	KeyMetrics       map[string]any    `json:"key_metrics"`
	Environment      map[string]any    `json:"environment"`
	Snapshot         string            `json:"snapshot"`
	FailureClass     *string           `json:"failure_class" jsonschema:"nullable,enum=submission_failed,enum=slurm_resource_unavailable,enum=slurm_resource_retry_exhausted,enum=environment_not_ready,enum=logs_not_ready,enum=business_script_failed,enum=status_fallback_used"`
	FailureCategory  *string           `json:"failure_category" jsonschema:"nullable,enum=transient,enum=environment,enum=dependency,enum=data,enum=code,enum=scientific,enum=platform,enum=unknown"`
	Evidence         []RuntimeEvidence `json:"evidence"`
	Unknown          Unknown           `json:"-"`
}

// RuntimeEvidence is one observation a verdict rests on. From is where it was read (exit.json, sacct, squeue, log,
// artifact), At its time in RFC 3339 UTC. A lone string is taken as what it says.
type RuntimeEvidence struct {
	From    string  `json:"from"`
	Says    string  `json:"says" lone:"true"`
	At      string  `json:"at"`
	Unknown Unknown `json:"-"`
}

// The channels a training can run on.
const (
	ChannelLocalDirect = "local_direct"
	ChannelLocalSlurm  = "local_slurm"
	ChannelSSHDirect   = "ssh_direct"
	ChannelSSHSlurm    = "ssh_slurm"
	ChannelSCNet       = "scnet"
)

// The failure classes of a runtime_result.
const (
	FailureSubmission          = "submission_failed"
	FailureSlurmUnavailable    = "slurm_resource_unavailable"
	FailureSlurmRetryExhausted = "slurm_resource_retry_exhausted"
	FailureEnvironmentNotReady = "environment_not_ready"
	FailureLogsNotReady        = "logs_not_ready"
	FailureBusinessScript      = "business_script_failed"
	FailureStatusFallback      = "status_fallback_used"
)
