package contract

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/trainwright/trainwright/internal/finding"
)

// written is a call with its handoff as JSON, easy to compare.
type written struct {
	Handoff, RunID, Request string
	Wait                    int // -1 where it was not given
	Section                 map[string]any
}

func writtenCall(t *testing.T, call Call) written {
	t.Helper()
	w := written{RunID: call.RunID, Request: call.Request, Wait: -1}
	if call.WaitSeconds != nil {
		w.Wait = *call.WaitSeconds
	}
	if len(call.Section) > 0 {
		w.Section = call.Section
	}
	if call.Handoff != nil {
		data, err := encode(*call.Handoff, false)
		if err != nil {
			t.Fatal(err)
		}
		w.Handoff = string(data)
	}
	return w
}

func TestDecodeCall(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		section   []string
		want      written
		found     []string
	}{
		{
			name: "handoff and section", raw: `{"step_handoff": {"step_id": "s1"}, "accept": ["f3"]}`, section: []string{"accept"},
			want: written{Handoff: `{"step_id":"s1"}`, Wait: -1, Section: map[string]any{"accept": []any{"f3"}}},
		},
		{name: "run and wait as text", raw: `{"run_id": " r-1 ", "wait_seconds": "30"}`, want: written{RunID: "r-1", Wait: 30}},
		{name: "handoff as YAML text", raw: `{"step_handoff": "step_handoff:\n  step_id: s1\n"}`, want: written{Handoff: `{"step_id":"s1"}`, Wait: -1}},
		{name: "handoff wrapped twice", raw: `{"step_handoff": {"step_handoff": {"step_id": "s1"}}}`, want: written{Handoff: `{"step_id":"s1"}`, Wait: -1}},
		{
			name: "handoff fields at the root", raw: `{"step_id": "s1", "inputs": {"attempt": 1}, "completion_criteria": "val/loss <= 1"}`,
			want: written{Handoff: `{"step_id":"s1","inputs":{"attempt":1},"completion_criteria":["val/loss <= 1"]}`, Wait: -1},
		},
		{
			name: "input fields at the root", raw: `{"run_id": "r-1", "model": {"code_path": "src"}, "attempt": 2, "runtime": "execution_intent: run_local"}`,
			want: written{RunID: "r-1", Handoff: `{"inputs":{"model":{"code_path":"src"},"runtime":{"execution_intent":"run_local"},"attempt":2}}`, Wait: -1},
		},
		{
			name: "input fields beside inputs", raw: `{"step_id": "s1", "inputs": {"model": {"code_path": "src"}}, "model": {"task_type": "regression"}}`,
			want: written{Handoff: `{"step_id":"s1","inputs":{"model":{"code_path":"src","task_type":"regression"}}}`, Wait: -1},
		},
		{
			name: "a name of the section is the section's", raw: `{"run_id": "r-1", "data": {"target": "sst"}}`, section: []string{"data"},
			want: written{RunID: "r-1", Wait: -1, Section: map[string]any{"data": map[string]any{"target": "sst"}}},
		},
		{
			name: "unknown name beside a handoff at the root is kept", raw: `{"step_id": "s1", "x_trace": {}, "priority": 3}`,
			want:  written{Handoff: `{"step_id":"s1","priority":3,"x_trace":{}}`, Wait: -1},
			found: []string{"unknown_argument priority", "unknown_argument x_trace"},
		},
		{
			name: "inner value counts", raw: `{"step_handoff": {"step_id": "s1"}, "step_id": "s2", "step_goal": "g"}`,
			want:  written{Handoff: `{"step_id":"s1","step_goal":"g"}`, Wait: -1},
			found: []string{"conflicting_argument step_id"},
		},
		{
			name: "wait inside launch", raw: `{"run_id": "r-1", "launch": {"channel": "local_direct", "wait_seconds": "5"}}`, section: []string{"launch"},
			want: written{RunID: "r-1", Wait: 5, Section: map[string]any{"launch": map[string]any{"channel": "local_direct", "wait_seconds": "5"}}},
		},
		{name: "wait beyond the bound", raw: `{"run_id": "r-1", "wait_seconds": 86400}`, want: written{RunID: "r-1", Wait: 600}, found: []string{"out_of_range wait_seconds"}},
		{name: "another spelling", raw: `{"runId": "r-1", "Wait-Seconds": 0}`, want: written{RunID: "r-1", Wait: 0}, found: []string{"field_name_folded Wait-Seconds", "field_name_folded runId"}},
		{name: "null is absent", raw: `{"run_id": "r-1", "step_handoff": null, "accept": null, "nonsense": null}`, section: []string{"accept"}, want: written{RunID: "r-1", Wait: -1}},
		{name: "empty handoff beside a run", raw: `{"run_id": "r-1", "step_handoff": {}}`, want: written{RunID: "r-1", Wait: -1}},
		{name: "request beside a run stays a request", raw: `{"run_id": "r-1", "request": "use the GPU"}`, want: written{RunID: "r-1", Request: "use the GPU", Wait: -1}},
		{
			name: "inputs beside inputs inside the handoff", raw: `{"step_handoff": {"step_id": "s1", "model": {"code_path": "src"}}}`,
			want:  written{Handoff: `{"step_id":"s1","model":{"code_path":"src"}}`, Wait: -1},
			found: []string{"misplaced_field model"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, found, err := DecodeCall([]byte(c.raw), c.section)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, writtenCall(t, call)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.found, codes(found)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeCallRefuses(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		want      []string
	}{
		{"nothing", ``, []string{"nothing_to_do"}},
		{"an empty object", `{}`, []string{"nothing_to_do"}},
		{"blank values", `{"run_id": " ", "request": "", "step_handoff": {}}`, []string{"nothing_to_do"}},
		{"a section alone", `{"accept": ["f1"]}`, []string{"nothing_to_do"}},
		{"unknown name", `{"run_id": "r-1", "acept": ["f1"]}`, []string{"unknown_argument acept"}},
		{"unknown name alone", `{"colour": "red"}`, []string{"unknown_argument colour"}},
		{"prose as handoff", `{"step_handoff": "train the model"}`, []string{"wrong_type step_handoff"}},
		{"list as handoff", `{"step_handoff": [1, 2]}`, []string{"wrong_type step_handoff"}},
		{"malformed YAML as handoff", `{"step_handoff": "step_id: a: b"}`, []string{"malformed_yaml step_handoff"}},
		{"wrong type at the root", `{"run_id": {"id": 1}}`, []string{"wrong_type run_id"}},
		{"wrong wait", `{"run_id": "r-1", "wait_seconds": "soon"}`, []string{"wrong_type wait_seconds"}},
		{"wrong wait inside launch", `{"run_id": "r-1", "launch": {"wait_seconds": []}}`, []string{"wrong_type launch.wait_seconds"}},
		{"wrong type inside", `{"step_id": "s1", "model": {"code_path": ["a", "b"]}}`, []string{"wrong_type inputs.model.code_path"}},
		{"a list", `[]`, []string{"wrong_type"}},
		{"cut off", `{"run_id": "r-1`, []string{"malformed_json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, found, err := DecodeCall([]byte(c.raw), []string{"accept", "launch"})
			var refused *finding.Refused
			if !errors.As(err, &refused) {
				t.Fatalf("error %v, want a refusal", err)
			}
			if diff := cmp.Diff(c.want, codes(found)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnknownArgumentNamesTheValidOnes(t *testing.T) {
	_, found, _ := DecodeCall([]byte(`{"run_id": "r-1", "acept": ["f1"]}`), []string{"facts", "accept"})
	want := "one of accept, "
	if !strings.HasPrefix(found[0].Expected, want) || !strings.Contains(found[0].Expected, "step_handoff") {
		t.Errorf("expected %q", found[0].Expected)
	}
}

func TestFromRequest(t *testing.T) {
	const words = "Train the SST model in src/ with train.py, lr 0.1. Stop when val/rmse <= 0.5 K."
	got := FromRequest("  " + words + "\n")
	want := StepHandoff{
		StepID: "request-cc36a17b", ExecutionSkill: "onescience-trainer",
		StepGoal:    "Train the SST model in src/ with train.py, lr 0.1.",
		TaskContext: TaskContext{UserGoal: words},
		Inputs: Inputs{
			InstructionSource: InstructionSource{SourceType: "text", Text: words},
			Model:             Model{SourceType: "unknown", TaskType: "unknown"},
			Parameters:        Parameters{DistributedMode: "unknown"},
			Runtime:           Runtime{ExecutionIntent: "unknown", ExecutionMode: "unknown"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFirstSentence(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"Train it", "Train it"},
		{"Train it! Now.", "Train it!"},
		{"Use v1.2 of it, e.g. the small one. Then stop.", "Use v1.2 of it, e.g. the small one."},
		{"First line\nsecond line", "First line"},
		{"训练模型。然后验证。", "训练模型。"},
		{strings.Repeat("数", 200), strings.Repeat("数", 159) + "…"},
	} {
		if got := firstSentence(c.text); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

func TestRequestIsNormalised(t *testing.T) {
	call, found, err := DecodeCall([]byte(`{"request": "Train it."}`), nil)
	if err != nil || len(found) > 0 || call.Handoff == nil {
		t.Fatal(call, found, err)
	}
	if diff := cmp.Diff(FromRequest("Train it."), *call.Handoff); diff != "" || call.Request != "Train it." {
		t.Error(diff, call.Request)
	}
}

func TestRequestBesideAHandoff(t *testing.T) {
	for _, c := range []struct{ name, handoff, want string }{
		{"fills what is empty", `{"step_id": "s1"}`, `{"step_id":"s1","task_context":{"user_goal":"Words."},"inputs":{"instruction_source":{"source_type":"text","text":"Words."}}}`},
		{"fills beside a link", `{"inputs": {"instruction_source": {"url": "https://x"}}, "task_context": {"user_goal": "g"}}`, `{"task_context":{"user_goal":"g"},"inputs":{"instruction_source":{"source_type":"mixed","text":"Words.","url":"https://x"}}}`},
		{"goes to the notes otherwise", `{"task_context": {"user_goal": "g"}, "inputs": {"instruction_source": {"text": "t", "notes": "n"}}}`, `{"task_context":{"user_goal":"g"},"inputs":{"instruction_source":{"text":"t","notes":"n\n\nWords."}}}`},
		{"is not said twice", `{"task_context": {"user_goal": "g"}, "inputs": {"instruction_source": {"text": "Words."}}}`, `{"task_context":{"user_goal":"g"},"inputs":{"instruction_source":{"text":"Words."}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, _, err := DecodeCall([]byte(`{"request": "Words.", "step_handoff": `+c.handoff+`}`), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, writtenCall(t, call).Handoff); diff != "" {
				t.Error(diff)
			}
		})
	}
}
