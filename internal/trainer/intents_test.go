package trainer

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// tripwire makes the script leave a file wherever it is run, --help included.
func (f *fixture) tripwire() string {
	mark := filepath.Join(f.dir, "it-ran")
	f.edit("train.py", "import argparse\n", "import argparse\nopen("+jsonText(mark)+", \"w\").close()\n")
	return mark
}

// plan_only ends after phase 3 and generate_code after 4; neither runs any of the project's code.
func TestIntentsThatRunNothing(t *testing.T) {
	for intent, last := range map[string]int{contract.IntentPlanOnly: 3, contract.IntentGenerateCode: 4} {
		t.Run(intent, func(t *testing.T) {
			f := newFixture(t)
			mark := f.tripwire()
			f.handoff.Inputs.Runtime.ExecutionIntent = intent
			answer := f.walk()
			wantStatus(t, answer, contract.StatusSuccess)
			for i, phase := range contract.Phases {
				want := contract.StateSuccess
				if i > last {
					want = contract.StateSkipped
				}
				if got := answer.Run.PhaseStatus[phase]; got != want {
					t.Errorf("%s is %s, want %s", phase, got, want)
				}
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("the project's code was run")
			}
			next := f.phase(5, answer.Run.RunID, nil)
			wantStatus(t, next, contract.StatusBlocked)
		})
	}
}

// An unknown intent stops after the plan and asks; the answer carries the very call that goes on.
func TestUnknownIntentAsks(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentUnknown
	answer := f.walk()
	wantStatus(t, answer, contract.StatusPartial)
	if len(answer.Needs) != 1 || answer.Needs[0].Field != "runtime.execution_intent" {
		t.Fatalf("needs %+v", answer.Needs)
	}
	next := answer.Run.NextCall
	if next == nil || next.Tool != "trainer" {
		t.Fatalf("next call %+v", next)
	}
	amendment, _, err := contract.DecodeHandoff(next.Arguments["step_handoff"])
	if err != nil {
		t.Fatal(err)
	}
	done, err := f.try(contract.Call{RunID: answer.Run.RunID, Handoff: &amendment})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, done, contract.StatusSuccess)
	if done.Run.RunID != answer.Run.RunID {
		t.Error("the amended handoff started another run")
	}
}

// A job that outlasts the wait is partial with its handle; the next call goes on and ends in success, with one job.
func TestWaitIsBounded(t *testing.T) {
	f := newFixture(t)
	f.hold()
	zero := 0
	answer, err := f.try(contract.Call{Handoff: &f.handoff, WaitSeconds: &zero})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, answer, contract.StatusPartial)
	if answer.Run.Job == nil || answer.Run.PhaseStatus[contract.PhaseExecution] != contract.StateRunning {
		t.Fatalf("no job under way: %s", describe(answer))
	}
	if next := answer.Run.NextCall; next == nil || next.Arguments["run_id"] != answer.Run.RunID {
		t.Errorf("next call %+v", next)
	}
	f.release()
	f.open()
	done := f.walk()
	wantStatus(t, done, contract.StatusSuccess)
	if folders, _ := filepath.Glob(f.file(done, "jobs/*")); len(folders) != 1 {
		t.Errorf("%d job folders", len(folders))
	}
}

// progress collects what a caller is told.
type progress struct {
	engine.Unasked
	said []engine.Progress
}

func (p *progress) Progress(x engine.Progress) { p.said = append(p.said, x) }

// While the job trains the caller hears of its metrics.
func TestProgressTellsOfTheTraining(t *testing.T) {
	f := newFixture(t)
	var heard progress
	wait := 60
	if _, err := f.trainer.Walk(context.Background(), &heard, contract.Call{Handoff: &f.handoff, WaitSeconds: &wait}, WalkInput{}); err != nil {
		t.Fatal(err)
	}
	phases, metrics := map[string]bool{}, 0
	for _, p := range heard.said {
		phases[p.Phase] = true
		if strings.Contains(p.Message, "train/loss") {
			metrics++
		}
	}
	if len(phases) != len(contract.Phases) || metrics == 0 {
		t.Errorf("told of %d phases and %d times of metrics", len(phases), metrics)
	}
}

// A remote intent never falls back to a local run: it is blocked with a complete runtime_request.json.
func TestRemoteIntentIsBlocked(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentRunRemote
	f.handoff.Inputs.Runtime.ExecutionMode = contract.ModeRemoteSlurm
	answer := f.walk()
	wantStatus(t, answer, contract.StatusBlocked)
	wantCode(t, answer.Findings, "channel_unavailable")
	var request contract.RuntimeRequest
	if err := rundir.ReadJSON(f.file(answer, runtimeRequest), &request); err != nil {
		t.Fatal(err)
	}
	if request.Entrypoint == "" || request.TrainCommand == "" || len(request.ExpectedOutputs) == 0 || request.ExecutionMode != contract.ModeRemoteSlurm {
		t.Errorf("runtime_request.json is not complete: %+v", request)
	}
	if folders, _ := filepath.Glob(f.file(answer, "jobs/*")); len(folders) != 0 {
		t.Error("a job was made")
	}
}

