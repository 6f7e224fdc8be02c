package contract

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writtenTypes are the types that are written to a file or sent, empty.
func writtenTypes() map[string]any {
	return map[string]any{
		"step_handoff":               StepHandoff{},
		"execution_result":           ExecutionResult{},
		"training_request":           TrainingRequest{},
		"trainer_run_manifest":       RunManifest{},
		"data_manifest":              DataManifest{},
		"runtime_request":            RuntimeRequest{},
		"runtime_result":             RuntimeResult{},
		"coder_handoff":              CoderHandoff{},
		"resource_retrieval_request": RetrievalRequest{},
		"resource_retrieval_result":  RetrievalResult{},
	}
}

// filledTypes are the same with values, as a run would leave them.
func filledTypes() map[string]any {
	model := Model{CodePath: "src", TrainingEntrypoint: "train.py", SourceType: "local", TaskType: "regression"}
	rows := int64(600)
	return map[string]any{
		"step_handoff": StepHandoff{
			StepID: "s1", ExecutionSkill: SkillTrainer, StepGoal: "train the SST model",
			TaskContext:      TaskContext{UserGoal: "a model with val/rmse <= 0.5 K", Constraints: []string{"CPU only"}},
			ResourceBindings: []ResourceBinding{{Path: "docs/train.md", Type: "document", Purpose: "how to train"}},
			Inputs: Inputs{
				InstructionSource: InstructionSource{SourceType: SourceLocalFile, LocalPath: "docs/train.md"}, Model: model,
				Data:       Data{TrainSource: "data/sst.csv", InputFormat: "csv", DomainMetadata: map[string]any{"target": "sst", "units": map[string]any{"sst": "degC"}}},
				Parameters: Parameters{Optimizer: "adamw", BatchSize: number(32), EpochsOrSteps: number(20), DistributedMode: "single", Extra: map[string]any{"lr": 3e-4}},
				Runtime:    Runtime{ExecutionIntent: IntentRunLocal, ExecutionMode: ModeLocal, CodeSaveDir: "out"}, Attempt: 1,
				ExecutionFlags: ExecutionFlags{AutonomousMode: true},
			},
			RequiredOutputs: []string{"validation_report.md"}, CompletionCriteria: []string{"val/rmse <= 0.5 K"},
			Unknown: Unknown{"trace_id": json.RawMessage(`"t-9"`)},
		},
		"execution_result": ExecutionResult{
			Skill: SkillTrainer, Status: StatusPartial, Artifacts: map[string]string{"trainer_workdir": "/w/run", "code_save_dir": "/w/out"},
			Observation: Observation{Summary: "the job runs", Completed: []string{"phase 4"}}, Attempt: number(1),
		},
		"training_request": TrainingRequest{
			SchemaVersion: RequestSchemaVersion, SourceHandoffPath: FileStepHandoff, Step: RequestStep{StepID: "s1", StepGoal: "train", CompletionCriteria: []string{"val/rmse <= 0.5 K"}},
			Model: model, Task: RequestTask{Domain: DomainEarth, Objective: "predict sst"}, Data: RequestData{TrainSource: "data/sst.csv"},
			Training: RequestTraining{BatchSize: number(32)}, Constraints: RequestConstraints{NetworkAllowed: TristateFalse, RemoteSubmissionAllowed: TristateTrue},
		},
		"trainer_run_manifest": RunManifest{
			SchemaVersion: RunSchemaVersion, RunID: "r-1", TrainerWorkdir: "/w/run", Workdir: "/w/run", HandoffPath: FileStepHandoff, RequestPath: FileTrainingRequest,
			PhaseStatus: NewPhaseStatus(), Artifacts: map[string]string{"manifest": FileRunManifest}, Sources: []string{"docs/train.md"},
		},
		"data_manifest": DataManifest{
			TrainSource: "data/sst.csv", InputFormat: "csv", Files: []DataFile{{Path: "data/sst.csv", SHA256: "sha256:00", Bytes: 812, Rows: &rows}},
			Schema: DataSchema{ID: "id", Features: []string{"lat", "lon"}, Target: TargetColumn{Name: "sst", Type: "float", Unit: "degC"}, Group: "station"}, SplitStrategy: "group",
		},
		"runtime_request": RuntimeRequest{
			Task: "train", Entrypoint: "train.py", Command: "python3 train.py --epochs 20 > log", ExecutionMode: ModeLocal, Hardware: HardwareCPU,
			EnvironmentRequirements: EnvironmentRequirements{Python: ">=3.10", Frameworks: []string{"torch"}}, KnowledgeInputs: KnowledgeInputs{TrainingPlanPath: FileTrainingPlan}, ExpectedOutputs: []string{"outputs/metrics.jsonl"},
		},
		"runtime_result": RuntimeResult{
			Command: "python3 train.py", Channel: ChannelLocalDirect, Target: "localhost", JobID: "j-1", ExitCode: number(1), StartedAt: "2026-11-30T10:00:00Z", EndedAt: "2026-11-30T10:00:12Z", WallSeconds: ptr(12.5), PeakRSSBytes: ptr(int64(412000000)),
			LogPaths: []string{"jobs/j-1/stdout.log"}, KeyMetrics: map[string]any{"val/rmse": 0.42}, FailureClass: ptr(FailureBusinessScript), FailureCategory: ptr(CategoryCode),
			Evidence: []RuntimeEvidence{{From: "exit.json", Says: "exited with 1", At: "2026-11-30T10:00:12Z"}},
		},
		"coder_handoff": func() CoderHandoff {
			h := NewCoderHandoff()
			h.TaskDescriptionPath, h.TaskDescriptionContent, h.RequiredOutputs = FileCoderTask, "# Task\n", RunnerContract[:2]
			return h
		}(),
		"resource_retrieval_request": RetrievalRequest{UserRequest: "how to train it", ContentRequest: "usage", Filters: RetrievalFilters{Domain: "earth", Keyword: "fuxi"}},
		"resource_retrieval_result": RetrievalResult{
			Status: StatusSuccess, QuerySummary: "training", DetectedDomain: "earth", MatchedResources: []MatchedResource{{Type: "model", Path: "assets/earth/models/fuxi", Name: "fuxi", WhyMatched: WhyNamedLookup, Content: "…"}},
		},
	}
}

