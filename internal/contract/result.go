package contract

// ExecutionResult is what every skill returns. Attempt, Events and FailureCategory belong to newer revisions: they are
// all written when Attempt is set, as the handoff carried one, and left out where they are empty otherwise.
type ExecutionResult struct {
	Skill           string            `json:"skill"`
	Status          string            `json:"status" jsonschema:"enum=success,enum=partial,enum=failed,enum=blocked"`
	Artifacts       map[string]string `json:"artifacts"`
	Observation     Observation       `json:"observation"`
	Attempt         *int              `json:"attempt,omitempty"`
	Events          []map[string]any  `json:"events,omitempty"`
	FailureCategory *string           `json:"failure_category,omitempty" jsonschema:"nullable,enum=transient,enum=environment,enum=dependency,enum=data,enum=code,enum=scientific,enum=platform,enum=unknown"`
	Unknown         Unknown           `json:"-"`
}

// Observation is the readable part of a result.
type Observation struct {
	Summary            string   `json:"summary"`
	Completed          []string `json:"completed"`
	Missing            []string `json:"missing"`
	Risks              []string `json:"risks"`
	NextRecommendation string   `json:"next_recommendation"`
	Unknown            Unknown  `json:"-"`
}

// The statuses of an execution_result.
const (
	StatusSuccess = "success" // done, and the completion criteria are met
	StatusPartial = "partial" // useful artifacts and a gap that is not fatal; a job still running is partial
	StatusFailed  = "failed"  // attempted, failed, with evidence, and no automatic repair is left
	StatusBlocked = "blocked" // user input, credential, file, authorisation or infrastructure is missing
)

// The categories of a failure in newer revisions.
const (
	CategoryTransient   = "transient"
	CategoryEnvironment = "environment"
	CategoryDependency  = "dependency"
	CategoryData        = "data"
	CategoryCode        = "code"
	CategoryScientific  = "scientific"
	CategoryPlatform    = "platform"
	CategoryUnknown     = "unknown"
)

// ArtifactKeys are the keys of execution_result.artifacts that the trainer uses, in the order of the contract.
var ArtifactKeys = []string{
	"code_save_dir", "trainer_workdir", "workdir", "handoff", "request", "source_capture", "manifest",
	"training_knowledge", "data_preparation_plan", "data_manifest", "training_plan", "coder_task_description",
	"runtime_request", "runtime_result", "validation_report", "generated_entrypoint",
}
