package tools

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

func TestSelection(t *testing.T) {
	all := []Tool{{Name: "w", Toolset: SetTrainer}, {Name: "r", Toolset: SetTrainer, Annotations: Annotations{ReadOnly: true}}, {Name: "j", Toolset: SetRuntime, Annotations: Annotations{ReadOnly: true}}}
	for name, c := range map[string]struct {
		s    Selection
		want string
	}{
		"all":              {Selection{}, "w r j"},
		"read-only":        {Selection{ReadOnly: true}, "r j"},
		"one set":          {Selection{Toolsets: []string{SetTrainer}}, "w r"},
		"two sets":         {Selection{Toolsets: []string{SetRuntime, SetTrainer}}, "w r j"},
		"a set, read-only": {Selection{ReadOnly: true, Toolsets: []string{SetTrainer}}, "r"},
		"nothing left":     {Selection{Toolsets: []string{SetSkills}}, ""},
	} {
		selected, withheld, err := c.s.Of(all)
		names := []string{}
		for _, s := range selected {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, " "); got != c.want || err != nil || len(withheld)+len(selected) != len(all) {
			t.Errorf("%s: %q, %v, withheld %v", name, got, err, withheld)
		}
	}
	if _, _, err := (Selection{Toolsets: []string{"skill"}}).Of(all); err == nil || !strings.Contains(err.Error(), `did you mean "skills"`) {
		t.Error(err)
	}
}

// Every tool belongs to a set that can be selected.
func TestEveryToolHasASet(t *testing.T) {
	for _, tool := range offered() {
		if !slices.Contains(Toolsets, tool.Toolset) {
			t.Errorf("%s: toolset %q", tool.Name, tool.Toolset)
		}
	}
}

// sealedHere is set in the process that this test starts for its second half, which is read-only for good.
const sealedHere = "TRAINWRIGHT_TEST_SEALED"

// A read-only process changes nothing, whichever tool is called: below the list of tools too, each that would write is refused
// with read_only, and each that reads still answers.
func TestReadOnlyHoldsBelowTheTools(t *testing.T) {
	if dir := os.Getenv(sealedHere); dir != "" {
		underSeal(t, dir)
		return
	}
	dir, all := workspaceTools(t)
	supervisorsGone(t, dir)
	run, err := call[engine.Envelope](t, all, "trainer", `{"request": "train a classifier on data/wdbc.csv with train.py"}`)
	if err != nil {
		t.Fatal(err)
	}
	ended, err := call[engine.Envelope](t, all, "runtime", `{"launch": {"command": ["/bin/sh", "-c", "echo '{\"step\": 1, \"loss\": 2}' > m.jsonl"]}, "wait_seconds": 60}`)
	if err != nil || ended.Run.Job == nil || !ended.Run.Job.Ended {
		t.Fatal(err, ended)
	}
	going, err := call[engine.Envelope](t, all, "runtime", `{"launch": {"command": ["/bin/sh", "-c", "sleep 600"]}, "wait_seconds": 0}`)
	if err != nil || going.Run.Job == nil {
		t.Fatal(err, going)
	}
	t.Cleanup(func() {
		_, _ = call[JobStatusOutput](t, all, "job_cancel", fmt.Sprintf(`{"job_id": %q}`, going.Run.Job.JobID))
	})
	if err := os.Remove(filepath.Join(dir, ".onescience", "jobs", ended.Run.Job.JobID, "verdict.json")); err != nil {
		t.Fatal(err) // what a look at the job would keep
	}
	before := treeOf(t, dir)
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReadOnlyHoldsBelowTheTools$", "-test.v")
	command.Env = append(os.Environ(), sealedHere+"="+dir, "RUN="+run.Run.RunID, "ENDED="+ended.Run.Job.JobID, "GOING="+going.Run.Job.JobID)
	out, err := command.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("PASS")) {
		t.Errorf("%v\n%s", err, out)
	}
	after := treeOf(t, dir)
	for name, was := range before {
		if after[name] != was {
			t.Errorf("%s changed", name)
		}
	}
	for name := range after {
		if _, known := before[name]; !known {
			t.Errorf("%s is new", name)
		}
	}
}

func underSeal(t *testing.T, dir string) {
	rundir.Seal()
	all := toolsOver(t, dir)
	run, ended, going := os.Getenv("RUN"), os.Getenv("ENDED"), os.Getenv("GOING")
	reads := map[string]string{
		"run_list": `{}`, "run_status": fmt.Sprintf(`{"run_id": %q}`, run), "job_list": `{}`, "job_status": fmt.Sprintf(`{"job_ids": [%q, %q]}`, ended, going),
		"job_logs": fmt.Sprintf(`{"job_id": %q}`, ended), "read_metrics": `{"path": "m.jsonl"}`, "inspect_checkpoint": `{"path": "examples"}`, "skill_list": `{}`, "skill_get": `{"name": "none"}`,
		"inspect_project": `{}`, "recall": `{"user_request": "how do I split station data?"}`, "inspect_dataset": `{"path": "data/wdbc.csv"}`, "verify_claims": fmt.Sprintf(`{"run_id": %q, "claims": [{"statement": "test accuracy is 0.9"}]}`, run),
	}
	for _, tool := range all {
		arguments := []string{fmt.Sprintf(`{"run_id": %q}`, run), `{"request": "train something else"}`}
		switch {
		case tool.Annotations.ReadOnly:
			arguments = []string{reads[tool.Name]}
			if reads[tool.Name] == "" {
				t.Errorf("%s is missing in this test", tool.Name)
			}
		case tool.Name == "job_cancel":
			arguments = []string{fmt.Sprintf(`{"job_id": %q}`, going)}
		case tool.Name == "runtime":
			arguments = []string{`{"launch": {"command": ["true"]}}`, fmt.Sprintf(`{"job_id": %q}`, going)}
		}
		for _, a := range arguments {
			_, err := tool.Call(t.Context(), engine.Silent, json.RawMessage(a))
			var refused *finding.Refused
			readOnly := errors.As(err, &refused) && refused.Findings[0].Code == "read_only"
			if readOnly == tool.Annotations.ReadOnly || err != nil && refused == nil {
				t.Errorf("%s %s: %v", tool.Name, a, err)
			}
		}
	}
}

// treeOf is every file below dir with its content, but for what a running job's supervisor writes by itself.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "state.json" {
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
