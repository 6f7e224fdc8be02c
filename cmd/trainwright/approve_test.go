//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/launch"
	"github.com/trainwright/trainwright/internal/policy"
	"github.com/trainwright/trainwright/internal/rundir"
)

// approver is a workspace with a policy outside it, and a user at a terminal.
type approver struct {
	t                 *testing.T
	workspace, policy string
}

func newApprover(t *testing.T, text string) *approver {
	t.Helper()
	a := &approver{t: t, workspace: t.TempDir(), policy: filepath.Join(t.TempDir(), "policy.yaml")}
	if err := os.WriteFile(a.policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *approver) execute(in io.Reader, args ...string) (code int, out, logs string) {
	a.t.Helper()
	var stdout, stderr bytes.Buffer
	code = execute(a.t.Context(), terminal{in, &stdout, &stderr}, append([]string{"--workspace", a.workspace, "--policy", a.policy}, args...))
	return code, stdout.String(), stderr.String()
}

// typed runs approve at a real terminal, at which the user types a line.
func (a *approver) typed(id, line string) (code int, out, logs string) {
	a.t.Helper()
	user, tty, err := pty.Open()
	if err != nil {
		a.t.Fatal(err)
	}
	defer user.Close()
	defer tty.Close()
	if _, err := user.WriteString(line + "\n"); err != nil {
		a.t.Fatal(err)
	}
	return a.execute(tty, "approve", id)
}

// asks is a runtime job on a channel that needs the user's word; it is not started.
func (a *approver) asks(command ...string) string {
	a.t.Helper()
	call, err := json.Marshal(map[string]any{"launch": map[string]any{"channel": contract.ChannelSSHSlurm, "site": "hpc1", "command": command, "resources": map[string]any{"cpus": 4, "time_limit": "00:30:00"}}})
	if err != nil {
		a.t.Fatal(err)
	}
	code, out, logs := a.execute(strings.NewReader(""), "call", "runtime", string(call))
	var answer engine.Envelope
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != exitOK || answer.Run.NextCall == nil {
		a.t.Fatal(code, out, logs, err)
	}
	id, _ := answer.Run.NextCall.Arguments["job_id"].(string)
	return id
}

func (a *approver) want(what string, code, wantCode int, text string, parts ...string) {
	a.t.Helper()
	if code != wantCode {
		a.t.Errorf("%s: exit %d, want %d: %s", what, code, wantCode, text)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			a.t.Errorf("%s: no %q in\n%s", what, part, text)
		}
	}
}

func TestApproveNeedsAPersonAndKeepsTheirWord(t *testing.T) {
	a := newApprover(t, "")
	id := a.asks("python3", "train.py", "\x1b[2K\rharmless")
	for name, in := range map[string]io.Reader{"a pipe": strings.NewReader("y\n"), "no terminal": devNull(t)} {
		code, out, logs := a.execute(in, "approve", id)
		a.want(name, code, exitUnusable, out+logs, "approval_needs_terminal", "trainwright approve "+id)
	}
	code, out, logs := a.typed(id, "what?")
	a.want("no", code, exitBlocked, out+logs, "not approved")
	if _, err := os.Stat(policy.GrantsPath(a.policy)); err == nil {
		t.Error("a no left a grant")
	}
	code, out, logs = a.typed(id, "y")
	a.want("yes", code, exitOK, out+logs, "remote_submission", `python3 train.py '\x1b[2K\rharmless'`, "ssh_slurm on hpc1", "at most 2 core hours (30m0s)", "approved by")
	if strings.Contains(out, "\x1b") {
		t.Errorf("the command steers the terminal: %q", out)
	}
	var grants []policy.Grant
	if err := rundir.ReadJSON(policy.GrantsPath(a.policy), &grants); err != nil || len(grants) != 1 {
		t.Fatal(grants, err)
	}
	folder := filepath.Join(a.workspace, ".onescience", "jobs", id)
	ask, err := launch.ReadAsk(filepath.Join(folder, contract.FileRuntimeRequest), id)
	if g := grants[0]; err != nil || g.RunID != id || g.What != policy.RemoteSubmission || g.Command != ask.Command || g.Target != "ssh_slurm on hpc1" || g.CoreHours != 2 || g.By == "" || g.At.IsZero() {
		t.Errorf("%+v %v", g, err)
	}
	events, _, err := rundir.Dir{Path: folder}.Events()
	if last := events[len(events)-1]; err != nil || last.Event != "approved" || last.By != grants[0].By || last.Detail["what"] != policy.RemoteSubmission {
		t.Errorf("%+v %v", events, err)
	}
	code, out, logs = a.typed(id, "y")
	a.want("again", code, exitOK, out+logs, "nothing to approve: you approved")
	a.clears(ask, "")
	longer := ask
	longer.WallTimeSeconds *= 2
	a.clears(longer, "authorisation_missing")
}

