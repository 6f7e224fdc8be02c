//go:build linux

package local

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestConcurrentSubmitsStartOneProcess(t *testing.T) {
	t.Parallel()
	j := newJob(t, shell("echo started >>starts; sleep 60"))
	pids := make([]int, 5)
	var all sync.WaitGroup
	for i := range pids {
		all.Go(func() {
			status, err := newRuntime().Submit(context.Background(), j.folder)
			if err != nil {
				t.Errorf("submit: %v", err)
			}
			pids[i] = status.PID
		})
	}
	all.Wait()
	if first := pids[0]; first == 0 || slices.ContainsFunc(pids, func(pid int) bool { return pid != first }) {
		t.Errorf("pids %v, want one", pids)
	}
	j.until("the command has started", func() bool { _, err := os.Stat(filepath.Join(j.request.WorkDir, "starts")); return err == nil })
	if again := j.submit(); again.PID != pids[0] {
		t.Errorf("pid %d after another submit, want %d", again.PID, pids[0])
	}
	j.cancel()
	if starts, _ := os.ReadFile(filepath.Join(j.request.WorkDir, "starts")); string(starts) != "started\n" {
		t.Errorf("starts %q, want one", starts)
	}
}

// submitter is another process that submits the job and stays.
func submitter(t *testing.T, j *job, extra *os.File) (*exec.Cmd, jobs.Status) {
	t.Helper()
	cmd := exec.Command(os.Args[0], submitArg, j.folder)
	cmd.Env = testEnviron()
	if extra != nil {
		cmd.ExtraFiles = []*os.File{extra}
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	// Reading to the end needs the pipe to be closed by everyone who holds it.
	said := make(chan []byte, 1)
	go func() { data, _ := io.ReadAll(stdout); said <- data }()
	select {
	case data := <-said:
		var status jobs.Status
		if err := json.Unmarshal(data, &status); err != nil {
			t.Fatalf("the submitter said %q: %v", data, err)
		}
		return cmd, status
	case <-time.After(20 * time.Second):
		t.Fatal("the submitter's stdout stays open: something inherited it")
	}
	return nil, jobs.Status{}
}

func TestJobOutlivesItsSubmitter(t *testing.T) {
	t.Parallel()
	j := newJob(t, shell("echo ready; while [ ! -e go ]; do sleep 0.05; done; echo done"))
	cmd, submitted := submitter(t, j, nil)
	j.says("ready")
	kill(t, cmd.Process.Pid)
	_ = cmd.Wait()
	after := j.status()
	if after.State != jobs.StateRunning || after.PID != submitted.PID || after.StartTicks != submitted.StartTicks {
		t.Errorf("%s as %d after the submitter's end, was %d", after.State, after.PID, submitted.PID)
	}
	if again := j.submit(); again.PID != submitted.PID {
		t.Errorf("submitted again as %d, was %d", again.PID, submitted.PID)
	}
	if err := os.WriteFile(filepath.Join(j.request.WorkDir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := j.finished(); got.State != jobs.StateSucceeded || j.read(jobs.StdoutFile) != "ready\ndone\n" {
		t.Errorf("state %s, log %q", got.State, j.read(jobs.StdoutFile))
	}
}

// A client may leave a descriptor open in its server; when that server ends, the client must see the end of the pipe.
func TestDescriptorsAreNotInherited(t *testing.T) {
	t.Parallel()
	j := newJob(t, shell("ls /proc/$$/fd; sleep 60"))
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd, _ := submitter(t, j, write)
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	kill(t, cmd.Process.Pid)
	_ = cmd.Wait()
	ended := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, read); close(ended) }()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the pipe stays open while the job runs")
	}
	if got := j.status().State; got != jobs.StateRunning {
		t.Errorf("state %s, want running", got)
	}
	j.says("2\n")
	if got := strings.Fields(j.read(jobs.StdoutFile)); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("the command holds the descriptors %v", got)
	}
}

