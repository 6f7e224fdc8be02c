package suite

import (
	"os/exec"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
)

// supervisorLost: the command runs on, its end is not recorded, and nobody starts it again or calls it failed.
func supervisorLost(t *testing.T, c Constructor) {
	t.Run("and the command ends", func(t *testing.T) {
		t.Parallel()
		j := NewJob(t, c, Shell("echo ready; exec sleep 60"))
		j.Submit()
		j.says("ready", 1)
		state := j.lose(false)
		orphaned := j.Status()
		if orphaned.State != jobs.StateRunning || orphaned.PID != state.PID {
			t.Errorf("state %s, pid %d; want running with pid %d", orphaned.State, orphaned.PID, state.PID)
		}
		wantCode(t, orphaned.Findings, "supervisor_lost")

		kill(t, state.PID)
		j.until("the command is gone", func() bool { return !alive(state.PID, state.StartTicks) })
		j.isLost("supervisor_lost")
	})
	t.Run("and the job is cancelled", func(t *testing.T) {
		t.Parallel()
		j := NewJob(t, c, Shell("setsid sleep 60 & (setsid sleep 60 &) ; echo ready; sleep 60"))
		j.Submit()
		j.says("ready", 1)
		j.lose(false)
		status := j.Cancel()
		if status.State != jobs.StateCancelled || status.Exit.Code != nil || status.Exit.Signal != nil {
			t.Errorf("state %s, exit %+v", status.State, status.Exit)
		}
		if left := marked(j.Folder); len(left) > 0 {
			t.Errorf("processes %v are left", left)
		}
	})
}

// isLost checks that the job is unknown for this cause, stays so, is not judged, and is not started again.
func (j *Job) isLost(cause string) {
	j.t.Helper()
	before := j.State()
	lost := j.Status()
	if lost.State != jobs.StateUnknown || CauseCode(lost) != cause || lost.Cause.Category != jobs.CategoryPlatform {
		j.t.Errorf("state %s, cause %+v; want unknown for %s", lost.State, lost.Cause, cause)
	}
	if again := j.Submit(); again.State != jobs.StateUnknown || j.State().SupervisorPID != before.SupervisorPID {
		j.t.Errorf("a lost job was started again: %s", again.State)
	}
	if verdict, err := jobs.ReadVerdict(j.Folder); verdict != nil || err != nil {
		j.t.Errorf("a verdict on an unknown job: %+v, %v", verdict, err)
	}
}

// bystander is a process that has nothing to do with any job.
func bystander(t *testing.T) (pid int, ticks uint64) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid, ticksOf(cmd.Process.Pid)
}

// reboot: the machine was restarted while the job ran, and its pids, even with their start times, name other processes now.
func reboot(t *testing.T, c Constructor) {
	j := NewJob(t, c, Shell("echo ready; sleep 60"))
	j.Submit()
	j.says("ready", 1)
	j.lose(true)
	pid, ticks := bystander(t)
	j.rewrite(func(s *jobs.StateFile) {
		s.BootID = "00000000-0000-4000-8000-000000000000"
		s.PID, s.StartTicks, s.SupervisorPID, s.SupervisorTicks = pid, ticks, pid, ticks
	})
	j.isLost("machine_rebooted")
	if status := j.Cancel(); status.State != jobs.StateCancelled {
		t.Errorf("cancelled: %s", status.State)
	}
	if !alive(pid, ticks) {
		t.Error("a process of the present boot was ended for a job of the one before")
	}
}

// pidReuse: the pids of a lost job belong to another process now.
func pidReuse(t *testing.T, c Constructor) {
	j := NewJob(t, c, Shell("echo ready; sleep 60"))
	j.Submit()
	j.says("ready", 1)
	j.lose(true)
	pid, ticks := bystander(t)
	j.rewrite(func(s *jobs.StateFile) {
		s.PID, s.SupervisorPID = pid, pid
		s.StartTicks, s.SupervisorTicks = ticks-1, ticks-2
	})
	j.isLost("supervisor_lost")
	if status := j.Cancel(); status.State != jobs.StateCancelled {
		t.Errorf("cancelled: %s", status.State)
	}
	if !alive(pid, ticks) {
		t.Error("a process was ended that only has the job's old pid")
	}
}

// clockJump: neither a clock that jumps under the server nor records from before the jump say anything about a job.
func clockJump(t *testing.T, c Constructor) {
	j := NewJob(t, c, stopwatch(), func(r *jobs.Request) { r.WallTimeSeconds = 3600 })
	j.Submit()
	for _, jump := range []time.Duration{10 * time.Hour, -10 * time.Hour} {
		jumped := c.New(Machine{Now: func() time.Time { return time.Now().Add(jump) }})
		if got := j.StatusBy(jumped); got.State != jobs.StateRunning || got.Seconds < 0 {
			t.Errorf("clock %s: %s for %.0f s", jump, got.State, got.Seconds)
		}
		j.rewrite(func(s *jobs.StateFile) {
			s.HeartbeatAt, s.SubmittedAt, s.StartedAt = s.HeartbeatAt.Add(jump), s.SubmittedAt.Add(jump), s.StartedAt.Add(jump)
		})
		if got := j.Status(); got.State != jobs.StateRunning || got.Seconds < 0 {
			t.Errorf("records %s: %s for %.0f s", jump, got.State, got.Seconds)
		}
	}
	j.startedOnce()
	if exit := j.Status().Exit; exit.Seconds > 60 || exit.StartedAt.Before(time.Now().Add(-time.Minute)) {
		t.Errorf("the exit record took over a time from the records: %+v", exit)
	}
}
