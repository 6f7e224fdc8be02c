//go:build unix

package launch

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

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/rundir"
)

// TestMain lets the test binary be its own supervisor, as the real binary is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == local.SuperviseArg {
		os.Exit(local.Supervise(os.Args[2]))
	}
	os.Exit(m.Run())
}

// bench is a workspace with the tool over it.
type bench struct {
	t   *testing.T
	dir string
	c   *Commands
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	b.c = b.server()
	t.Cleanup(b.end)
	return b
}

// end ends the jobs and waits for their supervisors, so that nothing writes into a folder that is being removed.
func (b *bench) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	folders, _ := filepath.Glob(filepath.Join(b.c.root(), "j-*", jobs.StateName))
	for _, state := range folders {
		folder := filepath.Dir(state)
		_, _ = b.c.Runtime.Cancel(ctx, folder)
		unlock, err := rundir.Lock(ctx, filepath.Join(folder, "supervisor.lock")) // a supervisor holds it for its whole life
		if err != nil {
			b.t.Errorf("the supervisor of %s is still there: %v", folder, err)
			continue
		}
		unlock()
	}
}

// server is one more server over the same workspace.
func (b *bench) server() *Commands {
	b.t.Helper()
	roots, err := rundir.NewRoots(b.dir, nil, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	runtime := local.New(local.Options{Workspace: b.dir, Environ: append(os.Environ(), "GORACE=atexit_sleep_ms=0")})
	c := &Commands{Roots: roots, Runtime: runtime, Now: time.Now}
	c.Authority = Authority{Jobs: func() ([]string, error) { return []string{c.root()}, nil }, Runtime: runtime}
	return c
}

func shell(text string) []string { return []string{"/bin/sh", "-c", text} }

func step(change ...func(*contract.StepHandoff)) *contract.StepHandoff {
	h := contract.StepHandoff{StepID: "s", ExecutionSkill: SkillRuntime, StepGoal: "run it"}
	for _, f := range change {
		f(&h)
	}
	return &h
}

func (b *bench) call(handoff *contract.StepHandoff, order Order, wait int) engine.Envelope {
	b.t.Helper()
	answer, err := b.c.Run(b.t.Context(), engine.Silent, contract.Call{Handoff: handoff, WaitSeconds: &wait}, Input{Launch: &order})
	if err != nil {
		b.t.Fatal(err)
	}
	return answer
}

func (b *bench) back(id string, wait int) engine.Envelope {
	b.t.Helper()
	answer, err := b.c.Run(b.t.Context(), engine.Silent, contract.Call{WaitSeconds: &wait}, Input{JobID: id})
	if err != nil {
		b.t.Fatal(err)
	}
	return answer
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	file := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// want checks the status and the codes of the findings that are no notes.
func want(t *testing.T, answer engine.Envelope, status, found string) {
	t.Helper()
	if got := codes(answer.Findings); answer.ExecutionResult.Status != status || got != found {
		t.Fatalf("%s %q, want %s %q: %s %v", answer.ExecutionResult.Status, got, status, found, answer.ExecutionResult.Observation.Summary, answer.Findings)
	}
}

func result(t *testing.T, answer engine.Envelope) contract.RuntimeResult {
	t.Helper()
	var r contract.RuntimeResult
	if err := rundir.ReadJSON(answer.ExecutionResult.Artifacts["runtime_result"], &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestACommandSucceedsByExitStatusAndOutputs(t *testing.T) {
	b := newBench(t)
	handoff := step(func(h *contract.StepHandoff) { h.Inputs.Runtime.CodeSaveDir = "out" })
	order := Order{Command: shell(`mkdir -p outputs checkpoints; echo '{"step":1,"split":"val","name":"loss","value":0.5}' >outputs/metrics.jsonl; echo x >checkpoints/a.pt; echo extra >other.txt`),
		ExpectedOutputs: []string{"outputs/metrics.jsonl", "checkpoints/*"}}
	answer := b.call(handoff, order, 60)
	want(t, answer, contract.StatusSuccess, "")
	if answer.Run.NextCall != nil || answer.Run.PhaseStatus["runtime"] != "success" || answer.ExecutionResult.Skill != SkillRuntime || answer.ExecutionResult.Attempt != nil {
		t.Errorf("%+v", answer)
	}
	r := result(t, answer)
	if diff := cmp.Diff([]string{"checkpoints/a.pt", "other.txt", "outputs/metrics.jsonl"}, r.OutputFiles); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"val/loss": 0.5}, r.KeyMetrics); diff != "" || !slices.Equal(r.Checkpoints, []string{"checkpoints/a.pt"}) {
		t.Error(diff, r.Checkpoints)
	}
	if r.ExitCode == nil || *r.ExitCode != 0 || r.FailureClass != nil || r.JobID != answer.Run.Job.JobID || r.EndedAt == "" || len(r.LogPaths) != 2 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "out", "logs", r.JobID+".out")); err != nil {
		t.Error(err)
	}
	var request map[string]any
	if err := rundir.ReadJSON(answer.ExecutionResult.Artifacts["runtime_request"], &request); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"task", "code_save_dir", "trainer_workdir", "workdir", "entrypoint", "command", "execution_mode", "hardware", "package_requirements", "environment_requirements", "knowledge_inputs",
		"preflight_checks", "expected_outputs", "init_checkpoint", "resume_checkpoint", "train_command", "expected_checkpoints", "expected_metrics", "log_dir", "manifest_path", "channel", "resources"} {
		if _, there := request[field]; !there {
			t.Errorf("runtime_request.json has no %s", field)
		}
	}
	var seen Evidence
	if err := rundir.ReadJSON(filepath.Join(answer.ExecutionResult.Artifacts["workdir"], preflightFile), &seen); err != nil || !seen.OK || len(seen.Checks) == 0 || seen.Machine.CPUs < 1 {
		t.Errorf("%+v (%v)", seen, err)
	}
}

