package tools

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/rundir"
)

// TestMain lets the test binary be its own supervisor, as the real binary is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == local.SuperviseArg {
		os.Exit(local.Supervise(os.Args[2]))
	}
	os.Exit(m.Run())
}

// supervisorsGone waits for the supervisors of the workspace's jobs, which hold a lock for their whole life, so that nothing
// writes into a folder that is being removed.
func supervisorsGone(t *testing.T, workspace string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		locks, _ := filepath.Glob(filepath.Join(workspace, ".onescience", "jobs", "*", "supervisor.lock"))
		for _, lock := range locks {
			unlock, err := rundir.Lock(ctx, lock)
			if err != nil {
				t.Errorf("%s: %v", lock, err)
				continue
			}
			unlock()
		}
	})
}

// The shapes in which a call comes; each of them runs the very command.
func TestRuntimeTakesTheShapesOfACall(t *testing.T) {
	for name, arguments := range map[string]string{
		"as documented":        `{"step_handoff": {"step_id": "smoke", "execution_skill": "onescience-runtime", "step_goal": "g"}, "launch": {"channel": "local_direct", "command": ["/bin/sh", "-c", "mkdir out; echo done >out/a"], "expected_outputs": ["out/a"]}, "wait_seconds": 60}`,
		"launch alone":         `{"launch": {"command": ["/bin/sh", "-c", "mkdir out; echo done >out/a"], "expected_outputs": "out/a", "wait_seconds": "60"}}`,
		"request and a string": `{"request": "do it", "launch": {"command": "/bin/sh -c 'mkdir out; echo done >out/a'", "expected_outputs": ["out/*"]}, "wait_seconds": 60}`,
		"handoff at the root":  `{"step_id": "smoke", "step_goal": "g", "attempt": 1, "launch": {"command": "[\"/bin/sh\", \"-c\", \"mkdir out; echo done >out/a\"]"}, "wait_seconds": 60}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir, all := workspaceTools(t)
			supervisorsGone(t, dir)
			answer, err := call[engine.Envelope](t, all, "runtime", arguments)
			if err != nil || answer.ExecutionResult.Status != contract.StatusSuccess || answer.ExecutionResult.Skill != "onescience-runtime" {
				t.Fatalf("%v %+v", err, answer)
			}
			if text, err := os.ReadFile(filepath.Join(dir, "out", "a")); err != nil || string(text) != "done\n" {
				t.Errorf("%q %v", text, err)
			}
			back, err := call[engine.Envelope](t, all, "runtime", `{"job_id": "`+answer.Run.Job.JobID+`"}`)
			if err != nil || back.ExecutionResult.Status != contract.StatusSuccess || back.Run.Job.JobID != answer.Run.Job.JobID {
				t.Errorf("%v %+v", err, back)
			}
		})
	}
}

func TestRuntimeRefusals(t *testing.T) {
	_, all := workspaceTools(t)
	for arguments, code := range map[string]string{
		`{}`:                   "nothing_to_do",
		`{"run_id": "r-1"}`:    "run_id_not_taken",
		`{"job_id": "j-none"}`: "job_unknown",
		`{"lunch": {}}`:        "unknown_argument",
		`{"launch": {"command": ["a"], "channel": "teleport"}}`: "unknown_value",
		`{"launch": {"command": "a | b"}}`:                      "command_needs_shell",
	} {
		_, err := call[engine.Envelope](t, all, "runtime", arguments)
		var refused *finding.Refused
		if !errors.As(err, &refused) || refused.Findings[0].Code != code {
			t.Errorf("%s: %v, want %s", arguments, err, code)
		}
	}
	answer, err := call[engine.Envelope](t, all, "runtime", `{"request": "train it"}`)
	if err != nil || answer.ExecutionResult.Status != contract.StatusBlocked || len(answer.Needs) != 1 || answer.Needs[0].Field != "launch.command" {
		t.Errorf("%v %+v", err, answer)
	}
	if !strings.Contains(answer.ExecutionResult.Observation.Summary, "no command") {
		t.Error(answer.ExecutionResult.Observation.Summary)
	}
}
