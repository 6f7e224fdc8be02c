//go:build linux

package local

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

// fakePython makes an interpreter that is the system's python3 under another name.
func fakePython(t *testing.T, path string) string {
	t.Helper()
	// What PATH names may be a shim that needs more of PATH than the tests leave.
	real, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatal("these tests need python3")
	}
	return script(t, path, "#!/bin/sh\nexec "+strings.TrimSpace(string(real))+" \"$@\"\n")
}

func script(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	// Nothing may be forked while the file is open for writing: the child would hold it open, and running it fails with
	// ETXTBSY (execve(2)).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestChoosePython(t *testing.T) {
	dir := t.TempDir()
	active := fakePython(t, filepath.Join(dir, "active/bin/python"))
	conda := fakePython(t, filepath.Join(dir, "conda/bin/python"))
	withEnv := filepath.Join(dir, "with-env")
	own := fakePython(t, filepath.Join(withEnv, ".venv/bin/python"))
	broken := filepath.Join(dir, "broken")
	script(t, filepath.Join(broken, ".venv/bin/python"), "#!/bin/sh\necho cannot start >&2\nexit 1\n")
	none := filepath.Join(dir, "none")
	path := "PATH=" + os.Getenv("PATH")

	cases := map[string]struct {
		root, asked string
		environ     []string
		path, why   string
		finding     string
		refused     string
	}{
		"asked wins":                   {root: withEnv, asked: conda, environ: []string{path, "VIRTUAL_ENV=" + filepath.Join(dir, "active")}, path: conda, why: "asked for"},
		"asked for as an environment":  {root: withEnv, asked: filepath.Join(dir, "conda"), environ: []string{path}, path: conda, why: "asked for"},
		"asked for below the project":  {root: withEnv, asked: ".venv/bin/python", environ: []string{path}, path: own, why: "asked for"},
		"asked for and missing":        {root: withEnv, asked: "/no/such/python", environ: []string{path}, refused: "python_missing"},
		"asked for and no Python":      {root: withEnv, asked: "/bin/echo", environ: []string{path}, refused: "python_missing"},
		"the project's own":            {root: withEnv, environ: []string{path, "VIRTUAL_ENV=" + filepath.Join(dir, "active")}, path: own, why: "the project's .venv"},
		"the active one":               {root: none, environ: []string{path, "CONDA_PREFIX=" + filepath.Join(dir, "conda"), "VIRTUAL_ENV=" + filepath.Join(dir, "active")}, path: active, why: "the active environment, VIRTUAL_ENV"},
		"conda's":                      {root: none, environ: []string{path, "CONDA_PREFIX=" + filepath.Join(dir, "conda")}, path: conda, why: "the active environment, CONDA_PREFIX"},
		"broken is passed over":        {root: broken, environ: []string{path, "VIRTUAL_ENV=" + filepath.Join(dir, "active")}, path: active, why: "the active environment, VIRTUAL_ENV", finding: "python_unusable"},
		"on PATH":                      {root: none, environ: []string{path}, why: "python3 on PATH"},
		"a name on PATH is asked for":  {root: none, asked: "python3", environ: []string{path}, why: "asked for"},
		"no project, nothing asked":    {environ: []string{"PATH=" + filepath.Join(dir, "active/bin")}, why: "python on PATH"},
		"asked for, an empty VENV dir": {asked: dir, environ: []string{path}, refused: "python_missing"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			python, findings, err := New(Options{Environ: c.environ}).ChoosePython(context.Background(), c.root, c.asked)
			if got := strings.Join(refusedWith(err), " "); got != c.refused {
				t.Fatalf("refused %q (%v), want %q", got, err, c.refused)
			}
			if c.refused != "" {
				return
			}
			if c.path != "" && python.Path != c.path || python.Why != c.why || !strings.HasPrefix(python.Version, "3.") {
				t.Errorf("got %+v, want %s, %s", python, c.path, c.why)
			}
			if got := strings.Join(codes(findings), " "); got != c.finding {
				t.Errorf("findings %q, want %q", got, c.finding)
			}
		})
	}
}

func TestDiscover(t *testing.T) {
	dir := t.TempDir()
	script(t, filepath.Join(dir, "nvidia-smi"), "#!/bin/sh\necho '0, NVIDIA H200, 143771, 143000, 570.86'\necho '1, NVIDIA A100-SXM4-80GB, [N/A], 100, 570.86'\n")
	r := New(Options{Host: "here", Workspace: dir, Environ: []string{"PATH=" + dir + ":" + os.Getenv("PATH")}})
	facilities, findings, err := r.Discover(context.Background())
	if err != nil || len(findings) > 0 {
		t.Fatalf("%v, %v", err, findings)
	}
	if facilities.Host != "here" || facilities.CPUs < 1 || facilities.MemoryTotalMB < 64 || facilities.MemoryFreeMB > facilities.MemoryTotalMB ||
		facilities.DiskFreeMB < 1 || len(facilities.Pythons) == 0 {
		t.Errorf("facilities %+v", facilities)
	}
	want := []jobs.GPU{{Index: 0, Name: "NVIDIA H200", MemoryTotalMB: 143771, MemoryFreeMB: 143000, Driver: "570.86"},
		{Index: 1, Name: "NVIDIA A100-SXM4-80GB", MemoryFreeMB: 100, Driver: "570.86"}}
	if !slices.Equal(facilities.GPUs, want) {
		t.Errorf("GPUs %+v", facilities.GPUs)
	}
}

