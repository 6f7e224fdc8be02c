package trainer

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// What the review finds is told with its line and stops the run where the job could not work, before any code has run.
func TestReviewStopsWhatCannotRun(t *testing.T) {
	for name, c := range map[string]struct {
		add, code string
		severity  finding.Severity
		status    string
	}{
		"missing module":  {"import nosuchpackage_anywhere\n", "import_unresolved", finding.Error, contract.StateBlocked},
		"missing helper":  {"from helper import missing_module\nimport helper.deep\n", "import_unresolved", finding.Error, contract.StateBlocked},
		"absolute path":   {"CACHE = '/home/me/cache'\n", "absolute_path", finding.Warning, contract.StateSuccess},
		"hidden download": {"import urllib.request\ndef fetch():\n    urllib.request.urlretrieve('https://example.org/x', 'x')\n", "hidden_download", finding.Warning, contract.StateSuccess},
		"no seed":         {"import random as chance\nchance.shuffle([1, 2])\n", "randomness_unseeded", finding.Warning, contract.StateSuccess},
	} {
		t.Run(name, func(t *testing.T) {
			f := lineProject(t)
			f.write("line/helper.py", "VALUE = 1\nmissing_module = 2\n")
			f.edit("line/train.py", "import argparse", c.add+"import argparse")
			id := f.untilCode()
			answer := f.phase(4, id, map[string]any{"smoke": "skip"})
			got := wantCode(t, answer.Findings, c.code)
			if got.Severity != c.severity || got.Where == nil || got.Where.Line == 0 || filepath.Base(got.Where.Path) != "train.py" {
				t.Errorf("%s at %+v", got.Severity, got.Where)
			}
			if status := answer.Run.PhaseStatus[contract.PhaseCodegen]; status != c.status {
				t.Errorf("phase 4 is %s, want %s\n%s", status, c.status, describe(answer))
			}
		})
	}
}

// A handoff that refuses the network makes a hidden download an error.
func TestDownloadWhereTheNetworkIsRefused(t *testing.T) {
	f := lineProject(t)
	f.handoff.TaskContext.Constraints = []string{"Work offline."}
	f.edit("line/train.py", "import argparse", "import urllib.request\nfetch = urllib.request.urlopen('https://example.org/x')\nimport argparse")
	answer := f.phase(4, f.untilCode(), nil)
	if got := wantCode(t, answer.Findings, "hidden_download"); got.Severity != finding.Error {
		t.Errorf("severity %s", got.Severity)
	}
	if answer.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateBlocked {
		t.Errorf("%s", describe(answer))
	}
}

