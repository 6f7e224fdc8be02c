package local

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

// heartbeatLost is the age at which a heartbeat from another host no longer says that the job runs: network file systems
// show changes up to 60 s late.
const heartbeatLost = 90 * time.Second

// status fuses the job's records with the processes they name.
func (r *Runtime) status(folder string, request jobs.Request) (jobs.Status, error) {
	if status, done, err := concluded(folder, request); done || err != nil {
		return status, err
	}
	state, err := jobs.ReadState(folder)
	if err != nil {
		return jobs.Status{}, err
	}
	if state == nil {
		return r.notStarted(folder, request), nil
	}
	status := r.running(folder, request, *state)
	if status.State == jobs.StateRunning || status.State == jobs.StateQueued {
		return status, nil
	}
	// The supervisor may have written the record and left between the two looks.
	if last, done, err := concluded(folder, request); done || err != nil {
		return last, err
	}
	return status, nil
}

// concluded is the status of a job with an exit record; done is false without one. A verdict that can't be stored (a full
// disk) is still an answer.
func concluded(folder string, request jobs.Request) (status jobs.Status, done bool, err error) {
	verdict, exit, err := jobs.Conclude(folder, request)
	if verdict == nil {
		return jobs.Status{}, false, err
	}
	status = jobs.Concluded(folder, request, *exit, *verdict)
	if err != nil {
		status.Findings = append(status.Findings, finding.Finding{Code: "verdict_not_stored", Severity: finding.Warning, What: err.Error(),
			Where: &finding.Where{Path: filepath.Join(folder, jobs.VerdictFile)}, Remedy: "free space on this disk; the verdict is derived again"})
	}
	if state, err := jobs.ReadState(folder); err == nil && state != nil {
		status.PID, status.StartTicks = state.PID, state.StartTicks
	}
	return status, true, nil
}

func (r *Runtime) notStarted(folder string, request jobs.Request) jobs.Status {
	status := jobs.NewStatus(folder, request)
	status.Evidence = []jobs.Evidence{{From: jobs.RequestFile, Says: "no supervisor has taken the job", At: request.CreatedAt}}
	return status
}

// running is the status of a job that a supervisor took and that has no exit record.
func (r *Runtime) running(folder string, request jobs.Request, state jobs.StateFile) jobs.Status {
	now := r.now().UTC()
	status := jobs.NewStatus(folder, request)
	status.PID, status.StartTicks, status.PeakRSSBytes = state.PID, state.StartTicks, state.PeakRSSBytes
	if !state.StartedAt.IsZero() {
		started := state.StartedAt
		status.StartedAt, status.Seconds = &started, now.Sub(started).Seconds()
	}
	says := func(from, format string, args ...any) {
		status.Evidence = append(status.Evidence, jobs.Evidence{From: from, Says: fmt.Sprintf(format, args...), At: now})
	}
	lost := func(code, what, remedy string) jobs.Status {
		status.State = jobs.StateUnknown
		status.Cause = &jobs.Cause{Category: jobs.CategoryPlatform, Finding: finding.Finding{Code: code, Severity: finding.Error, What: what,
			Where: &finding.Where{Path: filepath.Join(folder, jobs.StateName)}, Expected: "an exit record", Remedy: remedy}}
		return status
	}
	switch {
	case r.elsewhere(state):
		age := now.Sub(state.HeartbeatAt)
		says(jobs.StateName, "the supervisor on host %s gave its last sign %.0f s ago", state.Host, age.Seconds())
		if age > heartbeatLost {
			return lost("supervisor_lost", "the job was run on host "+state.Host+" and gives no more signs", "look on that host; resume from the last checkpoint if it is gone")
		}
		status.State = jobs.StateRunning
	case state.BootID != r.bootID:
		says("process", "the machine has booted since the job was started")
		return lost("machine_rebooted", "the machine was restarted while the job ran, so that its end was not recorded",
			"check its log and outputs, then submit a new job that resumes from the last checkpoint")
	case r.runs(state.SupervisorPID, state.SupervisorTicks):
		status.State = jobs.StateRunning
		if state.PID == 0 {
			status.State = jobs.StateQueued
		}
		says("process", "the supervisor, process %d, is alive", state.SupervisorPID)
	case r.runs(state.PID, state.StartTicks) || len(marked(folder)) > 0:
		status.State = jobs.StateRunning
		says("process", "the supervisor, process %d, is gone, but the job's processes still run", state.SupervisorPID)
		status.Findings = append(status.Findings, finding.Finding{Code: "supervisor_lost", Severity: finding.Warning,
			What:  "the job runs without its supervisor: its end will not be recorded and its wall time is not enforced",
			Where: &finding.Where{Path: filepath.Join(folder, jobs.StateName)}, Remedy: "let it end and check its outputs, or cancel it"})
	default:
		says("process", "neither the supervisor, process %d, nor the command is alive, and there is no exit record", state.SupervisorPID)
		return lost("supervisor_lost", "the supervisor was killed, so that the end of the command was not recorded",
			"check the log and the outputs, then submit a new job that resumes from the last checkpoint")
	}
	return status
}

// elsewhere reports whether the job's processes can't be seen from here: another host, with another boot id.
func (r *Runtime) elsewhere(state jobs.StateFile) bool {
	return state.Host != "" && r.host != "" && state.Host != r.host && state.BootID != r.bootID
}

// runs reports whether the process with this pid is still the one that started at these ticks. A zombie is dead.
func (r *Runtime) runs(pid int, ticks uint64) bool {
	if pid <= 0 || pid == os.Getpid() {
		return false
	}
	started, alive := processStart(pid)
	return alive && started == ticks
}
