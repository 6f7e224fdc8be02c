package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// The states of a job.
const (
	StateQueued    = "queued"
	StateRunning   = "running"
	StateSucceeded = "succeeded"
	StateFailed    = "failed"
	StateCancelled = "cancelled"
	StateTimeout   = "timeout"
	StateUnknown   = "unknown"
)

// Terminal reports whether a job in this state is over and judged. Unknown is not: evidence may still turn up.
func Terminal(state string) bool {
	switch state {
	case StateSucceeded, StateFailed, StateCancelled, StateTimeout:
		return true
	}
	return false
}

// Over says that nothing more will come of a job in this state by waiting: it has ended, or how it ended is unknown.
func Over(state string) bool { return Terminal(state) || state == StateUnknown }

// The reasons of an exit record.
const (
	ReasonExited    = "exited"
	ReasonSignalled = "signalled"
	ReasonWallTime  = "wall_time"
	ReasonCancelled = "cancelled"
)

// The files of a job's folder.
const (
	RequestFile = "request.json"
	ScriptFile  = "script.sh"
	StateName   = "state.json"
	CancelFile  = "cancel.json"
	ExitFile    = "exit.json"
	VerdictFile = "verdict.json"
	StdoutFile  = "stdout.log"
	StderrFile  = "stderr.log"
	// ReserveFile takes the room that the records of the end need; it is there while the command runs.
	ReserveFile = "exit.reserve"
)

// StateFile is state.json: who runs the job and where. Its presence means that a supervisor has taken the job, after
// which no other may.
type StateFile struct {
	Site        string    `json:"site,omitempty"`
	Channel     string    `json:"channel,omitempty"`
	ExternalID  string    `json:"external_id,omitempty"`
	Marker      string    `json:"marker,omitempty"`
	Host        string    `json:"host,omitempty"`
	SubmittedAt time.Time `json:"submitted_at"`
	// StartedAt is when the command was started; zero before that.
	StartedAt time.Time `json:"started_at,omitzero"`
	// PID is the command's process, 0 before it runs. StartTicks is its start time as the platform counts it (Linux:
	// field 22 of /proc/<pid>/stat, proc(5)): the two together name one process, a pid alone may be used again.
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"`
	// SupervisorPID and SupervisorTicks name the supervisor in the same way.
	SupervisorPID   int       `json:"supervisor_pid,omitempty"`
	SupervisorTicks uint64    `json:"supervisor_start_ticks,omitempty"`
	BootID          string    `json:"boot_id,omitempty"`
	HeartbeatAt     time.Time `json:"heartbeat_at"`
	// PeakRSSBytes is the peak so far.
	PeakRSSBytes int64 `json:"peak_rss_bytes,omitempty"`
}

// Exit is exit.json: how the job ended. Code is nil where a signal ended the command or where nobody saw the end.
type Exit struct {
	Code *int `json:"code"`
	// Signal is a name such as "SIGKILL".
	Signal    *string   `json:"signal"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
	Seconds   float64   `json:"seconds"`
	// PeakRSSBytes is the largest memory that the job's process tree was seen to hold, shared pages counted once.
	PeakRSSBytes int64  `json:"peak_rss_bytes"`
	Reason       string `json:"reason"`
	// OutOfMemory is the record that the kernel killed processes of the job's control group for memory, where one of the job
	// ended by SIGKILL (or with 137) that nobody sent: the file, and how its oom_kill rose. Empty where no such file can be read.
	OutOfMemory string `json:"out_of_memory,omitempty"`
	// Left is the hash of left.json as it was written just before this record; empty where there is no list.
	Left string `json:"left,omitempty"`
	// LeftBehind counts processes that outlived the command and were ended by the supervisor.
	LeftBehind int `json:"left_behind,omitempty"`
	// Survivors are processes that could not be ended (uninterruptible sleep, another user's).
	Survivors []int `json:"survivors,omitempty"`
}

// CancelRequest is cancel.json.
type CancelRequest struct {
	At time.Time `json:"at"`
	By string    `json:"by,omitempty"`
}

// Evidence is one thing that a verdict rests on: From is a file, a tool or "process", Says a short sentence.
type Evidence struct {
	From string    `json:"from"`
	Says string    `json:"says"`
	At   time.Time `json:"at"`
}

// Verdict is verdict.json, written once.
type Verdict struct {
	State    string     `json:"state"`
	Evidence []Evidence `json:"evidence"`
	Cause    *Cause     `json:"cause,omitempty"`
	// Exit is the record that it rests on; PID and StartTicks are those of state.json. With them this file alone answers for a
	// job that has ended.
	Exit       *Exit  `json:"exit,omitempty"`
	PID        int    `json:"pid,omitempty"`
	StartTicks uint64 `json:"start_ticks,omitempty"`
}

// ReadRequest reads the request of the job in folder. A folder without one is refused with job_unknown.
func ReadRequest(folder string) (Request, error) {
	var request Request
	path := filepath.Join(folder, RequestFile)
	switch err := rundir.ReadJSON(path, &request); {
	case errors.Is(err, fs.ErrNotExist):
		return request, finding.Refuse(finding.Finding{Code: "job_unknown", Severity: finding.Error,
			What: "there is no job in this folder: it has no " + RequestFile, Where: &finding.Where{Path: path},
			Expected: "a folder that the job was created in", Remedy: "list the jobs and use one of their ids"})
	case err != nil:
		return request, fmt.Errorf("read the job's request: %w", err)
	}
	return request, nil
}

// ReadState reads state.json; nil where no supervisor has taken the job yet.
func ReadState(folder string) (*StateFile, error) { return readRecord[StateFile](folder, StateName) }

// ReadExit reads exit.json; nil where there is none.
func ReadExit(folder string) (*Exit, error) { return readRecord[Exit](folder, ExitFile) }

// ReadVerdict reads verdict.json; nil where there is none.
func ReadVerdict(folder string) (*Verdict, error) { return readRecord[Verdict](folder, VerdictFile) }

// ReadCancel reads cancel.json; nil where nobody has asked for the end.
func ReadCancel(folder string) (*CancelRequest, error) {
	return readRecord[CancelRequest](folder, CancelFile)
}

func readRecord[T any](folder, name string) (*T, error) {
	record := new(T)
	switch err := rundir.ReadJSON(filepath.Join(folder, name), record); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the job's %s: %w", name, err)
	}
	return record, nil
}
