package rundir

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

var threePhases = []string{"0_input_acquisition", "1_training_knowledge", "2_data_and_split"}

// threeDone is a run whose first three phases are done, and a data file outside it.
func threeDone(t *testing.T) (d Dir, data string) {
	t.Helper()
	d = Dir{filepath.Join(t.TempDir(), "run")}
	data = put(t, filepath.Join(t.TempDir(), "data.csv"), "a\n1\n")
	put(t, d.Abs("step_handoff.json"), "{}")
	put(t, d.Abs("sources.json"), "[]")
	put(t, d.Abs("facts.json"), "[]")
	put(t, d.Abs("training_knowledge.md"), "# Knowledge\n")
	put(t, d.Abs("split.json"), "{}")
	for i, files := range []struct{ in, out []string }{
		{[]string{"step_handoff.json"}, []string{"sources.json"}},
		{[]string{"sources.json"}, []string{"facts.json", "training_knowledge.md"}},
		{[]string{"facts.json", data}, []string{"split.json"}},
	} {
		in, err := d.Hashes(files.in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := d.Hashes(files.out)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.CommitRecord(Record{Phase: threePhases[i], Status: "success", Attempt: 1, Inputs: in, Outputs: out, Gate: Gate{Passed: true}}); err != nil {
			t.Fatal(err)
		}
	}
	return d, data
}

func TestState(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, d Dir, data string)
		status string // of the three phases, by first letter
		codes  []string
		stale  [][]string // DATA stands for the data file
	}{
		{"untouched", func(*testing.T, Dir, string) {}, "sss", []string{}, [][]string{nil, nil, nil}},
		{"an input changed", func(t *testing.T, d Dir, _ string) { put(t, d.Abs("step_handoff.json"), "{ }") },
			"ppp", []string{"phase_stale"}, [][]string{{"step_handoff.json"}, {threePhases[0]}, {threePhases[0]}}},
		{"an input outside the run changed", func(t *testing.T, d Dir, data string) { put(t, data, "a\n2\n") },
			"ssp", []string{"phase_stale"}, [][]string{nil, nil, {"DATA"}}},
		{"an input is gone", func(t *testing.T, d Dir, data string) { remove(t, data) },
			"ssp", []string{"phase_stale"}, [][]string{nil, nil, {"DATA"}}},
		{"an input became a folder", func(t *testing.T, d Dir, data string) { remove(t, data); put(t, filepath.Join(data, "x"), "") },
			"ssp", []string{"phase_stale"}, [][]string{nil, nil, {"DATA"}}},
		{"an output is gone", func(t *testing.T, d Dir, _ string) { remove(t, d.Abs("facts.json")) },
			"spp", []string{"artifact_missing"}, [][]string{nil, {"facts.json"}, {threePhases[1]}}},
		{"an output was changed", func(t *testing.T, d Dir, _ string) { put(t, d.Abs("split.json"), `{"a": 1}`) },
			"ssp", []string{"artifact_edited"}, [][]string{nil, nil, {"split.json"}}},
		{"Markdown was edited", func(t *testing.T, d Dir, _ string) { put(t, d.Abs("training_knowledge.md"), "mine") },
			"sss", []string{"artifact_edited_by_hand"}, [][]string{nil, nil, nil}},
		{"Markdown is gone", func(t *testing.T, d Dir, _ string) { remove(t, d.Abs("training_knowledge.md")) },
			"spp", []string{"artifact_missing"}, [][]string{nil, {"training_knowledge.md"}, {threePhases[1]}}},
		{"a record was cut off", func(t *testing.T, d Dir, _ string) { put(t, d.Abs("phases/1_training_knowledge.json"), `{"phase":`) },
			"spp", []string{"record_unreadable"}, [][]string{nil, {"phases/1_training_knowledge.json"}, {threePhases[1]}}},
		{"a record of another phase", func(t *testing.T, d Dir, _ string) {
			put(t, d.Abs("phases/2_data_and_split.json"), content(t, d.Abs("phases/0_input_acquisition.json")))
		}, "ssp", []string{"record_unreadable"}, [][]string{nil, nil, {"phases/2_data_and_split.json"}}},
		{"no record", func(t *testing.T, d Dir, _ string) { remove(t, d.Abs("phases/2_data_and_split.json")) },
			"ssp", []string{}, [][]string{nil, nil, nil}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, data := threeDone(t)
			test.change(t, d, data)
			states, findings, err := d.State(threePhases)
			if err != nil {
				t.Fatal(err)
			}
			status := ""
			var stale [][]string
			for _, s := range states {
				status += s.Status[:1]
				for i := range s.Stale {
					s.Stale[i] = strings.Replace(s.Stale[i], data, "DATA", 1)
				}
				stale = append(stale, s.Stale)
			}
			if status != test.status {
				t.Errorf("status %s, want %s", status, test.status)
			}
			if got := codes(findings, nil); !slices.Equal(got, test.codes) {
				t.Errorf("codes %v, want %v", got, test.codes)
			}
			if diff := cmp.Diff(test.stale, stale); diff != "" {
				t.Errorf("stale: %s", diff)
			}
			for _, f := range findings {
				if f.Where == nil || !filepath.IsAbs(f.Where.Path) || f.Remedy == "" {
					t.Errorf("no place or no remedy: %+v", f)
				}
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestStateRecoversWhenThePhaseRunsAgain(t *testing.T) {
	d, _ := threeDone(t)
	remove(t, d.Abs("facts.json"))
	put(t, d.Abs("facts.json"), "[]") // the phase ran again and came to the same
	states, findings, err := d.State(threePhases)
	if err != nil || len(findings) > 0 || states[2].Status != "success" {
		t.Errorf("%+v, %v, %v", states, findings, err)
	}
}

func TestRecord(t *testing.T) {
	d := Dir{t.TempDir()}
	if r, err := d.Record("1_training_knowledge"); r != nil || err != nil {
		t.Errorf("no record: %v, %v", r, err)
	}
	in := Record{Phase: "1_training_knowledge", Status: "success", Attempt: 2, FinishedAt: time.Date(2026, 11, 30, 13, 0, 0, 0, time.FixedZone("", 3600)),
		Inputs: map[string]string{"sources.json": HashBytes(nil)}, Gate: Gate{Passed: true, Checks: []Check{{Name: "checkpoint_role", OK: true}}},
		Assumptions: []string{"f12"}, Recall: &RecallUse{Used: []string{"a"}}}
	if err := d.CommitRecord(in); err != nil {
		t.Fatal(err)
	}
	want := `{
  "phase": "1_training_knowledge",
  "status": "success",
  "attempt": 2,
  "finished_at": "2026-11-30T12:00:00Z",
  "inputs": {
    "sources.json": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  },
  "outputs": {},
  "gate": {
    "passed": true,
    "checks": [
      {
        "name": "checkpoint_role",
        "ok": true
      }
    ]
  },
  "blockers": [],
  "assumptions": [
    "f12"
  ],
  "recall": {
    "used": [
      "a"
    ],
    "unused": [],
    "missing": []
  }
}
`
	if diff := cmp.Diff(want, content(t, d.Abs("phases/1_training_knowledge.json"))); diff != "" {
		t.Error(diff)
	}
	if out, err := d.Record("1_training_knowledge"); err != nil || out.Attempt != 2 || !out.FinishedAt.Equal(in.FinishedAt) || !reflect.DeepEqual(out.Assumptions, in.Assumptions) {
		t.Errorf("%+v, %v", out, err)
	}
	for _, phase := range []string{"", "../x", "a/b", "A"} {
		if err := d.CommitRecord(Record{Phase: phase}); err == nil {
			t.Errorf("committed a record of %q", phase)
		}
	}
}

func TestLargeFilesAreHashedOnce(t *testing.T) {
	d := Dir{t.TempDir()}
	path := d.Abs("data.bin")
	put(t, path, strings.Repeat("x", cachedFrom+1))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	first, err := d.Hashes([]string{"data.bin"})
	if err != nil {
		t.Fatal(err)
	}
	// The cache is asked when nothing seems changed: a change that keeps size, time and inode goes unseen …
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("y"), 0); err != nil {
		t.Fatal(err)
	}
	f.Close()
	setTime(t, path, info.ModTime())
	if again, err := d.Hashes([]string{"data.bin"}); err != nil || again["data.bin"] != first["data.bin"] {
		t.Errorf("hashed again: %v, %v", again, err)
	}
	// … and any other is seen.
	setTime(t, path, info.ModTime().Add(time.Second))
	if again, err := d.Hashes([]string{"data.bin"}); err != nil || again["data.bin"] == first["data.bin"] {
		t.Errorf("a new time went unseen: %v, %v", again, err)
	}
	put(t, d.hashCachePath(), "{broken")
	if again, err := d.Hashes([]string{"data.bin"}); err != nil || again["data.bin"] == first["data.bin"] {
		t.Errorf("broken cache: %v, %v", again, err)
	}
}

func setTime(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestSmallFilesAreNotCached(t *testing.T) {
	d := Dir{t.TempDir()}
	put(t, d.Abs("a"), "a")
	if _, err := d.Hashes([]string{"a"}); err != nil {
		t.Fatal(err)
	}
	if got := content(t, d.hashCachePath()); got != "" {
		t.Errorf("cache holds %s", got)
	}
	if _, err := d.Hashes([]string{"missing"}); err == nil {
		t.Error("hashed a file that is not there")
	}
}

func TestFindingsOfARecordSurvive(t *testing.T) {
	d := Dir{t.TempDir()}
	f := finding.Finding{Code: "value_not_in_quote", Severity: finding.Warning, What: "x"}
	if err := d.CommitRecord(Record{Phase: "0_x", Findings: []finding.Finding{f}}); err != nil {
		t.Fatal(err)
	}
	if r, err := d.Record("0_x"); err != nil || len(r.Findings) != 1 || r.Findings[0] != f {
		t.Errorf("%+v, %v", r, err)
	}
}
