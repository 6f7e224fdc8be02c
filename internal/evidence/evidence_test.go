package evidence

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

var at = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func codes(findings []finding.Finding, err error) string {
	var refused *finding.Refused
	if errors.As(err, &refused) {
		findings = append(findings, refused.Findings...)
	}
	var list []string
	for _, f := range findings {
		list = append(list, f.Code)
	}
	return strings.Join(list, ",")
}

func put(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func kept(t *testing.T, dir string, s Source) string {
	t.Helper()
	data, err := Kept(dir, s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func capture(t *testing.T, dir string, sources []Source, in CaptureInput) Source {
	t.Helper()
	s, err := Capture(dir, sources, in, at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCaptureKeepsTextRedacted(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	text := "lr: 3e-4\npassword: hunter2\n"
	path := put(t, filepath.Join(work, "train.yaml"), text)
	got := capture(t, dir, nil, CaptureInput{Kind: KindFile, Ref: "train.yaml", Path: path, Note: "n"})
	copied := "lr: 3e-4\npassword: *******\n"
	want := Source{ID: "s1", Kind: "file", Ref: "train.yaml", SHA256: rundir.HashBytes([]byte(text)), Bytes: int64(len(text)), CapturedAt: at,
		KeptAs: "sources/s1", KeptSHA256: rundir.HashBytes([]byte(copied)), Note: "n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := kept(t, dir, got); got != copied {
		t.Errorf("kept %q", got)
	}
}

func TestCaptureGivesIDs(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	path := put(t, filepath.Join(work, "a.md"), "one")
	file := CaptureInput{Kind: KindFile, Ref: "a.md", Path: path}
	sources := AddSource(nil, capture(t, dir, nil, file))
	sources = AddSource(sources, capture(t, dir, sources, CaptureInput{Kind: KindText, Ref: "request", Text: "one"}))
	again := capture(t, dir, sources, file)
	sources = AddSource(sources, again)
	if again.ID != "s1" || len(sources) != 2 {
		t.Errorf("the same file again is %s of %d", again.ID, len(sources))
	}
	put(t, path, "two")
	changed := capture(t, dir, sources, file)
	if changed.ID != "s3" || kept(t, dir, changed) != "two" || kept(t, dir, sources[0]) != "one" {
		t.Errorf("the changed file is %+v", changed)
	}
	other := capture(t, dir, append(sources, Source{ID: "s9"}), CaptureInput{Kind: KindHandoff, Ref: "a.md", Text: "one"})
	if other.ID != "s10" {
		t.Errorf("another kind after s9 is %s", other.ID)
	}
}

func TestCaptureRestoresACopy(t *testing.T) {
	dir := t.TempDir()
	in := CaptureInput{Kind: KindText, Ref: "request", Text: "use AdamW"}
	s := capture(t, dir, nil, in)
	put(t, filepath.Join(dir, s.KeptAs), "use SGD")
	if _, err := Kept(dir, s); codes(nil, err) != "source_altered" {
		t.Errorf("altered: %v", err)
	}
	if capture(t, dir, []Source{s}, in); kept(t, dir, s) != "use AdamW" {
		t.Error("the copy was not put back")
	}
}

func TestCaptureOnlyHashes(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	put(t, filepath.Join(work, "tree/b/x.csv"), "xx")
	put(t, filepath.Join(work, "tree/a.csv"), "a")
	put(t, filepath.Join(work, "tree/.git/HEAD"), "changes at every fetch")
	put(t, filepath.Join(work, "binary.pt"), "PK\x03\x04\x00")
	put(t, filepath.Join(work, "late.txt"), strings.Repeat("x", binaryWithin)+"\x00")
	put(t, filepath.Join(work, "large.txt"), strings.Repeat("x", keptUpTo+1))
	put(t, filepath.Join(work, "empty.txt"), "")
	list := strings.TrimPrefix(rundir.HashBytes([]byte("a")), "sha256:") + "  a.csv\n" + strings.TrimPrefix(rundir.HashBytes([]byte("xx")), "sha256:") + "  b/x.csv\n"
	tests := []struct {
		kind, path string
		bytes      int64
		kept       bool
		note, sha  string
	}{
		{KindDirectory, "tree", 3, false, "2 files", rundir.HashBytes([]byte(list))},
		{KindDataset, "tree", 3, false, "2 files", rundir.HashBytes([]byte(list))},
		{KindDataset, "tree/a.csv", 1, false, "", rundir.HashBytes([]byte("a"))},
		{KindCheckpoint, "binary.pt", 5, false, "", rundir.HashBytes([]byte("PK\x03\x04\x00"))},
		{KindFile, "binary.pt", 5, false, "not kept: the file is binary", rundir.HashBytes([]byte("PK\x03\x04\x00"))},
		{KindFile, "late.txt", binaryWithin + 1, true, "", ""},
		{KindFile, "large.txt", keptUpTo + 1, false, "not kept: 4194305 bytes are more than the 4194304 that are kept as text", ""},
		{KindFile, "empty.txt", 0, true, "", rundir.HashBytes(nil)},
	}
	for _, test := range tests {
		s := capture(t, dir, nil, CaptureInput{Kind: test.kind, Path: filepath.Join(work, test.path)})
		if s.Bytes != test.bytes || (s.KeptAs != "") != test.kept || s.Note != test.note || test.sha != "" && s.SHA256 != test.sha {
			t.Errorf("%s %s: %+v", test.kind, test.path, s)
		}
	}
}

func TestCaptureRefuses(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	file := put(t, filepath.Join(work, "a.txt"), "a")
	tests := []struct {
		in   CaptureInput
		code string
	}{
		{CaptureInput{Kind: KindURL, Ref: "https://example.org"}, "source_empty"},
		{CaptureInput{Kind: "pdf", Path: file}, "source_kind_unsupported"},
		{CaptureInput{Kind: ""}, "source_kind_unsupported"},
		{CaptureInput{Kind: KindText}, "source_empty"},
		{CaptureInput{Kind: KindDataset}, "source_empty"},
		{CaptureInput{Kind: KindFile, Path: file + ".missing"}, "source_unreadable"},
		{CaptureInput{Kind: KindFile, Path: work}, "source_unreadable"},
		{CaptureInput{Kind: KindDirectory, Path: file}, "source_unreadable"},
		{CaptureInput{Kind: KindCheckpoint, Path: file + ".missing"}, "source_unreadable"},
	}
	for _, test := range tests {
		if _, err := Capture(dir, nil, test.in, at); codes(nil, err) != test.code {
			t.Errorf("%+v: %v", test.in, err)
		}
	}
}

func TestVerifyFact(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	doc := "# Train\n\nThe optimi-\nzer is AdamW,\tlr 3e-4.\nUse password: hunter2 there.\n"
	sources := []Source{capture(t, dir, nil, CaptureInput{Kind: KindFile, Ref: "docs/train.md", Path: put(t, filepath.Join(work, "train.md"), doc)})}
	sources = AddSource(sources, capture(t, dir, sources, CaptureInput{Kind: KindDataset, Ref: "data.csv", Path: put(t, filepath.Join(work, "data.csv"), "a")}))
	fact := func(status, source, quote string, value any) Fact {
		return Fact{ID: "f1", Field: "training.optimizer", Value: value, Status: status, Source: source, Quote: quote}
	}
	tests := []struct {
		name, code, status string
		in                 Fact
		quoted             string
	}{
		{"stated", "", Confirmed, fact(Confirmed, "s1", "The optimizer is AdamW", "adamw"), "The optimi-\nzer is AdamW"},
		{"status in small letters", "", Confirmed, fact("confirmed", "s1", "lr 3e-4", 0.0003), "lr 3e-4"},
		{"value elsewhere", "value_not_in_quote", Inferred, fact(Confirmed, "s1", "The optimizer is AdamW", "adam"), "The optimi-\nzer is AdamW"},
		{"inferred with a quote", "", Inferred, fact(Inferred, "s1", "AdamW", "adam"), "AdamW"},
		{"inferred without a quote", "", Inferred, fact(Inferred, "", "", "adam"), ""},
		{"missing", "", Missing, fact(Missing, "", "", nil), ""},
		{"assumed", "", Assumption, fact(Assumption, "", "", 3), ""},
		{"a secret in the quote", "value_not_in_quote", Inferred, fact(Confirmed, "s1", "password: hunter2", "hunter2"), "password: *******"},
		{"no quote", "quote_missing", Confirmed, fact(Confirmed, "s1", " ", "adamw"), ""},
		{"no source", "source_unknown", Confirmed, fact(Confirmed, "", "AdamW", "adamw"), ""},
		{"unknown source", "source_unknown", Confirmed, fact(Confirmed, "s7", "AdamW", "adamw"), ""},
		{"hashed source", "source_not_kept", Confirmed, fact(Confirmed, "s2", "a", "a"), ""},
		{"not quoted right", "quote_not_in_source", Confirmed, fact(Confirmed, "s1", "optimizer is SGD", "sgd"), ""},
		{"inferred from words that are not there", "quote_not_in_source", Inferred, fact(Inferred, "s1", "optimizer is SGD", "sgd"), ""},
		{"unknown status", "fact_status_unknown", "SURE", fact("sure", "s1", "AdamW", "adamw"), ""},
		{"no field", "fact_field_missing", Confirmed, Fact{Status: Confirmed, Source: "s1", Quote: "AdamW"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, findings := VerifyFact(dir, sources, test.in)
			if codes(findings, nil) != test.code || got.Status != test.status {
				t.Fatalf("%s with %v, want %s with %q", got.Status, findings, test.status, test.code)
			}
			if quoted := kept(t, dir, sources[0])[got.Start:got.End]; quoted != test.quoted {
				t.Errorf("range holds %q, want %q", quoted, test.quoted)
			}
			if strings.Contains(got.Quote, "hunter2") {
				t.Error("a secret stayed in the quote")
			}
		})
	}
}

func TestRefusedQuoteNamesThePassageAndTheCall(t *testing.T) {
	dir := t.TempDir()
	sources := []Source{capture(t, dir, nil, CaptureInput{Kind: KindText, Ref: "request", Text: "First line.\nThe optimizer is AdamW.\n"})}
	_, findings := VerifyFact(dir, sources, Fact{Field: "training.optimizer", Value: "adamw", Status: Confirmed, Source: "s1", Quote: "optimizer: AdamW"})
	want := []finding.Finding{{Code: "quote_not_in_source", Severity: finding.Error,
		What:     `training.optimizer: the quote "optimizer: AdamW" is not in source s1 (request)`,
		Where:    &finding.Where{Path: "request", Line: 2, Byte: 12, Field: "facts.training.optimizer"},
		Expected: `the nearest passage is "The optimizer is AdamW."`,
		Remedy:   `send phase_1_training_knowledge {"run_id": "…", "facts": [{"field":"training.optimizer","value":"adamw","status":"CONFIRMED","source":"s1","quote":"The optimizer is AdamW."}]}, or the fact as INFERRED with a why`}}
	if diff := cmp.Diff(want, findings); diff != "" {
		t.Error(diff)
	}
}

func TestFilesOfARun(t *testing.T) {
	dir := t.TempDir()
	facts := []Fact{{ID: "f3", Field: "training.optimizer", Value: "adamw", Status: Confirmed, Source: "s2", Quote: "optimizer: AdamW", Start: 120, End: 136, By: "server", Conflicts: []string{"f9"}, InForce: true}}
	if err := SaveFacts(dir, facts); err != nil {
		t.Fatal(err)
	}
	want := `[
  {
    "id": "f3",
    "field": "training.optimizer",
    "value": "adamw",
    "status": "CONFIRMED",
    "source": "s2",
    "quote": "optimizer: AdamW",
    "start": 120,
    "end": 136,
    "by": "server",
    "conflicts": [
      "f9"
    ],
    "verify_later": "",
    "in_force": true
  }
]
`
	data, err := os.ReadFile(filepath.Join(dir, "facts.json"))
	if err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
	if got, err := LoadFacts(dir); err != nil || cmp.Diff(facts, got) != "" || NextFactID(got) != "f4" {
		t.Errorf("%+v, %v", got, err)
	}

	claims := []Claim{{ID: "c1", Metric: "rmse", Split: "test", Value: 0.42, Unit: "degC", Level: Recomputed, From: []Range{{"p.jsonl", 0, 9, "sha256:x"}}, Interval: []float64{0.4, 0.44}}}
	if err := SaveClaims(dir, claims); err != nil {
		t.Fatal(err)
	}
	if got, err := LoadClaims(dir); err != nil || cmp.Diff(claims, got) != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := SaveSources(dir, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := LoadSources(dir); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := LoadFacts(t.TempDir()); got != nil || err != nil {
		t.Errorf("no file: %+v, %v", got, err)
	}
}

func TestSecretsAreNotSaved(t *testing.T) {
	dir := t.TempDir()
	facts := []Fact{{Field: "runtime.password", Value: "hunter2", Quote: "password: hunter2", Why: "password=hunter2", VerifyLater: "password=hunter2"}}
	if err := SaveFacts(dir, facts); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "facts.json")); err != nil || strings.Contains(string(data), "hunter2") {
		t.Errorf("%s, %v", data, err)
	}
	if facts[0].Value != "hunter2" {
		t.Error("the caller's facts were changed")
	}
}

func TestTruncatedFilesSayWhere(t *testing.T) {
	dir := t.TempDir()
	for name, load := range map[string]func(string) error{
		"sources.json": func(dir string) error { _, err := LoadSources(dir); return err },
		"facts.json":   func(dir string) error { _, err := LoadFacts(dir); return err },
		"claims.json":  func(dir string) error { _, err := LoadClaims(dir); return err },
	} {
		path := put(t, filepath.Join(dir, name), "[\n  {\n    \"id\": \"x")
		err := load(dir)
		var refused *finding.Refused
		if !errors.As(err, &refused) || refused.Findings[0].Code != "json_unreadable" ||
			!slices.Equal([]any{path, 3, int64(18)}, []any{refused.Findings[0].Where.Path, refused.Findings[0].Where.Line, refused.Findings[0].Where.Byte}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A source may be named by where it came from, where that is clear.
func TestSourceNamed(t *testing.T) {
	sources := []Source{{ID: "s1", Ref: "step_handoff"}, {ID: "s2", Ref: "/w/README.md"}, {ID: "s3", Ref: "/w/a/notes.md"}, {ID: "s4", Ref: "/w/b/notes.md"}}
	for name, want := range map[string]int{"s2": 1, "README.md": 1, "/w/a/notes.md": 2, "notes.md": -1, "s9": -1, "": -1} {
		if got := sourceNamed(sources, name); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}
