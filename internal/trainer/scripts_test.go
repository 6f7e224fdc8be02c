package trainer

import (
	"os"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/rundir"
)

// lines is a regression script in a style of its own: one table that it splits itself, a YAML configuration, no id column.
const lineScript = `import argparse, csv, json, os, random
parser = argparse.ArgumentParser()
parser.add_argument("--config", default="config.json")
parser.add_argument("--data", default="points.csv")
parser.add_argument("--out", default="out")
args = parser.parse_args()
config = json.load(open(args.config))
rows = [(float(r["x"]), float(r["y"])) for r in csv.DictReader(open(args.data))]
random.Random(config["seed"]).shuffle(rows)
cut = int(0.8 * len(rows))
w, b = 0.0, 0.0
os.makedirs(args.out, exist_ok=True)
with open(os.path.join(args.out, "metrics.jsonl"), "w") as log:
    for epoch in range(1, config["train"]["epochs"] + 1):
        for x, y in rows[:cut]:
            e = w * x + b - y
            w, b = w - config["train"]["lr"] * e * x, b - config["train"]["lr"] * e
        rmse = (sum((w * x + b - y) ** 2 for x, y in rows[cut:]) / len(rows[cut:])) ** 0.5
        log.write(json.dumps({"step": epoch, "epoch": epoch, "split": "test", "name": "rmse", "value": rmse}) + "\n")
`

// lineProject makes a workspace around lineScript.
func lineProject(t *testing.T) *fixture {
	f := newFixture(t)
	f.write("line/train.py", lineScript)
	f.write("line/config.json", "{\n  \"seed\": 3,\n  \"train\": {\n    \"epochs\": 40,\n    \"lr\": 0.05\n  }\n}\n")
	var table strings.Builder
	table.WriteString("x,y\n")
	for i := range 60 {
		table.WriteString(strings.Join([]string{jsonText(float64(i) / 30), jsonText(1 + 2*float64(i)/30)}, ",") + "\n")
	}
	f.write("line/points.csv", table.String())
	f.handoff = contract.StepHandoff{StepID: "line", StepGoal: "Fit the line", Inputs: contract.Inputs{
		Model: contract.Model{CodePath: "line", TrainingEntrypoint: "train.py"}, Runtime: contract.Runtime{ExecutionIntent: contract.IntentRunLocal}},
		CompletionCriteria: []string{"test/rmse <= 0.5"}}
	return f
}

// A script that reads a configuration file gets a copy with this run's values; the project's own stays as it is. A script
// that splits its table itself is predefined and unchecked, and a criterion met by its log alone is success with a risk.
func TestScriptWithConfigThatSplitsItself(t *testing.T) {
	f := lineProject(t)
	twelve := 12
	f.handoff.Inputs.Parameters.EpochsOrSteps = &twelve
	own := f.read(f.dir + "/line/config.json")
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	if got := f.read(f.dir + "/line/config.json"); got != own {
		t.Errorf("the project's configuration was edited:\n%s", got)
	}
	if got := f.read(f.code(answer, "config/config.json")); !strings.Contains(got, `"epochs": 12`) || !strings.Contains(got, `"lr": 0.05`) {
		t.Errorf("the copy does not hold the run's values:\n%s", got)
	}
	if got := f.read(f.code(answer, "outputs/metrics.jsonl")); strings.Count(got, "\n") != 12 {
		t.Errorf("%d epochs were trained", strings.Count(got, "\n"))
	}
	risks := strings.Join(answer.ExecutionResult.Observation.Risks, "\n")
	for _, code := range []string{"split_unchecked", "criterion_logged_only"} {
		if !strings.Contains(risks, code) {
			t.Errorf("%s is not among the risks:\n%s", code, risks)
		}
	}
	conflicts := 0
	facts, err := evidence.LoadFacts(answer.ExecutionResult.Artifacts["trainer_workdir"])
	if err != nil {
		t.Fatal(err)
	}
	for _, fact := range facts {
		if fact.Field == "training.epochs_or_steps" && fact.InForce && fact.By == byUser {
			conflicts = len(fact.Conflicts)
		}
	}
	if conflicts != 1 {
		t.Errorf("the user's epochs record %d conflicts with the configuration", conflicts)
	}
}

// What the user asks for and the script can't take is not trained without it: the coder gets a task that stands alone.
func TestWhatTheScriptCannotTakeGoesToTheCoder(t *testing.T) {
	f := lineProject(t)
	f.handoff.Inputs.Parameters.Optimizer = "adamw"
	answer := f.walk()
	wantStatus(t, answer, contract.StatusBlocked)
	wantCode(t, answer.Findings, "parameter_not_taken")
	task := f.read(f.file(answer, contract.FileCoderTask))
	for _, want := range []string{"training.optimizer", "adamw", "INFERRED:", "MISSING, INFERRED, ASSUMPTION", "`--config`"} {
		if !strings.Contains(task, want) {
			t.Errorf("the task does not speak of %q:\n%s", want, task)
		}
	}
	var handoff contract.CoderHandoff
	if err := rundir.ReadJSON(f.file(answer, coderHandoffFile), &handoff); err != nil {
		t.Fatal(err)
	}
	if !handoff.TrainerHandoff || handoff.NextAction != contract.CoderNextAction || handoff.TaskDescriptionContent != task || handoff.TrainingPlanContent == "" {
		t.Errorf("coder handoff %+v", handoff)
	}
}

