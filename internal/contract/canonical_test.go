package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCanonicalNumbers(t *testing.T) {
	for _, c := range []struct{ number, want string }{
		{"0", "0"}, {"-0", "0"}, {"0.000", "0"}, {"0e99", "0"},
		{"1", "1"}, {"1.0", "1"}, {"10e-1", "1"}, {"1E+2", "100"}, {"-1.50", "-1.5"},
		{"0.1", "0.1"}, {"1e-1", "0.1"}, {"3e-4", "0.0003"}, {"0.00000012", "1.2e-7"}, {"1e-7", "1e-7"},
		{"123456789012345678901", "123456789012345678901"}, {"1e21", "1e21"}, {"1.25e30", "1.25e30"},
		{"9007199254740993", "9007199254740993"}, {"1E400", "1e400"}, {"1e99999999999", "1e99999999999"},
	} {
		if got := canonicalNumber(c.number); got != c.want {
			t.Errorf("%s: got %s, want %s", c.number, got, c.want)
		}
	}
}

func TestCanonicalSortsAndKeepsText(t *testing.T) {
	got, err := Canonical(map[string]any{"b": []any{1.0, "<&>", nil}, "a": map[string]any{"z": true, "y": 1e3}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"a":{"y":1000,"z":true},"b":[1,"<&>",null]}`, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestHandoffSHA256IsOfTheMeaning(t *testing.T) {
	base, _ := handoffOf(t, `{"step_id": "s1", "inputs": {"parameters": {"batch_size": 32, "extra": {"lr": 0.1}}}, "required_outputs": ["a"], "x": {"b": 1, "a": 2}}`)
	// Pinned: another hash for the same handoff would start every stored run anew.
	const want = "sha256:06772428d7e266d494371cbc4b75353818b96020770951f0057a70161efa5ced"
	sha := HandoffSHA256(base)
	if sha != want {
		t.Errorf("got %s, want %s", sha, want)
	}
	for name, raw := range map[string]string{
		"other spelling": "step_handoff:\n  x: {a: 2.0, b: 1}\n  required_outputs: a\n  step_id: s1\n  inputs: {parameters: {extra: {lr: 1e-1}, batch_size: '32'}}\n",
		"an attempt":     `{"step_id": "s1", "inputs": {"attempt": 3, "parameters": {"batch_size": 32, "extra": {"lr": 0.1}}}, "required_outputs": ["a"], "x": {"b": 1, "a": 2}}`,
	} {
		if same, _ := handoffOf(t, raw); HandoffSHA256(same) != sha {
			t.Errorf("%s gives another hash", name)
		}
	}
	other, _ := handoffOf(t, `{"step_id": "s2", "inputs": {"parameters": {"batch_size": 32, "extra": {"lr": 0.1}}}, "required_outputs": ["a"], "x": {"b": 1, "a": 2}}`)
	if HandoffSHA256(other) == sha {
		t.Error("another step has the same hash")
	}
}

func TestAmend(t *testing.T) {
	const stored = `{"step_id": "s1", "task_context": {"constraints": ["a", "b"]}, "inputs": {"attempt": 1, "model": {"code_path": "src"},
		"runtime": {"execution_intent": "unknown"}, "parameters": {"batch_size": 32, "extra": {"lr": 0.1, "betas": [0.9, 0.99]}}}, "x": 1}`
	for _, c := range []struct {
		name, sent, merged string
		settled            map[string]string
		added              []string
		conflicts          []Conflict
	}{
		{name: "nothing", sent: `{}`, merged: stored},
		{name: "the same again", sent: stored, merged: stored},
		{name: "equal in another spelling", sent: `{"inputs": {"parameters": {"batch_size": "32.0", "extra": {"lr": 1e-1}}}}`, merged: stored},
		{name: "empty is not given", sent: `{"step_id": "", "inputs": {"model": {"code_path": null}, "parameters": {"extra": {"lr": "", "betas": []}}}}`, merged: stored},
		{
			name: "new fields", sent: `{"step_goal": "g", "inputs": {"data": {"train_source": "a.csv", "domain_metadata": {"target": "y"}}, "parameters": {"extra": {"seed": 7}}}, "y": {"z": 2}}`,
			merged: `{"step_id": "s1", "step_goal": "g", "task_context": {"constraints": ["a", "b"]}, "inputs": {"attempt": 1, "model": {"code_path": "src"}, "data": {"train_source": "a.csv", "domain_metadata": {"target": "y"}},
				"runtime": {"execution_intent": "unknown"}, "parameters": {"batch_size": 32, "extra": {"lr": 0.1, "seed": 7, "betas": [0.9, 0.99]}}}, "x": 1, "y": {"z": 2}}`,
			added: []string{"inputs.data.domain_metadata.target", "inputs.data.train_source", "inputs.parameters.extra.seed", "step_goal", "y.z"},
		},
		{
			name: "changed values", sent: `{"step_id": "s2", "task_context": {"constraints": ["a"]}, "inputs": {"parameters": {"batch_size": 64, "extra": {"lr": {"value": 1}}}}, "x": 2}`, merged: stored,
			conflicts: []Conflict{
				{"inputs.parameters.batch_size", 32.0, 64.0}, {"inputs.parameters.extra.lr", 0.1, map[string]any{"value": 1.0}},
				{"step_id", "s1", "s2"}, {"task_context.constraints", []any{"a", "b"}, []any{"a"}}, {"x", 1.0, 2.0},
			},
		},
		{
			name: "settled", sent: `{"step_id": "s2", "inputs": {"parameters": {"batch_size": 64}}, "x": 2}`, settled: map[string]string{"inputs.parameters.batch_size": KeepSent, "step_id": KeepStored},
			merged: `{"step_id": "s1", "task_context": {"constraints": ["a", "b"]}, "inputs": {"attempt": 1, "model": {"code_path": "src"},
				"runtime": {"execution_intent": "unknown"}, "parameters": {"batch_size": 64, "extra": {"lr": 0.1, "betas": [0.9, 0.99]}}}, "x": 1}`,
			added: []string{"inputs.parameters.batch_size"}, conflicts: []Conflict{{"x", 1.0, 2.0}},
		},
		{
			name: "a list of words grows, one of numbers is another value", sent: `{"task_context": {"constraints": ["c", "b", "a"]}, "inputs": {"parameters": {"extra": {"betas": [0.9, 0.99, 0.999]}}}}`,
			merged: `{"step_id": "s1", "task_context": {"constraints": ["a", "b", "c"]}, "inputs": {"attempt": 1, "model": {"code_path": "src"},
				"runtime": {"execution_intent": "unknown"}, "parameters": {"batch_size": 32, "extra": {"lr": 0.1, "betas": [0.9, 0.99]}}}, "x": 1}`,
			added: []string{"task_context.constraints"}, conflicts: []Conflict{{"inputs.parameters.extra.betas", []any{0.9, 0.99}, []any{0.9, 0.99, 0.999}}},
		},
		{
			name: "an unknown enum can be told", sent: `{"inputs": {"runtime": {"execution_intent": "run_local"}}}`,
			merged: `{"step_id": "s1", "task_context": {"constraints": ["a", "b"]}, "inputs": {"attempt": 1, "model": {"code_path": "src"},
				"runtime": {"execution_intent": "run_local"}, "parameters": {"batch_size": 32, "extra": {"lr": 0.1, "betas": [0.9, 0.99]}}}, "x": 1}`,
			added: []string{"inputs.runtime.execution_intent"},
		},
		{
			name: "the attempt is no conflict", sent: `{"inputs": {"attempt": 2}}`,
			merged: `{"step_id": "s1", "task_context": {"constraints": ["a", "b"]}, "inputs": {"attempt": 2, "model": {"code_path": "src"},
				"runtime": {"execution_intent": "unknown"}, "parameters": {"batch_size": 32, "extra": {"lr": 0.1, "betas": [0.9, 0.99]}}}, "x": 1}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, _ := handoffOf(t, stored)
			sent, _ := handoffOf(t, c.sent)
			want, _ := handoffOf(t, c.merged)
			merged, added, conflicts, err := Amend(old, sent, c.settled)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, merged); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.added, added); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.conflicts, conflicts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAmendKeepsAKnownEnum(t *testing.T) {
	stored, _ := handoffOf(t, `{"inputs": {"runtime": {"execution_intent": "run_local"}}}`)
	merged, added, conflicts, err := Amend(stored, FromRequest("more words"), nil)
	if err != nil || merged.Inputs.Runtime.ExecutionIntent != IntentRunLocal || len(conflicts) > 0 {
		t.Error(merged, added, conflicts, err)
	}
}
