package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/trainwright/trainwright/internal/finding"
)

// codes lists "code place" of each finding, in order.
func codes(found []finding.Finding) []string {
	var list []string
	for _, f := range found {
		place := f.Code
		if f.Where != nil && f.Where.Field != "" {
			place += " " + f.Where.Field
		}
		list = append(list, place)
	}
	return list
}

// handoffOf decodes a handoff that must be usable.
func handoffOf(t *testing.T, raw any) (StepHandoff, []finding.Finding) {
	t.Helper()
	handoff, found, err := DecodeHandoff(raw)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	return handoff, found
}

func number(n int) *int { return &n }

// Each leniency of the contract by name. want is the handoff as it is written.
func TestDecodeIsForgiving(t *testing.T) {
	for _, c := range []struct{ name, raw, want string }{
		{"lone string for a list", `{"required_outputs": "report.md"}`, `{"required_outputs":["report.md"]}`},
		{"lone number for a list of text", `{"completion_criteria": 7}`, `{"completion_criteria":["7"]}`},
		{"lone object for a list of objects", `{"resource_bindings": {"path": "a"}}`, `{"resource_bindings":[{"path":"a"}]}`},
		{"list of one for text", `{"step_id": ["s1"]}`, `{"step_id":"s1"}`},
		{"JSON list sent as text", `{"required_outputs": "[\"a\", \"b\"]"}`, `{"required_outputs":["a","b"]}`},
		{"dashes sent as text", `{"required_outputs": "- a\n- b"}`, `{"required_outputs":["a","b"]}`},
		{"brackets in prose are text", `{"required_outputs": "[draft] the report"}`, `{"required_outputs":["[draft] the report"]}`},
		{"number sent as text", `{"inputs": {"parameters": {"batch_size": "32", "epochs_or_steps": " 1_000 "}}}`, `{"inputs":{"parameters":{"batch_size":32,"epochs_or_steps":1000}}}`},
		{"whole number written as a float", `{"inputs": {"parameters": {"batch_size": 32.0, "epochs_or_steps": "1e3"}}}`, `{"inputs":{"parameters":{"batch_size":32,"epochs_or_steps":1000}}}`},
		{"empty text for a number is not given", `{"inputs": {"parameters": {"batch_size": ""}}}`, `{}`},
		{"text for a boolean", `{"inputs": {"execution_flags": {"autonomous_mode": "Yes"}}}`, `{"inputs":{"execution_flags":{"autonomous_mode":true}}}`},
		{"one for a boolean", `{"inputs": {"execution_flags": {"autonomous_mode": 1}}}`, `{"inputs":{"execution_flags":{"autonomous_mode":true}}}`},
		{"number for text keeps its digits", `{"step_id": 1.10}`, `{"step_id":"1.10"}`},
		{"boolean for text", `{"inputs": {"parameters": {"scheduler": false}}}`, `{"inputs":{"parameters":{"scheduler":"false"}}}`},
		{"null is absent", `{"step_id": null, "inputs": {"model": null, "attempt": null}, "required_outputs": [null, "a", null]}`, `{"required_outputs":["a"]}`},
		{"YAML text instead of the whole", "step_id: s1\ninputs:\n  attempt: 2\n", `{"step_id":"s1","inputs":{"attempt":2}}`},
		{"YAML text instead of an object", `{"inputs": "model:\n  code_path: src\n"}`, `{"inputs":{"model":{"code_path":"src"}}}`},
		{"JSON text instead of an object", `{"inputs": "{\"attempt\": 3}"}`, `{"inputs":{"attempt":3}}`},
		{"YAML text instead of a free object", `{"inputs": {"data": {"domain_metadata": "target: sst"}}}`, `{"inputs":{"data":{"domain_metadata":{"target":"sst"}}}}`},
		{"JSON quoted twice", `"{\"step_id\": \"s1\"}"`, `{"step_id":"s1"}`},
		{"YAML flow mapping", `{step_id: s1, required_outputs: [a, b]}`, `{"step_id":"s1","required_outputs":["a","b"]}`},
		{"trailing comma", `{"step_id": "s1",}`, `{"step_id":"s1"}`},
		{"code fence", "```yaml\nstep_id: s1\n```", `{"step_id":"s1"}`},
		{"byte order mark", "\ufeff{\"step_id\": \"s1\"}", `{"step_id":"s1"}`},
		{"under its own name", `{"step_handoff": {"step_id": "s1"}}`, `{"step_id":"s1"}`},
		{"under its own name twice", `{"step_handoff": {"step_handoff": {"step_id": "s1"}}}`, `{"step_id":"s1"}`},
		{"under its own name as text", `{"step_handoff": "step_id: s1"}`, `{"step_id":"s1"}`},
		{"lone string for a binding", `{"resource_bindings": ["docs/a.md"]}`, `{"resource_bindings":[{"path":"docs/a.md"}]}`},
		{"lone string with a colon for an instruction", `{"inputs": {"instruction_source": "Note: train it"}}`, `{"inputs":{"instruction_source":{"text":"Note: train it"}}}`},
		{"enum in another spelling", `{"inputs": {"runtime": {"execution_intent": "Plan-Only", "execution_mode": "LOCAL SLURM"}}}`, `{"inputs":{"runtime":{"execution_intent":"plan_only","execution_mode":"local_slurm"}}}`},
		{"empty enum is not given", `{"inputs": {"runtime": {"execution_intent": ""}}}`, `{}`},
		{"name in another spelling", `{"Step-ID": "s1", "stepGoal": "g"}`, `{"step_id":"s1","step_goal":"g"}`},
		{"unknown fields kept", `{"step_id": "s1", "zeta": [1, 2.50], "alpha": {"b": null, "a": "<&>"}}`, `{"step_id":"s1","alpha":{"a":"<&>","b":null},"zeta":[1,2.50]}`},
		{"unknown fields kept inside", `{"inputs": {"model": {"code_path": "src", "license": "MIT"}, "cluster": "x"}}`, `{"inputs":{"model":{"code_path":"src","license":"MIT"},"cluster":"x"}}`},
		{"empty lists and objects are not given", `{"required_outputs": [], "inputs": {"data": {"domain_metadata": {}}}, "task_context": {"constraints": []}}`, `{}`},
		{"nothing at all", ``, `{}`},
		{"YAML date stays text", "inputs:\n  data:\n    split_hint: 2020-01-01\n    domain_metadata:\n      start: 2020-01-01\n", `{"inputs":{"data":{"split_hint":"2020-01-01","domain_metadata":{"start":"2020-01-01"}}}}`},
		{"YAML hash that looks like a number", "inputs:\n  checkpoint:\n    revision_or_hash: 0012345\n", `{"inputs":{"checkpoint":{"revision_or_hash":"0012345"}}}`},
		{"YAML keys that are no text", "inputs:\n  data:\n    domain_metadata:\n      1: one\n      true: two\n", `{"inputs":{"data":{"domain_metadata":{"1":"one","true":"two"}}}}`},
		{"YAML merge", "inputs:\n  model: &m {code_path: src}\n  copy: {<<: *m, x: 1}\n", `{"inputs":{"model":{"code_path":"src"},"copy":{"code_path":"src","x":1}}}`},
		{"YAML infinity stays text", "inputs:\n  data:\n    domain_metadata: {top: .inf}\n", `{"inputs":{"data":{"domain_metadata":{"top":".inf"}}}}`},
		{"integer beyond a float", `{"inputs": {"parameters": {"extra": {"seed": 9007199254740993}}}}`, `{"inputs":{"parameters":{"extra":{"seed":9007199254740993}}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			handoff, _ := handoffOf(t, c.raw)
			got, err := encode(handoff, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeTakesGoValues(t *testing.T) {
	handoff, _ := handoffOf(t, map[string]any{"step_id": 4, "inputs": map[string]any{"attempt": 2.0, "parameters": map[string]any{"batch_size": int64(8)}}, "required_outputs": []string{"a"}})
	want := StepHandoff{StepID: "4", Inputs: Inputs{Attempt: 2, Parameters: Parameters{BatchSize: number(8)}}, RequiredOutputs: []string{"a"}}
	if diff := cmp.Diff(want, handoff); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeFreeValuesAreOrdinaryGoValues(t *testing.T) {
	handoff, _ := handoffOf(t, `{"inputs": {"data": {"domain_metadata": {"n": 3, "x": 0.5, "list": ["a", 1], "big": 1e999}}}}`)
	want := map[string]any{"n": 3.0, "x": 0.5, "list": []any{"a", 1.0}, "big": json.Number("1e999")}
	if diff := cmp.Diff(want, handoff.Inputs.Data.DomainMetadata); diff != "" {
		t.Error(diff)
	}
}

// What can't be used, with the code and the place that are told.
func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		want      []string
	}{
		{"list for a number", `{"inputs": {"parameters": {"batch_size": [16, 32]}}}`, []string{"wrong_type inputs.parameters.batch_size"}},
		{"fraction for a whole number", `{"inputs": {"parameters": {"batch_size": 1.5}}}`, []string{"wrong_type inputs.parameters.batch_size"}},
		{"words for a number", `{"inputs": {"parameters": {"epochs_or_steps": "ten"}}}`, []string{"wrong_type inputs.parameters.epochs_or_steps"}},
		{"number out of range", `{"inputs": {"attempt": 1e30}}`, []string{"wrong_type inputs.attempt"}},
		{"boolean for a number", `{"inputs": {"attempt": true}}`, []string{"wrong_type inputs.attempt"}},
		{"words for a boolean", `{"inputs": {"execution_flags": {"autonomous_mode": "maybe"}}}`, []string{"wrong_type inputs.execution_flags.autonomous_mode"}},
		{"object for text", `{"step_id": {"a": 1}}`, []string{"wrong_type step_id"}},
		{"several values for text", `{"step_id": ["a", "b"]}`, []string{"wrong_type step_id"}},
		{"object for a list of text", `{"required_outputs": {"a": 1}}`, []string{"wrong_type required_outputs"}},
		{"object inside a list of text", `{"required_outputs": ["a", {"b": 1}]}`, []string{"wrong_type required_outputs.1"}},
		{"list for an object", `{"inputs": [1, 2]}`, []string{"wrong_type inputs"}},
		{"number for an object", `{"inputs": {"model": 7}}`, []string{"wrong_type inputs.model"}},
		{"prose for an object", `{"inputs": {"model": "a small net"}}`, []string{"wrong_type inputs.model"}},
		{"prose for the whole", `train the model`, []string{"wrong_type"}},
		{"list for the whole", `[1, 2]`, []string{"wrong_type"}},
		{"value outside an enum", `{"inputs": {"runtime": {"execution_mode": "kubernetes"}}}`, []string{"unknown_value inputs.runtime.execution_mode"}},
		{"every error is told", `{"step_id": {}, "inputs": {"attempt": "x"}}`, []string{"wrong_type inputs.attempt", "wrong_type step_id"}},
		{"malformed JSON inside", `{"inputs": "{\"attempt\": 1"}`, []string{"malformed_json inputs"}},
		{"malformed YAML inside", `{"inputs": "model: src\n  code_path: x: y"}`, []string{"malformed_yaml inputs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, found, err := DecodeHandoff(c.raw)
			var refused *finding.Refused
			if !errors.As(err, &refused) {
				t.Fatalf("error %v, want a refusal", err)
			}
			if diff := cmp.Diff(c.want, codes(found)); diff != "" {
				t.Error(diff)
			}
			for _, f := range refused.Findings {
				if f.Severity != finding.Error || f.What == "" || f.Expected == "" || f.Remedy == "" {
					t.Errorf("incomplete: %+v", f)
				}
			}
		})
	}
}

func TestDecodeKeepsWhatFitsBesideAnError(t *testing.T) {
	handoff, _, err := DecodeHandoff(`{"step_id": "s1", "inputs": {"attempt": "x", "model": {"code_path": "src"}}}`)
	if err == nil || handoff.StepID != "s1" || handoff.Inputs.Model.CodePath != "src" {
		t.Errorf("got %+v, %v", handoff, err)
	}
}

func TestMalformedTextNamesItsPlace(t *testing.T) {
	for _, c := range []struct {
		name, raw, code string
		line            int
		at              int64
	}{
		{"unquoted value", "{\n  \"a\": oops nil: x\n}", "malformed_json", 2, 9},
		{"cut off", "{\"a\": [1, 2", "malformed_json", 1, 11},
		{"missing colon", "{\n\"a\" 1}", "malformed_json", 2, 6},
		{"text after the value", `{"a": 1} {"b": 2}`, "malformed_json", 1, 9},
		{"tab as indent", "a: 1\nb:\n\tc: 2\n", "malformed_yaml", 3, 0},
		{"two colons", "a: 1\nb: c: d\n", "malformed_yaml", 2, 0},
		{"open quote", "a: 1\nb: \"x\n", "malformed_yaml", 2, 0},
		{"bad indent", "a:\n  b: 1\n c: 2\n", "malformed_yaml", 3, 0},
		{"name twice", "a: 1\nb: 2\na: 3\n", "malformed_yaml", 3, 0},
		{"list as a name", "? [a, b]\n: 1\n", "malformed_yaml", 1, 0},
		{"second document", "a: 1\n---\nb: 2\n", "malformed_yaml", 2, 0},
		{"unknown anchor", "a: 1\nb: *nope\n", "malformed_yaml", 1, 0},
		{"alias of itself", "a: &a\n  b: *a\n", "malformed_yaml", 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, found, err := DecodeHandoff(c.raw)
			if err == nil || len(found) != 1 {
				t.Fatalf("got %v, %v", found, err)
			}
			f := found[0]
			if f.Code != c.code || f.Where.Line != c.line || f.Where.Byte != c.at {
				t.Errorf("got %s at line %d byte %d (%s), want %s at line %d byte %d", f.Code, f.Where.Line, f.Where.Byte, f.What, c.code, c.line, c.at)
			}
		})
	}
}

func TestWrongTypeShowsAnExample(t *testing.T) {
	_, found, _ := DecodeHandoff(`{"inputs": {"parameters": {"batch_size": [16, 32]}}}`)
	want := finding.Finding{
		Code: "wrong_type", Severity: finding.Error, What: "inputs.parameters.batch_size is a list: [16, 32]",
		Where:    &finding.Where{Field: "inputs.parameters.batch_size"},
		Expected: "a whole number", Remedy: `send e.g. "batch_size": 32`,
	}
	if diff := cmp.Diff([]finding.Finding{want}, found); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownValueNamesTheNearest(t *testing.T) {
	_, found, _ := DecodeHandoff(`{"inputs": {"runtime": {"execution_intent": "run_locally"}}}`)
	f := found[0]
	if f.Expected != "one of plan_only, generate_code, run_local, run_remote, validate_only, unknown" || f.Remedy != `send e.g. "execution_intent": "run_local", or leave the field out` {
		t.Errorf("expected %q, remedy %q", f.Expected, f.Remedy)
	}
}

func TestMisspelledFieldIsKeptAndNamed(t *testing.T) {
	handoff, found := handoffOf(t, `{"inputs": {"model": {"traning_entrypoint": "train.py"}}}`)
	if string(handoff.Inputs.Model.Unknown["traning_entrypoint"]) != `"train.py"` {
		t.Errorf("not kept: %v", handoff.Inputs.Model.Unknown)
	}
	if diff := cmp.Diff([]string{"unknown_field inputs.model.traning_entrypoint"}, codes(found)); diff != "" {
		t.Error(diff)
	}
	if found[0].Severity != finding.Warning || !strings.Contains(found[0].Remedy, "training_entrypoint") {
		t.Errorf("got %+v", found[0])
	}
}

// Swapped letters are one mistake, and a known name may be shortened behind its first word. What is only somewhat alike is
// a newer revision's field and draws no warning.
func TestMisspelledNamesAreNear(t *testing.T) {
	for _, c := range []struct{ section, sent, meant string }{
		{"", "step_gaol", "step_goal"},
		{"data", "train_src", "train_source"},
		{"data", "val_src", "val_source"},
		{"data", "trian_source", "train_source"},
		{"data", "input_fmt", "input_format"},
		{"checkpoint", "init_ckpt", "init_checkpoint"},
		{"model", "Training-Entry", "training_entrypoint"},
		{"runtime", "execution_intend", "execution_intent"},
		{"runtime", "code_dir", "code_save_dir"},
		{"runtime", "wrokdir", "workdir"},
		{"", "step_g", ""},
		{"", "step_number", ""},
		{"data", "train_size", ""},
		{"data", "train", ""},
		{"data", "src", ""},
		{"data", "source_rc", ""},
		{"parameters", "learning_rate", ""},
		{"parameters", "batch", ""},
		{"model", "source_url", ""},
	} {
		text := fmt.Sprintf(`{%q: "x"}`, c.sent)
		if c.section != "" {
			text = fmt.Sprintf(`{"inputs": {%q: %s}}`, c.section, text)
		}
		_, found := handoffOf(t, text)
		switch {
		case c.meant == "" && len(found) > 0:
			t.Errorf("%s: %+v", c.sent, found)
		case c.meant != "" && (len(found) != 1 || found[0].Code != "unknown_field" || !strings.Contains(found[0].Remedy, "means "+c.meant+",")):
			t.Errorf("%s draws %+v, want unknown_field with %s", c.sent, found, c.meant)
		}
	}
}

func TestDuplicateKeyIsTold(t *testing.T) {
	handoff, found := handoffOf(t, `{"inputs": {"attempt": 1, "attempt": 2}}`)
	if diff := cmp.Diff([]string{"duplicate_key inputs.attempt"}, codes(found)); diff != "" || handoff.Inputs.Attempt != 2 {
		t.Error(diff, handoff.Inputs.Attempt)
	}
}

// A phase's own struct has no Unknown field.
type section struct {
	Accept   []string           `json:"accept"`
	Generate bool               `json:"generate"`
	Rate     *float64           `json:"rate"`
	Limit    uint8              `json:"limit"`
	Since    time.Time          `json:"since"`
	Value    any                `json:"value"`
	Raw      json.RawMessage    `json:"raw"`
	Scores   map[string]float64 `json:"scores"`
	Items    []struct {
		Status string `json:"status" jsonschema:"enum=CONFIRMED,enum=MISSING"`
	} `json:"items"`
}

func TestDecodeSectionOfAnotherPackage(t *testing.T) {
	var s section
	found, err := Decode(`{"accept": "f3", "generate": "true", "rate": "3e-4", "limit": "7", "since": "2026-11-30T10:00:00Z",
		"value": [1], "raw": {"b": 1, "a": 2}, "scores": {"x": "0.5"}, "items": {"status": "confirmed"}}`, &s)
	if err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
	if s.Accept[0] != "f3" || !s.Generate || *s.Rate != 3e-4 || s.Limit != 7 || s.Since.Hour() != 10 || string(s.Raw) != `{"a":2,"b":1}` || s.Scores["x"] != 0.5 || s.Items[0].Status != "CONFIRMED" {
		t.Errorf("got %+v", s)
	}
}

func TestDecodeSectionTellsOfUnknownFields(t *testing.T) {
	var s section
	found, err := Decode(map[string]any{"acept": []any{"f3"}, "limit": -1, "since": "yesterday", "items": []any{map[string]any{"status": "sure"}}}, &s)
	if err == nil {
		t.Fatal("expected a refusal")
	}
	want := []string{"unknown_field acept", "unknown_value items.0.status", "wrong_type limit", "wrong_type since"}
	if diff := cmp.Diff(want, codes(found)); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(found[0].Expected, "one of accept, ") || found[0].Severity != finding.Warning {
		t.Errorf("got %+v", found[0])
	}
}

func TestDecodeNeedsAPointer(t *testing.T) {
	if _, err := Decode(`{}`, StepHandoff{}); err == nil {
		t.Error("expected an error")
	}
}

func TestHugeValueStaysOutOfMessages(t *testing.T) {
	huge := strings.Repeat("ä", 5<<20)
	long := huge[:1<<18] // text that is parsed, which the race detector makes slow
	for _, raw := range []any{
		map[string]any{"inputs": map[string]any{"attempt": huge}},
		map[string]any{"inputs": map[string]any{"attempt": []any{huge, huge}}},
		map[string]any{"inputs": map[string]any{"runtime": map[string]any{"execution_mode": huge}}},
		map[string]any{"inputs": map[string]any{"model": huge}},
		map[string]any{"step_id": map[string]any{huge: huge}},
		`{"inputs": ` + long,
		long + ": [",
	} {
		_, found, err := DecodeHandoff(raw)
		if err == nil {
			t.Fatal("expected a refusal")
		}
		for _, f := range found {
			if size := len(f.String()); size > 600 {
				t.Errorf("%s is told in %d bytes", f.Code, size)
			}
		}
	}
}

func TestDeepNestingIsRefused(t *testing.T) {
	for _, raw := range []string{
		strings.Repeat(`{"a":`, 100000) + "1" + strings.Repeat("}", 100000),
		strings.Repeat(`[`, 200) + strings.Repeat("]", 200),
		"a: " + strings.Repeat("[", 200) + strings.Repeat("]", 200),
	} {
		_, found, err := DecodeHandoff(raw)
		if err == nil || found[0].Code != "too_deep" {
			t.Errorf("got %v", found)
		}
	}
}

func TestAliasBombIsRefused(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := range 9 {
		name := string(rune('0' + i))
		next := string(rune('1' + i))
		bomb.WriteString("a" + next + ": &a" + next + " [" + strings.TrimSuffix(strings.Repeat("*a"+name+",", 9), ",") + "]\n")
	}
	_, found, err := DecodeHandoff(bomb.String())
	if err == nil || found[0].Code != "excessive_aliases" {
		t.Errorf("got %v", found)
	}
}

func TestManyErrorsAreCounted(t *testing.T) {
	list := make([]any, 1000)
	for i := range list {
		list[i] = map[string]any{"b": 1}
	}
	_, found, err := DecodeHandoff(map[string]any{"required_outputs": list})
	if err == nil || len(found) != maxFindings+1 || found[maxFindings].Code != "more_findings" {
		t.Errorf("%d findings, %v", len(found), err)
	}
}

// A hundred thousand unknown names must not be compared with every known one.
func TestManyUnknownNamesAreQuick(t *testing.T) {
	object := map[string]any{"step_id": "s1"}
	for i := range 100_000 {
		object["field-"+strconv.Itoa(i)] = nil
	}
	raw := rawOf(object)
	start := time.Now()
	if handoff, _ := handoffOf(t, []byte(raw)); len(handoff.Unknown) != 100_000 {
		t.Errorf("%d kept", len(handoff.Unknown))
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestNearestNameComesFirst(t *testing.T) {
	got := nearest("wait_second", []string{"run_id", "request", "wait_seconds"})
	if got[0] != "wait_seconds" || !slices.Contains(got, "run_id") {
		t.Error(got)
	}
}
