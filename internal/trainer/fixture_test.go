package trainer

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/skill"
)

// TestMain lets the test binary be its own supervisor, as the real binary is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == local.SuperviseArg {
		os.Exit(local.Supervise(os.Args[2]))
	}
	os.Exit(m.Run())
}

// fixture is a workspace with a copy of the example and a trainer over it.
type fixture struct {
	t       *testing.T
	dir     string
	trainer *Trainer
	handoff contract.StepHandoff
}

// newFixture copies the example into a fresh workspace. Its handoff asks for two epochs, so that a run takes a second, and
// for an accuracy that two epochs reach.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/breast-cancer")); err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, dir: dir}
	f.open()
	data, err := os.ReadFile(filepath.Join(dir, "step_handoff.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if f.handoff, _, err = contract.DecodeHandoff(data); err != nil {
		t.Fatal(err)
	}
	two := 2
	f.handoff.Inputs.Parameters.EpochsOrSteps = &two
	f.handoff.Inputs.Runtime.EnvironmentRequirements = map[string]any{"python": interpreter(t)}
	f.handoff.CompletionCriteria = []string{"test/accuracy >= 0.8"}
	t.Cleanup(f.stopJobs)
	return f
}

// interpreterPath is the python3 of PATH itself, without the shims that a version manager may put before it.
var interpreterPath = sync.OnceValues(func() ([]byte, error) {
	return exec.Command("python3", "-c", "import sys; print(sys.executable, end='')").Output()
})

func interpreter(t *testing.T) string {
	t.Helper()
	path, err := interpreterPath()
	if err != nil {
		t.Fatalf("python3: %v", err)
	}
	return string(path)
}

// open makes the trainer anew, as a second server on the same workspace would.
func (f *fixture) open() {
	f.t.Helper()
	roots, err := rundir.NewRoots(f.dir, nil, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.trainer = New(roots, emptyLibrary(f.t), local.New(local.Options{Workspace: f.dir}), time.Now)
}

func (f *fixture) stopJobs() {
	roots, _ := f.trainer.JobRoots()
	for _, root := range roots {
		folders, _ := filepath.Glob(filepath.Join(root, "*"))
		for _, folder := range folders {
			_, _ = f.trainer.Runtime.Cancel(context.Background(), folder)
		}
	}
}

// walk calls the trainer tool and waits for the job.
func (f *fixture) walk() engine.Envelope {
	f.t.Helper()
	answer, err := f.try(contract.Call{Handoff: &f.handoff})
	if err != nil {
		f.t.Fatal(err)
	}
	return answer
}

func (f *fixture) try(call contract.Call) (engine.Envelope, error) {
	wait := 60
	if call.WaitSeconds == nil {
		call.WaitSeconds = &wait
	}
	return f.trainer.Walk(context.Background(), engine.Silent, call, WalkInput{})
}

// phase calls one phase's tool.
func (f *fixture) phase(n int, runID string, section map[string]any) engine.Envelope {
	f.t.Helper()
	wait := 60
	answer, err := f.trainer.phase(context.Background(), engine.Silent, n, contract.Call{RunID: runID, Section: section, WaitSeconds: &wait})
	if err != nil {
		f.t.Fatal(err)
	}
	return answer
}

// file is a file of the run that an answer is about.
func (f *fixture) file(answer engine.Envelope, name string) string {
	return filepath.Join(answer.ExecutionResult.Artifacts["trainer_workdir"], name)
}

func (f *fixture) code(answer engine.Envelope, name string) string {
	return filepath.Join(answer.ExecutionResult.Artifacts["code_save_dir"], name)
}

func (f *fixture) read(path string) string {
	f.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(data)
}

func (f *fixture) write(path, text string) {
	f.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.dir, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// edit replaces text in a file of the workspace, once, and fails when it is not there.
func (f *fixture) edit(name, from, to string) {
	f.t.Helper()
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.dir, path)
	}
	text := f.read(path)
	if !strings.Contains(text, from) {
		f.t.Fatalf("%s does not contain %q", name, from)
	}
	f.write(path, strings.Replace(text, from, to, 1))
}

// hold makes the job, but not the smoke run, wait until release: a test can then look at it while it is under way, however
// fast the machine is.
func (f *fixture) hold() {
	f.t.Helper()
	f.edit("train.py", begins, "    config = load_config(argv)\n    while config.epochs > 1 and not os.path.exists('../../../../../"+f.gate()+"'):\n        time.sleep(0.02)\n    try:")
}

func (f *fixture) gate() string { return "go-" + filepath.Base(f.dir) }

func (f *fixture) release() {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(f.dir), f.gate()), nil, 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func emptyLibrary(t *testing.T) *skill.Library {
	t.Helper()
	return &skill.Library{}
}

func wantStatus(t *testing.T, answer engine.Envelope, status string) {
	t.Helper()
	if answer.ExecutionResult.Status != status {
		t.Fatalf("status %q, want %q\n%s", answer.ExecutionResult.Status, status, describe(answer))
	}
}

func wantCode(t *testing.T, findings []finding.Finding, code string) finding.Finding {
	t.Helper()
	i := slices.IndexFunc(findings, func(f finding.Finding) bool { return f.Code == code })
	if i < 0 {
		t.Fatalf("no finding %q among\n%s", code, listFindings(findings))
	}
	if findings[i].Remedy == "" {
		t.Errorf("finding %s does not say what to do", code)
	}
	return findings[i]
}

func refusedWith(t *testing.T, err error, code string) finding.Finding {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted, want %s", code)
	}
	return wantCode(t, refusalOf(err), code)
}

func listFindings(findings []finding.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		b.WriteString(string(f.Severity) + " " + f.String() + "\n")
	}
	return b.String()
}

func describe(answer engine.Envelope) string {
	data, _ := json.MarshalIndent(answer, "", " ")
	return string(data)
}
