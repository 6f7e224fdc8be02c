package suite

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
)

// wallTime: the command is warned, has its grace, and is killed.
func wallTime(t *testing.T, c Constructor) {
	for name, try := range map[string]struct {
		command            []string
		wall, grace        int
		limit              string
		code, signal, said string
		atLeast, atMost    float64
	}{
		"ends at the limit":         {command: Shell("sleep 60"), wall: 1, signal: "SIGTERM", atLeast: 0.9, atMost: 30},
		"killed when it resists":    {command: Shell("trap '' TERM; sleep 60 & wait; sleep 60"), wall: 3, grace: 1, signal: "SIGKILL", atLeast: 2.9, atMost: 30},
		"saves when it is warned":   {command: Shell("trap 'echo saved; exit 75' TERM; while :; do sleep 0.05; done"), wall: 20, grace: 18, code: "75", said: "saved", atLeast: 1.9, atMost: 19},
		"a time limit is one too":   {command: Shell("sleep 60"), limit: "00:00:01", signal: "SIGTERM", atLeast: 0.9, atMost: 30},
		"code 0 after the warning":  {command: Shell("trap 'exit 0' TERM; while :; do sleep 0.05; done"), wall: 2, code: "0", atLeast: 1.9, atMost: 30},
		"grace longer than the run": {command: Shell("sleep 60"), wall: 1, grace: 60, signal: "SIGTERM", atLeast: 0.9, atMost: 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := NewJob(t, c, try.command, func(r *jobs.Request) {
				r.WallTimeSeconds, r.GraceSeconds, r.Resources.TimeLimit = try.wall, try.grace, try.limit
			})
			status := j.Run()
			exit := *status.Exit
			if status.State != jobs.StateTimeout || exit.Reason != jobs.ReasonWallTime || CauseCode(status) != "wall_time_reached" {
				t.Errorf("state %s, reason %s, cause %s", status.State, exit.Reason, CauseCode(status))
			}
			if signalOf(exit) != try.signal || CodeOf(exit) != try.code {
				t.Errorf("signal %q, code %q; want %q, %q", signalOf(exit), CodeOf(exit), try.signal, try.code)
			}
			if exit.Seconds < try.atLeast || exit.Seconds > try.atMost {
				t.Errorf("took %.2f s, want %.1f to %.1f", exit.Seconds, try.atLeast, try.atMost)
			}
			if !strings.Contains(j.Read(jobs.StdoutFile), try.said) {
				t.Errorf("stdout lacks %q", try.said)
			}
		})
	}
}

func cancels(t *testing.T, c Constructor) {
	for name, try := range map[string]func(*testing.T, Constructor){
		"while it runs": cancelRunning, "after its end": cancelFinished, "before its start": cancelUnstarted,
		"during its start": cancelStarting, "by the file alone": cancelByFile, "grace outlives the shell": cancelGrace,
		"killed when it resists": cancelResisting,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try(t, c)
		})
	}
}

func cancelRunning(t *testing.T, c Constructor) {
	j := NewJob(t, c, Shell("echo ready; sleep 60"))
	if got := j.Submit(); got.State != jobs.StateRunning || got.PID == 0 || len(got.Evidence) == 0 {
		t.Fatalf("%+v, want it running", got)
	}
	j.says("ready", 1)
	status := j.Cancel()
	if status.State != jobs.StateCancelled || status.Exit.Reason != jobs.ReasonCancelled || signalOf(*status.Exit) != "SIGTERM" {
		t.Errorf("state %s, exit %+v", status.State, status.Exit)
	}
	again := j.Cancel()
	if again.State != jobs.StateCancelled {
		t.Errorf("state %s after a second cancel", again.State)
	}
	wantCode(t, again.Findings, "already_finished")
}

func cancelFinished(t *testing.T, c Constructor) {
	j := NewJob(t, c, Shell("exit 0"))
	j.Run()
	status := j.Cancel()
	if status.State != jobs.StateSucceeded {
		t.Errorf("state %s", status.State)
	}
	wantCode(t, status.Findings, "already_finished")
	if _, err := os.Stat(filepath.Join(j.Folder, jobs.CancelFile)); err == nil {
		t.Error("cancel.json was written for a finished job")
	}
}

