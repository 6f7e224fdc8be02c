package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rs/zerolog"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/tools"
)

// asBinary makes the test binary behave as trainwright, so that tests start the real thing without building it.
const asBinary = "TRAINWRIGHT_TEST_BINARY"

func TestMain(m *testing.M) {
	supervises := len(os.Args) == 3 && os.Args[1] == local.SuperviseArg
	if supervises || os.Getenv(asBinary) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){"trainwright": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata"})
}

// trainwright is the program with these arguments and with env beside this process's environment.
func trainwright(env []string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], arguments...)
	// The race detector makes a process sleep for a second at its end; the deadlines here are trainwright's own.
	cmd.Env = append(append(os.Environ(), asBinary+"=1", "GORACE=atexit_sleep_ms=0"), env...)
	return cmd
}

// served is a trainwright serve at the other end of real pipes.
type served struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func serve(t *testing.T) *served {
	t.Helper()
	cmd := trainwright(nil, "serve", "--workspace", t.TempDir())
	cmd.Stderr = os.Stderr
	return started(t, cmd)
}

// started starts a server over pipes.
func started(t *testing.T, cmd *exec.Cmd) *served {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &served{cmd, in, bufio.NewReaderSize(out, 1<<20)}
}

// exchange sends a line and gives the next message, whatever it is.
func (s *served) exchange(t *testing.T, line string) map[string]any {
	t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := s.out.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(answer, &m); err != nil {
		t.Fatalf("%v in %q", err, answer)
	}
	return m
}

// ask is exchange for a message that is answered with a result.
func (s *served) ask(t *testing.T, line string) map[string]any {
	t.Helper()
	m := s.exchange(t, line)
	result, ok := m["result"].(map[string]any)
	if !ok {
		t.Fatalf("got %v", m)
	}
	return result
}

func (s *served) gone(t *testing.T, within time.Duration) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(within):
		t.Fatalf("still there after %v", within)
	}
}