// The same call is the same job, whoever makes it, and the attempt is part of it.
func TestTheSameCallIsTheSameJob(t *testing.T) {
	b := newBench(t)
	order := Order{Command: shell("echo started >>../count; sleep 0.2")}
	handoff := step(func(h *contract.StepHandoff) { h.Inputs.Runtime.CodeSaveDir = "out" })
	var wg sync.WaitGroup
	answers := make([]engine.Envelope, 4)
	for i := range answers {
		server := b.server()
		wg.Go(func() {
			wait := 60
			answer, err := server.Run(t.Context(), engine.Silent, contract.Call{Handoff: handoff, WaitSeconds: &wait}, Input{Launch: &order})
			if err != nil {
				t.Error(err)
			}
			answers[i] = answer
		})
	}
	wg.Wait()
	id := answers[0].Run.Job.JobID
	for _, answer := range answers {
		want(t, answer, contract.StatusSuccess, "")
		if answer.Run.Job.JobID != id {
			t.Errorf("jobs %s and %s", id, answer.Run.Job.JobID)
		}
	}
	want(t, b.call(handoff, order, 60), contract.StatusSuccess, "")
	want(t, b.back(id, 0), contract.StatusSuccess, "")
	if count, err := os.ReadFile(filepath.Join(b.dir, "count")); err != nil || string(count) != "started\n" {
		t.Errorf("the command ran %q (%v)", count, err)
	}
	second := b.call(step(func(h *contract.StepHandoff) { h.Inputs.Runtime.CodeSaveDir = "out"; h.Inputs.Attempt = 2 }), order, 60)
	want(t, second, contract.StatusSuccess, "")
	if second.Run.Job.JobID == id || second.ExecutionResult.Attempt == nil || *second.ExecutionResult.Attempt != 2 || len(second.ExecutionResult.Events) != 2 {
		t.Errorf("attempt 2: %+v", second.ExecutionResult)
	}
}