// nvidia-smi hangs where the driver does; what it started must not hold up the answer either.
func TestDiscoverDoesNotWaitForTheDriver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script(t, filepath.Join(dir, "nvidia-smi"), "#!/bin/sh\nsleep 20\n")
	r := New(Options{Workspace: dir, Environ: []string{"PATH=" + dir + ":" + os.Getenv("PATH")}})
	facilities, findings, err := r.Discover(context.Background())
	if err != nil || len(facilities.GPUs) != 0 {
		t.Errorf("%v, %+v", err, facilities.GPUs)
	}
	wantCode(t, findings, "facility_unknown")
}

func TestPreflight(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"train.py", "data.csv", "localmodule.py", "json.py", "email.py", "csv.py", "pkg/__init__.py"} {
		// Importing the package would fail: the probe must find it without running it.
		script(t, filepath.Join(dir, name), "raise SystemExit('imported')\n")
	}
	library := t.TempDir()
	script(t, filepath.Join(library, "librarymodule.py"), "raise SystemExit('imported')\n")
	cases := map[string]struct {
		spec    PreflightSpec
		finding string
	}{
		"all is there": {spec: PreflightSpec{WorkDir: dir, Entrypoint: "train.py", Imports: []string{"json", "os.path", "localmodule", "pkg", "xml.etree", "sys"},
			Inputs: []string{"data.csv", dir}, OutputDir: dir, NeedDiskMB: 1, Resources: jobs.Resources{Nodes: 1, CPUs: 1, MemoryMB: 1}}},
		"output to be made":   {spec: PreflightSpec{WorkDir: dir, OutputDir: "outputs/run1", NeedDiskMB: 1}},
		"python path":         {spec: PreflightSpec{WorkDir: t.TempDir(), Imports: []string{"librarymodule"}, Env: map[string]string{"PYTHONPATH": library}}},
		"no entry point":      {PreflightSpec{WorkDir: dir, Entrypoint: "trian.py"}, "entrypoint_missing"},
		"entry point is dir":  {PreflightSpec{WorkDir: dir, Entrypoint: "pkg"}, "entrypoint_missing"},
		"no module":           {PreflightSpec{WorkDir: dir, Imports: []string{"json", "no_such_module_xyz"}}, "import_missing"},
		"no submodule":        {PreflightSpec{WorkDir: dir, Imports: []string{"xml.nothing"}}, "import_missing"},
		"no package part":     {PreflightSpec{WorkDir: dir, Imports: []string{"pkg.inner"}}, "import_missing"},
		"no input":            {PreflightSpec{WorkDir: dir, Inputs: []string{"data.csv", "data/val.csv"}}, "input_missing"},
		"output is a file":    {PreflightSpec{WorkDir: dir, OutputDir: "data.csv"}, "output_not_writable"},
		"output below a file": {PreflightSpec{WorkDir: dir, OutputDir: "/proc/nothing"}, "output_not_writable"},
		"no disk":             {PreflightSpec{WorkDir: dir, OutputDir: dir, NeedDiskMB: 1 << 40}, "disk_low"},
		"too many processors": {PreflightSpec{Resources: jobs.Resources{CPUs: 1 << 20}}, "cpus_exceeded"},
		"too much memory":     {PreflightSpec{Resources: jobs.Resources{MemoryMB: 1 << 40}}, "memory_exceeded"},
		"too many GPUs":       {PreflightSpec{Resources: jobs.Resources{GPUsPerNode: 1 << 10}}, "gpus_exceeded"},
		"two nodes":           {PreflightSpec{Resources: jobs.Resources{Nodes: 2}}, "nodes_exceeded"},
		"no interpreter":      {PreflightSpec{WorkDir: dir, Python: "/no/such/python"}, "python_missing"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, findings, err := newRuntime().Preflight(context.Background(), c.spec)
			if err != nil {
				t.Fatal(err)
			}
			errors := slices.DeleteFunc(findings, func(f finding.Finding) bool { return f.Severity != finding.Error })
			if got := strings.Join(codes(errors), " "); got != c.finding || report.OK != (c.finding == "") || len(report.Checks) == 0 {
				t.Errorf("findings %v, ok %v, checks %+v; want %q", errors, report.OK, report.Checks, c.finding)
			}
		})
	}
	t.Cleanup(func() {
		if left, _ := filepath.Glob(filepath.Join(dir, ".trainwright-probe-*")); len(left) > 0 {
			t.Errorf("probe files %v are left", left)
		}
		if cached, _ := filepath.Glob(filepath.Join(dir, "__pycache__", "*")); len(cached) > 0 {
			t.Errorf("the probe imported %v", cached)
		}
	})
}
