package suite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
)

// submitter starts another process that submits the job. heard yields what it says first, once.
func (j *job) submitter(extra ...*os.File) (cmd *exec.Cmd, heard <-chan string) {
	j.t.Helper()
	cmd = j.with.Submitter(j.folder)
	cmd.ExtraFiles = extra
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		j.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		said <- line
	}()
	return cmd, said
}

// submitted waits until the other process says that the job is submitted.
func (j *job) submitted(heard <-chan string) {
	j.t.Helper()
	select {
	case line := <-heard:
		if line == "" {
			j.t.Fatal("the submitter ended without a word")
		}
	case <-time.After(patience):
		j.t.Fatal("the submitter says nothing")
	}
}

// stopwatch is a command that says when it was started and ends on a sign.
func stopwatch() []string {
	return shell("echo started | tee -a starts; while [ ! -e go ]; do sleep 0.05; done; echo done")
}

// startedOnce lets the command end and checks that it was started once.
func (j *job) startedOnce() {
	j.t.Helper()
	j.touch("go")
	if status := j.finished(); status.State != jobs.StateSucceeded {
		j.t.Errorf("state %s, cause %+v", status.State, status.Cause)
	}
	if starts, err := os.ReadFile(filepath.Join(j.request.WorkDir, "starts")); err != nil || string(starts) != "started\n" {
		j.t.Errorf("starts %q, %v; want one", starts, err)
	}
	if got := j.read(jobs.StdoutFile); got != "started\ndone\n" {
		j.t.Errorf("log %q", got)
	}
}

// submitters: what a kill -9 of the server leaves, at every point of a submission, is a job that can be submitted again and
// starts once.
func submitters(t *testing.T, c Constructor) {
	has := func(name string) func(*job) bool {
		return func(j *job) bool { _, err := os.Stat(filepath.Join(j.folder, name)); return err == nil }
	}
	points := map[string]func(*job) bool{
		"at once":           func(*job) bool { return true },
		"something appears": func(j *job) bool { entries, _ := os.ReadDir(j.folder); return len(entries) > 3 }, // create.lock, request.json, script.sh
		"taken":             has(jobs.StateName),
		"the logs open":     has(jobs.StdoutFile),
		"the pid is known":  func(j *job) bool { state, _ := jobs.ReadState(j.folder); return state != nil && state.PID > 0 },
		"the command runs":  func(j *job) bool { _, err := os.Stat(filepath.Join(j.request.WorkDir, "starts")); return err == nil },
	}
	for _, delay := range []time.Duration{20, 60, 100, 150} {
		points[fmt.Sprintf("after %d ms", delay)] = func(*job) bool { <-time.After(delay * time.Millisecond); return true }
	}
	for name, reached := range points {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, c, stopwatch())
			cmd, _ := j.submitter()
			for until := time.Now().Add(patience); !reached(j) && time.Now().Before(until); {
				<-time.After(time.Millisecond)
			}
			if err := killGroup(cmd.Process.Pid); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if got := j.submit(); got.State != jobs.StateRunning {
				t.Errorf("submitted again: %s, cause %+v", got.State, got.Cause)
			}
			j.startedOnce()
		})
	}
}

// twoServers submit the same job at once; a third asks again later.
func twoServers(t *testing.T, c Constructor) {
	j := newJob(t, c, stopwatch())
	_, first := j.submitter()
	_, second := j.submitter()
	pids := make([]int, 3)
	var all sync.WaitGroup
	for i := range pids {
		all.Go(func() {
			status, err := c.New(Machine{}).Submit(context.Background(), j.folder)
			if err != nil {
				t.Errorf("submit: %v", err)
			}
			pids[i] = status.PID
		})
	}
	all.Wait()
	j.submitted(first)
	j.submitted(second)
	if again := j.submit(); again.PID == 0 || slices.ContainsFunc(pids, func(pid int) bool { return pid != again.PID }) {
		t.Errorf("pids %v and %d, want one", pids, again.PID)
	}
	j.startedOnce()
}

// descriptors: a client may leave one open in its server; when that server ends, the client must see the end of the pipe.
func descriptors(t *testing.T, c Constructor) {
	j := newJob(t, c, shell("ls /proc/$$/fd; echo ready; sleep 60"))
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd, heard := j.submitter(write)
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	j.submitted(heard)
	j.says("ready", 1)
	kill(t, cmd.Process.Pid)
	_ = cmd.Wait()
	ended := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, read); close(ended) }()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the pipe stays open while the job runs")
	}
	if got := j.status().State; got != jobs.StateRunning {
		t.Errorf("state %s, want running", got)
	}
	if got := j.read(jobs.StdoutFile); got != "0\n1\n2\nready\n" {
		t.Errorf("the command holds the descriptors %q", got)
	}
}