func TestARunningJobIsComeBackTo(t *testing.T) {
	b := newBench(t)
	var heard []engine.Progress
	var mu sync.Mutex
	wait := 0
	order := Order{Command: shell("while [ ! -e go ]; do sleep 0.05; done"), Launch: Launch{Resources: jobs.Resources{TimeLimit: "00:01:00"}}}
	answer, err := b.c.Run(t.Context(), listener(func(p engine.Progress) { mu.Lock(); defer mu.Unlock(); heard = append(heard, p) }), contract.Call{Handoff: step(), WaitSeconds: &wait}, Input{Launch: &order})
	if err != nil {
		t.Fatal(err)
	}
	want(t, answer, contract.StatusPartial, "")
	if answer.Run.Job == nil || answer.Run.PhaseStatus["runtime"] != "running" || answer.ExecutionResult.Artifacts["runtime_result"] != "" {
		t.Errorf("%+v", answer.Run)
	}
	next := answer.Run.NextCall
	if next == nil || next.Tool != "runtime" || next.Arguments["job_id"] != answer.Run.Job.JobID {
		t.Fatalf("%+v", next)
	}
	last := heard[len(heard)-1]
	if last.Phase != "runtime" || last.Total != 60 || !strings.Contains(last.Message, answer.Run.Job.JobID) {
		t.Errorf("%+v", heard)
	}
	b.write("go", "")
	want(t, b.back(answer.Run.Job.JobID, 60), contract.StatusSuccess, "")
}

type listener func(engine.Progress)

func (listener) Ask(context.Context, engine.Question) (engine.Answer, error) {
	return engine.Answer{}, nil
}

func (l listener) Progress(p engine.Progress) { l(p) }

// Each row is a way to look like a success without being one, or to fail; the call tells which.
func TestFailuresHaveACause(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		command  []string
		expected []string
		code     string
		category string
		line     bool // the cause names a line or byte of the log
	}{
		"exit status":            {shell("echo 'No space left on device' >&2; exit 3"), nil, "disk_full", "environment", true},
		"output missing":         {shell("true"), []string{"outputs/metrics.jsonl"}, "expected_output_missing", "code", false},
		"output copied from old": {shell("echo x >old; touch -d '2001-01-01' old; mv old new"), []string{"new"}, "artifact_older_than_run", "code", false},
		"exit 0 after a crash":   {shell("echo 'Traceback (most recent call last):' >&2; echo '  File \"a.py\", line 1' >&2; echo 'ValueError: no' >&2"), nil, "exit_zero_after_exception", "code", true},
		"python":                 {[]string{python, "-c", "import no_such_module_xyz"}, nil, "import_missing", "dependency", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			handoff := step(func(h *contract.StepHandoff) { h.Inputs.Attempt = 1 })
			answer := b.call(handoff, Order{Command: c.command, ExpectedOutputs: c.expected}, 60)
			if answer.ExecutionResult.Status != contract.StatusFailed || len(answer.Findings) == 0 || answer.Findings[0].Code != c.code {
				t.Fatalf("%s %v", answer.ExecutionResult.Status, answer.Findings)
			}
			if got := answer.ExecutionResult.FailureCategory; got == nil || *got != c.category {
				t.Errorf("category %v", got)
			}
			first := answer.Findings[0]
			if first.Remedy == "" || c.line && (first.Where == nil || first.Where.Line == 0 && first.Where.Byte == 0 && c.code != "exit_zero_after_exception") {
				t.Errorf("%+v", first)
			}
			if evidence := answer.Findings[1:]; c.line && c.code != "exit_zero_after_exception" && (len(evidence) == 0 || evidence[0].Code != "log_evidence" || evidence[0].What == "" || evidence[0].Where.Line == 0) {
				t.Errorf("no line of the log: %v", answer.Findings)
			}
			if r := result(t, answer); r.FailureClass == nil || *r.FailureCategory != c.category {
				t.Errorf("%+v", r)
			}
			if next := answer.Run.NextCall; next == nil || next.Tool != "job_logs" || !strings.Contains(answer.ExecutionResult.Observation.NextRecommendation, "attempt 2") {
				t.Errorf("%+v %s", next, answer.ExecutionResult.Observation.NextRecommendation)
			}
			again := b.back(answer.Run.Job.JobID, 0)
			if again.ExecutionResult.Status != contract.StatusFailed || again.Findings[0].Code != c.code {
				t.Errorf("told otherwise later: %v", again.Findings)
			}
		})
	}
}

