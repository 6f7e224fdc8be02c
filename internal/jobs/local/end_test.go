//go:build linux

package local

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/suite"
)

func TestSignalToTheSupervisorCancels(t *testing.T) {
	t.Parallel()
	j := newJob(t, suite.Shell("sleep 60"))
	j.Submit()
	terminate(j.State().SupervisorPID)
	status := j.Finished()
	if status.State != jobs.StateCancelled || status.Evidence[1].From != "process" {
		t.Errorf("state %s, evidence %+v", status.State, status.Evidence)
	}
}

// A disk that is full when the end is recorded, with no room left that was kept, gets the record once there is some.
func TestTheRoomKeptForTheRecordIsGivenBack(t *testing.T) {
	folder := t.TempDir()
	keepRoom(folder)
	reserve := filepath.Join(folder, jobs.ReserveFile)
	if info, err := os.Stat(reserve); err != nil || info.Size() != reserveBytes {
		t.Fatalf("%v, %v", info, err)
	}
	s := &supervisor{folder: folder, request: jobs.Request{JobID: "j-1", WorkDir: folder}}
	// A folder in the record's place makes the first try fail, as a full disk would.
	obstacle := filepath.Join(folder, jobs.ExitFile)
	if err := os.MkdirAll(filepath.Join(obstacle, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	code := 3
	go func() { done <- s.conclude(jobs.Exit{Code: &code, Reason: jobs.ReasonExited}) }()
	if ok, _ := jobs.Await(t.Context(), 15*time.Second, func() (bool, error) { _, err := os.Stat(reserve); return err != nil, nil }); !ok {
		t.Fatal("the room that was kept is not given back")
	}
	if err := os.RemoveAll(obstacle); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if exit, err := jobs.ReadExit(folder); err != nil || exit == nil || *exit.Code != 3 {
		t.Errorf("exit record %+v, %v", exit, err)
	}
}