func TestOfflineWords(t *testing.T) {
	for text, want := range map[string]bool{"No network access.": true, "network: false": true, "network_allowed=false": true, "work offline": true, "Do not download anything": true, "without internet": true,
		"Use the Python standard library only.": false, "the network has two layers": false, "network: resnet18": false, "download the data first": false, "online learning": false} {
		if offline.MatchString(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// A module that the script imports is reviewed with it and an input of the phase: a change of it is reviewed anew.
func TestChangedModuleIsReviewedAnew(t *testing.T) {
	f := lineProject(t)
	f.write("line/helper.py", "VALUE = 1\n")
	f.edit("line/train.py", "import argparse", "import helper, argparse")
	id := f.untilCode()
	if answer := f.phase(4, id, nil); answer.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateSuccess {
		t.Fatalf("%s", describe(answer))
	}
	f.write("line/helper.py", "import nosuchpackage_anywhere\n")
	answer, err := f.try(contract.Call{RunID: id})
	if err != nil {
		t.Fatal(err)
	}
	if got := wantCode(t, answer.Findings, "import_unresolved"); filepath.Base(got.Where.Path) != "helper.py" || got.Where.Line != 1 {
		t.Errorf("at %+v", got.Where)
	}
}

// Files with names of run evidence are told before a job has run, and not held against the run's own jobs afterwards.
func TestEvidenceInAdvance(t *testing.T) {
	f := newFixture(t)
	id := f.untilCode()
	first := f.phase(4, id, nil)
	f.write(f.code(first, "outputs/metrics.jsonl"), "{}\n")
	f.write(f.code(first, "notes/readme.txt"), "no evidence\n")
	planted := f.phase(4, id, map[string]any{"smoke": "run"})
	got := wantCode(t, planted.Findings, "evidence_in_advance")
	if got.Severity != finding.Warning || got.Where.Path != f.code(first, "outputs/metrics.jsonl") {
		t.Errorf("%s at %s", got.Severity, got.Where.Path)
	}
	if err := os.RemoveAll(f.code(first, "outputs")); err != nil {
		t.Fatal(err)
	}
	done, err := f.try(contract.Call{RunID: id})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, done, contract.StatusSuccess)
	after := f.phase(4, id, map[string]any{"smoke": "run"})
	for _, x := range after.Findings {
		if x.Code == "evidence_in_advance" {
			t.Errorf("the job's own output is held against it: %s", x)
		}
	}
}

// generate asks for files although there is a script; files go into code_save_dir and nowhere else, and code for the
// repository is handed to the coder.
func TestGenerate(t *testing.T) {
	f := lineProject(t)
	f.handoff.Inputs.Data = contract.Data{TrainSource: "line/points.csv", SplitHint: "random 70/15/15 seed 1", DomainMetadata: map[string]any{"target": "y"}}
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentGenerateCode
	three := 3
	f.handoff.Inputs.Parameters.EpochsOrSteps = &three
	id := f.untilCode()
	asked := f.phase(4, id, map[string]any{"generate": true})
	wantCode(t, asked.Findings, "code_needed")
	if next := asked.Run.NextCall; next == nil || next.Tool != "phase_4_codegen" || next.Arguments["files"] == nil || next.Arguments["run_id"] != id {
		t.Fatalf("next call %+v", next)
	}
	before := hashes(t, asked.ExecutionResult.Artifacts["trainer_workdir"], f.dir)
	files := []any{map[string]any{"path": "fit.py", "content": partsScript}}
	handed := f.phase(4, id, map[string]any{"files": files, "entrypoint": "fit.py", "land_in": "repository"})
	wantCode(t, handed.Findings, "coder_needed")
	if next := handed.Run.NextCall; next == nil || next.Tool != "coder" || !strings.Contains(strings.ReplaceAll(jsonText(next.Arguments), " ", ""), `"base":"new"`) {
		t.Errorf("next call %+v", next)
	}
	task := f.read(f.file(handed, contract.FileCoderTask))
	if !strings.Contains(task, "fit.py") || !strings.Contains(task, partsScript) {
		t.Errorf("the task does not hold the code:\n%s", task)
	}
	var handoff contract.CoderHandoff
	if err := rundir.ReadJSON(f.file(handed, coderHandoffFile), &handoff); err != nil || handoff.NextAction != contract.CoderNextAction {
		t.Errorf("coder handoff %+v %v", handoff, err)
	}
	if after := hashes(t, handed.ExecutionResult.Artifacts["trainer_workdir"], f.dir); !maps.Equal(before, after) {
		t.Error("something was written into the project or code_save_dir")
	}
	landed := f.phase(4, id, map[string]any{"files": files, "entrypoint": "fit.py", "land_in": "code_save_dir"})
	if landed.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateSuccess {
		t.Fatalf("%s", describe(landed))
	}
	after := hashes(t, landed.ExecutionResult.Artifacts["trainer_workdir"], f.dir)
	for path, sha := range after {
		if before[path] != sha && !rundir.Inside(landed.ExecutionResult.Artifacts["code_save_dir"], path) {
			t.Errorf("%s was written", path)
		}
	}
	if _, err := os.Stat(f.file(landed, smokeFile)); err == nil {
		t.Error("generate_code ran the code")
	}
}

// A checkpoint of the project that the script would take up silently is out of its reach: the run starts at its first epoch.
func TestSilentResumeFindsNoCheckpoint(t *testing.T) {
	f := lineProject(t)
	f.edit("line/train.py", "w, b = 0.0, 0.0\n", "w, b, done = 0.0, 0.0, 0\n"+
		"if os.path.exists(os.path.join(args.checkpoint_dir, 'latest_checkpoint.json')):\n    w, b, done = json.load(open(os.path.join(args.checkpoint_dir, 'latest_checkpoint.json')))\n")
	f.edit("line/train.py", "args = parser.parse_args()\n", "parser.add_argument(\"--checkpoint-dir\", default=\"checkpoints\")\nargs = parser.parse_args()\n")
	f.edit("line/train.py", `range(1, config["train"]["epochs"] + 1)`, `range(done + 1, config["train"]["epochs"] + 1)`)
	f.edit("line/train.py", "        log.write(", "        os.makedirs(args.checkpoint_dir, exist_ok=True)\n        json.dump([w, b, epoch], open(os.path.join(args.checkpoint_dir, 'latest_checkpoint.json'), 'w'))\n        log.write(")
	for _, place := range []string{"checkpoints", "line/checkpoints"} {
		f.write(place+"/latest_checkpoint.json", "[5.0, 5.0, 39]")
	}
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	if got := f.read(f.code(answer, "outputs/metrics.jsonl")); !strings.HasPrefix(got, `{"step": 1, "epoch": 1,`) || strings.Count(got, "\n") != 40 {
		t.Errorf("it did not start from scratch:\n%.200s", got)
	}
	if !strings.Contains(strings.Join(answer.ExecutionResult.Observation.Risks, "\n"), "silent_resume") {
		t.Error("the trap is not told")
	}
	if smoke := f.smoke(answer); smoke.State != "succeeded" || smoke.CheckpointBytes == 0 {
		t.Errorf("%+v", smoke)
	}
	for _, place := range []string{"checkpoints", "line/checkpoints"} {
		if got := f.read(filepath.Join(f.dir, place, "latest_checkpoint.json")); got != "[5.0, 5.0, 39]" {
			t.Errorf("%s was written: %s", place, got)
		}
	}
}

var elsewhere = regexp.MustCompile(`(?i)\bsee\b|\brefer to\b|\bas described in\b|\bdetails in\b`)

// The coder's task stands alone: it names no other document of the run, and lists every value that nobody has confirmed.
func TestCoderTaskStandsAlone(t *testing.T) {
	f := lineProject(t)
	f.handoff.Inputs.Parameters.Optimizer = "adamw"
	f.handoff.StepGoal = strings.Repeat("Fit the line as well as the few points allow, ", 6) + "and no better."
	f.handoff.TaskContext.UserGoal = "A slope that can be trusted"
	f.handoff.TaskContext.Constraints = []string{"Standard library only"}
	answer := f.walk()
	wantStatus(t, answer, contract.StatusBlocked)
	task := f.read(f.file(answer, contract.FileCoderTask))
	for _, name := range canonicalNames {
		if strings.Contains(task, name) {
			t.Errorf("it sends the reader to %s", name)
		}
	}
	if at := elsewhere.FindString(task); at != "" {
		t.Errorf("it says %q", at)
	}
	for _, want := range []string{f.handoff.StepGoal, "A slope that can be trusted", "Standard library only", "test/rmse <= 0.5", filepath.Join(f.dir, "line", "points.csv")} {
		if !strings.Contains(task, want) {
			t.Errorf("it does not hold %q", want)
		}
	}
	for _, want := range openValues(t, f, answer) {
		if !strings.Contains(task, want) {
			t.Errorf("it does not list %q\n%s", want, task)
		}
	}
}

// openValues are the marks of plan and facts as the task must list them.
func openValues(t *testing.T, f *fixture, answer engine.Envelope) []string {
	t.Helper()
	marks := []string{evidence.Missing, evidence.Inferred, evidence.Assumption}
	var out []string
	facts, err := evidence.LoadFacts(answer.ExecutionResult.Artifacts["trainer_workdir"])
	if err != nil {
		t.Fatal(err)
	}
	for _, fact := range facts {
		if fact.InForce && slices.Contains(marks, fact.Status) {
			out = append(out, fact.Status+": "+fact.Field+" = "+show(fact.Value))
		}
	}
	var plan Plan
	if err := rundir.ReadJSON(f.file(answer, planFile), &plan); err != nil {
		t.Fatal(err)
	}
	for path, leaf := range plan.Leaves {
		if slices.Contains(marks, leaf.Status) {
			out = append(out, leaf.Status+": "+path+" = "+show(leaf.Value))
		}
	}
	var manifest contract.DataManifest
	if err := rundir.ReadJSON(f.file(answer, dataManifestFile), &manifest); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"sampling": manifest.Sampling, "normalization": manifest.Normalization, "augmentation": manifest.Augmentation} {
		if status, _, marked := strings.Cut(value, ": "); marked && slices.Contains(marks, status) {
			out = append(out, status+": "+name)
		}
	}
	if len(out) < 8 {
		t.Errorf("only %d open values: the test looks at nothing", len(out))
	}
	return out
}