// A step's budget of seconds ends the job.
func TestTheStepsBudgetIsTheWallTime(t *testing.T) {
	b := newBench(t)
	answer := b.call(step(func(h *contract.StepHandoff) { h.Inputs.StepWallclockBudgetSeconds = 1 }), Order{Command: []string{"sleep", "30"}, Launch: Launch{Resources: jobs.Resources{TimeLimit: "00:10:00"}}}, 60)
	if answer.ExecutionResult.Status != contract.StatusFailed || answer.Run.Job.State != jobs.StateTimeout {
		t.Errorf("%s %+v", answer.ExecutionResult.Status, answer.Run.Job)
	}
}

func TestTheInterpreterOfTheLaunch(t *testing.T) {
	b := newBench(t)
	python := strings.TrimSpace(output(t, "python3", "-c", "import sys; print(sys.executable)"))
	b.write("env/bin/python", "#!/bin/sh\nexec "+python+" \"$@\"\n")
	b.write("env/bin/own-tool", "#!/bin/sh\necho own\n")
	for _, name := range []string{"env/bin/python", "env/bin/own-tool"} {
		if err := os.Chmod(filepath.Join(b.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	asked := Launch{Environment: Environment{Python: filepath.Join(b.dir, "env")}}
	answer := b.call(step(), Order{Command: []string{"python3", "-c", "print(1)"}, Launch: asked}, 60)
	want(t, answer, contract.StatusSuccess, "")
	if r := result(t, answer); !strings.HasPrefix(r.Command, filepath.Join(b.dir, "env", "bin", "python")) {
		t.Error(r.Command)
	}
	want(t, b.call(step(), Order{Command: []string{"own-tool"}, Launch: asked}, 60), contract.StatusSuccess, "")
}

func TestPlainWordsAndALoneString(t *testing.T) {
	b := newBench(t)
	handoff := contract.FromRequest("say hello")
	wait := 60
	answer, err := b.c.Run(t.Context(), engine.Silent, contract.Call{Handoff: &handoff, Request: "say hello", WaitSeconds: &wait}, Input{Launch: &Order{Command: []string{`/bin/sh -c "echo 'hello you'"`}}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, answer, contract.StatusSuccess, "")
	log, err := os.ReadFile(filepath.Join(answer.ExecutionResult.Artifacts["workdir"], jobs.StdoutFile))
	if err != nil || string(log) != "hello you\n" || answer.Findings[0].Code != "command_split" {
		t.Errorf("%q %v %v", log, err, answer.Findings)
	}
}

func TestSecretsAreNotKept(t *testing.T) {
	b := newBench(t)
	secret := "hf_" + strings.Repeat("aB3", 12)
	answer := b.call(step(func(h *contract.StepHandoff) { h.TaskContext.UserGoal = "use token=" + secret }), Order{Command: shell("true")}, 60)
	want(t, answer, contract.StatusSuccess, "secret_redacted")
	want(t, b.call(step(), Order{Command: []string{"echo", "--token", secret}}, 60), contract.StatusSuccess, "secret_in_command")
	data, err := os.ReadFile(answer.ExecutionResult.Artifacts["handoff"])
	if err != nil || strings.Contains(string(data), secret) || !json.Valid(data) {
		t.Errorf("%s %v", data, err)
	}
}
