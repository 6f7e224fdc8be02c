package trainer

import (
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/dataset"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// untilCode walks phases 0 to 3 and gives the run, so that a test can look at phase 4 alone.
func (f *fixture) untilCode() string {
	f.t.Helper()
	zero := 0
	answer, err := f.trainer.phase(context.Background(), engine.Silent, 0, contract.Call{Handoff: &f.handoff, WaitSeconds: &zero})
	if err != nil {
		f.t.Fatal(err)
	}
	for n := 1; n < 4; n++ {
		answer = f.phase(n, answer.Run.RunID, nil)
		if status := answer.Run.PhaseStatus[contract.Phases[n]]; status != contract.StateSuccess {
			f.t.Fatalf("%s is %s: %s", contract.Phases[n], status, describe(answer))
		}
	}
	return answer.Run.RunID
}

func (f *fixture) smoke(answer engine.Envelope) Smoke {
	f.t.Helper()
	var s Smoke
	if err := rundir.ReadJSON(f.file(answer, smokeFile), &s); err != nil {
		f.t.Fatal(err)
	}
	return s
}

// hashes are the files below the folders, with what they hold, without the run's own folder.
func hashes(t *testing.T, except string, roots ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if rundir.Inside(except, path) || d.Name() == ".onescience" && !rundir.Inside(path, root) {
				return filepath.SkipDir
			}
			if d.Type().IsRegular() {
				sha, _, err := rundir.HashFile(path)
				if err != nil {
					return err
				}
				out[path] = sha
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// The smoke run trains one epoch on some rows in a folder of its own: the project, code_save_dir and the checkpoints in it
// are the same bytes before and after. A second call uses what is there.
func TestSmokeRunTouchesNothing(t *testing.T) {
	f := newFixture(t)
	f.write("checkpoints/epoch-0001.json", "{}")
	f.write("outputs/summary.json", "{}")
	id := f.untilCode()
	state := f.phase(3, id, nil)
	before := hashes(t, state.ExecutionResult.Artifacts["trainer_workdir"], f.dir)
	answer := f.phase(4, id, nil)
	if answer.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateSuccess || len(answer.Findings) != 0 {
		t.Fatalf("%s", describe(answer))
	}
	workdir, codeDir := answer.ExecutionResult.Artifacts["trainer_workdir"], answer.ExecutionResult.Artifacts["code_save_dir"]
	after := hashes(t, workdir, f.dir)
	delete(after, filepath.Join(codeDir, overrideFile))
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the tree changed:\n%s", diff)
	}
	for _, name := range []string{"outputs", "checkpoints"} {
		if _, err := os.Stat(filepath.Join(codeDir, name)); err == nil && codeDir != f.dir {
			t.Errorf("%s was made in code_save_dir", name)
		}
	}
	smoke := f.smoke(answer)
	if diff := cmp.Diff(map[string]int{"train": 64, "val": 16, "test": 16}, smoke.Rows); diff != "" {
		t.Error(diff)
	}
	if smoke.State != jobs.StateSucceeded || smoke.Exit == nil || *smoke.Exit != 0 || smoke.Seconds <= 0 || smoke.PeakRSSBytes <= 0 || smoke.CheckpointBytes < 1000 {
		t.Errorf("%+v", smoke)
	}
	if want := []string{"checkpoints/epoch-0001.json", "checkpoints/epoch-0001.json.complete.json", "outputs/metrics.jsonl", "outputs/predictions-test.jsonl", "outputs/predictions-val.jsonl", "outputs/summary.json"}; !cmp.Equal(want, smoke.Outputs) {
		t.Errorf("outputs %v", smoke.Outputs)
	}
	if at := slices.Index(smoke.Command, "--epochs"); at < 0 || smoke.Command[at+1] != "1" {
		t.Errorf("command %v", smoke.Command)
	}
	for _, word := range smoke.Command[2:] {
		if filepath.IsAbs(word) && !rundir.Inside(filepath.Join(workdir, smokeFolder), word) {
			t.Errorf("the command names %s", word)
		}
	}
	if jobFolders, _ := filepath.Glob(filepath.Join(workdir, "jobs", "*")); len(jobFolders) != 0 {
		t.Errorf("it counts as the run's job: %v", jobFolders)
	}
	again := f.phase(4, id, map[string]any{"arguments": map[string]any{"--hidden-size": 12}})
	if again.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateSuccess {
		t.Fatalf("%s", describe(again))
	}
	if second := f.smoke(again); second.JobID == smoke.JobID {
		t.Error("another command was not tried")
	}
	if third := f.smoke(f.phase(4, id, map[string]any{"arguments": map[string]any{"--hidden-size": 12}})); third.JobID != f.smoke(again).JobID {
		t.Error("the same command was tried twice")
	}
}

// A script that fails on a few rows stops before the job, with the cause and its category. After a repair of the script, or
// of what it needs, the same call goes on.
func TestSmokeRunFails(t *testing.T) {
	f := newFixture(t)
	f.handoff.Inputs.Attempt = 1
	f.edit("train.py", "    config = load_config(argv)\n    try:", "    config = load_config(argv)\n    if not os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'needed')):\n        raise RuntimeError('the disk is upside down')\n    try:")
	answer := f.walk()
	wantStatus(t, answer, contract.StatusFailed)
	if c := answer.ExecutionResult.FailureCategory; c == nil || *c != jobs.CategoryCode {
		t.Errorf("failure_category %v", c)
	}
	if answer.Run.Phase != contract.PhaseCodegen || answer.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateFailed {
		t.Errorf("phase %s: %v", answer.Run.Phase, answer.Run.PhaseStatus)
	}
	i := slices.IndexFunc(answer.Findings, func(x finding.Finding) bool { return strings.Contains(x.What, "the disk is upside down") })
	if i < 0 || !strings.HasPrefix(answer.Findings[i].What, "smoke run: ") || filepath.Base(answer.Findings[i].Where.Path) != "train.py" || answer.Findings[i].Where.Line == 0 || !strings.Contains(answer.Findings[i].Remedy, "phase_4_codegen") {
		t.Errorf("the cause is not told: %s", listFindings(answer.Findings))
	}
	if folders, _ := filepath.Glob(f.file(answer, "jobs/*")); len(folders) != 0 {
		t.Errorf("the job was started: %v", folders)
	}
	first := f.smoke(answer)
	if first.State != jobs.StateFailed || first.Exit == nil || *first.Exit != 1 {
		t.Errorf("%+v", first)
	}
	f.write("needed", "")
	repaired := f.phase(4, answer.Run.RunID, nil)
	if repaired.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateSuccess {
		t.Fatalf("%s", describe(repaired))
	}
	if second := f.smoke(repaired); second.JobID == first.JobID || second.Marker != first.Marker {
		t.Errorf("after %+v %+v", first, second)
	}
}

// skip goes without a smoke run, and says so.
func TestSmokeRunCanBeSkipped(t *testing.T) {
	f := newFixture(t)
	f.edit("train.py", "    config = load_config(argv)\n    try:", "    config = load_config(argv)\n    raise RuntimeError('too few rows')\n    try:")
	answer := f.phase(4, f.untilCode(), map[string]any{"smoke": "skip"})
	if answer.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateSuccess {
		t.Fatalf("%s", describe(answer))
	}
	if f := wantCode(t, answer.Findings, "smoke_skipped"); f.Severity != finding.Note {
		t.Errorf("severity %s", f.Severity)
	}
	if s := f.smoke(answer); s.State != smokeSkipped || s.Why == "" {
		t.Errorf("%+v", s)
	}
}

// A script that is not told where it writes would write where the real job does: it is not tried.
func TestScriptThatCannotBeKeptAwayIsNotTried(t *testing.T) {
	f := lineProject(t)
	f.edit("line/train.py", `parser.add_argument("--out", default="out")`+"\n", "")
	f.edit("line/train.py", "args = parser.parse_args()\n", "args = parser.parse_args()\nargs.out = 'outputs'\nopen('ran', 'w')\n")
	answer := f.phase(4, f.untilCode(), nil)
	if answer.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateSuccess {
		t.Fatalf("%s", describe(answer))
	}
	if got := wantCode(t, answer.Findings, "smoke_skipped"); got.Severity != finding.Note || !strings.Contains(got.What, "where it writes") {
		t.Errorf("%s: %s", got.Severity, got.What)
	}
	if s := f.smoke(answer); s.State != smokeSkipped {
		t.Errorf("it was tried: %+v", s)
	}
	if jobFolders, _ := filepath.Glob(f.file(answer, "smoke/*/request.json")); len(jobFolders) != 0 {
		t.Errorf("%v", jobFolders)
	}
}

func TestReasonsAgainstASmokeRun(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"train.csv", "val.csv", "labels.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("a\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	both := []smokePart{{part: "train", from: filepath.Join(dir, "train.csv")}, {part: "val", from: filepath.Join(dir, "val.csv")}}
	for name, c := range map[string]struct {
		passed []string
		parts  []smokePart
		want   string
	}{
		"data and outputs":     {[]string{"data.train_source", "output.dir"}, both, ""},
		"whole and checkpoint": {[]string{"data.source", "checkpoint.dir"}, both, ""},
		"no data argument":     {[]string{"output.dir"}, both, "where its data is"},
		"no output argument":   {[]string{"data.train_source", "training.batch_size"}, both, "where it writes"},
		"no file":              {[]string{"data.train_source", "output.dir"}, nil, "no file of data"},
		"folder with more":     {[]string{"data.dir", "output.dir"}, both, "other files than the parts"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &commander{view: projectView{Entry: "train.py"}}
			for _, field := range c.passed {
				w.passed = append(w.passed, Passed{Name: "--x", Field: field})
			}
			if got := w.smokeReason(c.parts); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// The configuration that a script reads is made anew for the smoke run, with one epoch and folders of its own.
func TestSmokeRunWithConfiguration(t *testing.T) {
	f := lineProject(t)
	answer := f.walk()
	wantStatus(t, answer, contract.StatusSuccess)
	smoke := f.smoke(answer)
	if smoke.State != jobs.StateSucceeded || smoke.Rows["all"] != 60 {
		t.Fatalf("%+v", smoke)
	}
	at := slices.Index(smoke.Command, "--config")
	if got := f.read(smoke.Command[at+1]); !strings.Contains(got, `"epochs": 1`) || !strings.Contains(got, `"lr": 0.05`) {
		t.Errorf("configuration of the smoke run:\n%s", got)
	}
	if got := f.read(f.code(answer, "config/config.json")); !strings.Contains(got, `"epochs": 40`) {
		t.Errorf("configuration of the job:\n%s", got)
	}
}

// A smoke run that outlasts the call is under way; the next call, of another server, takes it up.
func TestSmokeRunThatOutlastsTheCall(t *testing.T) {
	f := newFixture(t)
	f.edit("train.py", "    config = load_config(argv)\n    try:", "    config = load_config(argv)\n    while config.epochs == 1 and not os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'go')):\n        time.sleep(0.02)\n    try:")
	t.Cleanup(f.stopSmoke)
	zero := 0
	answer, err := f.try(contract.Call{Handoff: &f.handoff, WaitSeconds: &zero})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, answer, contract.StatusPartial)
	if answer.Run.Job == nil || answer.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateRunning {
		t.Fatalf("no smoke run under way: %s", describe(answer))
	}
	if next := answer.Run.NextCall; next == nil || next.Tool != "trainer" || next.Arguments["run_id"] != answer.Run.RunID {
		t.Errorf("next call %+v", next)
	}
	copies, err := filepath.Glob(f.file(answer, "smoke/*/snapshot/project"))
	if err != nil || len(copies) != 1 {
		t.Fatalf("%v %v", copies, err)
	}
	if err := os.WriteFile(filepath.Join(copies[0], "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f.open()
	done := f.phase(4, answer.Run.RunID, nil)
	if done.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateSuccess || f.smoke(done).JobID != answer.Run.Job.JobID {
		t.Errorf("%s", describe(done))
	}
}

// Only a failure of the script itself stops: a time limit, a cancel, and the failure of a resumed run on other rows say
// nothing, and are notes.
func TestSmokeRunIsJudged(t *testing.T) {
	cause := &jobs.Cause{Category: jobs.CategoryData, Finding: finding.Finding{Code: "shape_mismatch", Severity: finding.Error, What: "3 is not 4", Remedy: "look"}}
	for name, c := range map[string]struct {
		status       jobs.Status
		resume, code string
		passed       bool
		category     string
	}{
		"succeeded":      {jobs.Status{State: jobs.StateSucceeded}, "", "", true, ""},
		"time limit":     {jobs.Status{State: jobs.StateTimeout}, "", "smoke_inconclusive", true, ""},
		"cancelled":      {jobs.Status{State: jobs.StateCancelled}, "", "smoke_inconclusive", true, ""},
		"unknown":        {jobs.Status{State: jobs.StateUnknown}, "", "smoke_inconclusive", true, ""},
		"failed":         {jobs.Status{State: jobs.StateFailed, Cause: cause}, "", "shape_mismatch", false, jobs.CategoryData},
		"failed, silent": {jobs.Status{State: jobs.StateFailed}, "", "smoke_failed", false, jobs.CategoryUnknown},
		"failed, resume": {jobs.Status{State: jobs.StateFailed, Cause: cause}, "ckpt.json", "smoke_inconclusive", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out engine.Outcome
			run := &engine.Run{ID: "r-1", Skill: &engine.Skill{}}
			run.Handoff.Inputs.Checkpoint.ResumeCheckpoint = c.resume
			w := &smokeRun{c: &commander{}, step: &engine.Step{Run: run, Caller: engine.Silent}, out: &out}
			folder := t.TempDir()
			if err := w.judge(&jobs.Entry{JobID: "smoke-1-1", Folder: folder, Request: jobs.Request{WorkDir: filepath.Join(folder, "work")}}, c.status); err != nil {
				t.Fatal(err)
			}
			out.Decide()
			if out.Gate.Passed != c.passed || out.Category != c.category || (out.Status == contract.StateFailed) == c.passed {
				t.Errorf("gate %v category %q status %q", out.Gate.Passed, out.Category, out.Status)
			}
			if c.code == "" != (len(out.Findings) == 0) {
				t.Fatalf("findings %v", out.Findings)
			}
			if c.code != "" {
				f := wantCode(t, out.Findings, c.code)
				if want := map[bool]finding.Severity{true: finding.Note, false: finding.Error}[c.passed]; f.Severity != want {
					t.Errorf("severity %s", f.Severity)
				}
			}
			if out.Files[smokeFile] == nil {
				t.Error("no " + smokeFile)
			}
		})
	}
}

// A checkpoint to be resumed is passed on as it is. That the script refuses it on other rows does not stop the run.
func TestSmokeRunOfAResume(t *testing.T) {
	f := newFixture(t)
	done := f.walk()
	wantStatus(t, done, contract.StatusSuccess)
	for _, name := range []string{"epoch-0002.json", "epoch-0002.json.complete.json"} {
		f.write("before/"+name, f.read(f.code(done, "checkpoints/"+name)))
	}
	f.handoff.StepID = "resumed"
	f.handoff.TaskContext.Constraints = nil
	f.handoff.Inputs.Checkpoint.ResumeCheckpoint = "before/epoch-0002.json"
	answer := f.phase(4, f.untilCode(), nil)
	if answer.Run.PhaseStatus[contract.PhaseCodegen] != contract.StateSuccess {
		t.Fatalf("%s", describe(answer))
	}
	smoke := f.smoke(answer)
	if at := slices.Index(smoke.Command, "--resume"); at < 0 || !strings.HasSuffix(smoke.Command[at+1], "/snapshot/project/before/epoch-0002.json") {
		t.Errorf("command %v", smoke.Command)
	}
	if got := wantCode(t, answer.Findings, "smoke_inconclusive"); got.Severity != finding.Note || smoke.State != jobs.StateFailed {
		t.Errorf("%s %s", got.Severity, smoke.State)
	}
	again, err := f.try(contract.Call{RunID: answer.Run.RunID})
	if err != nil {
		t.Fatal(err)
	}
	if second := f.smoke(again); second.JobID != smoke.JobID {
		t.Error("it was tried once more")
	}
}

// stopSmoke ends the smoke runs of a test.
func (f *fixture) stopSmoke() {
	folders, _ := filepath.Glob(filepath.Join(f.dir, ".onescience/trainer/*/smoke/smoke-*"))
	for _, folder := range folders {
		_, _ = f.trainer.Runtime.Cancel(context.Background(), folder)
	}
}

// The cut of a part has every class, keeps the bytes and the order of the rows, and stays small.
func TestCutOfAPart(t *testing.T) {
	dir := t.TempDir()
	var table strings.Builder
	table.WriteString("\xef\xbb\xbfid;x;class\r\n")
	for i := range 1000 {
		class := "common"
		if i == 700 || i == 990 {
			class = `"ra;re"`
		}
		table.WriteString(strings.Join([]string{jsonText(i), "1", class}, ";") + "\r\n")
	}
	from := filepath.Join(dir, "train.csv")
	if err := os.WriteFile(from, []byte(table.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	format := dataset.Format{Delimiter: ";", Header: true, BOM: true, Newline: "crlf"}
	for name, c := range map[string]struct {
		target string
		rows   int
		want   []string
	}{
		"by class":       {"class", 64, []string{"common", "ra;re"}},
		"as they come":   {"", 64, []string{"common"}},
		"unknown column": {"nothing", 64, []string{"common"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := smokePart{from: from, to: filepath.Join(t.TempDir(), "cut.csv"), rows: c.rows}
			n, err := p.cut(format, c.target)
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(p.to)
			if err != nil {
				t.Fatal(err)
			}
			text := string(data)
			if !strings.HasPrefix(text, "\xef\xbb\xbfid;x;class\r\n0;1;common\r\n") || !strings.HasSuffix(text, "\r\n") {
				t.Errorf("it is written otherwise: %.60q", text)
			}
			reader := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\xef\xbb\xbf")))
			reader.Comma = ';'
			records, err := reader.ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			classes := map[string]bool{}
			for _, r := range records[1:] {
				classes[r[2]] = true
			}
			if got := len(records) - 1; got != n || n < c.rows || n > c.rows+4 {
				t.Errorf("%d rows, %d said", got, n)
			}
			for _, class := range c.want {
				if !classes[class] {
					t.Errorf("class %q is missing", class)
				}
			}
			if len(classes) != len(c.want) {
				t.Errorf("classes %v", classes)
			}
		})
	}
}

func TestCutOfASmallPartIsTheWhole(t *testing.T) {
	from := filepath.Join(t.TempDir(), "val.csv")
	if err := os.WriteFile(from, []byte("a,y\n1,0\n2,1\n3,1"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := smokePart{from: from, to: from + ".cut", rows: 16}
	n, err := p.cut(dataset.Format{Delimiter: ",", Header: true}, "y")
	if err != nil || n != 3 {
		t.Fatalf("%d rows, %v", n, err)
	}
	if data, _ := os.ReadFile(p.to); string(data) != "a,y\n1,0\n2,1\n3,1\n" {
		t.Errorf("%q", data)
	}
}