func cancelUnstarted(t *testing.T, c Constructor) {
	j := NewJob(t, c, Shell("echo ran"))
	if got := j.Status().State; got != jobs.StateQueued {
		t.Errorf("state %s before the start, want queued", got)
	}
	if got := j.Cancel().State; got != jobs.StateCancelled {
		t.Errorf("state %s, want cancelled", got)
	}
	if got := j.Submit().State; got != jobs.StateCancelled {
		t.Errorf("submit of a cancelled job: %s", got)
	}
	if _, err := os.Stat(filepath.Join(j.Folder, jobs.StdoutFile)); err == nil {
		t.Error("the command was started")
	}
}

func cancelStarting(t *testing.T, c Constructor) {
	for range 4 {
		j := NewJob(t, c, Shell("sleep 60"))
		var both sync.WaitGroup
		both.Go(func() { _, _ = c.New(Machine{}).Submit(context.Background(), j.Folder) })
		both.Go(func() { _, _ = c.New(Machine{}).Cancel(context.Background(), j.Folder) })
		both.Wait()
		if got := j.Status().State; got != jobs.StateCancelled {
			t.Errorf("state %s, want cancelled", got)
		}
		if left := marked(j.Folder); len(left) > 0 {
			t.Errorf("processes %v are left", left)
		}
	}
}

// A request that no signal announces is found all the same: the canceller may be on another host.
func cancelByFile(t *testing.T, c Constructor) {
	j := NewJob(t, c, Shell("sleep 60"))
	j.Submit()
	if err := jobs.AskForEnd(j.Folder, jobs.CancelRequest{At: time.Now(), By: "elsewhere"}); err != nil {
		t.Fatal(err)
	}
	if got := j.Finished().State; got != jobs.StateCancelled {
		t.Errorf("state %s, want cancelled", got)
	}
}

// A shell dies of the warning at once; the training below it must still get its grace to save.
func cancelGrace(t *testing.T, c Constructor) {
	j := NewJob(t, c, Shell(`sh -c 'trap "sleep 0.4; echo saved; exit 75" TERM; echo ready; while :; do sleep 0.05; done' & wait`),
		func(r *jobs.Request) { r.GraceSeconds = 10 })
	j.Submit()
	j.says("ready", 1)
	j.Cancel()
	if got := j.Read(jobs.StdoutFile); got != "ready\nsaved\n" {
		t.Errorf("stdout %q", got)
	}
}

func cancelResisting(t *testing.T, c Constructor) {
	j := NewJob(t, c, Shell("trap '' TERM; echo ready; while :; do sleep 1; done"))
	j.Submit()
	j.says("ready", 1)
	if status := j.Cancel(); status.State != jobs.StateCancelled || signalOf(*status.Exit) != "SIGKILL" || status.Seconds < 0.9 {
		t.Errorf("state %s, exit %+v", status.State, status.Exit)
	}
}

// memoryScript holds 80 MiB in a process and in three that it forks, which share them.
const memoryScript = `import os, time
block = bytearray(80 << 20)
for _ in range(3):
    if os.fork() == 0:
        time.sleep(60); os._exit(0)
time.sleep(60)
`

// heartbeat: while the job runs, state.json says that its supervisor lives, and what memory the tree has held: its own, with
// pages that several share counted once.
func heartbeat(t *testing.T, c Constructor) {
	j := NewJob(t, c, []string{"python3", "-S", "-c", memoryScript})
	j.Submit()
	first := j.State().HeartbeatAt
	j.until("another heartbeat, with the memory", func() bool {
		state := j.State()
		return state.HeartbeatAt.After(first) && state.PeakRSSBytes >= 80<<20
	})
	if peak := j.Cancel().Exit.PeakRSSBytes; peak < 80<<20 || peak > 180<<20 {
		t.Errorf("four processes that share 80 MiB took %d bytes", peak)
	}
}
