package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/trainer"
)

var update = flag.Bool("update", false, "write the snapshots anew")

// tokens counts as settled.md says: four bytes are one.
func tokens(b []byte) int { return (len(b) + 3) / 4 }

// offered is every tool with nothing behind it: what a schema says must not need a workspace.
var offered = sync.OnceValue(func() []Tool {
	return All(Deps{Trainer: func() (*trainer.Trainer, error) { return nil, errors.New("a schema opened the workspace") }})
})

// A tool's face is a reviewed snapshot: a change is seen in the diff of testdata/<tool>.snap.json.
func TestSnapshots(t *testing.T) {
	var names []string
	for _, tool := range offered() {
		names = append(names, tool.Name+".snap.json")
		t.Run(tool.Name, func(t *testing.T) {
			face, err := json.Marshal(map[string]any{"name": tool.Name, "title": tool.Title, "description": tool.Description, "toolset": tool.Toolset,
				"annotations": tool.Annotations, "inputSchema": tool.InputSchema(), "outputSchema": tool.OutputSchema()})
			if err != nil {
				t.Fatal(err)
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, face, "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			file := filepath.Join("testdata", tool.Name+".snap.json")
			if *update {
				if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v; run go test ./tools -update and review the file", err)
			}
			if diff := cmp.Diff(string(want), pretty.String()); diff != "" {
				t.Errorf("%s (-want +got); run go test ./tools -update when it is meant:\n%s", file, diff)
			}
		})
	}
	files, err := filepath.Glob("testdata/*.snap.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !slices.Contains(names, filepath.Base(file)) {
			t.Errorf("%s belongs to no tool", file)
		}
	}
}

func TestEveryClientAcceptsTheSchemas(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9_]{2,44}$`)
	seen := map[string]bool{}
	for _, tool := range offered() {
		if !name.MatchString(tool.Name) || seen[tool.Name] {
			t.Errorf("%s: bad or repeated name", tool.Name)
		}
		seen[tool.Name] = true
		for _, s := range []struct {
			which  string
			schema json.RawMessage
		}{{"input", tool.InputSchema()}, {"output", tool.OutputSchema()}} {
			for _, problem := range contract.LintSchema(s.schema) {
				t.Errorf("%s %s: %s", tool.Name, s.which, problem)
			}
		}
	}
}

// A refused call answers with findings alone, and clients check that against the output schema as well.
func TestOutputSchemasAcceptARefusal(t *testing.T) {
	for _, tool := range offered() {
		var schema struct {
			Required   []string
			Properties map[string]struct {
				Type  string
				Items struct{ Type string }
			}
		}
		if err := json.Unmarshal(tool.OutputSchema(), &schema); err != nil {
			t.Fatal(err)
		}
		if f := schema.Properties["findings"]; len(schema.Required) > 0 || f.Type != "array" || f.Items.Type != "object" {
			t.Errorf("%s: required %v, findings %+v", tool.Name, schema.Required, f)
		}
	}
}

func TestTokenBudgets(t *testing.T) {
	total := 0
	for _, tool := range offered() {
		total += tokens([]byte(tool.Name)) + tokens([]byte(tool.Description)) + tokens(tool.InputSchema())
		if n := tokens(tool.OutputSchema()); n > 200 {
			t.Errorf("%s: the output schema has %d tokens", tool.Name, n)
		}
		if len(tool.Description) > 1000 {
			t.Errorf("%s: the description has %d bytes", tool.Name, len(tool.Description))
		}
	}
	t.Logf("tools/list has %d tokens", total)
	if total > 12_000 {
		t.Errorf("tools/list has %d tokens, want at most 12000", total)
	}
}

// The promises, one by one, so that a change is a decision.
func TestAnnotations(t *testing.T) {
	read := Annotations{ReadOnly: true, Idempotent: true}
	want := map[string]Annotations{
		"run_list": read, "run_status": read, "job_status": read, "job_logs": read, "job_list": read, "skill_list": read, "skill_get": read, "inspect_checkpoint": read, "read_metrics": read,
		"inspect_dataset": read, "inspect_project": read, "verify_claims": read, "recall": read,
		"job_cancel": {Destructive: true, Idempotent: true, OpenWorld: true}, "runtime": {Destructive: true, Idempotent: true, OpenWorld: true},
	}
	for _, tool := range offered() {
		if expected, ok := want[tool.Name]; ok && expected != tool.Annotations {
			t.Errorf("%s: %+v, want %+v", tool.Name, tool.Annotations, expected)
		} else if !ok && tool.Toolset != SetTrainer {
			t.Errorf("%s: its annotations are not in this table", tool.Name)
		}
		if tool.Annotations.ReadOnly && tool.Annotations.Destructive {
			t.Errorf("%s: read-only and destructive", tool.Name)
		}
	}
}

func TestWrongArgumentNamesAreRefusedWithTheValidOnes(t *testing.T) {
	for _, tool := range offered() {
		var schema struct{ Properties map[string]any }
		if err := json.Unmarshal(tool.InputSchema(), &schema); err != nil {
			t.Fatal(err)
		}
		_, err := tool.Call(t.Context(), engine.Silent, json.RawMessage(`{"no_such_argument": 1}`))
		var refused *finding.Refused
		if !errors.As(err, &refused) {
			t.Errorf("%s: got %v", tool.Name, err)
			continue
		}
		at := slices.IndexFunc(refused.Findings, func(f finding.Finding) bool { return f.Code == "unknown_argument" })
		if at < 0 {
			t.Errorf("%s: got %v", tool.Name, err)
			continue
		}
		f := refused.Findings[at]
		if f.Where == nil || f.Where.Field != "no_such_argument" {
			t.Errorf("%s: where %+v", tool.Name, f.Where)
		}
		for name := range schema.Properties {
			if !strings.Contains(f.Expected, name) {
				t.Errorf("%s: the valid name %s is not told: %s", tool.Name, name, f.Expected)
			}
		}
	}
}

func TestArgumentsThatAreNoObject(t *testing.T) {
	for _, tool := range offered() {
		for _, arguments := range []string{`[1]`, `7`, `"no json"`} {
			_, err := tool.Call(t.Context(), engine.Silent, json.RawMessage(arguments))
			var refused *finding.Refused
			if !errors.As(err, &refused) {
				t.Errorf("%s with %s: got %v", tool.Name, arguments, err)
			}
		}
	}
}

func TestTable(t *testing.T) {
	got := Table([]Tool{{Name: "t", Description: "a|b", Annotations: Annotations{ReadOnly: true, Idempotent: true}}})
	if want := "| tool | does | effects |\n|---|---|---|\n| `t` | a\\|b | read-only, idempotent |\n"; got != want {
		t.Errorf("got %q", got)
	}
}