// Each written type, empty and filled, as a file a person can read.
func TestWrittenFiles(t *testing.T) {
	for name, v := range writtenTypes() {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".empty.json", indented(t, v))
			golden(t, name+".json", indented(t, filledTypes()[name]))
		})
	}
}

// What was written is read back and written again to the same bytes, also by plain encoding/json.
func TestWrittenFilesAreReadBack(t *testing.T) {
	read := map[string]func([]byte) (any, error){
		"step_handoff": readAs[StepHandoff], "execution_result": readAs[ExecutionResult], "training_request": readAs[TrainingRequest],
		"trainer_run_manifest": readAs[RunManifest], "data_manifest": readAs[DataManifest], "runtime_request": readAs[RuntimeRequest],
		"runtime_result": readAs[RuntimeResult], "coder_handoff": readAs[CoderHandoff],
		"resource_retrieval_request": readAs[RetrievalRequest], "resource_retrieval_result": readAs[RetrievalResult],
	}
	for name := range writtenTypes() {
		for _, file := range []string{name + ".json", name + ".empty.json"} {
			data, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			v, err := read[name](data)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			if diff := cmp.Diff(string(data), string(indented(t, v))); diff != "" {
				t.Errorf("%s: %s", file, diff)
			}
		}
	}
}

// readAs reads with Decode and with encoding/json, which must agree.
func readAs[T any](data []byte) (any, error) {
	var forgiving, plainly T
	if _, err := Decode(data, &forgiving); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &plainly); err != nil {
		return nil, err
	}
	if diff := cmp.Diff(forgiving, plainly); diff != "" {
		return nil, errorText(diff)
	}
	return plainly, nil
}

