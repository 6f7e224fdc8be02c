package jobs

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// heartbeatLost is the age at which a heartbeat from another host no longer says that the job runs: network file systems
// show changes up to 60 s late.
const heartbeatLost = 90 * time.Second

// Machine is the machine on which a job's processes are looked for, at one moment.
type Machine struct {
	// Host and BootID are its name and its present boot.
	Host, BootID string
	Now          time.Time
	// Alive reports whether the process with this pid is the one that started at these ticks (see StateFile), and no zombie.
	Alive func(pid int, ticks uint64) bool
	// Left reports whether anything that carries the job's mark still runs there.
	Left func() bool
}

// Underway is the status of a job that a supervisor took and that has no exit record, from its state and the processes that
// it names. Whether a process lives is asked of the process; a heartbeat counts only for another host, so that a clock that
// jumps ends no job.
func Underway(folder string, request Request, state StateFile, machine Machine) Status {
	now := machine.Now.UTC()
	status := NewStatus(folder, request)
	status.PID, status.StartTicks, status.PeakRSSBytes = state.PID, state.StartTicks, state.PeakRSSBytes
	if !state.StartedAt.IsZero() {
		started := state.StartedAt
		status.StartedAt, status.Seconds = &started, max(0, now.Sub(started).Seconds())
	}
	says := func(from, format string, args ...any) {
		status.Evidence = append(status.Evidence, Evidence{From: from, Says: fmt.Sprintf(format, args...), At: now})
	}
	lost := func(code, what, remedy string) Status {
		status.State = StateUnknown
		status.Cause = &Cause{Category: CategoryPlatform, Finding: finding.Finding{Code: code, Severity: finding.Error, What: what,
			Where: &finding.Where{Path: filepath.Join(folder, StateName)}, Expected: "an exit record", Remedy: remedy}}
		return status
	}
	switch {
	case machine.Elsewhere(state):
		age := now.Sub(state.HeartbeatAt)
		says(StateName, "the supervisor on host %s gave its last sign %.0f s ago", state.Host, age.Seconds())
		if age > heartbeatLost {
			return lost("supervisor_lost", "the job was run on host "+state.Host+" and gives no more signs", "look on that host; resume from the last checkpoint if it is gone")
		}
		status.State = StateRunning
	case state.BootID != machine.BootID:
		says("process", "the machine has booted since the job was started")
		return lost("machine_rebooted", "the machine was restarted while the job ran, so that its end was not recorded",
			"check its log and outputs, then submit a new job that resumes from the last checkpoint")
	case machine.Alive(state.SupervisorPID, state.SupervisorTicks):
		status.State = StateRunning
		if state.PID == 0 {
			status.State = StateQueued
		}
		says("process", "the supervisor, process %d, is alive", state.SupervisorPID)
	case machine.Alive(state.PID, state.StartTicks) || machine.Left():
		status.State = StateRunning
		says("process", "the supervisor, process %d, is gone, but the job's processes still run", state.SupervisorPID)
		status.Findings = append(status.Findings, finding.Finding{Code: "supervisor_lost", Severity: finding.Warning,
			What:  "the job runs without its supervisor: its end will not be recorded and its wall time is not enforced",
			Where: &finding.Where{Path: filepath.Join(folder, StateName)}, Remedy: "let it end and check its outputs, or cancel it"})
	default:
		says("process", "neither the supervisor, process %d, nor the command is alive, and there is no exit record", state.SupervisorPID)
		return lost("supervisor_lost", "the supervisor was killed, so that the end of the command was not recorded",
			"check the log and the outputs, then submit a new job that resumes from the last checkpoint")
	}
	return status
}

// Elsewhere reports whether the job's processes can't be seen on this machine: another host, with another boot id.
func (m Machine) Elsewhere(state StateFile) bool {
	return state.Host != "" && m.Host != "" && state.Host != m.Host && state.BootID != m.BootID
}
