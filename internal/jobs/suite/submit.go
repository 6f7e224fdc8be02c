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
func (j *Job) submitter(extra ...*os.File) (cmd *exec.Cmd, heard <-chan string) {
	j.t.Helper()
	cmd = j.with.Submitter(j.Folder)
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
func (j *Job) submitted(heard <-chan string) {
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
	return Shell("echo started | tee -a starts; while [ ! -e go ]; do sleep 0.05; done; echo done")
}

// startedOnce lets the command end and checks that it was started once.
func (j *Job) startedOnce() {
	j.t.Helper()
	j.touch("go")
	if status := j.Finished(); status.State != jobs.StateSucceeded {
		j.t.Errorf("state %s, cause %+v", status.State, status.Cause)
	}
	if starts, err := os.ReadFile(filepath.Join(j.Request.WorkDir, "starts")); err != nil || string(starts) != "started\n" {
		j.t.Errorf("starts %q, %v; want one", starts, err)
	}
	if got := j.Read(jobs.StdoutFile); got != "started\ndone\n" {
		j.t.Errorf("log %q", got)
	}
}

// submitters: what a kill -9 of the server leaves, at every point of a submission, is a job that can be submitted again and
// starts once.
func submitters(t *testing.T, c Constructor) {
	has := func(name string) func(*Job) bool {
		return func(j *Job) bool { _, err := os.Stat(filepath.Join(j.Folder, name)); return err == nil }
	}
	points := map[string]func(*Job) bool{
		"at once":           func(*Job) bool { return true },
		"something appears": func(j *Job) bool { entries, _ := os.ReadDir(j.Folder); return len(entries) > 3 }, // create.lock, request.json, script.sh
		"taken":             has(jobs.StateName),
		"the logs open":     has(jobs.StdoutFile),
		"the pid is known":  func(j *Job) bool { state, _ := jobs.ReadState(j.Folder); return state != nil && state.PID > 0 },
		"the command runs":  func(j *Job) bool { _, err := os.Stat(filepath.Join(j.Request.WorkDir, "starts")); return err == nil },
	}
	for _, delay := range []time.Duration{20, 60, 100, 150} {
		points[fmt.Sprintf("after %d ms", delay)] = func(*Job) bool { <-time.After(delay * time.Millisecond); return true }
	}
	for name, reached := range points {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := NewJob(t, c, stopwatch())
			cmd, _ := j.submitter()
			for until := time.Now().Add(patience); !reached(j) && time.Now().Before(until); {
				<-time.After(time.Millisecond)
			}
			if err := killGroup(cmd.Process.Pid); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if got := j.Submit(); got.State != jobs.StateRunning {
				t.Errorf("submitted again: %s, cause %+v", got.State, got.Cause)
			}
			j.startedOnce()
		})
	}
}

// twoServers submit the same job at once; a third asks again later.
func twoServers(t *testing.T, c Constructor) {
	j := NewJob(t, c, stopwatch())
	_, first := j.submitter()
	_, second := j.submitter()
	pids := make([]int, 3)
	var all sync.WaitGroup
	for i := range pids {
		all.Go(func() {
			status, err := c.New(Machine{}).Submit(context.Background(), j.Folder)
			if err != nil {
				t.Errorf("submit: %v", err)
			}
			pids[i] = status.PID
		})
	}
	all.Wait()
	j.submitted(first)
	j.submitted(second)
	if again := j.Submit(); again.PID == 0 || slices.ContainsFunc(pids, func(pid int) bool { return pid != again.PID }) {
		t.Errorf("pids %v and %d, want one", pids, again.PID)
	}
	j.startedOnce()
}

// descriptors: a client may leave one open in its server; when that server ends, the client must see the end of the pipe.
func descriptors(t *testing.T, c Constructor) {
	j := NewJob(t, c, Shell("ls /proc/$$/fd; echo ready; sleep 60"))
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
	if got := j.Status().State; got != jobs.StateRunning {
		t.Errorf("state %s, want running", got)
	}
	if got := j.Read(jobs.StdoutFile); got != "0\n1\n2\nready\n" {
		t.Errorf("the command holds the descriptors %q", got)
	}
}
