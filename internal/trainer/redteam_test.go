package trainer

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// What lies in code_save_dir is the user's, unless this run wrote it: it is never overwritten.
func TestUsersFilesAreNotOverwritten(t *testing.T) {
	f := newFixture(t)
	table := f.read(f.dir + "/data/wdbc.csv")
	f.write("data/train.csv", table)
	f.handoff.Inputs.Data.TrainSource = "data/train.csv"
	f.handoff.Inputs.Runtime.CodeSaveDir = "."
	answer := f.walk()
	wantStatus(t, answer, contract.StatusBlocked)
	wantCode(t, answer.Findings, "file_in_the_way")
	if got := f.read(f.dir + "/data/train.csv"); got != table {
		t.Errorf("the user's table shrank from %d to %d bytes", len(table), len(got))
	}
	g := lineProject(t)
	g.handoff.Inputs.Runtime.CodeSaveDir = "line"
	g.write("line/config/config.json", "mine")
	answer = g.walk()
	wantCode(t, answer.Findings, "file_in_the_way")
	if got := g.read(g.dir + "/line/config/config.json"); got != "mine" {
		t.Errorf("the user's file became %q", got)
	}
}

// The agent's arguments fill what is open; they can't swap the data or a settled value.
func TestArgumentsCannotReplaceTheData(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentGenerateCode
	first := f.walk()
	wantStatus(t, first, contract.StatusSuccess)
	answer := f.phase(4, first.Run.RunID, map[string]any{"arguments": map[string]any{"--train-data": f.code(first, "data/test.csv")}})
	wantCode(t, answer.Findings, "argument_settled")
	wantStatus(t, answer, contract.StatusBlocked)
	open := f.phase(4, first.Run.RunID, map[string]any{"arguments": map[string]any{"--hidden-size": 5}})
	wantStatus(t, open, contract.StatusSuccess)
	var made Codegen
	if err := rundir.ReadJSON(f.file(open, codegenFile), &made); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(made.Command, " "), "--hidden-size 5") {
		t.Errorf("the open argument was not passed: %v", made.Command)
	}
}

// A changed table is trained anew also where the script splits it itself, and so is a changed module that it imports.
func TestChangedInputsOfTheJobAreAnotherJob(t *testing.T) {
	f := lineProject(t)
	f.write("line/helper.py", "FACTOR = 1.0\n")
	f.edit("line/train.py", "import argparse", "import helper, argparse")
	first := f.walk()
	wantStatus(t, first, contract.StatusSuccess)
	before := value(t, f, first, "rmse")
	f.edit("line/points.csv", "\n0,1\n", "\n0,41\n")
	second := f.walk()
	if before == value(t, f, second, "rmse") || jobCount(t, f, second) != 2 {
		t.Errorf("%d jobs after the table changed, the same rmse", jobCount(t, f, second))
	}
	f.write("line/helper.py", "FACTOR = 2.0\n")
	third := f.walk()
	if wantCode(t, third.Findings, "code_changed_since_start"); jobCount(t, f, third) != 2 {
		t.Errorf("%d jobs after an imported module changed, which nobody asked for", jobCount(t, f, third))
	}
	f.phase(5, third.Run.RunID, map[string]any{"launch": map[string]any{}})
	if n := jobCount(t, f, third); n != 3 {
		t.Errorf("%d jobs after a launch", n)
	}
}

func jobCount(t *testing.T, f *fixture, answer engine.Envelope) int {
	t.Helper()
	requests, err := filepath.Glob(f.file(answer, "jobs/*/request.json"))
	if err != nil {
		t.Fatal(err)
	}
	return len(requests)
}

func value(t *testing.T, f *fixture, answer engine.Envelope, metric string) float64 {
	t.Helper()
	for _, c := range readClaims(t, f, f.file(answer, claimsFile)) {
		if c.Metric == metric {
			return c.Value
		}
	}
	t.Fatalf("no claim about %s", metric)
	return 0
}

// Outputs and the job's own list of them, forged together, are noticed, also at the second look; a new launch repairs it.
func TestForgedListOfOutputs(t *testing.T) {
	f := newFixture(t)
	first := f.walk()
	wantStatus(t, first, contract.StatusSuccess)
	predictions := f.code(first, "outputs/predictions-test.jsonl")
	was, _, err := rundir.HashFile(predictions)
	if err != nil {
		t.Fatal(err)
	}
	f.edit(predictions, `"prediction": "benign"`, `"prediction": "malignant"`)
	is, _, err := rundir.HashFile(predictions)
	if err != nil {
		t.Fatal(err)
	}
	lists, _ := filepath.Glob(f.file(first, "jobs/*/outputs.json"))
	f.edit(lists[0], was, is)
	for range 2 {
		answer := f.walk()
		wantStatus(t, answer, contract.StatusFailed)
		wantCode(t, answer.Findings, "artifact_edited")
	}
	f.phase(5, first.Run.RunID, map[string]any{"launch": map[string]any{"channel": "local_direct"}})
	again := f.walk()
	wantStatus(t, again, contract.StatusSuccess)
	if n := jobCount(t, f, again); n != 2 {
		t.Errorf("%d jobs", n)
	}
}

