package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/trainer"
)

func TestDoctorSaysWhyNoJobCanRun(t *testing.T) {
	d := diagnosis{OK: true, Machine: local.Survey{}, Workspace: workspaceState{Jobs: map[string]int{"failed": 1, "succeeded": 2}}}
	d.checkSystem()
	if d.OK || d.Checks[0].Name != "python" || d.Checks[0].OK {
		t.Errorf("%+v", d)
	}
	f := finding.Finding{Code: "python_missing", Severity: finding.Error, What: "none"}
	d.take([]finding.Finding{f, f})
	if len(d.Findings) != 1 {
		t.Errorf("%v", d.Findings)
	}
	var out bytes.Buffer
	if err := d.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NO  python", "3 jobs (2 succeeded, 1 failed)", "GPU          none", "error: python_missing"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestRerunTellsHowItCompares(t *testing.T) {
	var out bytes.Buffer
	watch := &watcher{out: &out, log: zerolog.Nop(), shown: map[string]string{}}
	repeated(watch, trainer.Repetition{Repeats: "j-1", Job: jobs.Status{JobID: "j-2", State: "succeeded", Seconds: 1.25, Folder: "/w/j-2"}, Same: []string{"a", "b"}, Differ: []string{"c"},
		Findings: []finding.Finding{{Code: "packages_changed", Severity: finding.Warning, What: "numpy"}, {Code: "x", Severity: finding.Note}}})
	want := "job j-2, which repeats j-1: succeeded after 1.2 s\noutputs: 2 the same, 1 differ, 0 missing\n  differs  c\nwarning: packages_changed: numpy\nfolder /w/j-2\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
	for state, want := range map[string]int{"succeeded": 0, "failed": exitFailed, "timeout": exitFailed, "running": exitPartial, "unknown": exitPartial} {
		var code exit
		if errors.As(ended(state), &code); int(code) != want {
			t.Errorf("%s: exit code %d, want %d", state, code, want)
		}
	}
}
