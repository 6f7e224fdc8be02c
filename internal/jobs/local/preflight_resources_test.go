//go:build linux

package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/finding"
)

func TestPreflightOfCheckpointsAndEstimates(t *testing.T) {
	dir := t.TempDir()
	script(t, filepath.Join(dir, "whole.pt"), "PK")
	script(t, filepath.Join(dir, "empty.pt"), "")
	script(t, filepath.Join(dir, "sharded/one.safetensors"), "x")
	script(t, filepath.Join(dir, "hollow/sub/one.safetensors"), "")
	smi := filepath.Join(dir, "tools")
	script(t, filepath.Join(smi, "nvidia-smi"), fakeNvidia)
	cases := map[string]struct {
		spec    PreflightSpec
		finding string
		ok      bool
	}{
		"all is there":          {PreflightSpec{Checkpoints: []string{"whole.pt", "sharded"}, OutputDir: ".", CheckpointMB: 1, KeptCheckpoints: 2, MemoryEstimateMB: 1, GPUMemoryEstimateMB: 140_000}, "", true},
		"no checkpoint":         {PreflightSpec{Checkpoints: []string{"last.pt"}}, "checkpoint_missing", false},
		"an empty checkpoint":   {PreflightSpec{Checkpoints: []string{"empty.pt"}}, "checkpoint_empty", false},
		"an empty folder":       {PreflightSpec{Checkpoints: []string{"hollow"}}, "checkpoint_empty", false},
		"checkpoints too large": {PreflightSpec{OutputDir: ".", CheckpointMB: 1 << 30, KeptCheckpoints: 1 << 10}, "disk_low", false},
		"memory too small":      {PreflightSpec{MemoryEstimateMB: 1 << 40}, "memory_estimate_exceeds", true},
		"GPU too small":         {PreflightSpec{GPUMemoryEstimateMB: 143_001}, "memory_estimate_exceeds", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.spec.WorkDir = dir
			r := New(Options{Environ: []string{"PATH=" + smi + ":" + os.Getenv("PATH")}})
			report, findings, err := r.Preflight(context.Background(), c.spec)
			if err != nil || strings.Join(codes(findings), " ") != c.finding || report.OK != c.ok || len(report.Checks) == 0 {
				t.Errorf("%v, findings %v, checks %+v", err, findings, report.Checks)
			}
		})
	}
	report, _, _ := newRuntime().Preflight(context.Background(), PreflightSpec{WorkDir: dir, OutputDir: ".", NeedDiskMB: 5, CheckpointMB: 3, KeptCheckpoints: 2})
	for _, check := range report.Checks {
		if check.Name == "disk" && !strings.Contains(check.Evidence, "14 MiB (3 checkpoints of 3 MiB, one of them being written, and 5 MiB more)") {
			t.Errorf("the sum is not explained: %s", check.Evidence)
		}
	}
}

// A json.py beside the script is what the script imports, whatever it was meant to be.
func TestPreflightSeesAModuleThatHidesAnother(t *testing.T) {
	dir, library := t.TempDir(), t.TempDir()
	for _, name := range []string{"json.py", "installed/__init__.py", "own.py", "os.py"} {
		script(t, filepath.Join(dir, name), "raise SystemExit('imported')\n")
	}
	script(t, filepath.Join(library, "installed/__init__.py"), "")
	report, findings, err := newRuntime().Preflight(context.Background(), PreflightSpec{WorkDir: dir, Imports: []string{"json", "installed", "own", "os", "csv"}, Env: map[string]string{"PYTHONPATH": library}})
	if err != nil || !report.OK {
		t.Fatalf("%v, %+v", err, report)
	}
	got := []string{}
	for _, f := range findings {
		if f.Severity != finding.Warning || f.Where == nil {
			t.Errorf("%+v", f)
		}
		got = append(got, f.Code+" "+f.Where.Field)
	}
	if strings.Join(got, ", ") != "import_shadowed json, import_shadowed installed" {
		t.Errorf("findings %v", findings)
	}
}
