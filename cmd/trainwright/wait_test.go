//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/local"
)

// startJob starts a shell script as a job of a new workspace.
func startJob(t *testing.T, script string) (workspace string) {
	t.Helper()
	workspace = t.TempDir()
	folder := filepath.Join(workspace, ".onescience", "jobs", "j-1")
	if err := jobs.Create(folder, jobs.Request{JobID: "j-1", Command: []string{"/bin/sh", "-c", script}, WorkDir: workspace, GraceSeconds: 1, CreatedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	runtime := local.New(local.Options{Workspace: workspace})
	if _, err := runtime.Submit(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = runtime.Cancel(context.Background(), folder) })
	return workspace
}

// watched is an output that calls seen with all that was written so far.
type watched struct {
	mu   sync.Mutex
	all  bytes.Buffer
	seen func(all string)
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.all.Write(p)
	w.seen(w.all.String())
	return n, err
}

// The job waits for a file that is only made when its first line was seen: the line came while the job ran.
func TestLogsAreFollowedUntilTheJobEnds(t *testing.T) {
	workspace := startJob(t, `echo "first password=hunter22"; while [ ! -e go ]; do sleep 0.05; done; printf 'second\nlast'; exit 3`)
	out := &watched{seen: func(all string) {
		if strings.Contains(all, "first") {
			if err := os.WriteFile(filepath.Join(workspace, "go"), nil, 0o644); err != nil {
				t.Error(err)
			}
		}
	}}
	var logs bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code := execute(ctx, terminal{strings.NewReader(""), out, &logs}, []string{"logs", "j-1", "-f", "--workspace", workspace})
	if want := "first password=********\nsecond\nlast\n"; code != exitOK || out.all.String() != want {
		t.Errorf("exit %d, printed %q, want %q", code, out.all.String(), want)
	}
	if !strings.Contains(logs.String(), "j-1 failed after") {
		t.Errorf("the end is told as %q", logs.String())
	}
}

func TestFollowingInterruptedLeavesTheJob(t *testing.T) {
	workspace := startJob(t, `echo first; while [ ! -e go ]; do sleep 0.05; done`)
	ctx, cancel := context.WithCancel(t.Context())
	out := &watched{seen: func(string) { cancel() }}
	var logs bytes.Buffer
	if code := execute(ctx, terminal{strings.NewReader(""), out, &logs}, []string{"logs", "j-1", "-f", "--workspace", workspace}); code != exitPartial || !strings.Contains(logs.String(), "goes on") {
		t.Errorf("exit %d, %s", code, logs.String())
	}
	if exit, err := jobs.ReadExit(filepath.Join(workspace, ".onescience", "jobs", "j-1")); exit != nil || err != nil {
		t.Errorf("the job has ended: %+v, %v", exit, err)
	}
}

func TestWaitForAJob(t *testing.T) {
	for script, want := range map[string]int{"sleep 0.3": exitOK, "sleep 0.3; exit 7": exitFailed} {
		workspace := startJob(t, script)
		var out, logs bytes.Buffer
		if code := execute(t.Context(), terminal{strings.NewReader(""), &out, &logs}, []string{"wait", "j-1", "--workspace", workspace}); code != want || !strings.HasPrefix(out.String(), "j-1 ") {
			t.Errorf("%s: exit %d, want %d\n%s%s", script, code, want, out.String(), logs.String())
		}
	}
	workspace := startJob(t, "sleep 60")
	var out, logs bytes.Buffer
	if code := execute(t.Context(), terminal{strings.NewReader(""), &out, &logs}, []string{"wait", "j-1", "--timeout", "100ms", "--workspace", workspace}); code != exitPartial || !strings.Contains(logs.String(), "has not ended") {
		t.Errorf("exit %d\n%s%s", code, out.String(), logs.String())
	}
}

func TestStateIsTheExitCodeOfWait(t *testing.T) {
	for state, want := range map[string]int{jobs.StateSucceeded: 0, jobs.StateFailed: 1, jobs.StateCancelled: 5, jobs.StateTimeout: 6, jobs.StateUnknown: 7} {
		got := 0
		if code, ok := jobVerdict(state).(exit); ok {
			got = int(code)
		}
		if got != want {
			t.Errorf("%s: %d, want %d", state, got, want)
		}
	}
}

// states answers with one state after another, the last one for ever.
type states []string

func (s *states) Status(context.Context, []string) ([]jobs.Status, error) {
	state := (*s)[0]
	if len(*s) > 1 {
		*s = (*s)[1:]
	}
	if state == "" {
		return nil, io.ErrUnexpectedEOF
	}
	return []jobs.Status{{JobID: "j-1", State: state}}, nil
}

// Unknown may be a network file system that shows the end late: only a job that stays unknown is given up.
func TestUnknownIsWaitedOutForAWhile(t *testing.T) {
	late := &waiting{runtime: &states{"running", "unknown", "unknown", "succeeded"}, patience: time.Hour}
	if err := late.wait(t.Context()); err != nil || late.last.State != jobs.StateSucceeded {
		t.Errorf("%v, %s", err, late.last.State)
	}
	gone := &waiting{runtime: &states{"unknown"}, patience: time.Millisecond}
	if err := gone.wait(t.Context()); err != nil || gone.last.State != jobs.StateUnknown {
		t.Errorf("%v, %s", err, gone.last.State)
	}
	broken := &waiting{runtime: &states{""}}
	if err := broken.wait(t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&waiting{runtime: &states{"running"}}).wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A run without a job under way is told at once, with the call that leads on.
func TestWaitForARun(t *testing.T) {
	dir, handoff := exampleWorkspace(t, 1)
	handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	began, err := os.Create(filepath.Join(t.TempDir(), "handoff.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := printJSON(began, handoff); err != nil {
		t.Fatal(err)
	}
	_ = began.Close()
	var out, logs bytes.Buffer
	first := execute(t.Context(), terminal{strings.NewReader(""), &out, &logs}, []string{"run", "--workspace", dir, began.Name()})
	ids := indexed(t, dir)
	if len(ids) != 1 {
		t.Fatalf("%d runs, exit %d\n%s%s", len(ids), first, out.String(), logs.String())
	}
	out.Reset()
	if code := execute(t.Context(), terminal{strings.NewReader(""), &out, &logs}, []string{"wait", ids[0], "--workspace", dir}); code != first || !strings.HasPrefix(out.String(), ids[0]+" ") {
		t.Errorf("exit %d, want %d as of run\n%s%s", code, first, out.String(), logs.String())
	}
	out.Reset()
	if code := execute(t.Context(), terminal{strings.NewReader(""), &out, &logs}, []string{"runs", "--workspace", dir}); code != exitOK || !strings.Contains(out.String(), ids[0]) {
		t.Errorf("runs: exit %d\n%s%s", code, out.String(), logs.String())
	}
}

// A run whose job trains is waited for until the job has ended; the run itself is left as it is, and the next call is told.
func TestWaitForARunWhoseJobTrains(t *testing.T) {
	dir, handoff := exampleWorkspace(t, 40) // some seconds, so that the call is over before the job
	arguments, err := json.Marshal(map[string]any{"step_handoff": handoff, "wait_seconds": 0})
	if err != nil {
		t.Fatal(err)
	}
	var out, logs bytes.Buffer
	if code := execute(t.Context(), terminal{strings.NewReader(""), &out, &logs}, []string{"call", "--workspace", dir, "trainer", string(arguments)}); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, out.String(), logs.String())
	}
	folder, _ := waitForJob(t, dir)
	out.Reset()
	code := execute(t.Context(), terminal{strings.NewReader(""), &out, &logs}, []string{"wait", indexed(t, dir)[0], "--workspace", dir})
	if code != exitPartial || !strings.Contains(out.String(), "go on with: trainwright call trainer '{") {
		t.Errorf("exit %d\n%s%s", code, out.String(), logs.String())
	}
	if ended, err := jobs.ReadExit(folder); err != nil || ended == nil {
		t.Errorf("the job has not ended: %v", err)
	}
}
