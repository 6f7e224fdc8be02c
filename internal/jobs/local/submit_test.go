//go:build linux

package local

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/suite"
	"github.com/trainwright/trainwright/internal/rundir"
)

func itoa(n int) string { return strconv.Itoa(n) }

// A client that ends its server by walking down the tree of processes must not find the job.
func TestSupervisorIsNobodysChild(t *testing.T) {
	t.Parallel()
	j := newJob(t, suite.Shell("sleep 60"))
	j.Submit()
	state := j.State()
	if below := descendants(os.Getpid()); slices.Contains(below, state.SupervisorPID) || slices.Contains(below, state.PID) {
		t.Error("the supervisor is a descendant of its submitter")
	}
	stat, err := os.ReadFile(filepath.Join("/proc", itoa(state.SupervisorPID), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	if session := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[3]; session != itoa(state.SupervisorPID) {
		t.Errorf("session %s, want its own", session)
	}
	if directory, err := os.Readlink(filepath.Join("/proc", itoa(state.SupervisorPID), "cwd")); err != nil || directory != "/" {
		t.Errorf("the supervisor stays in %q, %v", directory, err)
	}
}

// A supervisor that was killed between taking the job and recording the command may have started it.
func TestTakenJobIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	j := newJob(t, suite.Shell("echo started"))
	here := newRuntime()
	taken := jobs.StateFile{SubmittedAt: time.Now(), SupervisorPID: 1 << 22, SupervisorTicks: 7, BootID: here.bootID, Host: here.host}
	if err := rundir.WriteJSON(filepath.Join(j.Folder, jobs.StateName), taken); err != nil {
		t.Fatal(err)
	}
	if got := j.Submit(); got.State != jobs.StateUnknown || suite.CauseCode(got) != "supervisor_lost" {
		t.Errorf("state %s, cause %q", got.State, suite.CauseCode(got))
	}
	if _, err := os.Stat(filepath.Join(j.Folder, jobs.StdoutFile)); err == nil {
		t.Error("the command was started")
	}
	if got := j.Cancel(); got.State != jobs.StateCancelled {
		t.Errorf("cancelled: %s", got.State)
	}
}

func TestStatusByWhatTheMachineSays(t *testing.T) {
	t.Parallel()
	j := newJob(t, suite.Shell("sleep 60"))
	j.Submit()
	hence := func(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(d) } }
	cases := map[string]struct {
		options      Options
		state, cause string
	}{
		"here":                   {Options{}, jobs.StateRunning, ""},
		"after a reboot":         {Options{BootID: "another"}, jobs.StateUnknown, "machine_rebooted"},
		"from another host":      {Options{BootID: "another", Host: "node7"}, jobs.StateRunning, ""},
		"another host, no sign":  {Options{BootID: "another", Host: "node7", Now: hence(5 * time.Minute)}, jobs.StateUnknown, "supervisor_lost"},
		"no sign but it is here": {Options{Now: hence(5 * time.Minute)}, jobs.StateRunning, ""},
	}
	for name, c := range cases {
		if got := j.StatusBy(New(c.options)); got.State != c.state || suite.CauseCode(got) != c.cause || len(got.Evidence) == 0 {
			t.Errorf("%s: state %s, cause %q, evidence %v; want %s, %q", name, got.State, suite.CauseCode(got), got.Evidence, c.state, c.cause)
		}
	}
}
