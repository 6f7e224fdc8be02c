//go:build linux

package local

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

// submitArg makes the test binary a process that submits a job, says its state and stays.
const submitArg = "submit-and-stay"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 {
		switch os.Args[1] {
		case SuperviseArg:
			os.Exit(Supervise(os.Args[2]))
		case submitArg:
			submitAndStay(os.Args[2])
		}
	}
	// The tests wait for other processes most of the time. A -parallel on the command line wins.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func submitAndStay(folder string) {
	status, err := New(Options{Environ: testEnviron()}).Submit(context.Background(), folder)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(status.State)
	time.Sleep(time.Minute)
	os.Exit(0)
}

// quietRace keeps the race detector from waiting a second at the end of each process.
const quietRace = "GORACE=atexit_sleep_ms=0"

func testEnviron() []string { return append(os.Environ(), quietRace) }

func newRuntime() *Runtime { return New(Options{Environ: testEnviron()}) }

// job is a job of a test; whatever it runs is ended with the test.
type job struct {
	t       *testing.T
	runtime *Runtime
	folder  string
	request jobs.Request
}

func newJob(t *testing.T, command []string, amend ...func(*jobs.Request)) *job {
	t.Helper()
	workDir := t.TempDir()
	request := jobs.Request{JobID: "j-1", RunID: "r-1", Command: command, WorkDir: workDir, GraceSeconds: 1,
		CreatedAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	for _, change := range amend {
		change(&request)
	}
	j := &job{t: t, runtime: newRuntime(), folder: filepath.Join(t.TempDir(), "jobs", request.JobID), request: request}
	if err := jobs.Create(j.folder, request); err != nil {
		t.Fatalf("create: %v", err)
	}
	t.Cleanup(j.end)
	return j
}

func shell(script string) []string { return []string{"/bin/sh", "-c", script} }

// end cancels the job and waits for its supervisor, so that nothing writes into a folder that is being removed.
func (j *job) end() {
	if _, err := j.runtime.Cancel(context.Background(), j.folder); err != nil {
		j.t.Errorf("cancel at the end of the test: %v", err)
	}
	j.until("all supervisors have left", func() bool {
		return !commandRuns("trainwright\x00" + SuperviseArg + "\x00" + j.folder + "\x00")
	})
	if left := marked(j.folder); len(left) > 0 {
		j.t.Errorf("processes %v of the job outlived it", left)
	}
}

func (j *job) submit() jobs.Status {
	j.t.Helper()
	status, err := j.runtime.Submit(context.Background(), j.folder)
	if err != nil {
		j.t.Fatalf("submit: %v", err)
	}
	return status
}

func (j *job) cancel() jobs.Status {
	j.t.Helper()
	status, err := j.runtime.Cancel(context.Background(), j.folder)
	if err != nil {
		j.t.Fatalf("cancel: %v", err)
	}
	return status
}

func (j *job) status() jobs.Status { return j.statusBy(j.runtime) }

func (j *job) statusBy(r *Runtime) jobs.Status {
	j.t.Helper()
	all, err := r.Status(context.Background(), []string{j.folder})
	if err != nil || len(all) != 1 {
		j.t.Fatalf("status: %v, %d answers", err, len(all))
	}
	return all[0]
}

// finished waits for the end of the job.
func (j *job) finished() jobs.Status {
	j.t.Helper()
	var status jobs.Status
	j.until("the job has ended", func() bool {
		status = j.status()
		return jobs.Terminal(status.State)
	})
	return status
}

func (j *job) run() jobs.Status {
	j.t.Helper()
	j.submit()
	return j.finished()
}

func (j *job) until(what string, is func() bool) {
	j.t.Helper()
	if ok, _ := jobs.Await(context.Background(), 15*time.Second, func() (bool, error) { return is(), nil }); !ok {
		j.t.Fatalf("%s: not within 15 s; status %+v", what, j.status())
	}
}

func (j *job) read(name string) string {
	j.t.Helper()
	data, err := os.ReadFile(filepath.Join(j.folder, name))
	if err != nil {
		j.t.Fatal(err)
	}
	return string(data)
}

func (j *job) state() jobs.StateFile {
	j.t.Helper()
	state, err := jobs.ReadState(j.folder)
	if err != nil || state == nil {
		j.t.Fatalf("no state.json: %v", err)
	}
	return *state
}

func codes(findings []finding.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Code)
	}
	return out
}

func wantCode(t *testing.T, findings []finding.Finding, code string) {
	t.Helper()
	if !slices.Contains(codes(findings), code) {
		t.Errorf("findings %v, want %s among them", codes(findings), code)
	}
}

func refusedWith(err error) []string {
	var refused *finding.Refused
	if errors.As(err, &refused) {
		return codes(refused.Findings)
	}
	return nil
}

func causeCode(status jobs.Status) string {
	if status.Cause == nil {
		return ""
	}
	return status.Cause.Code
}
