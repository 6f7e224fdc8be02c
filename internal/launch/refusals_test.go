//go:build unix

package launch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Nothing of these is started, and each says what to send instead.
func TestBlockedLaunches(t *testing.T) {
	python := strings.TrimSpace(output(t, "python3", "-c", "import sys; print(sys.executable)"))
	b := newBench(t)
	b.write("a.py", "")
	b.c.Authority.Policy = policyOf(t, "budget: {core_hours: 1}")
	limit := jobs.Resources{TimeLimit: "00:10:00"}
	cases := map[string]struct {
		handoff *contract.StepHandoff
		order   Order
		code    string
	}{
		"nothing is to run": {step(func(h *contract.StepHandoff) { h.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly }), Order{Command: shell("true")}, "beyond_intent"},
		"no command":        {step(), Order{}, "command_missing"},
		"no such program":   {step(), Order{Command: []string{"no-such-program-xyz"}}, "command_not_found"},
		"no such script":    {step(), Order{Command: []string{python, "-u", "b.py"}}, "entrypoint_missing"},
		"no such module":    {step(), Order{Command: []string{python, "-m", "no_such_module_xyz"}}, "import_missing"},
		"a package lacks": {step(func(h *contract.StepHandoff) {
			h.Inputs.Runtime.PackageRequirements = []string{"no-such-package-xyz>=2"}
		}), Order{Command: []string{python, "a.py"}}, "package_missing"},
		"no data":             {step(func(h *contract.StepHandoff) { h.Inputs.Data.TrainSource = "data.csv" }), Order{Command: shell("true")}, "input_missing"},
		"another channel":     {step(func(h *contract.StepHandoff) { h.Inputs.Runtime.ExecutionMode = contract.ModeRemoteSlurm }), Order{Command: shell("true")}, "channel_unavailable"},
		"conda":               {step(), Order{Command: shell("true"), Launch: Launch{Environment: Environment{Conda: "x"}}}, "launch_unsupported"},
		"outside":             {step(func(h *contract.StepHandoff) { h.Inputs.Runtime.CodeSaveDir = "/elsewhere" }), Order{Command: shell("true")}, "path_outside_roots"},
		"output outside":      {step(), Order{Command: shell("true"), ExpectedOutputs: []string{"../x/*"}}, "path_outside_roots"},
		"a bad glob":          {step(), Order{Command: shell("true"), ExpectedOutputs: []string{"a[", "b"}}, "output_pattern_malformed"},
		"no time limit":       {step(), Order{Command: shell("true")}, "budget_needs_time_limit"},
		"too long":            {step(), Order{Command: shell("true"), Launch: Launch{Resources: jobs.Resources{TimeLimit: "02:00:00"}}}, "budget_exceeded"},
		"a bad time limit":    {step(func(h *contract.StepHandoff) { h.Inputs.StepWallclockBudgetSeconds = 60 }), Order{Command: shell("true"), Launch: Launch{Resources: jobs.Resources{TimeLimit: "soon"}}}, "time_limit_invalid"},
		"a python that isn't": {step(), Order{Command: []string{"python3", "a.py"}, Launch: Launch{Environment: Environment{Python: "/bin/true"}, Resources: limit}}, "python_missing"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer := b.call(c.handoff, c.order, 0)
			want(t, answer, contract.StatusBlocked, c.code)
			if len(answer.ExecutionResult.Observation.Missing) == 0 || answer.Run.Job != nil {
				t.Errorf("%+v", answer)
			}
			for _, f := range answer.Findings {
				if f.Remedy == "" {
					t.Errorf("no remedy: %v", f)
				}
			}
		})
	}
	if entries, _ := jobs.List([]string{b.c.root()}); len(entries) > 0 {
		t.Errorf("jobs %v were made", entries)
	}
}

func output(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Execute is a hard gate: a folder whose evidence is gone, or says no, starts nothing before a preflight has passed.
func TestNoPreflightNoRun(t *testing.T) {
	b := newBench(t)
	gone := filepath.Join(b.dir, "tool.sh")
	b.write("tool.sh", "#!/bin/sh\ntouch ran\n")
	if err := os.Chmod(gone, 0o755); err != nil {
		t.Fatal(err)
	}
	b.write(".onescience/busy", "")
	order := Order{Command: []string{"./tool.sh"}}
	e := &errand{c: b.c, caller: engine.Silent, handoff: *step(), order: order}
	if err := e.name(); err != nil {
		t.Fatal(err)
	}
	if ok, err := e.describe(t.Context()); err != nil || !ok {
		t.Fatal(err, e.findings)
	}
	// A crash after the request was written and before the job was started; its evidence is lost.
	if err := jobs.Create(e.folder, jobs.Request{JobID: e.id, Command: e.argv, WorkDir: e.workDir, Marker: e.marker, CreatedAt: noon}); err != nil {
		t.Fatal(err)
	}
	if err := rundir.WriteJSON(filepath.Join(e.folder, inventoryFile), []rundir.Entry{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	want(t, b.back(e.id, 0), contract.StatusBlocked, "command_not_found")
	if _, err := os.Stat(filepath.Join(e.folder, jobs.StateName)); err == nil {
		t.Fatal("the job was started without a preflight")
	}
	b.write("tool.sh", "#!/bin/sh\ntouch ran\n")
	if err := os.Chmod(gone, 0o755); err != nil {
		t.Fatal(err)
	}
	want(t, b.back(e.id, 60), contract.StatusSuccess, "")
}

func TestRefusals(t *testing.T) {
	b := newBench(t)
	done := b.call(step(), Order{Command: shell("true")}, 60)
	id := done.Run.Job.JobID
	layJob(t, b.c.root(), "j-of-a-run", jobs.Request{RunID: "r-1"}, nil)
	for name, c := range map[string]struct {
		call   contract.Call
		in     Input
		code   string
		remedy string
	}{
		"a run":               {contract.Call{RunID: "r-1"}, Input{}, "run_id_not_taken", "trainer"},
		"another skill":       {contract.Call{Handoff: step(func(h *contract.StepHandoff) { h.ExecutionSkill = contract.SkillTrainer })}, Input{}, "skill_mismatch", "trainer"},
		"a job with a launch": {contract.Call{}, Input{JobID: id, Launch: &Order{Command: shell("false")}}, "job_is_fixed", "alone"},
		"unknown job":         {contract.Call{}, Input{JobID: "j-0000000000000000"}, "job_unknown", "job_list"},
		"a job's path":        {contract.Call{}, Input{JobID: "../jobs/" + id}, "job_unknown", "job_list"},
		"a run's job":         {contract.Call{}, Input{JobID: "j-of-a-run"}, "job_of_a_run", `trainer {"run_id": "r-1"}`},
		"shell syntax":        {contract.Call{}, Input{Launch: &Order{Command: []string{"python3 a.py | tee log"}}}, "command_needs_shell", `["/bin/sh","-c","python3 a.py | tee log"]`},
	} {
		_, err := b.c.Run(t.Context(), engine.Silent, c.call, c.in)
		var refused *finding.Refused
		if !errors.As(err, &refused) || refused.Findings[0].Code != c.code || !strings.Contains(refused.Findings[0].Remedy, c.remedy) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := rundir.WriteJSON(filepath.Join(b.c.root(), id, orderFile), Order{Command: shell("false")}); err != nil {
		t.Fatal(err)
	}
	_, err := b.c.Run(t.Context(), engine.Silent, contract.Call{}, Input{JobID: id})
	var refused *finding.Refused
	if !errors.As(err, &refused) || refused.Findings[0].Code != "artifact_edited" {
		t.Error(err)
	}
}