// A client that ends its server by walking down the tree of processes must not find the job.
func TestSupervisorIsNobodysChild(t *testing.T) {
	t.Parallel()
	j := newJob(t, shell("sleep 60"))
	j.submit()
	state := j.state()
	if below := descendants(os.Getpid()); slices.Contains(below, state.SupervisorPID) || slices.Contains(below, state.PID) {
		t.Error("the supervisor is a descendant of its submitter")
	}
	stat, err := os.ReadFile(filepath.Join("/proc", itoa(state.SupervisorPID), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	if session := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[3]; session != itoa(state.SupervisorPID) {
		t.Errorf("session %s, want its own", session)
	}
	if directory, err := os.Readlink(filepath.Join("/proc", itoa(state.SupervisorPID), "cwd")); err != nil || directory != "/" {
		t.Errorf("the supervisor stays in %q, %v", directory, err)
	}
}

// A kill -9 of the submitter at any moment leaves a job that can be submitted again and starts once.
func TestSubmitterKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, 10, 20, 40, 60, 80, 100, 150} {
		j := newJob(t, shell("echo started"))
		cmd := exec.Command(os.Args[0], submitArg, j.folder)
		cmd.Env = testEnviron()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(delay * time.Millisecond)
		kill(t, cmd.Process.Pid)
		_ = cmd.Wait()
		if status := j.run(); status.State != jobs.StateSucceeded || j.read(jobs.StdoutFile) != "started\n" {
			t.Errorf("killed after %d ms: %s, log %q", delay, status.State, j.read(jobs.StdoutFile))
		}
	}
}

// A supervisor that was killed between taking the job and recording the command may have started it.
func TestTakenJobIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	j := newJob(t, shell("echo started"))
	taken := jobs.StateFile{SubmittedAt: time.Now(), SupervisorPID: 1 << 22, SupervisorTicks: 7, BootID: j.runtime.bootID, Host: j.runtime.host}
	if err := rundir.WriteJSON(filepath.Join(j.folder, jobs.StateName), taken); err != nil {
		t.Fatal(err)
	}
	if got := j.submit(); got.State != jobs.StateUnknown || causeCode(got) != "supervisor_lost" {
		t.Errorf("state %s, cause %q", got.State, causeCode(got))
	}
	if _, err := os.Stat(filepath.Join(j.folder, jobs.StdoutFile)); err == nil {
		t.Error("the command was started")
	}
	if got := j.cancel(); got.State != jobs.StateCancelled {
		t.Errorf("cancelled: %s", got.State)
	}
}

func TestStatusByWhatTheMachineSays(t *testing.T) {
	t.Parallel()
	j := newJob(t, shell("sleep 60"))
	j.submit()
	hence := func(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(d) } }
	cases := map[string]struct {
		options      Options
		state, cause string
	}{
		"here":                   {Options{}, jobs.StateRunning, ""},
		"after a reboot":         {Options{BootID: "another"}, jobs.StateUnknown, "machine_rebooted"},
		"from another host":      {Options{BootID: "another", Host: "node7"}, jobs.StateRunning, ""},
		"another host, no sign":  {Options{BootID: "another", Host: "node7", Now: hence(5 * time.Minute)}, jobs.StateUnknown, "supervisor_lost"},
		"no sign but it is here": {Options{Now: hence(5 * time.Minute)}, jobs.StateRunning, ""},
	}
	for name, c := range cases {
		if got := j.statusBy(New(c.options)); got.State != c.state || causeCode(got) != c.cause || len(got.Evidence) == 0 {
			t.Errorf("%s: state %s, cause %q, evidence %v; want %s, %q", name, got.State, causeCode(got), got.Evidence, c.state, c.cause)
		}
	}
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	j := newJob(t, shell("sleep 60"))
	j.submit()
	first := j.state().HeartbeatAt
	j.until("another heartbeat", func() bool { return j.state().HeartbeatAt.After(first) })
}

func TestUnknownJobs(t *testing.T) {
	t.Parallel()
	r := newRuntime()
	folder := t.TempDir()
	if _, err := r.Submit(context.Background(), folder); !slices.Contains(refusedWith(err), "job_unknown") {
		t.Errorf("submit of an empty folder: %v", err)
	}
	if _, err := r.Cancel(context.Background(), folder); !slices.Contains(refusedWith(err), "job_unknown") {
		t.Errorf("cancel of an empty folder: %v", err)
	}
	all, err := r.Status(context.Background(), []string{folder})
	if err != nil || len(all) != 1 || all[0].State != jobs.StateUnknown || causeCode(all[0]) != "job_unreadable" {
		t.Errorf("status of an empty folder: %+v, %v", all, err)
	}
}
