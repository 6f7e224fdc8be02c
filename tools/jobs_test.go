package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// call calls a tool by name, checks the answer against the tool's own output schema, and decodes it.
func call[T any](t *testing.T, all []Tool, name, arguments string) (T, error) {
	t.Helper()
	var out T
	tool, ok := Find(all, name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	result, err := tool.Call(t.Context(), engine.Silent, json.RawMessage(arguments))
	if err != nil {
		return out, err
	}
	encoded, err := json.Marshal(result.Structured)
	if err != nil {
		t.Fatal(err)
	}
	if len(encoded) > maxResult || result.Text == "" {
		t.Errorf("%s: %d bytes, text %q", name, len(encoded), result.Text)
	}
	conforms(t, tool, encoded)
	if err := json.Unmarshal(encoded, &out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

// conforms checks what strict clients check: the structured content against the output schema.
func conforms(t *testing.T, tool Tool, encoded []byte) {
	t.Helper()
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(string(tool.OutputSchema())))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("out.json", schema); err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(encoded)))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.MustCompile("out.json").Validate(value); err != nil {
		t.Errorf("%s: the answer breaks its own output schema: %v", tool.Name, err)
	}
}

// layJob makes a job that ended with code 1 and left this on stdout.
func layJob(t *testing.T, dir, id, stdout string) {
	t.Helper()
	folder := filepath.Join(dir, ".onescience", "jobs", id)
	began := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	if err := jobs.Create(folder, jobs.Request{JobID: id, RunID: "r-1", Command: []string{"python3", "train.py"}, WorkDir: dir, CreatedAt: began}); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{jobs.StdoutFile: stdout, jobs.StderrFile: "ValueError: no\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	code := 1
	endJob(t, folder, jobs.Exit{Code: &code, StartedAt: began, EndedAt: began.Add(time.Second), Seconds: 1, Reason: jobs.ReasonExited})
}

// endJob writes the job's exit record.
func endJob(t *testing.T, folder string, exit jobs.Exit) {
	t.Helper()
	if err := rundir.WriteJSON(filepath.Join(folder, jobs.ExitFile), exit); err != nil {
		t.Fatal(err)
	}
}

func refusedWith(err error, code string) bool {
	var refused *finding.Refused
	return errors.As(err, &refused) && len(refused.Findings) > 0 && refused.Findings[0].Code == code
}

func TestJobStatus(t *testing.T) {
	dir, all := workspaceTools(t)
	layJob(t, dir, "j-1", "epoch 1\n")
	for _, arguments := range []string{`{"job_ids": ["j-1"]}`, `{"job_ids": "j-1"}`, `{"jobIds": ["j-1"]}`, `{"JOB-IDS": ["j-1"]}`, `"{\"job_ids\": [\"j-1\"]}"`} {
		got, err := call[JobStatusOutput](t, all, "job_status", arguments)
		if err != nil || len(got.Jobs) != 1 || got.Jobs[0].State != jobs.StateFailed || got.Jobs[0].Exit == nil || *got.Jobs[0].Exit.Code != 1 {
			t.Errorf("%s: %+v, %v", arguments, got, err)
			continue
		}
		if got.NextCall == nil || got.NextCall.Tool != "trainer" || got.NextCall.Arguments["run_id"] != "r-1" || got.NextCall.Arguments["wait_seconds"] != nil {
			t.Errorf("next_call %+v", got.NextCall)
		}
	}
	got, err := call[JobStatusOutput](t, all, "job_status", `{"job_ids": ["j-1", "j-none"]}`)
	if err != nil || len(got.Jobs) != 1 || len(got.Findings) != 1 || got.Findings[0].Code != "job_unknown" {
		t.Errorf("one unknown: %+v, %v", got, err)
	}
	if _, err := call[JobStatusOutput](t, all, "job_status", `{"job_ids": ["j-none"]}`); !refusedWith(err, "job_unknown") {
		t.Errorf("all unknown: %v", err)
	}
	for _, arguments := range []string{`{}`, ``, `{"job_ids": []}`} {
		if _, err := call[JobStatusOutput](t, all, "job_status", arguments); !refusedWith(err, "missing_argument") {
			t.Errorf("%q: %v", arguments, err)
		}
	}
}

func TestJobCancelOfAFinishedJobLeavesIt(t *testing.T) {
	dir, all := workspaceTools(t)
	layJob(t, dir, "j-1", "")
	got, err := call[JobStatusOutput](t, all, "job_cancel", `{"job_id": "j-1"}`)
	if err != nil || len(got.Jobs) != 1 || got.Jobs[0].State != jobs.StateFailed {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := call[JobStatusOutput](t, all, "job_cancel", `{}`); !refusedWith(err, "missing_argument") {
		t.Error(err)
	}
}

// Quotes and escapes grow in JSON: an answer that were cut afterwards would leave a gap before its next_cursor.
func TestJobLogsMeetWithoutGapHoweverTheyGrow(t *testing.T) {
	dir, all := workspaceTools(t)
	var log strings.Builder
	for n := 0; log.Len() < 150_000; n++ {
		fmt.Fprintf(&log, "%d %s\n", n, strings.Repeat(`"\`, 60))
	}
	layJob(t, dir, "j-1", log.String())
	var read strings.Builder
	arguments := `{"job_id": "j-1", "cursor": 0, "max_tokens": "9000"}`
	for turn := 0; turn < 100; turn++ {
		got, err := call[JobLogsOutput](t, all, "job_logs", arguments)
		if err != nil || len(got.Streams) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		read.WriteString(got.Streams[0].Text)
		if got.NextCall == nil {
			break
		}
		next, err := json.Marshal(got.NextCall.Arguments)
		if err != nil || got.NextCall.Tool != "job_logs" {
			t.Fatal(got.NextCall, err)
		}
		arguments = string(next)
	}
	if read.String() != log.String() {
		t.Errorf("read %d of %d bytes, or others", read.Len(), log.Len())
	}
}

func TestJobLogsTail(t *testing.T) {
	dir, all := workspaceTools(t)
	layJob(t, dir, "j-1", "one\ntwo\nthree\n")
	got, err := call[JobLogsOutput](t, all, "job_logs", `{"job_id": "j-1", "stream": "stdout", "tail": 2}`)
	if err != nil || len(got.Streams) != 1 || got.Streams[0].Text != "two\nthree\n" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := call[JobLogsOutput](t, all, "job_logs", `{"job_id": "j-none"}`); !refusedWith(err, "job_unknown") {
		t.Error(err)
	}
}

func TestRunsAreListedAndTold(t *testing.T) {
	_, all := workspaceTools(t)
	began, err := call[engine.Envelope](t, all, "trainer", `{"request": "train train.py on data/wdbc.csv, plan only"}`)
	if err != nil {
		t.Fatal(err)
	}
	list, err := call[engine.RunList](t, all, "run_list", `{"limit": "10"}`)
	if err != nil || list.Total != 1 || list.Runs[0].RunID != began.Run.RunID {
		t.Errorf("%+v, %v", list, err)
	}
	status, err := call[engine.Envelope](t, all, "run_status", `{"run_id": "`+began.Run.RunID+`"}`)
	if err != nil || status.Run.RunID != began.Run.RunID || status.ExecutionResult.Skill != contract.SkillTrainer {
		t.Errorf("%+v, %v", status, err)
	}
	if _, err := call[engine.Envelope](t, all, "run_status", `{}`); !refusedWith(err, "missing_argument") {
		t.Error(err)
	}
}
