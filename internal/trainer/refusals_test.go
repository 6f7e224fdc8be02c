package trainer

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
)

// A phase that is called before its time is blocked and told which phase is open.
func TestSkippedPhaseIsBlocked(t *testing.T) {
	f := newFixture(t)
	first, err := f.trainer.InputAcquisition(context.Background(), engine.Silent, contract.Call{Handoff: &f.handoff}, AcquisitionInput{})
	if err != nil {
		t.Fatal(err)
	}
	answer := f.phase(3, first.Run.RunID, nil)
	wantStatus(t, answer, contract.StatusBlocked)
	wantCode(t, answer.Findings, "phase_skipped")
	if next := answer.Run.NextCall; next == nil || next.Tool != "phase_1_training_knowledge" || next.Arguments["run_id"] != first.Run.RunID {
		t.Errorf("next call %+v, want phase 1 of the run", next)
	}
}

// A CONFIRMED fact needs its quote in its source; one that is not there is refused with the nearest passage, is not kept,
// and does not come back.
func TestQuoteThatIsNotInItsSource(t *testing.T) {
	f := newFixture(t)
	first, err := f.trainer.InputAcquisition(context.Background(), engine.Silent, contract.Call{Handoff: &f.handoff}, AcquisitionInput{})
	if err != nil {
		t.Fatal(err)
	}
	bad := map[string]any{"field": "training.optimizer", "value": "adamw", "status": evidence.Confirmed, "source": "s2", "quote": "We train it with AdamW"}
	answer := f.phase(1, first.Run.RunID, map[string]any{"facts": []any{bad}})
	wantStatus(t, answer, contract.StatusBlocked)
	got := wantCode(t, answer.Findings, "quote_not_in_source")
	if got.Expected == "" || got.Where == nil || got.Where.Path == "" {
		t.Errorf("the refusal shows neither passage nor place: %+v", got)
	}
	again := f.phase(1, first.Run.RunID, nil)
	if again.Run.PhaseStatus[contract.PhaseTrainingKnowledge] != contract.StateSuccess {
		t.Errorf("the refused fact came back: %s", describe(again))
	}
}

// Whatever artifact lies in the trainer_workdir before the run is no evidence of it, with valid content and a time in the
// future too.
func TestPlantedArtifacts(t *testing.T) {
	donor := newFixture(t)
	done := donor.walk()
	wantStatus(t, done, contract.StatusSuccess)
	names := append([]string{"phases/6_validation.json", "jobs/j-1/exit.json"}, donor.trainer.skill.Canonical...)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			content := "{}"
			if data, err := os.ReadFile(donor.file(done, name)); err == nil {
				content = string(data)
			}
			f := newFixture(t)
			f.handoff.Inputs.Runtime.TrainerWorkdir = "work"
			path := filepath.Join(f.dir, "work", name)
			f.write(path, content)
			future := time.Now().Add(24 * time.Hour)
			if err := os.Chtimes(path, future, future); err != nil {
				t.Fatal(err)
			}
			code := "artifact_planted"
			if name == contract.FileStepHandoff {
				code = "workdir_taken"
			}
			_, err := f.try(contract.Call{Handoff: &f.handoff})
			refusedWith(t, err, code)
			if got := f.read(path); got != content {
				t.Error("the planted file was changed")
			}
		})
	}
}

// Run evidence that lies in code_save_dir before the job stops the launch; without it the run goes on.
func TestPlantedOutputs(t *testing.T) {
	for _, name := range []string{"outputs/predictions-test.jsonl", "outputs/summary.json"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.handoff.Inputs.Runtime.CodeSaveDir = "runs/a"
			path := filepath.Join(f.dir, "runs/a", name)
			f.write(path, `{"step": 1, "split": "test", "name": "accuracy", "value": 1.0}`+"\n")
			future := time.Now().Add(24 * time.Hour)
			if err := os.Chtimes(path, future, future); err != nil {
				t.Fatal(err)
			}
			answer := f.walk()
			wantStatus(t, answer, contract.StatusBlocked)
			wantCode(t, answer.Findings, "output_exists")
			if jobs, _ := filepath.Glob(f.file(answer, "jobs/*/request.json")); len(jobs) != 0 {
				t.Error("a job was made all the same")
			}
			if err := os.RemoveAll(filepath.Join(f.dir, "runs/a", filepath.Dir(name))); err != nil {
				t.Fatal(err)
			}
			wantStatus(t, f.walk(), contract.StatusSuccess)
		})
	}
}

