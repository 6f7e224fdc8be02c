package jobs

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/trainwright/trainwright/internal/rundir"
)

var update = flag.Bool("update", false, "write the causes in testdata/diagnose anew")

// TestDiagnose reads testdata/diagnose/*.txtar: the records and logs of a job, and the cause in want.json. The folder's own
// path reads $JOB there.
func TestDiagnose(t *testing.T) {
	archives, err := filepath.Glob("testdata/diagnose/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			folder, want := t.TempDir(), ""
			for _, file := range archive.Files {
				if file.Name == "want.json" {
					want = string(file.Data)
					continue
				}
				if err := os.WriteFile(filepath.Join(folder, file.Name), file.Data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := rundir.MarshalStable(Diagnose(folder))
			if err != nil {
				t.Fatal(err)
			}
			shown := strings.ReplaceAll(string(got), folder, "$JOB")
			if *update {
				rewrite(t, path, archive, shown)
				return
			}
			if diff := cmp.Diff(want, shown); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func rewrite(t *testing.T, path string, archive *txtar.Archive, want string) {
	t.Helper()
	archive.Files = slices.DeleteFunc(archive.Files, func(file txtar.File) bool { return file.Name == "want.json" })
	archive.Files = append(archive.Files, txtar.File{Name: "want.json", Data: []byte(want)})
	if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestJudge(t *testing.T) {
	zero, three, term := 0, 3, "SIGTERM"
	for name, c := range map[string]struct {
		exit         Exit
		state, cause string
	}{
		"exited 0":           {Exit{Code: &zero, Reason: ReasonExited}, StateSucceeded, ""},
		"exited 3":           {Exit{Code: &three, Reason: ReasonExited}, StateFailed, "command_failed"},
		"signalled":          {Exit{Signal: &term, Reason: ReasonSignalled}, StateFailed, "killed_by_signal"},
		"cancelled, saved":   {Exit{Code: &zero, Reason: ReasonCancelled}, StateCancelled, ""},
		"cancelled":          {Exit{Signal: &term, Reason: ReasonCancelled}, StateCancelled, ""},
		"wall time, saved":   {Exit{Code: &zero, Reason: ReasonWallTime}, StateTimeout, "wall_time_reached"},
		"status lost":        {Exit{Reason: ReasonExited}, StateFailed, "exit_status_lost"},
		"reason not written": {Exit{Code: &zero}, StateFailed, "exit_reason_unknown"},
	} {
		verdict := Judge(t.TempDir(), request("j-1").without(), c.exit)
		cause := ""
		if verdict.Cause != nil {
			cause = verdict.Cause.Code
		}
		if verdict.State != c.state || cause != c.cause || verdict.Evidence[0].From != ExitFile {
			t.Errorf("%s: %s, %q, %v; want %s, %q", name, verdict.State, cause, verdict.Evidence, c.state, c.cause)
		}
	}
}

// without is the request with no expected outputs.
func (r Request) without() Request {
	r.ExpectedOutputs = nil
	return r
}

func TestOutputsOfAnEarlierRunAreNoSuccess(t *testing.T) {
	folder, workDir := t.TempDir(), t.TempDir()
	path := filepath.Join(workDir, "metrics.jsonl")
	if err := os.WriteFile(path, []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	zero := 0
	req := Request{JobID: "j-1", WorkDir: workDir, ExpectedOutputs: []string{"metrics.jsonl"}}
	exit := Exit{Code: &zero, Reason: ReasonExited, StartedAt: time.Now(), EndedAt: time.Now()}
	if got := Judge(folder, req, exit); got.State != StateSucceeded {
		t.Errorf("written at the start: %+v", got)
	}
	old := exit.StartedAt.Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if got := Judge(folder, req, exit); got.State != StateFailed || got.Cause.Code != "artifact_older_than_run" {
		t.Errorf("written an hour before: %+v", got)
	}
	req.ExpectedOutputs = []string{"empty"}
	if err := os.Mkdir(filepath.Join(workDir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := Judge(folder, req, exit); got.State != StateFailed || got.Cause.Code != "expected_output_missing" {
		t.Errorf("an empty directory: %+v", got)
	}
}

// What was said about a job stays, whatever happens to its outputs later.
func TestConcludeKeepsTheVerdict(t *testing.T) {
	folder, workDir := t.TempDir(), t.TempDir()
	output := filepath.Join(workDir, "out")
	if err := os.WriteFile(output, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	req := Request{JobID: "j-1", WorkDir: workDir, ExpectedOutputs: []string{"out"}}
	if verdict, exit, err := Conclude(folder, req); verdict != nil || exit != nil || err != nil {
		t.Fatalf("without an exit record: %v, %v, %v", verdict, exit, err)
	}
	zero := 0
	if err := rundir.WriteJSON(filepath.Join(folder, ExitFile), Exit{Code: &zero, Reason: ReasonExited, StartedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		verdict, _, err := Conclude(folder, req)
		if err != nil || verdict.State != StateSucceeded {
			t.Fatalf("%+v, %v", verdict, err)
		}
		_ = os.Remove(output)
	}
	var stored map[string]any
	data, err := os.ReadFile(filepath.Join(folder, VerdictFile))
	if err == nil {
		err = json.Unmarshal(data, &stored)
	}
	if err != nil || stored["state"] != StateSucceeded {
		t.Errorf("verdict.json: %v, %v", stored, err)
	}
}

// An exit status of 0 after an exception that nothing caught is no success, and one that the program logged is.
func TestExceptionAtExitZero(t *testing.T) {
	trace := "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    1 / 0\nZeroDivisionError: division by zero\n"
	for stderr, want := range map[string]string{
		trace:                          StateFailed,
		"epoch 3\n" + trace:            StateFailed,
		"ERROR:root:skipped\n" + trace: StateSucceeded,
		trace + "went on\n":            StateSucceeded,
		"":                             StateSucceeded,
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, StderrFile), []byte(stderr), 0o644); err != nil {
			t.Fatal(err)
		}
		zero := 0
		verdict := Judge(folder, Request{JobID: "j-1", Command: []string{"true"}, WorkDir: folder}, Exit{Code: &zero, Reason: ReasonExited})
		if verdict.State != want || want == StateFailed && verdict.Cause.Code != "exit_zero_after_exception" {
			t.Errorf("%q: %s %+v", stderr, verdict.State, verdict.Cause)
		}
	}
}
