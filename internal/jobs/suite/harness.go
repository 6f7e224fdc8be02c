package suite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// patience is how long a case waits for what must happen; a machine under load may take that long.
const patience = 90 * time.Second

// Job is a job of a test; whatever it runs is ended with the test. Its methods fail the test where what they ask for does not
// happen.
type Job struct {
	Runtime jobs.Runtime
	Folder  string
	Request jobs.Request

	t    *testing.T
	with Constructor
}

// NewJob creates a job that runs command in a folder of its own, with a grace of a second.
func NewJob(t *testing.T, c Constructor, command []string, amend ...func(*jobs.Request)) *Job {
	t.Helper()
	return NewJobIn(t, c, t.TempDir(), command, amend...)
}

// NewJobIn creates a job whose folder is root/jobs/<job id>; the id is j-1 unless amend says otherwise.
func NewJobIn(t *testing.T, c Constructor, root string, command []string, amend ...func(*jobs.Request)) *Job {
	t.Helper()
	request := jobs.Request{JobID: "j-1", RunID: "r-1", Command: command, WorkDir: t.TempDir(), GraceSeconds: 1,
		CreatedAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	for _, change := range amend {
		change(&request)
	}
	j := &Job{t: t, with: c, Runtime: c.New(Machine{}), Folder: filepath.Join(root, "jobs", request.JobID), Request: request}
	if err := jobs.Create(j.Folder, request); err != nil {
		t.Fatalf("create: %v", err)
	}
	t.Cleanup(j.end)
	return j
}

// Shell is the command that runs a script.
func Shell(script string) []string { return []string{"/bin/sh", "-c", script} }

// end cancels the job and waits for its supervisor, so that nothing writes into a folder that is being removed.
func (j *Job) end() {
	if _, err := j.Runtime.Cancel(context.Background(), j.Folder); err != nil {
		j.t.Errorf("cancel at the end of the case: %v", err)
	}
	j.until("all that knows the job's folder has left", func() bool { return len(naming(j.Folder)) == 0 })
	if left := marked(j.Folder); len(left) > 0 {
		j.t.Errorf("processes %v of the job outlived it", left)
	}
}

// Submit submits the job.
func (j *Job) Submit() jobs.Status {
	j.t.Helper()
	status, err := j.Runtime.Submit(context.Background(), j.Folder)
	if err != nil {
		j.t.Fatalf("submit: %v", err)
	}
	return status
}

// Cancel cancels it.
func (j *Job) Cancel() jobs.Status {
	j.t.Helper()
	status, err := j.Runtime.Cancel(context.Background(), j.Folder)
	if err != nil {
		j.t.Fatalf("cancel: %v", err)
	}
	return status
}

// Status is where it stands.
func (j *Job) Status() jobs.Status { return j.StatusBy(j.Runtime) }

// StatusBy is where it stands, as this runtime says.
func (j *Job) StatusBy(r jobs.Runtime) jobs.Status {
	j.t.Helper()
	all, err := r.Status(context.Background(), []string{j.Folder})
	if err != nil || len(all) != 1 {
		j.t.Fatalf("status: %v, %d answers", err, len(all))
	}
	return all[0]
}

// Finished waits for the end of the job.
func (j *Job) Finished() jobs.Status {
	j.t.Helper()
	var status jobs.Status
	j.until("the job has ended", func() bool {
		status = j.Status()
		return jobs.Terminal(status.State)
	})
	if status.Exit == nil {
		j.t.Fatalf("a job that is %s has no exit record", status.State)
	}
	return status
}

// Run submits the job and waits for its end.
func (j *Job) Run() jobs.Status {
	j.t.Helper()
	j.Submit()
	return j.Finished()
}

func (j *Job) until(what string, is func() bool) {
	j.t.Helper()
	if ok, _ := jobs.Await(context.Background(), patience, func() (bool, error) { return is(), nil }); !ok {
		j.t.Fatalf("%s: not within %s; status %+v", what, patience, j.Status())
	}
}

// Read is the text of a file of its folder.
func (j *Job) Read(name string) string {
	j.t.Helper()
	data, err := os.ReadFile(filepath.Join(j.Folder, name))
	if err != nil {
		j.t.Fatal(err)
	}
	return string(data)
}

// says waits until the stdout log holds text so many times.
func (j *Job) says(text string, times int) {
	j.t.Helper()
	j.until("the log says "+text, func() bool {
		data, _ := os.ReadFile(filepath.Join(j.Folder, jobs.StdoutFile))
		return bytes.Count(data, []byte(text)) >= times
	})
}

// touch makes an empty file in the working directory.
func (j *Job) touch(name string) {
	j.t.Helper()
	if err := os.WriteFile(filepath.Join(j.Request.WorkDir, name), nil, 0o644); err != nil {
		j.t.Fatal(err)
	}
}

// State is its state.json.
func (j *Job) State() jobs.StateFile {
	j.t.Helper()
	state, err := jobs.ReadState(j.Folder)
	if err != nil || state == nil {
		j.t.Fatalf("no state.json: %v", err)
	}
	return *state
}

// rewrite changes state.json, as time or another machine might have.
func (j *Job) rewrite(change func(*jobs.StateFile)) {
	j.t.Helper()
	state := j.State()
	change(&state)
	if err := rundir.WriteJSON(filepath.Join(j.Folder, jobs.StateName), state); err != nil {
		j.t.Fatal(err)
	}
}

// lose kills the supervisor and, where with is true, everything that it ran.
func (j *Job) lose(with bool) jobs.StateFile {
	j.t.Helper()
	state := j.State()
	kill(j.t, state.SupervisorPID)
	if with {
		for _, pid := range marked(j.Folder) {
			_ = signalKill(pid) // it may be gone by now
		}
	}
	j.until("the supervisor is gone", func() bool {
		return !alive(state.SupervisorPID, state.SupervisorTicks) && (!with || !alive(state.PID, state.StartTicks) && len(marked(j.Folder)) == 0)
	})
	return state
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := signalKill(pid); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
}

func signalKill(pid int) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return process.Kill()
}

