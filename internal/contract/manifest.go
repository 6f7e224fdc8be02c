package contract

// RunSchemaVersion is the schema_version of trainer_run_manifest.json.
const RunSchemaVersion = "onescience-trainer-run-v1"

// RunManifest is trainer_run_manifest.json, a projection of the phase records that can be rebuilt. PhaseStatus maps each
// name in Phases to a State; its keys are written in phase order. Sources names what was read, as the handoff named it.
type RunManifest struct {
	SchemaVersion  string            `json:"schema_version"`
	RunID          string            `json:"run_id"`
	CodeSaveDir    string            `json:"code_save_dir"`
	TrainerWorkdir string            `json:"trainer_workdir"`
	Workdir        string            `json:"workdir"`
	HandoffPath    string            `json:"handoff_path"`
	RequestPath    string            `json:"request_path"`
	PhaseStatus    map[string]string `json:"phase_status"`
	Artifacts      map[string]string `json:"artifacts"`
	Handoffs       map[string]string `json:"handoffs"`
	Blockers       []string          `json:"blockers"`
	Assumptions    []string          `json:"assumptions"`
	Sources        []string          `json:"sources"`
	Unknown        Unknown           `json:"-"`
}

// NewPhaseStatus returns the status of a run that has not begun: every phase pending.
func NewPhaseStatus() map[string]string {
	status := make(map[string]string, len(Phases))
	for _, phase := range Phases {
		status[phase] = StatePending
	}
	return status
}