// validate_only adopts a folder, runs nothing and says that the evidence is external.
func TestValidateOnlyAdoptsARun(t *testing.T) {
	donor := newFixture(t)
	done := donor.walk()
	wantStatus(t, done, contract.StatusSuccess)
	f := newFixture(t)
	mark := f.tripwire()
	if err := os.CopyFS(filepath.Join(f.dir, "elsewhere"), os.DirFS(donor.code(done, "."))); err != nil {
		t.Fatal(err)
	}
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentValidateOnly
	first := f.walk()
	wantCode(t, first.Findings, "nothing_to_adopt")
	answer := f.phase(6, first.Run.RunID, map[string]any{"adopt": map[string]any{"path": "elsewhere"}})
	wantStatus(t, answer, contract.StatusPartial)
	wantCode(t, answer.Findings, "evidence_external")
	if answer.Run.PhaseStatus[contract.PhaseExecution] != contract.StateSkipped {
		t.Errorf("execution is %s", answer.Run.PhaseStatus[contract.PhaseExecution])
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the project's code was run")
	}
	claims := readClaims(t, f, f.file(answer, claimsFile))
	found := false
	for _, c := range claims {
		found = found || c.Split == "test" && c.Level == evidence.Recomputed
	}
	if !found {
		t.Errorf("the adopted predictions were not computed anew: %+v", claims)
	}
}

// A job that fails is failed with its cause, and an explicit launch after the repair starts another one.
func TestFailedJobAndAnotherLaunch(t *testing.T) {
	f := newFixture(t)
	attempt := 1
	f.handoff.Inputs.Attempt = attempt
	f.edit("train.py", "    config = load_config(argv)\n    try:", "    config = load_config(argv)\n    if config.epochs > 1 and not os.path.exists(os.path.join(os.path.dirname(config.output_dir), 'repaired')):\n        raise RuntimeError('the disk is upside down')\n    try:")
	answer := f.walk()
	wantStatus(t, answer, contract.StatusFailed)
	if c := answer.ExecutionResult.FailureCategory; c == nil || *c != jobs.CategoryCode {
		t.Errorf("failure_category %v", c)
	}
	var result contract.RuntimeResult
	if err := rundir.ReadJSON(f.file(answer, runtimeResult), &result); err != nil {
		t.Fatal(err)
	}
	if result.ExitCode == nil || *result.ExitCode != 1 || result.FailureClass == nil || *result.FailureClass != contract.FailureBusinessScript {
		t.Errorf("runtime_result.json: exit %v class %v", result.ExitCode, result.FailureClass)
	}
	if !strings.Contains(listFindings(answer.Findings), "the disk is upside down") {
		t.Errorf("the cause is not told: %s", listFindings(answer.Findings))
	}
	again := f.walk()
	wantStatus(t, again, contract.StatusFailed)
	if folders, _ := filepath.Glob(f.file(answer, "jobs/*")); len(folders) != 1 {
		t.Fatalf("asking again made a job: %v", folders)
	}
	f.write(f.code(answer, "repaired"), "")
	repaired := f.phase(5, answer.Run.RunID, map[string]any{"launch": map[string]any{"channel": "local_direct"}})
	if repaired.Run.PhaseStatus[contract.PhaseExecution] != contract.StateSuccess {
		t.Fatalf("the second launch: %s", describe(repaired))
	}
	wantStatus(t, f.walk(), contract.StatusSuccess)
}

// A request in plain words goes from suggestion to suggestion, each call sent as the answer before gave it, to a plan and,
// once the user has said that the job may run, to success.
func TestPlainRequestFollowingNextCalls(t *testing.T) {
	f := newFixture(t)
	call := contract.Call{}
	handoff := contract.FromRequest("Train the model in this folder & tell me whether it is any good <soon>\nor later")
	call.Handoff = &handoff
	var answer engine.Envelope
	for n := range 6 {
		var err error
		if answer, err = f.try(call); err != nil {
			t.Fatal(err)
		}
		next := answer.Run.NextCall
		if next == nil || next.Tool != "trainer" {
			break
		}
		if n == 5 {
			t.Fatalf("no end in sight: %s", describe(answer))
		}
		amendment, _, err := contract.DecodeHandoff(next.Arguments["step_handoff"])
		if err != nil {
			t.Fatal(err)
		}
		amendment.Inputs.Data.SplitHint = "random 0.7/0.15/0.15 seed 1"
		two := 2
		amendment.Inputs.Parameters.EpochsOrSteps = &two
		call = contract.Call{RunID: answer.Run.RunID, Handoff: &amendment}
	}
	wantStatus(t, answer, contract.StatusPartial) // nobody said what is good enough
	if answer.Run.PhaseStatus[contract.PhaseValidation] != contract.StateSuccess || answer.Needs[0].Field != "completion_criteria" {
		t.Fatalf("%s", describe(answer))
	}
	checked := f.phase(6, answer.Run.RunID, map[string]any{"checks": []any{"test/accuracy >= 0.8"}})
	wantStatus(t, checked, contract.StatusSuccess)
}

// A call that is sent on without its open values is refused at the value.
func TestPlaceholdersAreRefused(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Data.TrainSource = "<data.train_source>"
	_, err := f.try(contract.Call{Handoff: &f.handoff})
	if got := refusedWith(t, err, "placeholder_left"); got.Where.Field != "step_handoff.inputs.data.train_source" {
		t.Errorf("placed at %q", got.Where.Field)
	}
}
