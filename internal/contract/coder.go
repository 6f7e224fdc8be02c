package contract

// What a coder handoff always says: who takes it and how the task is to be done.
const (
	CoderTaskMethod = "training_codegen"
	CoderNextAction = "onescience-coder"
)

// CoderHandoff is what the trainer hands to the coder. Each artifact comes as a path and as its content, so that the
// coder needs no other file. NewCoderHandoff sets what never varies.
type CoderHandoff struct {
	TrainerHandoff             bool     `json:"trainer_handoff"`
	TaskMethod                 string   `json:"task_method"`
	CodeSaveDir                string   `json:"code_save_dir"`
	TrainerWorkdir             string   `json:"trainer_workdir"`
	Workdir                    string   `json:"workdir"`
	SourceCapturePath          string   `json:"source_capture_path"`
	SourceCaptureContent       string   `json:"source_capture_content"`
	TrainingKnowledgePath      string   `json:"training_knowledge_path"`
	TrainingKnowledgeContent   string   `json:"training_knowledge_content"`
	DataPreparationPlanPath    string   `json:"data_preparation_plan_path"`
	DataPreparationPlanContent string   `json:"data_preparation_plan_content"`
	DataManifestPath           string   `json:"data_manifest_path"`
	DataManifestContent        string   `json:"data_manifest_content"`
	TrainingPlanPath           string   `json:"training_plan_path"`
	TrainingPlanContent        string   `json:"training_plan_content"`
	TaskDescriptionPath        string   `json:"task_description_path"`
	TaskDescriptionContent     string   `json:"task_description_content"`
	RequiredOutputs            []string `json:"required_outputs"`
	ValidationCriteria         []string `json:"validation_criteria"`
	CoderStaticReviewRequired  bool     `json:"coder_static_review_required"`
	NextAction                 string   `json:"next_action"`
	Unknown                    Unknown  `json:"-"`
}

// NewCoderHandoff returns a coder handoff with the fields that never vary.
func NewCoderHandoff() CoderHandoff {
	return CoderHandoff{
		TrainerHandoff:            true,
		TaskMethod:                CoderTaskMethod,
		CoderStaticReviewRequired: true,
		NextAction:                CoderNextAction,
	}
}