// A checkpoint that was put there, copied or linked, is not the job's.
func TestCheckpointThatTheJobDidNotLeave(t *testing.T) {
	for name, plant := range map[string]string{
		"link": `os.symlink(os.path.join(os.path.dirname(os.path.abspath(__file__)), "old.json"), os.path.join(config.checkpoint_dir, "epoch-0002.json"))`,
		"none": `pass`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write("old.json", "{}")
			f.edit("train.py", "        write_summary(config, state, \"completed\", started)\n        return 0", `        write_summary(config, state, "completed", started)
        for old in os.listdir(config.checkpoint_dir):
            os.remove(os.path.join(config.checkpoint_dir, old))
        open(os.path.join(config.checkpoint_dir, "README"), "w").close()
        `+plant+`
        return 0`)
			answer := f.walk()
			wantStatus(t, answer, contract.StatusFailed)
			if name == "none" {
				f.write(f.code(answer, "checkpoints/epoch-0002.json"), `{"epoch": 2}`)
				wantStatus(t, f.walk(), contract.StatusFailed)
			}
		})
	}
}

// What the job itself says against its success counts: a summary that says failed, an exception before exit status 0.
func TestExitZeroThatIsContradicted(t *testing.T) {
	for code, edit := range map[string][2]string{
		"summary_contradicts":       {`write_summary(config, state, "completed", started)`, `write_summary(config, state, "failed", started)`},
		"exit_zero_after_exception": {"if __name__ == \"__main__\":\n    sys.exit(main())", "if __name__ == \"__main__\":\n    import traceback\n    main()\n    try:\n        raise RuntimeError('half done')\n    except RuntimeError:\n        traceback.print_exc()\n        sys.exit(0)"},
	} {
		t.Run(code, func(t *testing.T) {
			f := newFixture(t)
			f.edit("train.py", edit[0], edit[1])
			answer := f.walk()
			wantStatus(t, answer, contract.StatusFailed)
			wantCode(t, answer.Findings, code)
		})
	}
}

// A cancelled job leaves a way on, which run_status shows before anybody has taken the end up.
func TestCancelledJobLeavesAWayOn(t *testing.T) {
	f := newFixture(t)
	f.hold()
	zero := 0
	running, err := f.try(contract.Call{Handoff: &f.handoff, WaitSeconds: &zero})
	if err != nil {
		t.Fatal(err)
	}
	folder := f.file(running, "jobs/"+running.Run.Job.JobID)
	// Another launch while it runs is refused, and names the job.
	busy := f.phase(5, running.Run.RunID, map[string]any{"launch": map[string]any{"environment": map[string]any{"python": "/usr/bin/python3"}}})
	wantCode(t, busy.Findings, "job_under_way")
	if _, err := f.trainer.Runtime.Cancel(context.Background(), folder); err != nil {
		t.Fatal(err)
	}
	f.release()
	status, err := f.trainer.Engine.RunStatus(t.Context(), running.Run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if status.Run.Job == nil || !status.Run.Job.Ended || status.Run.Job.State != jobs.StateCancelled {
		t.Errorf("run_status shows %+v", status.Run.Job)
	}
	ended := f.walk()
	wantStatus(t, ended, contract.StatusFailed)
	wantCode(t, ended.Findings, "job_cancelled")
	next := ended.Run.NextCall
	if next == nil || next.Tool != "phase_5_execution" || next.Arguments["launch"] == nil {
		t.Fatalf("next call %+v", next)
	}
	section := map[string]any{"launch": next.Arguments["launch"]}
	if again := f.phase(5, ended.Run.RunID, section); again.Run.PhaseStatus[contract.PhaseExecution] != contract.StateSuccess {
		t.Fatalf("%s", describe(again))
	}
	wantStatus(t, f.walk(), contract.StatusSuccess)
}

// Contributions that come at once are all kept.
func TestContributionsAtOnce(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	first := f.walk()
	var wait sync.WaitGroup
	fields := []string{"training.extra.a", "training.extra.b", "training.extra.c", "training.extra.d"}
	for _, field := range fields {
		wait.Add(1)
		go func() {
			defer wait.Done()
			fact := map[string]any{"field": field, "value": 1, "status": evidence.Assumption, "verify_later": "look"}
			call := contract.Call{RunID: first.Run.RunID, Section: map[string]any{"facts": []any{fact}}}
			if _, err := f.trainer.phase(context.Background(), engine.Silent, 1, call); err != nil {
				t.Errorf("%s: %v", field, err)
			}
		}()
	}
	wait.Wait()
	facts, err := evidence.LoadFacts(first.ExecutionResult.Artifacts["trainer_workdir"])
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range fields {
		if holding(facts, field) == nil {
			t.Errorf("%s was lost", field)
		}
	}
}

// A wrong entry point is answered with the whole handoff, corrected: an amendment could not change it.
func TestWrongEntrypointLeadsOn(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Model.TrainingEntrypoint = "trian.py"
	answer := f.walk()
	wantStatus(t, answer, contract.StatusBlocked)
	next := answer.Run.NextCall
	if next == nil || next.Arguments["run_id"] != nil {
		t.Fatalf("next call %+v", next)
	}
	corrected, _, err := contract.DecodeHandoff(next.Arguments["step_handoff"])
	if err != nil {
		t.Fatal(err)
	}
	done, err := f.try(contract.Call{Handoff: &corrected})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, done, contract.StatusSuccess)
}

