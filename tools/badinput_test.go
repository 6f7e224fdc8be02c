package tools

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/skill"
	"github.com/trainwright/trainwright/internal/trainer"
)

// workspaceTools are the tools over a workspace with the example in it.
func workspaceTools(t *testing.T) (dir string, all []Tool) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../examples/breast-cancer")); err != nil {
		t.Fatal(err)
	}
	return dir, toolsOver(t, dir)
}

// toolsOver are the tools of one more server over a workspace.
func toolsOver(t *testing.T, dir string) []Tool {
	t.Helper()
	return toolsWith(t, dir, &skill.Library{})
}

func toolsWith(t *testing.T, dir string, library *skill.Library) []Tool {
	t.Helper()
	roots, err := rundir.NewRoots(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := trainer.New(roots, library, local.New(local.Options{Workspace: dir}), time.Now)
	return All(Deps{Trainer: func() (*trainer.Trainer, error) { return tr, nil }})
}

// handoffWith is a plan_only handoff of the example with some of its inputs replaced.
func handoffWith(change func(inputs map[string]any)) map[string]any {
	inputs := map[string]any{
		"model":      map[string]any{"code_path": ".", "training_entrypoint": "train.py"},
		"data":       map[string]any{"train_source": "data/wdbc.csv", "split_hint": "random 0.7/0.15/0.15 seed 1"},
		"parameters": map[string]any{"epochs_or_steps": 1},
		"runtime":    map[string]any{"execution_intent": "run_local"},
	}
	change(inputs)
	return map[string]any{"step_handoff": map[string]any{"step_id": "bad", "step_goal": "train", "inputs": inputs}}
}

func section(inputs map[string]any, name string) map[string]any { return inputs[name].(map[string]any) }

// badInput is one input that can't be used, the code of the finding that says so, and the place it must name.
type badInput struct {
	name, tool string
	prepare    func(t *testing.T, dir string)
	arguments  any // marshalled; a json.RawMessage goes as it is
	code       string
	where      string // part of the finding's path or field
}

var badInputs = []badInput{
	{name: "missing data file", tool: "trainer", arguments: handoffWith(func(in map[string]any) { section(in, "data")["train_source"] = "data/none.csv" }), code: "data_pending", where: "none.csv"},
	{name: "missing entry point", tool: "trainer", arguments: handoffWith(func(in map[string]any) { section(in, "model")["training_entrypoint"] = "fit.py" }), code: "file_missing", where: "training_entrypoint"},
	{name: "missing code path", tool: "trainer", arguments: handoffWith(func(in map[string]any) { section(in, "model")["code_path"] = "nowhere" }), code: "file_missing", where: "nowhere"},
	{name: "empty data file", tool: "trainer", prepare: file("data/empty.csv", ""), arguments: handoffWith(func(in map[string]any) { section(in, "data")["train_source"] = "data/empty.csv" }), code: "file_empty", where: "empty.csv"},
	{name: "header only", tool: "trainer", prepare: file("data/head.csv", "sample,a,diagnosis\n"), arguments: handoffWith(func(in map[string]any) { section(in, "data")["train_source"] = "data/head.csv" }), code: "no_rows", where: "head.csv"},
	{name: "binary data file", tool: "trainer", prepare: file("data/bin.csv", "\x7fELF\x00\x01\x02\x00\x00"), arguments: handoffWith(func(in map[string]any) { section(in, "data")["train_source"] = "data/bin.csv" }), code: "not_text", where: "bin.csv"},
	{name: "binary entry point", tool: "trainer", prepare: file("bin.py", "\x7fELF\x00\x01\x02"), arguments: handoffWith(func(in map[string]any) { section(in, "model")["training_entrypoint"] = "bin.py" }), code: "not_text", where: "bin.py"},
	{name: "directory for the data file", tool: "trainer", arguments: handoffWith(func(in map[string]any) { section(in, "data")["train_source"] = "data" }), code: "is_a_directory", where: "data"},
	{name: "directory for the entry point", tool: "trainer", arguments: handoffWith(func(in map[string]any) { section(in, "model")["training_entrypoint"] = "data" }), code: "not_a_regular_file", where: "training_entrypoint"},
	{name: "path out of the workspace", tool: "trainer", arguments: handoffWith(func(in map[string]any) { section(in, "data")["train_source"] = "../../etc/passwd" }), code: "path_outside_roots", where: "data.train_source"},
	{name: "absolute code_save_dir outside", tool: "trainer", arguments: handoffWith(func(in map[string]any) { section(in, "runtime")["code_save_dir"] = "/etc/tw" }), code: "path_outside_roots", where: "code_save_dir"},
	{name: "target that is no column", tool: "trainer", arguments: handoffWith(func(in map[string]any) {
		section(in, "data")["domain_metadata"] = map[string]any{"target": "diagnoses"}
	}), code: "column_unknown", where: "diagnoses"},
	{name: "malformed YAML", tool: "trainer", arguments: map[string]any{"step_handoff": "step_id: x\n  inputs: [1,\n"}, code: "malformed_yaml", where: "step_handoff"},
	{name: "malformed JSON", tool: "trainer", arguments: json.RawMessage(`{"step_handoff": {"step_id": }`), code: "malformed_json", where: ""},
	{name: "10 MB string", tool: "trainer", arguments: map[string]any{"step_handoff": map[string]any{"step_id": "x", "inputs": strings.Repeat("x", 10<<20)}}, code: "wrong_type", where: "inputs"},
	{name: "number for an object", tool: "trainer", arguments: map[string]any{"step_handoff": map[string]any{"inputs": map[string]any{"model": 7}}}, code: "wrong_type", where: "inputs.model"},
	{name: "words for a number", tool: "trainer", arguments: handoffWith(func(in map[string]any) { section(in, "parameters")["epochs_or_steps"] = "many" }), code: "wrong_type", where: "epochs_or_steps"},
	{name: "unknown intent", tool: "trainer", arguments: handoffWith(func(in map[string]any) { section(in, "runtime")["execution_intent"] = "run_quickly" }), code: "unknown_value", where: "execution_intent"},
	{name: "nothing at all", tool: "trainer", arguments: map[string]any{}, code: "nothing_to_do", where: ""},
	{name: "another skill's handoff", tool: "trainer", arguments: map[string]any{"step_handoff": map[string]any{"step_id": "x", "execution_skill": "onescience-coder"}}, code: "skill_mismatch", where: "execution_skill"},
	{name: "run_id of nowhere", tool: "trainer", arguments: map[string]any{"run_id": "r-20200101-0badc0de"}, code: "run_unknown", where: "run_id"},
	{name: "run_id with a path in it", tool: "run_status", arguments: map[string]any{"run_id": "../../x"}, code: "run_id_malformed", where: "run_id"},
	{name: "run of nowhere for a phase", tool: "phase_5_execution", arguments: map[string]any{"run_id": "r-20200101-0badc0de"}, code: "run_unknown", where: "run_id"},
	{name: "unknown argument", tool: "phase_3_training_strategy", arguments: map[string]any{"run_id": "r-20200101-0badc0de", "stratgy": map[string]any{}}, code: "unknown_argument", where: "stratgy"},
	{name: "job of nowhere", tool: "job_status", arguments: map[string]any{"job_ids": []string{"j-none-1"}}, code: "job_unknown", where: ""},
	{name: "skill of nowhere", tool: "skill_get", arguments: map[string]any{"name": "none"}, code: "skill_unknown", where: ""},
}

func file(name, content string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Every input that can't be used is answered with a finding that names its code, its place and what to do; nothing panics,
// and the files of the workspace stay as they were.
func TestBadInputs(t *testing.T) {
	for _, c := range badInputs {
		t.Run(c.name, func(t *testing.T) {
			dir, all := workspaceTools(t)
			if c.prepare != nil {
				c.prepare(t, dir)
			}
			tool, ok := Find(all, c.tool)
			if !ok {
				t.Fatalf("no tool %s", c.tool)
			}
			raw, err := json.Marshal(c.arguments)
			if message, is := c.arguments.(json.RawMessage); is {
				raw, err = message, nil
			}
			if err != nil {
				t.Fatal(err)
			}
			findings := findingsOf(t, tool, raw)
			i := slices.IndexFunc(findings, func(f finding.Finding) bool { return f.Code == c.code })
			if i < 0 {
				t.Fatalf("no finding %s among %v", c.code, findings)
			}
			f := findings[i]
			if f.Remedy == "" {
				t.Errorf("%s does not say what to do", f)
			}
			if len(f.String()) > 2000 {
				t.Errorf("the finding has %d characters", len(f.String()))
			}
			place := ""
			if f.Where != nil {
				place = f.Where.Path + " " + f.Where.Field
			}
			if !strings.Contains(place, c.where) {
				t.Errorf("%s is placed at %q, want %q in it", f.Code, place, c.where)
			}
			if data, err := os.ReadFile(filepath.Join(dir, "data/wdbc.csv")); err != nil || len(data) != 126038 {
				t.Errorf("the data changed: %d bytes, %v", len(data), err)
			}
		})
	}
}

// findingsOf calls a tool and gives its findings, whether the call was refused or answered.
func findingsOf(t *testing.T, tool Tool, raw json.RawMessage) []finding.Finding {
	t.Helper()
	result, err := tool.Call(context.Background(), engine.Silent, raw)
	var refused *finding.Refused
	if errors.As(err, &refused) {
		return refused.Findings
	}
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(result.Structured)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Findings []finding.Finding `json:"findings"`
		Result   struct {
			Status string `json:"status"`
		} `json:"execution_result"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Result.Status == "success" {
		t.Errorf("the step ends in success")
	}
	return answer.Findings
}
