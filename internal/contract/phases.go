package contract

// SkillTrainer is the execution_skill of the trainer.
const SkillTrainer = "onescience-trainer"

// The seven phases of the trainer.
const (
	PhaseInputAcquisition  = "0_input_acquisition"
	PhaseTrainingKnowledge = "1_training_knowledge"
	PhaseDataAndSplit      = "2_data_and_split"
	PhaseTrainingStrategy  = "3_training_strategy"
	PhaseCodegen           = "4_codegen"
	PhaseExecution         = "5_execution"
	PhaseValidation        = "6_validation"
)

// Phases are the seven phases in order.
var Phases = []string{
	PhaseInputAcquisition, PhaseTrainingKnowledge, PhaseDataAndSplit, PhaseTrainingStrategy,
	PhaseCodegen, PhaseExecution, PhaseValidation,
}

// The states of a phase.
const (
	StatePending = "pending"
	StateRunning = "running"
	StateSuccess = "success"
	StatePartial = "partial"
	StateBlocked = "blocked"
	StateFailed  = "failed"
	StateSkipped = "skipped"
)

// PhaseStates are the states of a phase as the contract lists them.
var PhaseStates = []string{StatePending, StateRunning, StateSuccess, StatePartial, StateBlocked, StateFailed, StateSkipped}

// How far a step goes (inputs.runtime.execution_intent).
const (
	IntentPlanOnly     = "plan_only"     // ends after phase 3; runs none of the project's code
	IntentGenerateCode = "generate_code" // ends after phase 4; runs none of the project's code
	IntentRunLocal     = "run_local"
	IntentRunRemote    = "run_remote"
	IntentValidateOnly = "validate_only" // adopts a run that was started elsewhere
	IntentUnknown      = "unknown"
)

// Where a training runs (inputs.runtime.execution_mode).
const (
	ModeLocal        = "local"
	ModeLocalSlurm   = "local_slurm"
	ModeRemoteSlurm  = "remote_slurm"
	ModeRemoteDirect = "remote_direct"
	ModeUnknown      = "unknown"
)

// What a checkpoint is for.
const (
	RoleTrainFromScratch   = "train_from_scratch"
	RoleInitFromCheckpoint = "init_from_checkpoint"
	RoleResumeTraining     = "resume_training"
	RoleFinetune           = "finetune"
)

// The kinds of an instruction source (inputs.instruction_source.source_type).
const (
	SourceText      = "text"
	SourceURL       = "url"
	SourceLocalFile = "local_file"
	SourceHandoff   = "handoff"
	SourceMixed     = "mixed"
	SourceUnknown   = "unknown"
)

// The files of a run, relative to trainer_workdir.
const (
	FileStepHandoff         = "step_handoff.json"
	FileTrainingRequest     = "training_request.json"
	FileSourceCapture       = "source_capture.md"
	FileTrainingKnowledge   = "training_knowledge.md"
	FileDataPreparationPlan = "data_preparation_plan.md"
	FileDataManifest        = "data_manifest.json"
	FileTrainingPlan        = "training_plan.md"
	FileCoderTask           = "coder_task_description.md"
	FileRuntimeRequest      = "runtime_request.json"
	FileRuntimeResult       = "runtime_result.json"
	FileValidationReport    = "validation_report.md"
	FileExecutionResult     = "execution_result.json"
	FileRunManifest         = "trainer_run_manifest.json"
)

// RunnerContract are the ten functions a training script of phase 3 consists of, in order.
var RunnerContract = []string{
	"load_config", "load_checkpoint", "build_dataset", "build_dataloader", "build_model",
	"build_optimizer", "build_scheduler", "train_step", "run_training", "run_evaluation",
}

// RunEvidenceFiles are the names that only a real run may create; code generation must not write them.
var RunEvidenceFiles = []string{"trainer.log", "train.log", "metrics.json", "metrics.jsonl", "predictions.json", "targets.json"}
