package trainer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
)

// chooser answers questions by their field; one without an answer is put off with later.
type chooser struct {
	answers map[string]engine.Answer
	asked   []engine.Question
}

var errLater = errors.New("asked outside of the call")

func (*chooser) Progress(engine.Progress) {}

func (c *chooser) Ask(_ context.Context, q engine.Question) (engine.Answer, error) {
	c.asked = append(c.asked, q)
	answer, ok := c.answers[q.Field]
	if !ok {
		return answer, errLater
	}
	return answer, nil
}

func picked(choice string) engine.Answer {
	return engine.Answer{Reply: engine.Accepted, Choice: choice, By: "user via x"}
}

func (f *fixture) walkWith(c engine.Caller, call contract.Call) (engine.Envelope, error) {
	f.t.Helper()
	wait := 0
	call.WaitSeconds = &wait
	return f.trainer.Walk(context.Background(), c, call, WalkInput{})
}

// openTarget is the example whose script and handoff leave open what is to be predicted, up to its plan.
func openTarget(t *testing.T) *fixture {
	f := newFixture(t)
	script := filepath.Join(f.dir, "train.py")
	text := f.read(script)
	changed := strings.Replace(text, `default="diagnosis"`, "required=True", 1)
	if changed == text {
		t.Fatal("the example's --target has another default now")
	}
	if err := os.WriteFile(script, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	delete(f.handoff.Inputs.Data.DomainMetadata, "target")
	f.handoff.Inputs.Data.SplitHint = "random 0.7/0.15/0.15 seed 17"
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	return f
}

// A target that nothing states is asked of the user, who picks a column of the file: the answer is a part of the handoff
// with the user's name, and the walk goes on with it in the same call.
func TestTheUserPicksTheTarget(t *testing.T) {
	f := openTarget(t)
	c := &chooser{answers: map[string]engine.Answer{"target": picked("diagnosis")}}
	answer, err := f.walkWith(c, contract.Call{Handoff: &f.handoff})
	if err != nil || len(c.asked) != 1 {
		t.Fatalf("%v, asked %v; %v", err, c.asked, answer.Needs)
	}
	wantStatus(t, answer, contract.StatusSuccess)
	if q := c.asked[0]; !strings.Contains(q.Text, "data/wdbc.csv") || !slices.Contains(q.Choices, "diagnosis") || !slices.Contains(q.Choices, "sample") || len(q.Choices) != 32 {
		t.Errorf("%+v", q)
	}
	if !hasCode(answer.Findings, "handoff_amended") {
		t.Errorf("%v", answer.Findings)
	}
	if text := f.read(f.file(answer, contract.FileStepHandoff)); !strings.Contains(text, `"target": "diagnosis"`) {
		t.Errorf("the handoff: %s", text)
	}
	if text := f.read(f.file(answer, "events.jsonl")); !strings.Contains(text, `"by":"user via x","detail":{"added":["inputs.data.domain_metadata.target"],"how":"elicitation"}`) {
		t.Errorf("the events: %s", text)
	}
	again, err := f.walkWith(c, contract.Call{RunID: answer.Run.RunID})
	if err != nil || len(c.asked) != 1 || again.ExecutionResult.Status != contract.StatusSuccess {
		t.Errorf("asked again: %v %v", c.asked, err)
	}
}

// Put off, declined, or put to somebody who can't be asked: the run waits for the target as it always did, and nothing was
// decided for the user.
func TestATargetThatIsNotPickedStaysANeed(t *testing.T) {
	f := openTarget(t)
	if _, err := f.walkWith(&chooser{}, contract.Call{Handoff: &f.handoff}); !errors.Is(err, errLater) {
		t.Fatal(err)
	}
	if records, err := filepath.Glob(filepath.Join(f.dir, ".onescience", "trainer", "r-*", "phases", "*.json")); err != nil || len(records) != 1 || filepath.Base(records[0]) != contract.Phases[0]+".json" {
		t.Errorf("put off, and %v is kept", records)
	}
	for name, c := range map[string]struct {
		caller engine.Caller
		asked  bool
	}{
		"declined":   {&chooser{answers: map[string]engine.Answer{"target": {Reply: engine.Declined}}}, true},
		"ignored":    {&chooser{answers: map[string]engine.Answer{"target": {Reply: engine.Ignored}}}, true},
		"no column":  {&chooser{answers: map[string]engine.Answer{"target": picked("no such column")}}, true},
		"can't asks": {engine.Silent, false},
	} {
		answer, err := f.walkWith(c.caller, contract.Call{Handoff: &f.handoff})
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, answer, contract.StatusBlocked)
		if !slices.ContainsFunc(answer.Needs, func(n engine.Need) bool { return n.Field == "data.target" }) || hasCode(answer.Findings, "choice_not_made") != c.asked {
			t.Errorf("%s: %v %v", name, answer.Needs, answer.Findings)
		}
		if strings.Contains(f.read(f.file(answer, contract.FileStepHandoff)), `"target"`) {
			t.Errorf("%s: a target was decided", name)
		}
	}
}

// A step that says to go on without asking is not asked about what it trains.
func TestAnAutonomousStepIsNotAsked(t *testing.T) {
	f := openTarget(t)
	f.handoff.Inputs.ExecutionFlags.AutonomousMode = true
	c := &chooser{answers: map[string]engine.Answer{"target": picked("diagnosis")}}
	answer, err := f.walkWith(c, contract.Call{Handoff: &f.handoff})
	if err != nil || len(c.asked) != 0 {
		t.Fatalf("%v, asked %v", err, c.asked)
	}
	wantStatus(t, answer, contract.StatusBlocked)
}

// Where several files could be the data, the user picks one, and then the column of that very file.
func TestTheUserPicksTheData(t *testing.T) {
	for name, arguments := range map[string]string{"the script takes data and target": "p.add_argument('--data', required=True)\np.add_argument('--target', required=True)\n", "the script takes neither": ""} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			script := "import argparse\np = argparse.ArgumentParser()\np.add_argument('--epochs', type=int, default=3)\n" + arguments + "args = p.parse_args()\nfor epoch in range(args.epochs):\n    loss = 1\n"
			if err := os.Mkdir(filepath.Join(f.dir, "p"), 0o755); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"fit.py": script, "old.csv": "a,b\n1,2\n3,4\n", "new.csv": "c,d\n1,2\n3,4\n"} {
				if err := os.WriteFile(filepath.Join(f.dir, "p", name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			c := &chooser{answers: map[string]engine.Answer{"data": picked("new.csv"), "target": picked("d")}}
			answer, err := f.walkWith(c, contract.Call{Handoff: &contract.StepHandoff{StepGoal: "train it", Inputs: contract.Inputs{Model: contract.Model{CodePath: "p"}, Runtime: contract.Runtime{ExecutionIntent: contract.IntentPlanOnly}}}})
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, q := range c.asked {
				said = append(said, q.Field+": "+strings.Join(q.Choices, " "))
			}
			if got := strings.Join(said, "; "); got != "data: new.csv old.csv; target: c d" {
				t.Errorf("asked %s; %v %v", got, answer.Needs, answer.Findings)
			}
			if text := f.read(f.file(answer, contract.FileStepHandoff)); !strings.Contains(text, `"train_source": "new.csv"`) || !strings.Contains(text, `"target": "d"`) {
				t.Errorf("the handoff: %s", text)
			}
		})
	}
}