func TestServeOverRealPipes(t *testing.T) {
	s := serve(t)
	hello := s.ask(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if hello["protocolVersion"] != "2025-11-25" {
		t.Errorf("negotiated %v", hello["protocolVersion"])
	}
	list := s.ask(t, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if n, _ := list["tools"].([]any); len(n) < 7 {
		t.Errorf("tools/list has %d tools", len(n))
	}
	runs := s.ask(t, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"run_list","arguments":{"limit":"5"}}}`)
	if runs["isError"] != nil {
		t.Errorf("run_list: %v", runs)
	}
	items := s.ask(t, `{"jsonrpc":"2.0","id":4,"method":"resources/list"}`)
	if first, _ := items["resources"].([]any); len(first) == 0 {
		t.Errorf("resources/list is empty")
	}
	_ = s.in.Close()
	s.gone(t, time.Second)
}

func TestServeEndsCleanlyOnSIGTERM(t *testing.T) {
	s := serve(t)
	s.ask(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.gone(t, 5*time.Second)
}

func envelope(status string, phases map[string]string) engine.Envelope {
	return engine.Envelope{ExecutionResult: contract.ExecutionResult{Status: status, Artifacts: map[string]string{"trainer_workdir": "w"},
		Observation: contract.Observation{Summary: "s"}}, Run: engine.RunView{RunID: "r-1", PhaseStatus: phases}}
}

// scripted answers with one envelope after another and tells progress on the way.
func scripted(t *testing.T, sent *[]map[string]any, answers ...engine.Envelope) tools.Tool {
	return tools.Tool{Name: "trainer", Call: func(_ context.Context, c engine.Caller, raw json.RawMessage) (tools.Result, error) {
		var arguments map[string]any
		if err := json.Unmarshal(raw, &arguments); err != nil {
			t.Fatal(err)
		}
		*sent = append(*sent, arguments)
		answer := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		c.Progress(engine.Progress{Phase: "5_execution", Message: "epoch 1 train/loss 0.5"})
		c.Progress(engine.Progress{Phase: "5_execution", Message: "epoch 1 train/loss 0.5"})
		return tools.Result{Structured: answer}, nil
	}}
}

func TestRunWaitsForTheJobAndShowsPhasesAndLossOnce(t *testing.T) {
	var sent []map[string]any
	tool := scripted(t, &sent,
		envelope("partial", map[string]string{"0_input_acquisition": "success", "5_execution": "running"}),
		envelope("partial", map[string]string{"0_input_acquisition": "success", "5_execution": "running"}),
		envelope("success", map[string]string{"0_input_acquisition": "success", "5_execution": "success", "6_validation": "success"}))
	var out bytes.Buffer
	watch := &watcher{out: &out, log: zerolog.Nop(), shown: map[string]string{}}
	answer, err := walk(t.Context(), tool, watch, contract.StepHandoff{StepGoal: "g"})
	if err != nil || answer.ExecutionResult.Status != "success" {
		t.Fatalf("got %+v, %v", answer.ExecutionResult, err)
	}
	if len(sent) != 3 || sent[0]["step_handoff"] == nil || sent[1]["run_id"] != "r-1" || sent[1]["step_handoff"] != nil {
		t.Errorf("sent %v", sent)
	}
	want := "5_execution\n  epoch 1 train/loss 0.5\n" +
		"0_input_acquisition      success\n5_execution              running\n5_execution              success\n6_validation             success\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

func TestRunStopsWhereNoJobIsUnderWay(t *testing.T) {
	var sent []map[string]any
	tool := scripted(t, &sent, envelope("partial", map[string]string{"6_validation": "success"}))
	watch := &watcher{out: io.Discard, log: zerolog.Nop(), shown: map[string]string{}}
	if _, err := walk(t.Context(), tool, watch, contract.StepHandoff{}); err != nil || len(sent) != 1 {
		t.Errorf("%d calls, %v", len(sent), err)
	}
}

func TestRunInterruptedLeavesTheJob(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var sent []map[string]any
	tool := scripted(t, &sent, envelope("partial", map[string]string{"5_execution": "running"}))
	var out bytes.Buffer
	watch := &watcher{out: &out, log: zerolog.Nop(), shown: map[string]string{}}
	answer, err := walk(ctx, tool, watch, contract.StepHandoff{})
	watch.interrupted(answer)
	if err != nil || answer.Run.RunID != "r-1" || !strings.Contains(out.String(), "the job goes on") {
		t.Errorf("%v, %s", err, out.String())
	}
}

func TestVerdictIsTheExitCode(t *testing.T) {
	for status, want := range map[string]int{"success": 0, "failed": 1, "partial": 3, "blocked": 4} {
		got := 0
		if code, ok := verdict(status).(exit); ok {
			got = int(code)
		}
		if got != want {
			t.Errorf("%s: %d, want %d", status, got, want)
		}
	}
}

func TestRunRefusesAFileThatIsNotThere(t *testing.T) {
	var out, logs bytes.Buffer
	code := execute(t.Context(), terminal{strings.NewReader(""), &out, &logs}, []string{"run", "--workspace", t.TempDir(), filepath.Join(t.TempDir(), "no.yaml")})
	if code != exitUnusable || !strings.Contains(out.String(), "handoff_unreadable") {
		t.Errorf("exit %d, %s %s", code, out.String(), logs.String())
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want int
	}{
		{"answered", []string{"call", "run_list"}, exitOK},
		{"version", []string{"version"}, exitOK},
		{"wrong argument", []string{"call", "run_list", `{"x":1}`}, exitUnusable},
		{"unknown tool", []string{"call", "x"}, exitUnusable},
		{"unknown command", []string{"nonsense"}, exitUnusable},
		{"unknown flag", []string{"version", "--x"}, exitUnusable},
		{"unknown run", []string{"call", "run_status", `{"run_id":"r-none"}`}, exitUnusable},
		{"unknown job", []string{"call", "job_status", `{"job_ids":["j-none"]}`}, exitUnusable},
		{"unknown skill", []string{"call", "skill_get", `{"name":"none"}`}, exitUnusable},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, logs bytes.Buffer
			if got := execute(t.Context(), terminal{strings.NewReader(""), &out, &logs}, append([]string{"--workspace", t.TempDir()}, c.args...)); got != c.want {
				t.Errorf("exit %d, want %d\n%s%s", got, c.want, out.String(), logs.String())
			}
		})
	}
}