// A user's split that the script has no way to receive is a change of the repository as well.
func TestSplitThatTheScriptCannotTake(t *testing.T) {
	f := lineProject(t)
	f.handoff.Inputs.Data = contract.Data{TrainSource: "line/points.csv", SplitHint: "random 80/20 seed 1", DomainMetadata: map[string]any{"target": "y"}}
	answer := f.walk()
	wantStatus(t, answer, contract.StatusBlocked)
	wantCode(t, answer.Findings, "part_not_taken")
}

// Files that the agent sends are written into code_save_dir and run from there; evidence in advance and paths that lead out
// are refused.
func TestCodeFromTheAgent(t *testing.T) {
	f := lineProject(t)
	if err := os.Remove(f.dir + "/line/train.py"); err != nil {
		t.Fatal(err)
	}
	f.write("line/model.py", "class Line: pass\n")
	f.handoff.Inputs.Model = contract.Model{CodePath: "line"}
	f.handoff.Inputs.Data = contract.Data{TrainSource: "line/points.csv", SplitHint: "random 70/15/15 seed 1", DomainMetadata: map[string]any{"target": "y"}}
	three := 3
	f.handoff.Inputs.Parameters.EpochsOrSteps = &three
	f.handoff.Inputs.ExecutionFlags.AutonomousMode = true
	first := f.walk()
	wantStatus(t, first, contract.StatusBlocked)
	if len(first.Needs) != 1 || first.Needs[0].Field != "model.instantiation" {
		t.Fatalf("needs %+v", first.Needs)
	}
	source := sourceOf(t, f, first, "line/model.py")
	fact := map[string]any{"field": "model.instantiation", "value": "Line", "source": source, "quote": "class Line"}
	f.phase(1, first.Run.RunID, map[string]any{"facts": []any{fact}})
	asked, err := f.try(contract.Call{RunID: first.Run.RunID})
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, asked.Findings, "code_needed")
	if next := asked.Run.NextCall; next == nil || next.Tool != "phase_4_codegen" || next.Arguments["files"] == nil {
		t.Fatalf("next call %+v", next)
	}
	send := func(path string) engine.Envelope {
		files := []any{map[string]any{"path": path, "content": partsScript}}
		return f.phase(4, first.Run.RunID, map[string]any{"files": files, "entrypoint": path})
	}
	wantCode(t, send("../train.py").Findings, "path_outside_roots")
	wantCode(t, send("outputs/metrics.jsonl").Findings, "evidence_in_advance")
	landed := send("train.py")
	if landed.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateSuccess {
		t.Fatalf("the files were not taken: %s", describe(landed))
	}
	if got := landed.ExecutionResult.Artifacts["generated_entrypoint"]; got != f.code(landed, "train.py") {
		t.Errorf("generated_entrypoint %q", got)
	}
	done, err := f.try(contract.Call{RunID: first.Run.RunID})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, done, contract.StatusSuccess)
	for _, c := range readClaims(t, f, f.file(done, claimsFile)) {
		if c.Metric == "rmse" && c.Level == evidence.Recomputed && c.N == 9 {
			return
		}
	}
	t.Error("the rmse of the nine test rows was not computed anew")
}

// partsScript is a script as an agent would write it: parts as files, rows named by their position.
const partsScript = `import argparse, csv, json, os
parser = argparse.ArgumentParser()
parser.add_argument("--train-data", required=True)
parser.add_argument("--val-data", required=True)
parser.add_argument("--test-data", required=True)
parser.add_argument("--output-dir", required=True)
parser.add_argument("--epochs", type=int, required=True)
args = parser.parse_args()
def rows(path):
    return [(float(r["x"]), float(r["y"])) for r in csv.DictReader(open(path))]
w, b = 0.0, 0.0
for epoch in range(args.epochs):
    for x, y in rows(args.train_data):
        e = w * x + b - y
        w, b = w - 0.05 * e * x, b - 0.05 * e
os.makedirs(args.output_dir, exist_ok=True)
with open(os.path.join(args.output_dir, "predictions-test.jsonl"), "w") as out:
    for n, (x, y) in enumerate(rows(args.test_data)):
        out.write(json.dumps({"id": f"row-{n}", "target": y, "prediction": w * x + b}) + "\n")
with open(os.path.join(args.output_dir, "metrics.jsonl"), "w") as out:
    rmse = (sum((w * x + b - y) ** 2 for x, y in rows(args.test_data)) / len(rows(args.test_data))) ** 0.5
    out.write(json.dumps({"step": args.epochs, "epoch": args.epochs, "split": "test", "name": "rmse", "value": rmse}) + "\n")
`

func sourceOf(t *testing.T, f *fixture, answer engine.Envelope, ref string) string {
	t.Helper()
	sources, err := evidence.LoadSources(answer.ExecutionResult.Artifacts["trainer_workdir"])
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		if s.Ref == ref {
			return s.ID
		}
	}
	t.Fatalf("%s was not captured: %+v", ref, sources)
	return ""
}
