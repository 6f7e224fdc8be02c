package trainer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/metrics"
)

func readRows(t *testing.T, rows string) *metrics.Log {
	t.Helper()
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	if err := os.WriteFile(path, []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	log, _, err := metrics.ReadJSONL(path)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// What honest scripts do and what lies look like only at first sight: none of it fails the step.
func TestHonestScriptsAreNotCalledLiars(t *testing.T) {
	for name, c := range map[string]struct {
		statements []string
		code       string
		severity   finding.Severity
	}{
		"a vocabulary that was copied with its time": {[]string{"import shutil", "os.makedirs('outputs', exist_ok=True)", "open('vocab.txt', 'w').write('a b')", "os.utime('vocab.txt', (1e9, 1e9))", "shutil.copy2('vocab.txt', 'outputs/vocab.txt')"}, "artifact_older_than_run", finding.Note},
		"a group's value that is none":               {[]string{"print('group 7: accuracy=nan')"}, "values_filtered", finding.Warning},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.first(c.statements...)
			answer := f.walk()
			wantStatus(t, answer, contract.StatusSuccess)
			if got := wantCode(t, answer.Findings, c.code); got.Severity != c.severity {
				t.Errorf("%s is a %s", got, got.Severity)
			}
		})
	}
}

// What a summary says in other words, rounded or in percent is no contradiction.
func TestSummariesInOtherWords(t *testing.T) {
	zero := 0
	log := readRows(t, `{"epoch": 3, "split": "val", "name": "accuracy", "value": 0.96923}`)
	for _, c := range []struct{ summary, code, severity string }{
		{`{"status": "success", "best": {"metric": "val/accuracy", "value": 0.969, "epoch": 3}}`, "", ""},
		{`{"status": "Early stopping", "best": {"metric": "val/accuracy", "value": 0.97, "epoch": 3}}`, "", ""},
		{`{"status": "finished", "best": {"metric": "val/accuracy", "value": 96.92, "epoch": 3}}`, "", ""},
		{`{"status": "tip top"}`, "summary_contradicts", "warning"},
		{`{"status": "failed"}`, "summary_contradicts", "error"},
		{`{"status": "stopped", "error": "loss is nan"}`, "summary_contradicts", "error"},
		{`{"status": "completed", "best": {"metric": "val/accuracy", "value": 0.95, "epoch": 3}}`, "summary_contradicts", "error"},
		{`{"status": "completed", "pad": "` + strings.Repeat("x", maxSummary) + `"}`, "summary_malformed", "warning"},
	} {
		t.Run(fmt.Sprintf("%.60s", c.summary), func(t *testing.T) {
			w := workOn(contract.StepHandoff{})
			w.base, w.log, w.exit = t.TempDir(), log, &jobs.Exit{Code: &zero}
			if err := os.WriteFile(filepath.Join(w.base, "summary.json"), []byte(c.summary), 0o644); err != nil {
				t.Fatal(err)
			}
			w.outputs = []Output{{Path: "summary.json"}}
			w.findBest()
			w.summaryOfTheLog()
			if (c.code == "") != (len(w.out.Findings) == 0) {
				t.Fatalf("findings %v", w.out.Findings)
			}
			if c.code != "" {
				if got := wantCode(t, w.out.Findings, c.code); string(got.Severity) != c.severity {
					t.Errorf("%s is a %s", got, got.Severity)
				}
			}
		})
	}
}