func wantCode(t *testing.T, findings []finding.Finding, code string) {
	t.Helper()
	if !slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Code == code }) {
		t.Errorf("findings %+v, want %s among them", findings, code)
	}
}

func refusedWith(err error, code string) bool {
	var refused *finding.Refused
	return errors.As(err, &refused) && slices.ContainsFunc(refused.Findings, func(f finding.Finding) bool { return f.Code == code })
}

// CauseCode is the code of the cause of a status, "" where it has none.
func CauseCode(status jobs.Status) string {
	if status.Cause == nil {
		return ""
	}
	return status.Cause.Code
}

// signalOf is the signal that ended the command, "" for none.
func signalOf(exit jobs.Exit) string {
	if exit.Signal == nil {
		return ""
	}
	return *exit.Signal
}

// CodeOf is the exit code in words, "" where there is none.
func CodeOf(exit jobs.Exit) string {
	if exit.Code == nil {
		return ""
	}
	return strconv.Itoa(*exit.Code)
}

// ---- the processes of this machine (proc(5)) ----

func processes() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != os.Getpid() {
			out = append(out, pid)
		}
	}
	return out
}

// stat is the fields of a process from the third on; nil where it is gone or a zombie.
func stat(pid int) []string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return nil
	}
	return fields
}

func alive(pid int, ticks uint64) bool {
	fields := stat(pid)
	return pid > 0 && fields != nil && fields[19] == strconv.FormatUint(ticks, 10)
}

// ticksOf is when a living process started.
func ticksOf(pid int) uint64 {
	fields := stat(pid)
	if fields == nil {
		return 0
	}
	ticks, _ := strconv.ParseUint(fields[19], 10, 64)
	return ticks
}

// marked lists the living processes whose environment says that they belong to the job.
func marked(folder string) []int {
	return holding("environ", "TRAINWRIGHT_JOB_DIR="+folder)
}

// naming lists the living processes that have the job's folder, or a file in it, as an argument: its supervisors.
func naming(folder string) []int {
	return append(holding("cmdline", folder), holding("cmdline", folder+"/"+jobs.RunnerFile)...)
}

// holding lists the living processes one of whose NUL-terminated words, in this file of theirs, is word.
func holding(file, word string) []int {
	var out []int
	for _, pid := range processes() {
		data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
		if err == nil && slices.Contains(strings.Split(string(data), "\x00"), word) && stat(pid) != nil {
			out = append(out, pid)
		}
	}
	return out
}
