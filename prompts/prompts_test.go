package prompts

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/tools"
)

// every is each prompt with no more than it needs, and with all it takes.
func every(t *testing.T) map[string]string {
	texts := map[string]string{}
	for _, p := range All() {
		least, most := map[string]string{}, map[string]string{}
		for _, a := range p.Arguments {
			most[a.Name] = "r-20261130-7f3a"
			if a.Required {
				least[a.Name] = "predict the \"diagnosis\" <b>\nof wdbc"
			}
		}
		for name, given := range map[string]map[string]string{" least": least, " most": most} {
			text, err := p.Render(given)
			if err != nil {
				t.Fatal(err)
			}
			texts[p.Name+name] = text
		}
	}
	return texts
}

var calls = regexp.MustCompile(`([a-z][a-z0-9_]+) (\{.*\})`)

// Every call that a prompt spells out is one of a tool that there is, with arguments that it takes, and every tool that it
// speaks of exists.
func TestTheCallsOfPromptsCanBeMade(t *testing.T) {
	offered := tools.All(tools.Deps{})
	for name, text := range every(t) {
		found := calls.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("%s names no call", name)
		}
		for _, m := range found {
			tool, ok := tools.Find(offered, m[1])
			if !ok {
				t.Errorf("%s: there is no tool %s", name, m[1])
				continue
			}
			arguments := m[2][:strings.LastIndex(m[2], "}")+1]
			var sent map[string]any
			if err := json.Unmarshal([]byte(arguments), &sent); err != nil {
				t.Errorf("%s: %s: %v", name, arguments, err)
			}
			var schema struct{ Properties map[string]any }
			if err := json.Unmarshal(tool.InputSchema(), &schema); err != nil {
				t.Fatal(err)
			}
			for argument := range sent {
				if schema.Properties[argument] == nil {
					t.Errorf("%s: %s takes no %s", name, m[1], argument)
				}
			}
		}
		for _, word := range regexp.MustCompile(`\b(?:run|job|read|skill|inspect)_[a-z_]+`).FindAllString(text, -1) {
			if _, ok := tools.Find(offered, word); !ok && word != "run_id" && word != "job_id" && word != contract.IntentRunLocal {
				t.Errorf("%s speaks of %s", name, word)
			}
		}
		if len(text) > 2000 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
	}
}

// What the user typed arrives in the handoff as it is, whatever it holds.
func TestTrainMakesAHandoff(t *testing.T) {
	p, _ := Find("train")
	goal := "tell \"malignant\" from benign\nthen <stop> & report"
	text, err := p.Render(map[string]string{"goal": goal, "data": "data/wdbc.csv", "code": "src", "done_when": "test/accuracy >= 0.9"})
	if err != nil {
		t.Fatal(err)
	}
	m := calls.FindStringSubmatch(text)
	call, _, err := contract.DecodeCall(json.RawMessage(m[2]), nil)
	if err != nil || call.Handoff == nil {
		t.Fatal(err)
	}
	h := call.Handoff
	if h.StepGoal != goal || h.Inputs.Data.TrainSource != "data/wdbc.csv" || h.Inputs.Model.CodePath != "src" || h.Inputs.Runtime.ExecutionIntent != contract.IntentRunLocal || len(h.CompletionCriteria) != 1 {
		t.Errorf("%+v", h)
	}
}

func TestWhatAPromptRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		prompt string
		given  map[string]string
		want   string
	}{
		"nothing to train": {"train", nil, "prompt train lacks its argument goal"},
		"only spaces":      {"train", map[string]string{"goal": " \n"}, "prompt train lacks its argument goal"},
		"another name":     {"continue_run", map[string]string{"run": "r-1"}, `has no argument "run"; it takes run_id`},
		"a whole book":     {"train", map[string]string{"goal": strings.Repeat("x", maxArgument+1)}, "the most is 8192"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := Find(c.prompt)
			if text, err := p.Render(c.given); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// A prompt whose tools are not served is not offered.
func TestPromptsGoWithTheirTools(t *testing.T) {
	offered := tools.All(tools.Deps{})
	for _, c := range []struct {
		selection tools.Selection
		want      string
	}{
		{tools.Selection{}, "train continue_run debug_failed_run"},
		{tools.Selection{ReadOnly: true}, "debug_failed_run"},
		{tools.Selection{Toolsets: []string{tools.SetTrainer}}, "train continue_run"},
		{tools.Selection{Toolsets: []string{tools.SetSkills}}, ""},
	} {
		served, _, err := c.selection.Of(offered)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range For(tools.Names(served)) {
			names = append(names, p.Name)
			for _, name := range p.Tools {
				if _, ok := tools.Find(offered, name); !ok {
					t.Errorf("%s needs %s", p.Name, name)
				}
			}
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%+v: %q, want %q", c.selection, got, c.want)
		}
	}
}
