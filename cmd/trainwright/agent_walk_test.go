//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
)

// An agent that does nothing but what next_call says gets from a folder with a README, a script and a table to a validated
// run, and from a table and one sentence to a plan. It never fills anything in: each call is complete as it comes.
func TestAnAgentThatOnlyFollowsNextCalls(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]struct {
		files       []string
		first       string
		calls       int // at most
		passed      string
		assumptions []string // of the plan
	}{
		"from a project to a validated run": {
			files: []string{"README.md", "train.py", "data/wdbc.csv"},
			first: `{"request": "Train the classifier in this folder and tell me how accurate it is on samples that it has not seen; test accuracy of at least 0.9."}`,
			calls: 8, passed: contract.PhaseValidation,
		},
		"from a table and a sentence to a plan": {
			files: []string{"data/wdbc.csv"},
			first: `{"request": "Plan a classifier that predicts diagnosis from wdbc.csv, test accuracy at least 0.9.",
				"step_handoff": {"inputs": {"runtime": {"execution_intent": "plan_only"}}}}`,
			calls: 5, passed: contract.PhaseTrainingStrategy,
			assumptions: []string{"ASSUMPTION: loss = cross_entropy (diagnosis holds classes)", "ASSUMPTION: epochs = 20", "ASSUMPTION: optimizer.name = adamw"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &follower{t: t, dir: t.TempDir()}
			for _, file := range try.files {
				a.bring(file)
			}
			answer := a.call("trainer", try.first)
			for answer.Run.NextCall != nil && a.calls < try.calls {
				arguments, err := json.Marshal(answer.Run.NextCall.Arguments)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(arguments), `"<`) {
					t.Fatalf("call %d leaves something to fill in: %s", a.calls, arguments)
				}
				answer = a.call(answer.Run.NextCall.Tool, string(arguments))
			}
			t.Logf("%d calls, %d tokens", a.calls, a.bytes/4)
			if answer.ExecutionResult.Status != contract.StatusSuccess || answer.Run.NextCall != nil {
				t.Errorf("%d calls end in %s, next %+v: %s", a.calls, answer.ExecutionResult.Status, answer.Run.NextCall, answer.ExecutionResult.Observation.Summary)
			}
			if answer.Run.PhaseStatus[try.passed] != contract.StateSuccess {
				t.Errorf("phases %v", answer.Run.PhaseStatus)
			}
			if a.bytes/4 > 15000 {
				t.Errorf("%d tokens of output, want at most 15,000", a.bytes/4)
			}
			plan, err := os.ReadFile(answer.ExecutionResult.Artifacts["training_plan"])
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range try.assumptions {
				if !strings.Contains(string(plan), line) {
					t.Errorf("the plan does not say %q", line)
				}
			}
		})
	}
}

// follower is an agent over the command line.
type follower struct {
	t            *testing.T
	dir          string
	calls, bytes int
}

// bring puts a file of the example into the workspace.
func (a *follower) bring(file string) {
	a.t.Helper()
	data, err := os.ReadFile(filepath.Join("../../examples/breast-cancer", file))
	if err != nil {
		a.t.Fatal(err)
	}
	layFile(a.t, filepath.Join(a.dir, file), string(data))
}

func (a *follower) call(tool, arguments string) engine.Envelope {
	a.t.Helper()
	cmd := trainwright([]string{"HOME=" + a.dir}, "call", tool, arguments, "--workspace", a.dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		a.t.Fatalf("%s %s: %v\n%s", tool, arguments, err, out)
	}
	a.calls++
	a.bytes += len(out)
	var answer engine.Envelope
	if err := json.Unmarshal(out, &answer); err != nil {
		a.t.Fatalf("%v in %s", err, out)
	}
	return answer
}
