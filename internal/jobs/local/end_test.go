//go:build linux

package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
)

func TestWallTime(t *testing.T) {
	cases := map[string]struct {
		command      []string
		wall, grace  int
		limit        string
		code         int // -1: none
		signal, said string
		atMost       float64
	}{
		"ends at the limit":         {command: shell("sleep 60"), wall: 1, code: -1, signal: "SIGTERM", atMost: 2.5},
		"killed when it resists":    {command: shell("trap '' TERM; sleep 60 & wait; sleep 60"), wall: 2, grace: 1, code: -1, signal: "SIGKILL", atMost: 3.5},
		"saves when it is warned":   {command: shell("trap 'echo saved; exit 75' TERM; while :; do sleep 0.05; done"), wall: 2, grace: 1, code: 75, said: "saved", atMost: 2},
		"a time limit is one too":   {command: shell("sleep 60"), limit: "00:00:01", code: -1, signal: "SIGTERM", atMost: 2.5},
		"code 0 after the warning":  {command: shell("trap 'exit 0' TERM; while :; do sleep 0.05; done"), wall: 1, code: 0, atMost: 2},
		"grace longer than the run": {command: shell("sleep 60"), wall: 1, grace: 30, code: -1, signal: "SIGTERM", atMost: 2.5},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, c.command, func(r *jobs.Request) {
				r.WallTimeSeconds, r.GraceSeconds, r.Resources.TimeLimit = c.wall, c.grace, c.limit
			})
			status := j.run()
			exit := status.Exit
			if status.State != jobs.StateTimeout || exit.Reason != jobs.ReasonWallTime || causeCode(status) != "wall_time_reached" {
				t.Errorf("state %s, reason %s, cause %s", status.State, exit.Reason, causeCode(status))
			}
			if got := deref(exit.Signal); got != c.signal {
				t.Errorf("signal %q, want %q", got, c.signal)
			}
			if (exit.Code == nil) != (c.code < 0) || exit.Code != nil && *exit.Code != c.code {
				t.Errorf("code %v, want %d", exit.Code, c.code)
			}
			if exit.Seconds > c.atMost {
				t.Errorf("took %.2f s, want at most %.1f", exit.Seconds, c.atMost)
			}
			if !strings.Contains(j.read(jobs.StdoutFile), c.said) {
				t.Errorf("stdout lacks %q", c.said)
			}
		})
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestCancel(t *testing.T) {
	t.Parallel()
	j := newJob(t, shell("echo ready; sleep 60"))
	if got := j.submit().State; got != jobs.StateRunning {
		t.Fatalf("state %s, want running", got)
	}
	j.says("ready")
	status := j.cancel()
	if status.State != jobs.StateCancelled || status.Exit.Reason != jobs.ReasonCancelled || deref(status.Exit.Signal) != "SIGTERM" {
		t.Errorf("state %s, exit %+v", status.State, status.Exit)
	}
	again := j.cancel()
	if again.State != jobs.StateCancelled {
		t.Errorf("state %s after a second cancel", again.State)
	}
	wantCode(t, again.Findings, "already_finished")
}

func TestCancelOfAFinishedJobKeepsItsState(t *testing.T) {
	t.Parallel()
	j := newJob(t, shell("exit 0"))
	j.run()
	status := j.cancel()
	if status.State != jobs.StateSucceeded {
		t.Errorf("state %s", status.State)
	}
	wantCode(t, status.Findings, "already_finished")
	if _, err := os.Stat(filepath.Join(j.folder, jobs.CancelFile)); err == nil {
		t.Error("cancel.json was written for a finished job")
	}
}

func TestCancelBeforeTheStart(t *testing.T) {
	t.Parallel()
	j := newJob(t, shell("echo ran"))
	if got := j.status().State; got != jobs.StateQueued {
		t.Errorf("state %s before the start, want queued", got)
	}
	if got := j.cancel().State; got != jobs.StateCancelled {
		t.Errorf("state %s, want cancelled", got)
	}
	if got := j.submit().State; got != jobs.StateCancelled {
		t.Errorf("submit of a cancelled job: %s", got)
	}
	if _, err := os.Stat(filepath.Join(j.folder, jobs.StdoutFile)); err == nil {
		t.Error("the command was started")
	}
}

func TestCancelDuringTheStart(t *testing.T) {
	t.Parallel()
	for range 4 {
		j := newJob(t, shell("sleep 60"))
		var both sync.WaitGroup
		both.Go(func() { _, _ = j.runtime.Submit(context.Background(), j.folder) })
		both.Go(func() { _, _ = newRuntime().Cancel(context.Background(), j.folder) })
		both.Wait()
		if got := j.status().State; got != jobs.StateCancelled {
			t.Errorf("state %s, want cancelled", got)
		}
	}
}

// A request that no signal announces is found all the same: the canceller may be on another host.
func TestCancelByTheFileAlone(t *testing.T) {
	t.Parallel()
	j := newJob(t, shell("sleep 60"))
	j.submit()
	if err := askForEnd(j.folder, jobs.CancelRequest{At: time.Now(), By: "elsewhere"}); err != nil {
		t.Fatal(err)
	}
	if got := j.finished().State; got != jobs.StateCancelled {
		t.Errorf("state %s, want cancelled", got)
	}
}