// clears asks what a server of this workspace would say to the launch.
func (a *approver) clears(ask launch.Ask, want string) {
	a.t.Helper()
	work, err := (&settings{workspace: a.workspace, policy: a.policy}).open().trainer()
	if err != nil {
		a.t.Fatal(err)
	}
	release, found, err := work.Authority.Clear(a.t.Context(), ask)
	release()
	got := ""
	for _, f := range found {
		if f.Severity == finding.Error {
			got += f.Code
		}
	}
	if err != nil || got != want {
		a.t.Errorf("%q, want %q (%v)", got, want, err)
	}
}

func devNull(t *testing.T) *os.File {
	t.Helper()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
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

func TestNothingToApproveIsSaidPlainly(t *testing.T) {
	a := newApprover(t, "")
	supervisorsGone(t, a.workspace)
	code, out, logs := a.execute(strings.NewReader(""), "call", "runtime", `{"launch": {"command": ["/bin/sh", "-c", "true"]}, "wait_seconds": 60}`)
	var answer engine.Envelope
	if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.ExecutionResult.Status != contract.StatusSuccess {
		t.Fatal(code, out, logs, err)
	}
	code, out, logs = a.execute(devNull(t), "approve", answer.Run.Job.JobID)
	a.want("a local job", code, exitOK, out+logs, "nothing to approve", "runs on this machine")
	for id, want := range map[string]string{"r-20260101-00000000": "run_unknown", "j-none": "job_unknown", "../x": "run_id_malformed"} {
		code, out, logs = a.execute(devNull(t), "approve", id)
		a.want(id, code, exitUnusable, out+logs, want)
	}
	code, out, logs = a.execute(strings.NewReader(""), "call", "trainer", `{"request": "train something, plan only"}`)
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(code, out, logs, err)
	}
	run := answer.Run.RunID
	code, out, logs = a.execute(devNull(t), "approve", run)
	a.want("a run without a launch", code, exitOK, out+logs, "nothing to approve: "+run+" has not come to a launch")

	workdir := answer.ExecutionResult.Artifacts["trainer_workdir"]
	if err := rundir.WriteJSON(filepath.Join(workdir, contract.FileRuntimeRequest), contract.RuntimeRequest{Command: "python3 train.py", ExecutionMode: contract.ModeRemoteDirect}); err != nil {
		t.Fatal(err)
	}
	code, out, logs = a.typed(run, "yes")
	a.want("a run on another machine", code, exitOK, out+logs, run+" wants: remote_submission", "ssh_direct", "no bound on the hours", "approved by")
	events, _, err := rundir.Dir{Path: workdir}.Events()
	if last := events[len(events)-1]; err != nil || last.Event != "approved" {
		t.Errorf("%+v %v", events, err)
	}
}

func TestAnApprovalDoesNotOverrideThePolicy(t *testing.T) {
	a := newApprover(t, "allow: {remote_submission: no}")
	code, out, logs := a.typed(a.asks("true"), "y")
	a.want("forbidden", code, exitBlocked, out+logs, "remote_submission is forbidden")
	a = newApprover(t, "allow: {remote_submission: yes}")
	code, out, logs = a.typed(a.asks("true"), "y")
	a.want("allowed", code, exitOK, out+logs, "nothing to approve: "+a.policy)
}