type errorText string

func (e errorText) Error() string { return string(e) }

func TestUnknownFieldsSurviveEverywhere(t *testing.T) {
	const sent = `{"step_id":"s1","task_context":{"user_goal":"g","tone":"calm"},"resource_bindings":[{"path":"a","sha":"00"},{"owner":{"x":[1]}}],` +
		`"inputs":{"model":{"code_path":"src","license":"MIT"},"data":{"lineage":[{"from":"b"}]},"execution_flags":{"dry":true},"priority":1.50},"zeta":null,"zz":{"a":1}}`
	handoff, _ := handoffOf(t, sent)
	got, err := json.Marshal(handoff)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownFieldNeverHidesAKnownOne(t *testing.T) {
	got, err := json.Marshal(StepHandoff{StepID: "s1", Unknown: Unknown{"step_id": json.RawMessage(`"s2"`)}})
	if err != nil || string(got) != `{"step_id":"s1"}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestBrokenUnknownFieldIsAnError(t *testing.T) {
	if got, err := json.Marshal(StepHandoff{Unknown: Unknown{"x": json.RawMessage(`{`)}}); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("%s, %v", got, err)
	}
}

func TestUnmarshalRefusesAWrongType(t *testing.T) {
	var manifest RunManifest
	if err := json.Unmarshal([]byte(`{"run_id": {}}`), &manifest); err == nil {
		t.Error("expected an error")
	}
}

// Newer revisions' fields are written together, and only when the handoff carried an attempt.
func TestResultFieldsOfNewerRevisions(t *testing.T) {
	for _, c := range []struct {
		result ExecutionResult
		want   string
	}{
		{ExecutionResult{}, `}`},
		{ExecutionResult{Attempt: number(2)}, `,"attempt":2,"events":[],"failure_category":null}`},
		{ExecutionResult{FailureCategory: ptr(CategoryData)}, `,"failure_category":"data"}`},
	} {
		got, err := json.Marshal(c.result)
		head := `{"skill":"","status":"","artifacts":{},"observation":{"summary":"","completed":[],"missing":[],"risks":[],"next_recommendation":""}`
		if err != nil || string(got) != head+c.want {
			t.Errorf("got %s, %v", got, err)
		}
	}
}

func TestTristate(t *testing.T) {
	for _, c := range []struct{ sent, want string }{
		{`true`, `true`}, {`false`, `false`}, {`"unknown"`, `"unknown"`}, {`null`, `"unknown"`}, {`""`, `"unknown"`},
		{`"Yes"`, `true`}, {`0`, `false`}, {`"UNKNOWN"`, `"unknown"`},
	} {
		for _, read := range []func(string, *RequestConstraints) error{
			func(s string, into *RequestConstraints) error {
				_, err := Decode(`{"network_allowed": `+s+`}`, into)
				return err
			},
			func(s string, into *RequestConstraints) error {
				return json.Unmarshal([]byte(s), &into.NetworkAllowed)
			},
		} {
			var constraints RequestConstraints
			if err := read(c.sent, &constraints); err != nil {
				t.Fatal(err)
			}
			if got, err := json.Marshal(constraints.NetworkAllowed); err != nil || string(got) != c.want {
				t.Errorf("%s is written as %s, %v", c.sent, got, err)
			}
		}
	}
	var constraints RequestConstraints
	if found, err := Decode(`{"network_allowed": "sometimes"}`, &constraints); err == nil || found[0].Code != "wrong_type" {
		t.Error(found, err)
	}
	if TristateOf(true) != TristateTrue || TristateOf(false) != TristateFalse {
		t.Error("TristateOf")
	}
}

func TestPhasesAreWrittenInOrder(t *testing.T) {
	got, err := json.Marshal(NewPhaseStatus())
	want := `{"0_input_acquisition":"pending","1_training_knowledge":"pending","2_data_and_split":"pending","3_training_strategy":"pending","4_codegen":"pending","5_execution":"pending","6_validation":"pending"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}