func TestSignalToTheSupervisorCancels(t *testing.T) {
	t.Parallel()
	j := newJob(t, shell("sleep 60"))
	j.submit()
	terminate(j.state().SupervisorPID)
	status := j.finished()
	if status.State != jobs.StateCancelled || status.Evidence[1].From != "process" {
		t.Errorf("state %s, evidence %+v", status.State, status.Evidence)
	}
}

// A shell dies of the warning at once; the training below it must still get its grace to save.
func TestGraceOutlivesTheShell(t *testing.T) {
	t.Parallel()
	j := newJob(t, shell(`sh -c 'trap "sleep 0.4; echo saved; exit 75" TERM; echo ready; while :; do sleep 0.05; done' & wait`),
		func(r *jobs.Request) { r.GraceSeconds = 10 })
	j.submit()
	j.says("ready")
	j.cancel()
	if got := j.read(jobs.StdoutFile); got != "ready\nsaved\n" {
		t.Errorf("stdout %q", got)
	}
}

// Whatever the command leaves is ended with it, wherever it hides, and does not hold the job up.
func TestNothingOutlivesTheCommand(t *testing.T) {
	cases := map[string]struct {
		script string
		cancel bool
	}{
		"orphan holding stdout":            {script: "sleep 60 & echo ready"},
		"own session":                      {script: "setsid sleep 60 & sleep 0.2; echo ready"},
		"own session, when cancelled":      {script: "setsid sleep 60 & setsid sh -c 'setsid sleep 60 & sleep 60' & echo ready; sleep 60", cancel: true},
		"daemon whose parent is gone":      {script: "(setsid sh -c 'sleep 60 & exit 0' &) ; sleep 0.2; echo ready"},
		"one that ignores the warning":     {script: `setsid sh -c "trap '' TERM; while :; do sleep 1; done" & sleep 0.2; echo ready`},
		"without its marked environment":   {script: "env -i setsid sleep 61.25 & sleep 0.2; echo ready"},
		"one that starts another and ends": {script: `setsid sh -c 'trap "setsid sleep 60 & exit" TERM; while :; do sleep 0.05; done' & sleep 0.2; echo ready`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, shell(c.script))
			j.submit()
			j.says("ready")
			var status jobs.Status
			if c.cancel {
				status = j.cancel()
			} else {
				status = j.finished()
				if status.State != jobs.StateSucceeded || status.Exit.LeftBehind == 0 {
					t.Errorf("state %s, %d left behind", status.State, status.Exit.LeftBehind)
				}
			}
			if len(status.Exit.Survivors) > 0 {
				t.Errorf("survivors %v", status.Exit.Survivors)
			}
			if status.Seconds > 5 {
				t.Errorf("took %.1f s", status.Seconds)
			}
			if left := marked(j.folder); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
			if name == "without its marked environment" && commandRuns("sleep\x0061.25\x00") {
				t.Error("the process without the mark is left")
			}
		})
	}
}

func commandRuns(line string) bool {
	for _, pid := range processes() {
		if got, _ := os.ReadFile(filepath.Join("/proc", itoa(pid), "cmdline")); string(got) == line {
			return true
		}
	}
	return false
}

func TestKilledSupervisor(t *testing.T) {
	t.Parallel()
	j := newJob(t, shell("echo ready; exec sleep 60"))
	j.submit()
	j.says("ready")
	state := j.state()
	kill(t, state.SupervisorPID)
	j.until("the supervisor is gone", func() bool { return !j.runtime.runs(state.SupervisorPID, state.SupervisorTicks) })

	orphaned := j.status()
	if orphaned.State != jobs.StateRunning || orphaned.PID != state.PID {
		t.Errorf("state %s, pid %d; want running with pid %d", orphaned.State, orphaned.PID, state.PID)
	}
	wantCode(t, orphaned.Findings, "supervisor_lost")

	kill(t, state.PID)
	j.until("the command is gone", func() bool { return !j.runtime.runs(state.PID, state.StartTicks) })
	lost := j.status()
	if lost.State != jobs.StateUnknown || causeCode(lost) != "supervisor_lost" || lost.Cause.Category != jobs.CategoryPlatform {
		t.Errorf("state %s, cause %+v", lost.State, lost.Cause)
	}
	if again := j.submit(); again.State != jobs.StateUnknown || j.state().SupervisorPID != state.SupervisorPID {
		t.Errorf("a lost job was started again: %s", again.State)
	}
	if verdict, err := jobs.ReadVerdict(j.folder); verdict != nil || err != nil {
		t.Errorf("a verdict on an unknown job: %+v, %v", verdict, err)
	}
}

func TestCancelWithoutASupervisor(t *testing.T) {
	t.Parallel()
	j := newJob(t, shell("setsid sleep 60 & echo ready; sleep 60"))
	j.submit()
	j.says("ready")
	state := j.state()
	kill(t, state.SupervisorPID)
	j.until("the supervisor is gone", func() bool { return !j.runtime.runs(state.SupervisorPID, state.SupervisorTicks) })
	status := j.cancel()
	if status.State != jobs.StateCancelled || status.Exit.Code != nil || status.Exit.Signal != nil {
		t.Errorf("state %s, exit %+v", status.State, status.Exit)
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
}