// A plan for data that is not there is partial, and says so.
func TestPlanWithoutItsData(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	f.handoff.Inputs.Data.TrainSource = "data/none.csv"
	answer := f.walk()
	wantStatus(t, answer, contract.StatusPartial)
	wantCode(t, answer.Findings, "data_pending")
}

// What was accepted is kept by what it says: ids may shift when candidates are added.
func TestAcceptedFactSurvivesNewCandidates(t *testing.T) {
	f := lineProject(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	f.write("line/other.yaml", "lr: 0.2\n")
	f.edit("line/train.py", "import argparse", "CONFIGS = ['other.yaml']\nimport argparse")
	first := f.walk()
	facts, err := evidence.LoadFacts(first.ExecutionResult.Artifacts["trainer_workdir"])
	if err != nil {
		t.Fatal(err)
	}
	id := ""
	for _, fact := range facts {
		if fact.Field == "training.extra.learning_rate" && !fact.InForce {
			id = fact.ID
		}
	}
	f.phase(1, first.Run.RunID, map[string]any{"accept": []any{id}})
	chosen := func() any {
		facts, err := evidence.LoadFacts(first.ExecutionResult.Artifacts["trainer_workdir"])
		if err != nil {
			t.Fatal(err)
		}
		return holding(facts, "training.extra.learning_rate").Value
	}
	want := chosen()
	amendment := contract.StepHandoff{Inputs: contract.Inputs{Parameters: contract.Parameters{Precision: "fp32"}}}
	if _, err := f.try(contract.Call{RunID: first.Run.RunID, Handoff: &amendment}); err != nil {
		t.Fatal(err)
	}
	if got := chosen(); jsonText(got) != jsonText(want) {
		t.Errorf("the accepted learning rate %v became %v", want, got)
	}
}

// What a launch asks for and this machine's channel does not serve is refused, not left out.
func TestLaunchThatIsNotServed(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentRunLocal
	f.handoff.Inputs.Data.TrainSource = "data/wdbc.csv"
	first := f.walk()
	wantStatus(t, first, contract.StatusSuccess)
	answer := f.phase(5, first.Run.RunID, map[string]any{"launch": map[string]any{"environment": map[string]any{"conda": "torch"}}})
	wantCode(t, answer.Findings, "launch_unsupported")
}

// trainer_workdir and code_save_dir may be one folder.
func TestOneFolderForBoth(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Runtime.TrainerWorkdir, f.handoff.Inputs.Runtime.CodeSaveDir = "both", "both"
	wantStatus(t, f.walk(), contract.StatusSuccess)
}

// A criterion that can't be read, and metrics in a folder of their own, are no evidence.
func TestOtherMetricsFileIsNotTaken(t *testing.T) {
	f := newFixture(t)
	f.edit("train.py", "        write_summary(config, state, \"completed\", started)\n        return 0", `        write_summary(config, state, "completed", started)
        os.makedirs(os.path.join(config.output_dir, "..", "debug"))
        with open(os.path.join(config.output_dir, "..", "debug", "metrics.jsonl"), "w") as other:
            other.write('{"step": 1, "split": "test", "name": "f1", "value": 1.0}\n')
        return 0`)
	f.handoff.CompletionCriteria = []string{"test/f1 >= 0.99"}
	answer := f.walk()
	if answer.ExecutionResult.Status == contract.StatusSuccess {
		for _, c := range readClaims(t, f, f.file(answer, claimsFile)) {
			if c.Metric == "f1" && c.Level == evidence.Logged {
				t.Error("the number of debug/metrics.jsonl was taken")
			}
		}
	}
	if _, err := os.Stat(f.code(answer, "debug/metrics.jsonl")); err != nil {
		t.Fatal(err)
	}
}
