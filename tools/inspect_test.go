package tools

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestInspectDataset(t *testing.T) {
	dir, all := workspaceTools(t)
	// A quoted field runs over lines 2 and 3: the ragged row is on physical line 5, the odd value on line 6.
	table := "id,depth,note,class\n1,2.5,\"two\nlines\",a\n2,3.5,x,b\n2,3.5,x\n3,deep,y,a\n4,4.5,,b\n5,6,z,a\n1,2.5,\"two\nlines\",a\n"
	if err := os.WriteFile(filepath.Join(dir, "t.csv"), []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
	type out = InspectDatasetOutput
	got, err := call[out](t, all, "inspect_dataset", `{"path": "t.csv", "target": "class"}`)
	if err != nil {
		t.Fatal(err)
	}
	if got.Path != "t.csv" || !got.Coverage.Whole || got.BadTotal != 1 || len(got.BadRows) != 1 || got.BadRows[0].Line != 5 || got.Duplicates.Rows != 1 || got.SHA256 == "" {
		t.Errorf("%+v", got)
	}
	names := make([]string, len(got.Columns))
	for i, c := range got.Columns {
		names[i] = c.Name + " " + c.Type
	}
	if strings.Join(names, ", ") != "id integer, depth mixed, note string, class string" {
		t.Errorf("columns %v", names)
	}
	if depth := got.Columns[1]; len(depth.Bad) != 1 || depth.Bad[0].Line != 6 || depth.Bad[0].Value != "deep" || *depth.Max != 6 {
		t.Errorf("depth %+v", depth)
	}
	if note := got.Columns[2]; note.Missing != 1 || note.Top[0].Count != 2 {
		t.Errorf("note %+v", note)
	}
	if got.NextCall == nil || got.NextCall.Tool != "trainer" {
		t.Errorf("next call %+v", got.NextCall)
	}
	cut, err := call[out](t, all, "inspect_dataset", `{"path": "t.csv", "max_bytes": 50}`)
	if err != nil || cut.Coverage.Whole || cut.Coverage.RowsRead >= 5 || cut.NextCall != nil {
		t.Errorf("%+v, %v", cut.Coverage, err)
	}
	for arguments, code := range map[string]string{`{}`: "missing_argument", `{"path": "none.csv"}`: "file_missing", `{"path": "../x.csv"}`: "path_outside_roots",
		`{"path": "."}`: "path_is_directory", `{"path": "t.csv", "target": "clas"}`: "column_unknown"} {
		if _, err := call[out](t, all, "inspect_dataset", arguments); !refusedWith(err, code) {
			t.Errorf("%s: %v", arguments, err)
		}
	}
}

func TestInspectProject(t *testing.T) {
	_, all := workspaceTools(t)
	type out = InspectProjectOutput
	got, err := call[out](t, all, "inspect_project", `{}`)
	if err != nil || len(got.Entrypoints) == 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	script := got.Entrypoints[0]
	if got.Root != "." || script.Path != "train.py" || len(script.Reasons) == 0 || !slices.Equal(got.DataFiles, []string{"data/wdbc.csv"}) {
		t.Errorf("%+v", got)
	}
	at := slices.IndexFunc(script.Arguments, func(a ArgumentView) bool { return a.Role == "training.epochs_or_steps" })
	if at < 0 || script.Arguments[at].Name != "--epochs" || script.Arguments[at].Default != 60.0 || script.Arguments[at].Line == 0 {
		t.Errorf("arguments %+v", script.Arguments)
	}
	inputs, _ := got.NextCall.Arguments["step_handoff"].(map[string]any)["inputs"].(map[string]any)
	if got.NextCall.Tool != "trainer" || inputs["data"].(map[string]any)["train_source"] != "data/wdbc.csv" {
		t.Errorf("next call %+v", got.NextCall)
	}
	named, err := call[out](t, all, "inspect_project", `{"path": "train.py"}`)
	if err != nil || named.Entrypoints[0].Path != "train.py" || named.NextCall == nil {
		t.Errorf("%+v, %v", named, err)
	}
	for arguments, code := range map[string]string{`{"path": "none"}`: "file_missing", `{"path": ".."}`: "path_outside_roots"} {
		if _, err := call[out](t, all, "inspect_project", arguments); !refusedWith(err, code) {
			t.Errorf("%s: %v", arguments, err)
		}
	}
}

func TestVerifyClaimsRefuses(t *testing.T) {
	_, all := workspaceTools(t)
	for arguments, code := range map[string]string{`{}`: "missing_argument", `{"run_id": "r-20261130-00000000", "claims": [{"statement": "x"}]}`: "run_unknown",
		`{"run_id": "r-20261130-00000000", "claims": ["test accuracy is 0.9"]}`: "run_unknown", `{"run_id": "r-20261130-00000000", "claims": [7]}`: "wrong_type",
		`{"run_id": "r-20261130-00000000"}`: "claims_number"} {
		if _, err := call[map[string]any](t, all, "verify_claims", arguments); !refusedWith(err, code) {
			t.Errorf("%s: %v", arguments, err)
		}
	}
}
