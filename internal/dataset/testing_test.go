package dataset

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares v as stable JSON with testdata/name.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	got, err := rundir.MarshalStable(v)
	if err != nil {
		t.Fatal(err)
	}
	goldenText(t, name, string(got))
}

func goldenText(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (go test -update writes it anew):\n%s", path, diff)
	}
}

// write puts text into a file of its own folder.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// said is what a finding is compared by.
type said struct {
	Code     string
	Severity finding.Severity
	Line     int
	Byte     int64
}

func saidOf(findings []finding.Finding) []said {
	var out []said
	for _, f := range findings {
		s := said{Code: f.Code, Severity: f.Severity}
		if f.Where != nil {
			s.Line, s.Byte = f.Where.Line, f.Where.Byte
		}
		out = append(out, s)
	}
	return out
}

func codes(findings []finding.Finding) []string {
	out := []string{}
	for _, f := range findings {
		out = append(out, f.Code)
	}
	return out
}

// refusal returns the findings of an error that must be a Refused.
func refusal(t *testing.T, err error) []finding.Finding {
	t.Helper()
	var refused *finding.Refused
	if !errors.As(err, &refused) {
		t.Fatalf("the error is %v, not a refusal", err)
	}
	for _, f := range refused.Findings {
		if f.What == "" || f.Expected == "" || f.Remedy == "" || f.Where == nil {
			t.Errorf("the finding does not help: %+v", f)
		}
	}
	return refused.Findings
}

var background = context.Background()
