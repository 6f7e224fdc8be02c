//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// faulty is a trainwright that can be told to kill itself at a commit (build tag faults), built once.
var faulty = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "trainwright-faults-")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "trainwright")
	out, err := exec.Command("go", "build", "-tags", "faults", "-o", binary, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return binary, nil
})

// exampleWorkspace is a copy of the example with a handoff of so many epochs, whose criterion any training meets.
func exampleWorkspace(t *testing.T, epochs int) (dir string, handoff contract.StepHandoff) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/breast-cancer")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "step_handoff.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if handoff, _, err = contract.DecodeHandoff(data); err != nil {
		t.Fatal(err)
	}
	handoff.Inputs.Parameters.EpochsOrSteps = &epochs
	handoff.Inputs.Runtime.EnvironmentRequirements = map[string]any{"python": interpreter(t)}
	handoff.CompletionCriteria = []string{"test/accuracy >= 0.1"}
	return dir, handoff
}

// interpreter is the python3 of PATH itself, without the shims that a version manager may put before it: the crash test
// starts it some thousand times.
var interpreterPath = sync.OnceValues(func() ([]byte, error) {
	return exec.Command("python3", "-c", "import sys; print(sys.executable, end='')").Output()
})

func interpreter(t *testing.T) string {
	t.Helper()
	path, err := interpreterPath()
	if err != nil {
		t.Fatalf("python3: %v", err)
	}
	return string(path)
}

// fewRows keeps the first rows of the workspace's data, for tests that train often.
func fewRows(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "data", "wdbc.csv")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfterN(data, []byte("\n"), 102)
	if err := os.WriteFile(path, bytes.Join(lines[:101], nil), 0o644); err != nil {
		t.Fatal(err)
	}
}

// callTool runs one `trainwright call` and gives its answer, and whether the process came to its end by itself.
func callTool(t *testing.T, binary, workspace, tool string, arguments any, env ...string) (engine.Envelope, bool) {
	t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, "call", "--workspace", workspace, tool, string(raw))
	command.Env = append(os.Environ(), env...)
	var out, stderr bytes.Buffer
	command.Stdout, command.Stderr = &out, &stderr
	err = command.Run()
	if status, ok := command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return engine.Envelope{}, false
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", tool, err, out.String(), stderr.String())
	}
	var answer engine.Envelope
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		t.Fatalf("%s: %v\n%s", tool, err, out.String())
	}
	return answer, true
}

// For every commit of the example's run: a process that dies before the temporary file, before the rename or after it
// leaves the old or the new state, and the next call ends in success. One of the three points a commit, in turn, takes some
// minutes; TRAINWRIGHT_EVERY_FAULT=1 tries all of them.
func TestKilledAtEveryCommit(t *testing.T) {
	binary, err := faulty()
	if err != nil {
		t.Fatal(err)
	}
	dir, handoff := exampleWorkspace(t, 1)
	fewRows(t, dir)
	log := filepath.Join(t.TempDir(), "commits")
	whole, _ := callTool(t, binary, dir, "trainer", map[string]any{"step_handoff": handoff, "wait_seconds": 300}, "TRAINWRIGHT_FAULT_LOG="+log)
	if whole.ExecutionResult.Status != contract.StatusSuccess {
		t.Fatalf("the undisturbed run ends in %s: %+v", whole.ExecutionResult.Status, whole.Findings)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	commits := bytes.Count(data, []byte("\n"))
	t.Logf("%d commits", commits)
	if commits < 20 {
		t.Fatalf("only %d commits: the seven phases alone have more", commits)
	}
	points := []string{"before_temp", "before_rename", "after_rename"}
	for k := 1; k <= commits; k++ {
		chosen := points[k%3 : k%3+1]
		if os.Getenv("TRAINWRIGHT_EVERY_FAULT") != "" {
			chosen = points
		}
		for _, point := range chosen {
			t.Run(fmt.Sprintf("%02d %s", k, point), func(t *testing.T) {
				t.Parallel()
				killedOnce(t, binary, fmt.Sprintf("TRAINWRIGHT_FAULT=%d:%s", k, point))
			})
		}
	}
}

func killedOnce(t *testing.T, binary, fault string) {
	dir, handoff := exampleWorkspace(t, 1)
	fewRows(t, dir)
	call := map[string]any{"step_handoff": handoff, "wait_seconds": 300}
	if _, ended := callTool(t, binary, dir, "trainer", call, fault); ended {
		t.Skipf("%s was not reached: this run has a commit less", fault)
	}
	for _, entry := range indexed(t, dir) {
		state, _ := callTool(t, binary, dir, "run_status", map[string]any{"run_id": entry})
		for phase, status := range state.Run.PhaseStatus {
			switch status {
			case contract.StatePending, contract.StateSuccess, contract.StateRunning:
			default:
				t.Errorf("after %s %s is %s: neither old nor new state", fault, phase, status)
			}
		}
		for _, f := range state.Findings {
			if f.Severity == "error" {
				t.Errorf("after %s: %s", fault, f)
			}
		}
	}
	answer, _ := callTool(t, binary, dir, "trainer", call)
	if answer.ExecutionResult.Status != contract.StatusSuccess {
		t.Errorf("after %s the next call ends in %s\n%+v", fault, answer.ExecutionResult.Status, answer.Findings)
	}
	if requests, _ := filepath.Glob(filepath.Join(dir, ".onescience/trainer/*/jobs/*/request.json")); len(requests) != 1 {
		t.Errorf("after %s there are %d jobs", fault, len(requests))
	}
}

func indexed(t *testing.T, dir string) []string {
	t.Helper()
	entries, _, err := rundir.Index{Workspace: dir}.List()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.RunID)
	}
	return ids
}

