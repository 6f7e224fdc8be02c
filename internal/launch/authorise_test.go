package launch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/policy"
	"github.com/trainwright/trainwright/internal/rundir"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func codes(found []finding.Finding) string {
	list := []string{}
	for _, f := range found {
		if f.Severity != finding.Note {
			list = append(list, f.Code)
		}
	}
	return strings.Join(list, " ")
}

// policyOf reads a policy as a user writes it.
func policyOf(t *testing.T, text string) policy.Policy {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, found, err := policy.Load(path, t.TempDir())
	if err != nil || finding.Has(found, finding.Error) {
		t.Fatal(err, found)
	}
	return p
}

func TestAuthorise(t *testing.T) {
	local := Ask{ID: "j-1", Command: "python3 a.py", Channel: contract.ChannelLocalDirect}
	remote := Ask{ID: "r-1", Command: "python3 a.py", Channel: contract.ChannelSSHSlurm, Site: "hpc1", Resources: jobs.Resources{Nodes: 2, CPUs: 4, GPUsPerNode: 1}, WallTimeSeconds: 1800}
	grant := policy.Grant{RunID: "r-1", What: policy.RemoteSubmission, Command: "python3 a.py", Target: "ssh_slurm on hpc1", CoreHours: 4, GPUHours: 1, By: "ann", At: noon}
	with := func(ask Ask, change func(*Ask)) Ask { change(&ask); return ask }
	other := func(change func(*policy.Grant)) []policy.Grant { g := grant; change(&g); return []policy.Grant{g} }
	budget := "budget: {core_hours: 10, gpu_hours: 2}"
	cases := map[string]struct {
		policy string
		ask    Ask
		grants []policy.Grant
		used   Hours
		want   string
	}{
		"a local job needs no word":        {"", local, nil, Hours{}, ""},
		"remote asks":                      {"", remote, nil, Hours{}, "authorisation_missing"},
		"remote, granted":                  {"", remote, []policy.Grant{grant}, Hours{}, ""},
		"remote, allowed by the policy":    {"allow: {remote_submission: yes}", remote, nil, Hours{}, ""},
		"remote, forbidden though granted": {"allow: {remote_submission: no}", remote, []policy.Grant{grant}, Hours{}, "authorisation_missing"},
		"granted to another run":           {"", remote, other(func(g *policy.Grant) { g.RunID = "r-2" }), Hours{}, "authorisation_missing"},
		"granted for another command":      {"", remote, other(func(g *policy.Grant) { g.Command += " --x" }), Hours{}, "authorisation_missing"},
		"granted for another target":       {"", remote, other(func(g *policy.Grant) { g.Target = "ssh_slurm on hpc2" }), Hours{}, "authorisation_missing"},
		"granted for fewer hours":          {"", remote, other(func(g *policy.Grant) { g.CoreHours = 3.9 }), Hours{}, "authorisation_missing"},
		"granted for hours, now without":   {"", with(remote, func(a *Ask) { a.WallTimeSeconds = 0 }), []policy.Grant{grant}, Hours{}, "authorisation_missing"},
		"granted without a limit":          {"", remote, other(func(g *policy.Grant) { g.CoreHours, g.GPUHours = 0, 0 }), Hours{}, ""},
		"a budget needs a limit":           {budget, local, nil, Hours{}, "budget_needs_time_limit"},
		"within the budget":                {budget, with(local, func(a *Ask) { a.WallTimeSeconds = 3600 }), nil, Hours{Core: 9}, ""},
		"over what is left":                {budget, with(local, func(a *Ask) { a.WallTimeSeconds = 3601 }), nil, Hours{Core: 9}, "budget_exceeded"},
		"cpus count":                       {budget, with(local, func(a *Ask) { a.WallTimeSeconds = 3600; a.Resources.CPUs = 11 }), nil, Hours{}, "budget_exceeded"},
		"gpus count per node":              {"budget: {gpu_hours: 2}", with(local, func(a *Ask) { a.WallTimeSeconds = 3600; a.Resources = jobs.Resources{Nodes: 3, GPUsPerNode: 1} }), nil, Hours{}, "budget_exceeded"},
		"no gpus, a budget for them":       {"budget: {gpu_hours: 0}", local, nil, Hours{}, ""},
		"both at once":                     {budget, remote, nil, Hours{Core: 9}, "authorisation_missing budget_exceeded"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			found, ok := Authorise(policyOf(t, c.policy), c.grants, c.ask, c.used)
			if got := codes(found); got != c.want || ok != (c.want == "") {
				t.Errorf("%q, ok %v, want %q: %v", got, ok, c.want, found)
			}
		})
	}
	found, _ := Authorise(policyOf(t, ""), nil, remote, Hours{})
	if len(found) != 1 || !strings.Contains(found[0].Remedy, "trainwright approve r-1") {
		t.Errorf("the remedy names no command: %v", found)
	}
	found, _ = Authorise(policyOf(t, budget), nil, local, Hours{})
	if len(found) != 1 || found[0].Where.Field != "launch.resources.time_limit" {
		t.Errorf("%v", found)
	}
}

