//go:build linux

package local

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

// distributions lays packages where PYTHONPATH finds them.
func distributions(t *testing.T, versions map[string]string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for name, version := range versions {
		script(t, filepath.Join(dir, name+"-"+version+".dist-info", "METADATA"), "Metadata-Version: 2.1\nName: "+name+"\nVersion: "+version+"\n")
	}
	script(t, filepath.Join(dir, "bare_module.py"), "raise SystemExit('imported')\n")
	return map[string]string{"PYTHONPATH": dir}
}

func TestPreflightOfPackages(t *testing.T) {
	env := distributions(t, map[string]string{"torch": "2.5.1+cu121", "scikit_learn": "1.4.0", "nightly": "3.0.0.dev20260101"})
	python := fakePython(t, filepath.Join(t.TempDir(), "python3"))
	cases := map[string]struct {
		packages []string
		codes    string
		ok       bool
	}{
		"satisfied":             {[]string{"torch>=2.0,<3", "scikit-learn", "Scikit.Learn ~= 1.4", "torch[extra]==2.5.1", "nightly>=2", "python>=3.6"}, "", true},
		"another spelling":      {[]string{"pytorch>=2", "torch (>=2.0)", "torch=2.5"}, "", true},
		"by its module":         {[]string{"bare-module"}, "", true},
		"too old":               {[]string{"torch>=2.6", "scikit-learn"}, "package_missing", false},
		"not there":             {[]string{"no-such-package-xyz", "torch<2"}, "package_missing", false},
		"Python too old":        {[]string{"python>=4"}, "python_version_unsatisfied", false},
		"under a condition":     {[]string{`dataclasses; python_version < "3.7"`}, "package_unchecked", true},
		"no requirement":        {[]string{"CUDA 12.1", "torch>=two"}, "package_unchecked package_unchecked", true},
		"version is not known":  {[]string{"bare-module>=1"}, "package_unchecked", true},
		"a direct reference":    {[]string{"torch @ https://example.org/torch.whl"}, "", true},
		"a quote is not let in": {[]string{"x>='1'; touch y"}, "package_unchecked", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			report, findings, err := newRuntime().Preflight(context.Background(), PreflightSpec{Python: python, WorkDir: t.TempDir(), Packages: c.packages, Env: env})
			if err != nil {
				t.Fatal(err)
			}
			findings = slices.DeleteFunc(findings, func(f finding.Finding) bool { return f.Severity == finding.Note })
			if got := strings.Join(codes(findings), " "); got != c.codes || report.OK != c.ok {
				t.Errorf("%q, ok %v, want %q; %v %+v", got, report.OK, c.codes, findings, report.Checks)
			}
		})
	}
}

// The user runs the command as it stands, so it must name the interpreter that was looked at and all that lacks.
func TestTheInstallCommandIsWhole(t *testing.T) {
	python := jobs.Python{Path: "/opt/my env/bin/python"}
	without := New(Options{Environ: []string{"PATH=/nowhere"}})
	uv := t.TempDir()
	script(t, filepath.Join(uv, "uv"), "#!/bin/sh\n")
	for _, c := range []struct {
		runtime *Runtime
		answer  probe
		want    string
	}{
		{without, probe{Pip: true}, "'/opt/my env/bin/python' -m pip install 'torch>=2' 'numpy'"},
		{New(Options{Environ: []string{"PATH=" + uv}}), probe{}, "uv pip install --python '/opt/my env/bin/python' 'torch>=2' 'numpy'"},
		{without, probe{}, "'/opt/my env/bin/python' -m ensurepip && '/opt/my env/bin/python' -m pip install 'torch>=2' 'numpy'"},
		{without, probe{Pip: true, Managed: true}, "'/opt/my env/bin/python' -m venv .venv && .venv/bin/python -m pip install 'torch>=2' 'numpy'"},
	} {
		if got, _ := installCommand(c.runtime, python, []string{"torch>=2", "numpy"}, c.answer); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
	env := distributions(t, map[string]string{"torch": "1.9"})
	_, findings, err := newRuntime().Preflight(context.Background(), PreflightSpec{Python: fakePython(t, filepath.Join(t.TempDir(), "python3")), WorkDir: t.TempDir(), Packages: []string{"torch>=2", "absent-xyz"}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, findings, "package_missing")
	for _, f := range findings {
		if f.Code == "package_missing" && (!strings.Contains(f.What, "torch>=2 (1.9 is installed), absent-xyz") || !strings.Contains(f.Remedy, "install 'torch>=2' 'absent-xyz'")) {
			t.Errorf("%s", f)
		}
	}
}

func TestPreflightOfTheProgram(t *testing.T) {
	dir := t.TempDir()
	script(t, filepath.Join(dir, "run.sh"), "#!/bin/sh\n")
	if err := os.WriteFile(filepath.Join(dir, "plain.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	script(t, filepath.Join(other, "tool-xyz"), "#!/bin/sh\n")
	for command, want := range map[string]string{"sh": "", "/bin/sh": "", "./run.sh": "", "tool-xyz": "", "no-such-program-xyz": "command_not_found", "./plain.txt": "command_not_found", "/no/such": "command_not_found"} {
		report, findings, err := newRuntime().Preflight(context.Background(), PreflightSpec{WorkDir: dir, Command: command, Env: map[string]string{"PATH": other + ":/bin:/usr/bin"}})
		if got := strings.Join(codes(findings), " "); err != nil || got != want || report.OK != (want == "") {
			t.Errorf("%s: %q, want %q (%v) %+v", command, got, want, err, report)
		}
	}
}
