//go:build unix

package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/jobs"
)

// A command that installs is asked about before anything is started; a yes starts it, once, and a no leaves the command for
// the user. When the question is put outside of the call, the call has started nothing, holds no lock, and is made again.
func TestACommandWaitsForTheUsersAnswer(t *testing.T) {
	b := newBench(t)
	b.write("bin/pip", "#!/bin/sh\necho installed >> installed\n")
	pip := filepath.Join(b.dir, "bin", "pip")
	if err := os.Chmod(pip, 0o755); err != nil {
		t.Fatal(err)
	}
	authority, grants := askable(t, "")
	b.c.Authority.Grants, b.c.Authority.Save = authority.Grants, authority.Save
	order := Order{Command: []string{pip, "install", "x"}}
	wait := 30
	call := func(u *user) (engine.Envelope, error) {
		return b.c.Run(t.Context(), u, contract.Call{Handoff: step(), WaitSeconds: &wait}, Input{Launch: &order})
	}
	started := func() int {
		entries, _ := jobs.List([]string{b.c.root()})
		return len(entries)
	}

	outside := errors.New("asked outside of the call")
	if _, err := call(&user{err: outside}); !errors.Is(err, outside) || started() != 0 {
		t.Fatalf("%v, %d jobs", err, started())
	}
	answer, err := call(&user{answer: engine.Answer{Reply: engine.Declined}})
	if err != nil || started() != 0 || len(grants()) != 0 {
		t.Fatalf("%v, %d jobs, %v", err, started(), grants())
	}
	want(t, answer, contract.StatusBlocked, "authorisation_missing")

	yes := &user{answer: engine.Answer{Reply: engine.Accepted, By: "user via x"}}
	answer, err = call(yes)
	if err != nil || len(yes.asked) != 1 || started() != 1 {
		t.Fatalf("%v, %d questions, %d jobs", err, len(yes.asked), started())
	}
	want(t, answer, contract.StatusSuccess, "")
	again, err := call(yes)
	if err != nil || len(yes.asked) != 1 || again.Run.Job.JobID != answer.Run.Job.JobID {
		t.Errorf("%v, %d questions, %+v", err, len(yes.asked), again.Run.Job)
	}
	if text, err := os.ReadFile(filepath.Join(b.dir, "installed")); err != nil || string(text) != "installed\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// A command that installs waits for the user's word; nothing is started.
func TestAnInstallWaitsForTheUser(t *testing.T) {
	b := newBench(t)
	answer := b.call(nil, Order{Command: []string{"/usr/bin/env", "pip", "install", "./x"}}, 0)
	want(t, answer, contract.StatusBlocked, "authorisation_missing")
	if remedy := answer.Findings[0].Remedy; !strings.Contains(remedy, "trainwright approve j-") {
		t.Errorf("remedy %q", remedy)
	}
}