func TestWallTimeSecondsIsTheShorterOne(t *testing.T) {
	for _, c := range []struct {
		budget int
		limit  string
		want   int
	}{{0, "", 0}, {60, "", 60}, {0, "00:01:30", 90}, {60, "00:01:30", 60}, {120, "00:01:30", 90}, {60, "soon", 60}, {-1, "", 0}} {
		if got := WallTimeSeconds(c.budget, jobs.Resources{TimeLimit: c.limit}); got != c.want {
			t.Errorf("%d and %q: %d, want %d", c.budget, c.limit, got, c.want)
		}
	}
}

// standing answers with the states that a test gave the folders.
type standing map[string]jobs.Status

func (s standing) Status(_ context.Context, folders []string) ([]jobs.Status, error) {
	out := make([]jobs.Status, len(folders))
	for i, folder := range folders {
		out[i] = s[filepath.Base(folder)]
	}
	return out, nil
}

// layJob makes a job's folder as it stands at some moment.
func layJob(t *testing.T, root, id string, request jobs.Request, records map[string]any) {
	t.Helper()
	request.JobID, request.Command, request.WorkDir, request.CreatedAt = id, []string{"true"}, root, noon
	folder := filepath.Join(root, id)
	if err := jobs.Create(folder, request); err != nil {
		t.Fatal(err)
	}
	for name, record := range records {
		if err := rundir.WriteJSON(filepath.Join(folder, name), record); err != nil {
			t.Fatal(err)
		}
	}
}

// usedJobs is a workspace whose jobs have used 1 + 2 + 0.5 + 0.25 + 0.125 core hours and 2 GPU hours.
func usedJobs(t *testing.T) (string, standing) {
	root := t.TempDir()
	code := 0
	hour := jobs.Exit{Code: &code, Seconds: 3600, StartedAt: noon, EndedAt: noon.Add(time.Hour), Reason: jobs.ReasonExited}
	layJob(t, root, "j-ended", jobs.Request{}, map[string]any{jobs.ExitFile: hour})
	layJob(t, root, "j-gpu", jobs.Request{Resources: jobs.Resources{CPUs: 2, GPUsPerNode: 2}}, map[string]any{jobs.ExitFile: hour})
	layJob(t, root, "j-running", jobs.Request{WallTimeSeconds: 1800}, nil)
	layJob(t, root, "j-unlimited", jobs.Request{}, nil)
	layJob(t, root, "j-lost", jobs.Request{WallTimeSeconds: 36000}, map[string]any{jobs.StateName: jobs.StateFile{StartedAt: noon, HeartbeatAt: noon.Add(450 * time.Second)}})
	return root, standing{"j-running": {State: jobs.StateRunning, Seconds: 10}, "j-unlimited": {State: jobs.StateRunning, Seconds: 900}, "j-lost": {State: jobs.StateUnknown}}
}

func TestUsedCountsEndedRunningAndLostJobs(t *testing.T) {
	root, runtime := usedJobs(t)
	entries, found := jobs.List([]string{root})
	if len(entries) != 5 || len(found) > 0 {
		t.Fatal(entries, found)
	}
	used, err := Used(t.Context(), runtime, entries)
	if want := (Hours{Core: 3.875, GPU: 2}); err != nil || used != want {
		t.Errorf("%+v, want %+v (%v)", used, want, err)
	}
}