// A checkpoint of a format that nobody can look into is a doubt; one that is cut off, or none, is a fault. A failed check
// always has an error that says why.
func TestCheckpointThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		files, text, code string
		passed            bool
	}{
		"pickle":       {"model.pkl", "\x80\x04\x95\x10\x00}q.", "checkpoint_unverified", true},
		"array":        {"weights.npy", "\x93NUMPY\x01\x00", "checkpoint_unverified", true},
		"other":        {"model.bin.zst", "\x28\xb5\x2f\xfd", "checkpoint_unverified", true},
		"spoilt":       {"model.safetensors", "no length of a header", "checkpoint_corrupt", false},
		"cut off":      {"model.pt", "PK\x03\x04\x00\x00", "checkpoint_truncated", false},
		"none":         {"", "", "checkpoint_missing", false},
		"one that can": {"model.json", `{"epoch": 3, "weights": [1, 2]}`, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := workOn(contract.StepHandoff{})
			w.base = t.TempDir()
			w.made.CheckpointDir = filepath.Join(w.base, "checkpoints")
			if err := os.MkdirAll(w.made.CheckpointDir, 0o755); err != nil {
				t.Fatal(err)
			}
			if c.files != "" {
				if err := os.WriteFile(filepath.Join(w.made.CheckpointDir, c.files), []byte(c.text), 0o644); err != nil {
					t.Fatal(err)
				}
				w.outputs = []Output{{Path: "checkpoints/" + c.files}}
			}
			w.checkCheckpoints()
			check := w.out.Gate.Checks[len(w.out.Gate.Checks)-1]
			if check.OK != c.passed || finding.Has(w.out.Findings, finding.Error) == c.passed {
				t.Errorf("check %+v, findings %v", check, w.out.Findings)
			}
			if c.code != "" {
				wantCode(t, w.out.Findings, c.code)
			}
		})
	}
}

// The clock of a file server that is minutes off moves every file's time alike, and is allowed for.
func TestClockOfAFileServer(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "j-1")
	start := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	end := start.Add(time.Minute)
	if err := jobs.Create(folder, jobs.Request{JobID: "j-1", Command: []string{"true"}, WorkDir: folder, CreatedAt: start}); err != nil {
		t.Fatal(err)
	}
	exit := &jobs.Exit{StartedAt: start, EndedAt: end}
	if err := os.WriteFile(filepath.Join(folder, jobs.ExitFile), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ first, last, want time.Duration }{
		{0, 0, 0}, {90 * time.Second, 91 * time.Second, 90 * time.Second}, {-70 * time.Second, -70 * time.Second, -70 * time.Second},
		{0, 5 * time.Minute, 0}, {time.Hour, time.Hour, 0}, {5 * time.Minute, 0, 0},
	} {
		for name, at := range map[string]time.Time{jobs.RequestFile: start.Add(c.first), jobs.ExitFile: end.Add(c.last)} {
			if err := os.Chtimes(filepath.Join(folder, name), at, at); err != nil {
				t.Fatal(err)
			}
		}
		if got := fileClock(folder, exit); got != c.want {
			t.Errorf("%s and %s ahead: %s", c.first, c.last, got)
		}
	}
}

// Rows in local time are the job's, shifted by a time zone; rows of another day are not.
func TestTimesOfAnotherZone(t *testing.T) {
	start := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		shift time.Duration
		code  string
	}{{0, ""}, {2 * time.Hour, "metrics_time_zone"}, {-330 * time.Minute, "metrics_time_zone"}, {7 * time.Minute, "metrics_time_outside_job"}, {26 * time.Hour, "metrics_time_outside_job"}} {
		t.Run(c.shift.String(), func(t *testing.T) {
			w := workOn(contract.StepHandoff{})
			w.exit = &jobs.Exit{StartedAt: start, EndedAt: start.Add(time.Minute)}
			var rows strings.Builder
			for i := range 3 {
				fmt.Fprintf(&rows, `{"epoch": %d, "split": "train", "name": "loss", "value": 0.5, "time": %d}`+"\n", i, start.Add(c.shift).Unix()+int64(20*i))
			}
			w.log = readRows(t, rows.String())
			w.metricsTimes()
			if (c.code == "") != (len(w.out.Findings) == 0) {
				t.Fatalf("findings %v", w.out.Findings)
			}
			if c.code != "" {
				wantCode(t, w.out.Findings, c.code)
			}
		})
	}
}
