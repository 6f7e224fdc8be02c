package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
)

// screen is what a terminal of endless width shows of what was written: finished lines, and the one with the cursor.
type screen struct {
	lines []string
	last  []rune
	at    int
	far   int // the farthest cell that was ever written
}

func (s *screen) Write(p []byte) (int, error) {
	for _, r := range string(p) {
		switch r {
		case '\r':
			s.at = 0
		case '\b':
			s.at--
		case '\n':
			s.lines = append(s.lines, strings.TrimRight(string(s.last), " "))
			s.last, s.at = nil, 0
		default:
			for len(s.last) <= s.at {
				s.last = append(s.last, ' ')
			}
			s.last[s.at] = r
			s.at++
			s.far = max(s.far, s.at)
		}
	}
	return len(p), nil
}

func (s *screen) foot() string { return strings.TrimRight(string(s.last), " ") }

func testBar(out *screen, cells int, passed *time.Duration) *bar {
	began := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	return &bar{out: out, cells: func() int { return cells }, began: began, now: func() time.Time { return began.Add(*passed) }}
}

func TestBarTellsPhaseShareTimeAndMetrics(t *testing.T) {
	epoch := engine.Progress{Phase: "5_execution", Done: 22, Total: 40, Message: "epoch 22/40: train/loss 0.0738386, val/loss 0.109267"}
	for _, c := range []struct {
		name   string
		cells  int
		passed time.Duration
		p      engine.Progress
		want   string
	}{
		{"wide", 120, 72 * time.Second, epoch, "5_execution [#############-----------] 1:12 epoch 22/40: train/loss 0.0738386, val/loss 0.109267"},
		{"cut to the width", 60, 72 * time.Second, epoch, "5_execution [######------] 1:12 epoch 22/40: train/loss 0.0"},
		{"no room for the bar", 40, 72 * time.Second, epoch, "5_execution 1:12 epoch 22/40: train/los"},
		{"no room at all", 1, 0, epoch, ""},
		{"without a total", 80, 3 * time.Hour, engine.Progress{Phase: "4_codegen", Message: "compiling train.py"}, "4_codegen 3:00:00 compiling train.py"},
		{"a phase that begins", 80, 0, engine.Progress{Phase: "4_codegen", Message: "phase 4_codegen"}, "4_codegen 0:00"},
		{"a count that the message lacks", 80, 0, engine.Progress{Phase: "5_execution", Done: 3, Total: 2, Message: "rows"}, "5_execution [################] 0:00 3/2 rows"},
		{"wide letters and control characters", 24, 0, engine.Progress{Phase: "p", Message: "损失\x1b[2J\n损失损失损失"}, "p 0:00 损失[2J损失损失"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out screen
			if err := testBar(&out, c.cells, &c.passed).show(c.p); err != nil {
				t.Fatal(err)
			}
			if out.foot() != c.want {
				t.Errorf("drawn %q, want %q", out.foot(), c.want)
			}
		})
	}
}

// One line is drawn over itself; lines of the record stand above it, whole, and in the end nothing of it is left.
func TestBarLeavesNothingBehind(t *testing.T) {
	var out screen
	var passed time.Duration
	watch := &watcher{out: &out, log: zerolog.Nop(), shown: map[string]string{}, bar: testBar(&out, 80, &passed)}
	still := watch.tick()
	watch.Progress(engine.Progress{Phase: "4_codegen", Message: "compiling a script with a long name.py"})
	watch.Progress(engine.Progress{Phase: "5_execution", Message: "preflight"})
	passed = 7 * time.Second
	watch.Progress(engine.Progress{Phase: "5_execution", Done: 1, Total: 2, Message: "epoch 1/2: train/loss 0.5"})
	if got, want := out.foot(), "5_execution [########--------] 0:07 epoch 1/2: train/loss 0.5"; got != want {
		t.Errorf("drawn %q, want %q", got, want)
	}
	watch.Progress(engine.Progress{Phase: "5_execution", Message: "saving"})
	if got, want := out.foot(), "5_execution [########--------] 0:07 1/2 saving"; got != want {
		t.Errorf("drawn %q, want %q", got, want)
	}
	watch.phases(engine.Envelope{Run: engine.RunView{PhaseStatus: map[string]string{"4_codegen": "success", "5_execution": "running"}}})
	if !strings.HasPrefix(out.foot(), "5_execution [") {
		t.Errorf("the bar is not below the lines: %q", out.foot())
	}
	still()
	watch.interrupted(engine.Envelope{Run: engine.RunView{RunID: "r-1"}})
	want := []string{"4_codegen", "5_execution", "4_codegen                success", "5_execution              running",
		"interrupted; the job goes on. Go on later with the same command, or look with: trainwright call run_status '{\"run_id\": \"r-1\"}'"}
	if strings.Join(out.lines, "\n") != strings.Join(want, "\n") || out.foot() != "" {
		t.Errorf("left\n%s\nand %q", strings.Join(out.lines, "\n"), out.foot())
	}
}

func TestBarStaysWithinTheTerminal(t *testing.T) {
	var out screen
	var passed time.Duration
	b := testBar(&out, 30, &passed)
	for _, message := range []string{strings.Repeat("x", 200), "short", strings.Repeat("损", 100)} {
		if err := b.show(engine.Progress{Phase: "5_execution", Done: 1, Total: 2, Message: message}); err != nil {
			t.Fatal(err)
		}
	}
	if out.far > 29 {
		t.Errorf("%d of 30 cells were written: the terminal would wrap", out.far)
	}
}

func TestNoBarWithoutATerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if barFor(&bytes.Buffer{}) != nil || barFor(file) != nil {
		t.Error("a bar for what is no terminal")
	}
}

// After an interrupt one line is said, and the exit code is that of a step under way.
func TestRunInterruptedSaysHowToGoOn(t *testing.T) {
	workspace := t.TempDir()
	if err := os.CopyFS(workspace, os.DirFS("../../examples/breast-cancer")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, logs bytes.Buffer
	code := execute(ctx, terminal{strings.NewReader(""), &out, &logs}, []string{"run", "--workspace", workspace, workspace + "/step_handoff.yaml"})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if code != exitPartial || !strings.HasPrefix(lines[len(lines)-1], "interrupted; ") || strings.Contains(out.String(), contract.StatusFailed) {
		t.Errorf("exit %d, said\n%s%s", code, out.String(), logs.String())
	}
}