func TestClearHoldsTheHoursUntilTheJobIsThere(t *testing.T) {
	root, runtime := usedJobs(t)
	a := Authority{Policy: policyOf(t, "budget: {core_hours: 5}"), Jobs: func() ([]string, error) { return []string{root}, nil }, Runtime: runtime}
	hour := Ask{ID: "j-new", Command: "true", Channel: contract.ChannelLocalDirect, WallTimeSeconds: 3600}
	release, found, err := a.Clear(t.Context(), hour)
	if err != nil || codes(found) != "" {
		t.Fatal(found, err)
	}
	// Another launch of an hour would fit as long as the first one's folder is not there: it has to wait.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := a.Clear(ctx, hour); err == nil {
		t.Error("two launches took the same hours")
	}
	layJob(t, root, "j-new", jobs.Request{WallTimeSeconds: 3600}, nil)
	runtime["j-new"] = jobs.Status{State: jobs.StateQueued}
	release()
	release, found, err = a.Clear(t.Context(), hour)
	release()
	if err != nil || codes(found) != "budget_exceeded" {
		t.Error(found, err)
	}
	release, found, err = a.Clear(t.Context(), Ask{Channel: contract.ChannelLocalDirect, WallTimeSeconds: 60})
	release()
	if err != nil || codes(found) != "" {
		t.Error("a refused launch keeps the lock, or what is left is not given:", found, err)
	}
}

func TestAuthorityReadsGrantsAnew(t *testing.T) {
	var granted []policy.Grant
	a := Authority{Grants: func() ([]policy.Grant, []finding.Finding, error) { return granted, nil, nil }}
	ask := Ask{ID: "r-1", Command: "c", Channel: contract.ChannelSSHDirect}
	if _, found, err := a.Clear(t.Context(), ask); err != nil || codes(found) != "authorisation_missing" {
		t.Error(found, err)
	}
	granted = []policy.Grant{{RunID: "r-1", Command: "c", What: policy.RemoteSubmission, Target: ask.Target(), By: "ann", At: noon}}
	if _, found, err := a.Clear(t.Context(), ask); err != nil || codes(found) != "" {
		t.Error(found, err)
	}
}

func TestChannel(t *testing.T) {
	for _, c := range []struct {
		mode, intent, asked, want string
		served                    bool
	}{
		{"", "", "", "local_direct", true},
		{"local", "run_local", "", "local_direct", true},
		{"unknown", "unknown", "", "local_direct", true},
		{"local_slurm", "run_local", "", "local_slurm", false},
		{"remote_slurm", "run_remote", "", "ssh_slurm", false},
		{"remote_direct", "", "", "ssh_direct", false},
		{"", "run_remote", "", "ssh_direct", false},
		{"local", "run_remote", "", "ssh_direct", false},
		{"remote_slurm", "run_local", "local_direct", "local_direct", true},
		{"", "run_remote", "local_direct", "local_direct", false}, // a remote intent never falls back
	} {
		in := contract.Runtime{ExecutionMode: c.mode, ExecutionIntent: c.intent}
		if got := Channel(in, Launch{Channel: c.asked}); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
		if f := Unserved(in, Launch{Channel: c.asked}); (f == nil) != c.served {
			t.Errorf("%+v: %v", c, f)
		}
	}
}

func TestUnsupportedNamesEachField(t *testing.T) {
	found := Unsupported(Launch{Site: "hpc1", Environment: Environment{Conda: "env", Container: "image", Modules: []string{"cuda"}, Python: "python3"}})
	fields := []string{}
	for _, f := range found {
		fields = append(fields, f.Where.Field)
	}
	if got := strings.Join(fields, " "); got != "launch.environment.conda launch.environment.container launch.environment.modules launch.site" {
		t.Error(got)
	}
	if found := Unsupported(Launch{Site: "local", Environment: Environment{Python: "python3"}}); len(found) > 0 {
		t.Error(found)
	}
}

func TestWhatIsNotedIsReadAgain(t *testing.T) {
	ask := Ask{ID: "j-1", Command: "python3 a.py", Channel: contract.ChannelSSHSlurm, Site: "hpc1", Resources: jobs.Resources{CPUs: 4, TimeLimit: "01:00:00"}, WallTimeSeconds: 3600}
	request := contract.RuntimeRequest{Command: ask.Command}
	file := filepath.Join(t.TempDir(), contract.FileRuntimeRequest)
	if err := Note(&request, ask); err != nil {
		t.Fatal(err)
	}
	if err := rundir.WriteJSON(file, request); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadAsk(file, "j-1"); err != nil || got != ask {
		t.Errorf("%+v (%v)", got, err)
	}
	if err := rundir.WriteJSON(file, contract.RuntimeRequest{Command: "x", ExecutionMode: contract.ModeRemoteSlurm}); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadAsk(file, "r-1"); err != nil || got.Channel != contract.ChannelSSHSlurm || got.Command != "x" {
		t.Errorf("a request without the note: %+v (%v)", got, err)
	}
}