// A server that is killed while the job trains takes nothing with it: the next server finds the same process, waits for
// it, and the run ends in success with one job and no step missing.
func TestServerKilledWhileTheJobTrains(t *testing.T) {
	binary, err := faulty()
	if err != nil {
		t.Fatal(err)
	}
	dir, handoff := exampleWorkspace(t, 30)
	first := startServer(t, binary, dir)
	first.send(t, 2, "tools/call", map[string]any{"name": "trainer", "arguments": map[string]any{"step_handoff": handoff, "wait_seconds": 300}})
	folder, before := waitForJob(t, dir)
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait()
	if exit, err := jobs.ReadExit(folder); err != nil || exit != nil {
		t.Fatalf("the job had ended before the kill: %+v %v", exit, err)
	}
	second := startServer(t, binary, dir)
	answer := second.call(t, 2, "trainer", map[string]any{"step_handoff": handoff, "wait_seconds": 300})
	if answer.ExecutionResult.Status != contract.StatusSuccess {
		t.Fatalf("the second server ends in %s: %+v", answer.ExecutionResult.Status, answer.Findings)
	}
	after, err := jobs.ReadState(folder)
	if err != nil {
		t.Fatal(err)
	}
	if after.PID != before.PID || after.StartTicks != before.StartTicks {
		t.Errorf("process %d/%d before, %d/%d after", before.PID, before.StartTicks, after.PID, after.StartTicks)
	}
	if folders, _ := filepath.Glob(filepath.Join(filepath.Dir(folder), "*", "request.json")); len(folders) != 1 {
		t.Errorf("%d job folders", len(folders))
	}
	contiguous(t, filepath.Join(answer.ExecutionResult.Artifacts["code_save_dir"], "outputs", "metrics.jsonl"), 30)
}

// waitForJob waits until a job's process is known.
func waitForJob(t *testing.T, dir string) (string, *jobs.StateFile) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		folders, _ := filepath.Glob(filepath.Join(dir, ".onescience/trainer/*/jobs/*"))
		for _, folder := range folders {
			if state, err := jobs.ReadState(folder); err == nil && state != nil && state.PID > 0 {
				return folder, state
			}
		}
	}
	t.Fatal("no job was started")
	return "", nil
}

// contiguous checks that the training series has one value for every epoch, in order.
func contiguous(t *testing.T, path string, epochs int) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	next := 1
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var row struct {
			Epoch       int
			Split, Name string
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		if row.Split != "train" || row.Name != "loss" {
			continue
		}
		if row.Epoch != next {
			t.Fatalf("epoch %d where %d is due", row.Epoch, next)
		}
		next++
	}
	if next != epochs+1 {
		t.Errorf("the log ends at epoch %d of %d", next-1, epochs)
	}
}

// startServer starts a server over pipes and initialises the session.
func startServer(t *testing.T, binary, dir string) *served {
	t.Helper()
	cmd := exec.Command(binary, "serve", "--workspace", dir)
	s := started(t, cmd)
	s.send(t, 1, "initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}})
	s.answer(t, 1)
	return s
}

func (s *served) send(t *testing.T, id int, method string, params any) {
	t.Helper()
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}

// answer reads until the response with that id.
func (s *served) answer(t *testing.T, id int) json.RawMessage {
	t.Helper()
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var message struct {
			ID     *int            `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(line, &message); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if message.ID == nil || *message.ID != id {
			continue
		}
		if message.Error != nil {
			t.Fatalf("%s", message.Error)
		}
		return message.Result
	}
}

func (s *served) call(t *testing.T, id int, tool string, arguments any) engine.Envelope {
	t.Helper()
	s.send(t, id, "tools/call", map[string]any{"name": tool, "arguments": arguments})
	var result struct {
		IsError           bool
		StructuredContent engine.Envelope
	}
	if err := json.Unmarshal(s.answer(t, id), &result); err != nil {
		t.Fatal(err)
	}
	if result.IsError {
		t.Fatalf("%s: %+v", tool, result)
	}
	return result.StructuredContent
}