// An artifact that is edited or deleted afterwards is noticed: state is made again or refused. (What the job left: TestLies.)
func TestEditedAndDeletedArtifacts(t *testing.T) {
	cases := []struct {
		name, path, code string
		remove           bool
		status           string // of the next walk
	}{
		{"facts edited", factsFile, "artifact_edited", false, contract.StatusBlocked},
		{"facts deleted", factsFile, "artifact_missing", true, contract.StatusSuccess},
		{"knowledge edited by hand", contract.FileTrainingKnowledge, "artifact_edited_by_hand", false, contract.StatusSuccess},
		{"report deleted", contract.FileValidationReport, "artifact_missing", true, contract.StatusSuccess},
		{"data part edited", "code/data/test.csv", "artifact_edited", false, contract.StatusSuccess},
		{"manifest deleted", contract.FileRunManifest, "", true, contract.StatusSuccess},
		{"result edited", contract.FileExecutionResult, "", false, contract.StatusSuccess},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			first := f.walk()
			wantStatus(t, first, contract.StatusSuccess)
			path := f.file(first, c.path)
			original := f.read(path)
			if c.remove {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else {
				f.write(path, original+" ")
			}
			f.open()
			status, err := f.trainer.Engine.RunStatus(t.Context(), first.Run.RunID)
			if err != nil {
				t.Fatal(err)
			}
			next := f.walk()
			if c.code != "" {
				wantCode(t, append(status.Findings, next.Findings...), c.code)
			}
			wantStatus(t, next, c.status)
			if c.code == "" && f.read(path) != original {
				t.Error("the projection was not made again")
			}
			if c.code == "artifact_edited_by_hand" && f.read(path) != original+" " {
				t.Error("the edit was overwritten")
			}
		})
	}
}

// A handoff beside a run_id that says something else than the run is refused by the field's name; an open field is taken.
func TestHandoffThatDiffersFromTheRun(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	first := f.walk()
	wantStatus(t, first, contract.StatusSuccess)
	three := 3
	changed := contract.StepHandoff{Inputs: contract.Inputs{Parameters: contract.Parameters{EpochsOrSteps: &three}}}
	_, err := f.try(contract.Call{RunID: first.Run.RunID, Handoff: &changed})
	if got := refusedWith(t, err, "handoff_differs"); got.Where.Field != "step_handoff.inputs.parameters.epochs_or_steps" {
		t.Errorf("the refusal is about %q", got.Where.Field)
	}
	settled, err := f.try(contract.Call{RunID: first.Run.RunID, Handoff: &changed, Section: map[string]any{"resolve": []any{map[string]any{"field": "parameters.epochs_or_steps", "keep": "sent"}}}})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, settled, contract.StatusSuccess)
	var plan Plan
	f.must(json.Unmarshal([]byte(f.read(f.file(settled, planFile))), &plan))
	if epochs := plan.Leaves["epochs"]; show(epochs.Value) != "3" || epochs.Status != evidence.Confirmed {
		t.Errorf("epochs of the plan: %+v", epochs)
	}
	f.write(f.file(first, contract.FileStepHandoff), f.read(f.file(first, contract.FileStepHandoff))+" ")
	_, err = f.try(contract.Call{RunID: first.Run.RunID})
	refusedWith(t, err, "artifact_edited")
}

// A script that exits 0 without what it was told to write has failed.
func TestExitZeroWithoutArtifacts(t *testing.T) {
	f := newFixture(t)
	f.edit("train.py", "    config = load_config(argv)\n    try:", "    config = load_config(argv)\n    return 0\n    try:")
	answer := f.walk()
	wantStatus(t, answer, contract.StatusFailed)
	got := wantCode(t, answer.Findings, "expected_output_missing")
	if got.Where == nil || got.Where.Path == "" {
		t.Errorf("no place: %+v", got)
	}
	if answer.Run.PhaseStatus[contract.PhaseValidation] == contract.StateSuccess {
		t.Error("validation passed")
	}
}

// A criterion that is not met is partial, with its value; none at all is partial with a need.
func TestCriteriaDecideTheStep(t *testing.T) {
	f := newFixture(t)
	attempt := 1
	f.handoff.Inputs.Attempt = attempt
	f.handoff.CompletionCriteria = []string{"test/accuracy >= 0.9999"}
	answer := f.walk()
	wantStatus(t, answer, contract.StatusPartial)
	if c := answer.ExecutionResult.FailureCategory; c == nil || *c != "scientific" {
		t.Errorf("failure_category %v", c)
	}
	g := newFixture(t)
	g.handoff.CompletionCriteria = nil
	none := g.walk()
	wantStatus(t, none, contract.StatusPartial)
	if len(none.Needs) != 1 || none.Needs[0].Field != "completion_criteria" {
		t.Errorf("needs %+v", none.Needs)
	}
}
