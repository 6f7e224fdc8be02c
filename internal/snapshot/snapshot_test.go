package snapshot

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// tree writes files; a name that ends in a slash is a folder.
func tree(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(file, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// example is a small one whose script imports beside itself and reads beside itself.
func example(t *testing.T) Spec {
	t.Helper()
	top := t.TempDir()
	root := filepath.Join(top, "proj")
	tree(t, root, map[string]string{
		"train.py":             "import os, sys\nfrom pkg import model\nhere = os.path.dirname(os.path.abspath(__file__))\nprint(model.NAME, open(os.path.join(here, 'data', 'rows.csv')).read().strip(), open(sys.argv[2]).read().strip())\n",
		"pkg/__init__.py":      "",
		"pkg/model.py":         "NAME = 'first'\n",
		"conf/a.yaml":          "lr: 0.1\n",
		"data/rows.csv":        "1,2\n",
		"weights.pt":           "PK",
		"notes.txt":            strings.Repeat("long ", 400),
		".env":                 "TOKEN=1\n",
		".git/HEAD":            "no repository\n",
		"pkg/__pycache__/x.py": "",
		".venv/bin/python":     "",
		"README.md":            "read me\n",
		"empty/":               "",
	})
	code := filepath.Join(top, "run", "code")
	tree(t, code, map[string]string{"override.yaml": "lr: 0.2\n", "data/train.csv": "3,4\n", ".trainer_work/r/facts.json": "[]\n"})
	return Spec{ProjectRoot: root, CodeSaveDir: code, Entrypoint: filepath.Join(root, "train.py"), Folder: filepath.Join(top, "run", "jobs", "j-1"),
		Inputs: []string{filepath.Join(code, "data")}, Environ: append(os.Environ(), "LOADEDMODULES=gcc/12:cuda/12.4"), Now: now, Limits: Limits{MaxFileBytes: 1000},
		Machine: Machine{Host: "here", OS: "linux", CPUs: 2}}
}

func take(t *testing.T, spec Spec) (Snapshot, []finding.Finding) {
	t.Helper()
	s, findings, err := Take(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return s, findings
}

func codes(findings []finding.Finding) []string {
	out := []string{}
	for _, f := range findings {
		out = append(out, f.Code)
		if f.Remedy == "" || f.Where == nil {
			out = append(out, f.Code+" without a remedy or place")
		}
	}
	return out
}

func refusal(err error) []string {
	var refused *finding.Refused
	if errors.As(err, &refused) {
		return codes(refused.Findings)
	}
	return nil
}

func paths[T any](list []T, path func(T) string) string {
	var out []string
	for _, x := range list {
		out = append(out, path(x))
	}
	return strings.Join(out, " ")
}

func copied(f Copied) string { return f.Path }
func linked(l Link) string   { return l.Path }
func left(o Original) string { return o.Path + ":" + o.Why }

func TestTakeCopiesCodeAndLinksTheRest(t *testing.T) {
	spec := example(t)
	s, findings := take(t, spec)
	if diff := cmp.Diff([]string{}, codes(findings)); diff != "" {
		t.Error(diff)
	}
	if s.Entrypoint != "project/train.py" || len(s.Roots) != 2 || s.Git == nil || s.Git.Error == "" || s.TakenAt != now {
		t.Errorf("got %+v", s)
	}
	want := [][3]string{
		{"README.md conf/a.yaml pkg/__init__.py pkg/model.py train.py", ".env .venv data empty notes.txt weights.pt", ".env:secrets data/rows.csv:data notes.txt:large weights.pt:checkpoint"},
		{"override.yaml", "data", "data/train.csv:data"},
	}
	for i, root := range s.Roots {
		got := [3]string{paths(root.Files, copied), paths(root.Links, linked), paths(root.Skipped, left)}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("%s: %s", root.Name, diff)
		}
		for _, o := range root.Skipped {
			if (o.SHA256 == "") != (o.Why == "secrets") || o.Bytes == 0 || o.ModTime.IsZero() {
				t.Errorf("%+v", o)
			}
		}
	}
	if len(s.Inputs) != 1 || s.Inputs[0].SHA256 == "" || !slices.Equal(s.Modules, []string{"gcc/12", "cuda/12.4"}) {
		t.Errorf("inputs %+v, modules %v", s.Inputs, s.Modules)
	}
	again, err := Read(spec.Folder)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, again); diff != "" {
		t.Errorf("what is read is not what was taken: %s", diff)
	}
	// Taken again in the same folder it is the same, and nothing of the first is left beside it.
	third, _ := take(t, spec)
	entries, _ := os.ReadDir(spec.Folder)
	if third.TreeSHA256 != s.TreeSHA256 || len(entries) != 2 {
		t.Errorf("%s, %s; %d entries", s.TreeSHA256, third.TreeSHA256, len(entries))
	}
}

// A trial writes where it reads, and the originals stay: folders are folders, small files are copies, outputs begin empty.
func TestATrialIsKeptApart(t *testing.T) {
	spec := example(t)
	tree(t, spec.ProjectRoot, map[string]string{"checkpoints/old.pt": "PK", "runs/1/events.bin": strings.Repeat("x", 2000)})
	spec.Trial, spec.Outputs = true, []string{filepath.Join(spec.ProjectRoot, "checkpoints"), filepath.Join(spec.CodeSaveDir, "outputs")}
	s, findings := take(t, spec)
	if diff := cmp.Diff([]string{}, codes(findings)); diff != "" {
		t.Error(diff)
	}
	want := [][2]string{
		{"README.md conf/a.yaml data/rows.csv pkg/__init__.py pkg/model.py train.py weights.pt", ".env .venv notes.txt runs/1/events.bin"},
		{"data/train.csv override.yaml", ""},
	}
	for i, root := range s.Roots {
		if diff := cmp.Diff(want[i], [2]string{paths(root.Files, copied), paths(root.Links, linked)}); diff != "" {
			t.Errorf("%s: %s", root.Name, diff)
		}
	}
	entries, err := os.ReadDir(filepath.Join(spec.Folder, Folder, ProjectName, "checkpoints"))
	if err != nil || len(entries) != 0 {
		t.Errorf("checkpoints: %v %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(spec.CodeSaveDir, "outputs")); err == nil {
		t.Error("a folder was made in the original tree")
	}
}

func TestEditingTheTreeChangesNothing(t *testing.T) {
	spec := example(t)
	s, _ := take(t, spec)
	command, findings, err := s.Command([]string{python(t), spec.Entrypoint, "--config=conf/a.yaml", "conf/a.yaml"}, spec.ProjectRoot)
	if err != nil || len(findings) != 0 {
		t.Fatal(err, findings)
	}
	run := func() string {
		cmd := exec.Command(command.Argv[0], command.Argv[1:]...)
		cmd.Dir = spec.ProjectRoot
		cmd.Env = os.Environ()
		for name, value := range command.Env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	// argv[2] is the configuration in both of its forms; the script reads the bare one.
	command.Argv = slices.Delete(command.Argv, 2, 3)
	command.Argv = slices.Insert(command.Argv, 2, "x")
	before := run()
	tree(t, spec.ProjectRoot, map[string]string{"train.py": "raise SystemExit('edited')\n", "pkg/model.py": "NAME = 'second'\n", "conf/a.yaml": "lr: 9\n", "pkg/os.py": "raise SystemExit('planted')\n"})
	if after := run(); before != "first 1,2 lr: 0.1" || after != before {
		t.Errorf("before %q, after %q", before, after)
	}
	if _, findings, err := Verify(spec.Folder, s.TreeSHA256); err != nil || len(findings) != 0 {
		t.Errorf("running it altered it: %v %v", findings, err)
	}
}

// python is the interpreter itself: what PATH names may be a shim.
func python(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatal("these tests need python3")
	}
	return strings.TrimSpace(string(out))
}

func TestCommand(t *testing.T) {
	spec := example(t)
	s, _ := take(t, spec)
	project, code := filepath.Join(spec.Folder, "snapshot", "project"), filepath.Join(spec.Folder, "snapshot", "code_save_dir")
	script, over := spec.Entrypoint, filepath.Join(spec.CodeSaveDir, "override.yaml")
	cases := map[string]struct {
		argv, want []string
		workDir    string
		codes      string
		refused    string
	}{
		"script and configuration": {argv: []string{"python", script, "--config", over, "--lr", "0.1"}, want: []string{"python", filepath.Join(project, "train.py"), "--config", filepath.Join(code, "override.yaml"), "--lr", "0.1"}},
		"behind an equals sign":    {argv: []string{"python", script, "--config=" + over, "key=" + over}, want: []string{"python", filepath.Join(project, "train.py"), "--config=" + filepath.Join(code, "override.yaml"), "key=" + over}},
		"from the working folder":  {argv: []string{"python", "train.py", "conf/a.yaml", "pkg"}, workDir: spec.ProjectRoot, want: []string{"python", filepath.Join(project, "train.py"), filepath.Join(project, "conf", "a.yaml"), "pkg"}},
		"data stays":               {argv: []string{"python", script, filepath.Join(spec.CodeSaveDir, "data", "train.csv"), spec.ProjectRoot}, want: []string{"python", filepath.Join(project, "train.py"), filepath.Join(spec.CodeSaveDir, "data", "train.csv"), spec.ProjectRoot}},
		"a folder of code is live": {argv: []string{"python", script, filepath.Join(spec.ProjectRoot, "conf")}, want: []string{"python", filepath.Join(project, "train.py"), filepath.Join(spec.ProjectRoot, "conf")}, codes: "snapshot_argument_live"},
		"through a launcher":       {argv: []string{"torchrun", "--nproc=2", script}, want: []string{"torchrun", "--nproc=2", filepath.Join(project, "train.py")}},
		"a module":                 {argv: []string{"python", "-m", "train"}, workDir: spec.ProjectRoot, refused: "snapshot_not_used"},
		"another script":           {argv: []string{"python", "pkg/model.py"}, workDir: spec.ProjectRoot, refused: "snapshot_not_used"},
		"from another folder":      {argv: []string{"python", "train.py"}, workDir: spec.CodeSaveDir, refused: "snapshot_not_used"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			given := slices.Clone(c.argv)
			got, findings, err := s.Command(c.argv, c.workDir)
			if strings.Join(refusal(err), " ") != c.refused || strings.Join(codes(findings), " ") != c.codes {
				t.Fatalf("%v, %v", err, findings)
			}
			if diff := cmp.Diff(c.want, got.Argv); diff != "" {
				t.Error(diff)
			}
			if !slices.Equal(given, c.argv) {
				t.Error("the command that was passed in has changed")
			}
			if err == nil && (got.Env[TreeVariable] != s.TreeSHA256 || got.Env["PYTHONDONTWRITEBYTECODE"] != "1") {
				t.Errorf("environment %v", got.Env)
			}
		})
	}
	if got := s.Original(filepath.Join(project, "pkg", "model.py")); got != filepath.Join(s.Roots[0].Original, "pkg", "model.py") {
		t.Errorf("the original is %s", got)
	}
	if got := s.Original("/usr/lib/x.py"); got != "/usr/lib/x.py" {
		t.Errorf("the original is %s", got)
	}
}

func TestVerifyFindsEveryAlteration(t *testing.T) {
	cases := map[string]struct {
		alter func(t *testing.T, spec Spec, dir string)
		want  string
	}{
		"nothing": {func(*testing.T, Spec, string) {}, ""},
		"a copy is edited": {func(t *testing.T, _ Spec, dir string) {
			tree(t, dir, map[string]string{"project/pkg/model.py": "NAME = 'other'"})
		}, "snapshot_altered"},
		"a copy is removed":   {func(t *testing.T, _ Spec, dir string) { remove(t, filepath.Join(dir, "project/conf/a.yaml")) }, "snapshot_altered"},
		"a module is planted": {func(t *testing.T, _ Spec, dir string) { tree(t, dir, map[string]string{"project/json.py": ""}) }, "snapshot_altered"},
		"bytecode is planted": {func(t *testing.T, _ Spec, dir string) {
			tree(t, dir, map[string]string{"project/pkg/__pycache__/model.cpython-311.pyc": ""})
		}, "snapshot_altered"},
		"a copy becomes a link": {func(t *testing.T, spec Spec, dir string) {
			relink(t, filepath.Join(spec.ProjectRoot, "train.py"), filepath.Join(dir, "project/train.py"))
		}, "snapshot_altered"},
		"a link leads elsewhere": {func(t *testing.T, _ Spec, dir string) { relink(t, "/tmp", filepath.Join(dir, "project/data")) }, "snapshot_altered"},
		"everything is removed":  {func(t *testing.T, _ Spec, dir string) { remove(t, dir) }, "snapshot_altered"},
		"the record is edited with the copy": {func(t *testing.T, spec Spec, dir string) {
			tree(t, dir, map[string]string{"project/conf/a.yaml": "lr: 7\n"})
			replace(t, filepath.Join(spec.Folder, File), hash(t, filepath.Join(spec.ProjectRoot, "conf/a.yaml")), hash(t, filepath.Join(dir, "project/conf/a.yaml")))
		}, "snapshot_altered"},
		"an input is edited": {func(t *testing.T, spec Spec, _ string) {
			tree(t, spec.CodeSaveDir, map[string]string{"data/train.csv": "9,9\n"})
		}, "snapshot_input_changed"},
		"an original is edited": {func(t *testing.T, spec Spec, _ string) {
			tree(t, spec.ProjectRoot, map[string]string{"weights.pt": "XX"})
		}, "snapshot_original_changed"},
		"the tree is edited": {func(t *testing.T, spec Spec, _ string) {
			tree(t, spec.ProjectRoot, map[string]string{"train.py": "", "new.py": ""})
		}, ""},
		"the job writes beside":  {func(t *testing.T, _ Spec, dir string) { tree(t, dir, map[string]string{"project/out/loss.txt": "1"}) }, "snapshot_grown"},
		"an original is touched": {func(t *testing.T, spec Spec, _ string) { touch(t, filepath.Join(spec.ProjectRoot, "weights.pt")) }, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := example(t)
			s, _ := take(t, spec)
			c.alter(t, spec, filepath.Join(spec.Folder, Folder))
			_, findings, err := Verify(spec.Folder, s.TreeSHA256)
			if err != nil || strings.Join(codes(findings), " ") != c.want {
				t.Errorf("%v, findings %v, want %s", err, findings, c.want)
			}
		})
	}
	t.Run("record and hash are both rewritten", func(t *testing.T) {
		spec := example(t)
		s, _ := take(t, spec)
		tree(t, spec.ProjectRoot, map[string]string{"conf/a.yaml": "lr: 7\n"})
		take(t, spec)
		_, findings, err := Verify(spec.Folder, s.TreeSHA256)
		if err != nil || strings.Join(codes(findings), " ") != "snapshot_altered" {
			t.Errorf("%v, %v", err, findings)
		}
	})
	t.Run("no snapshot", func(t *testing.T) {
		if _, _, err := Verify(t.TempDir(), ""); strings.Join(refusal(err), " ") != "snapshot_missing" {
			t.Error(err)
		}
	})
	t.Run("a torn record", func(t *testing.T) {
		spec := example(t)
		take(t, spec)
		if err := os.Truncate(filepath.Join(spec.Folder, File), 100); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Verify(spec.Folder, ""); err == nil {
			t.Error("accepted")
		}
	})
}

func TestCopyToRepeatsWhatWasTaken(t *testing.T) {
	spec := example(t)
	s, _ := take(t, spec)
	command, _, err := s.Command([]string{"python", spec.Entrypoint}, "")
	if err != nil {
		t.Fatal(err)
	}
	tree(t, filepath.Join(spec.Folder, Folder), map[string]string{"project/out/loss.txt": "1"})
	second := filepath.Join(filepath.Dir(spec.Folder), "j-2")
	if _, err := s.CopyTo(second); err != nil {
		t.Fatal(err)
	}
	got, findings, err := Verify(second, s.TreeSHA256)
	if err != nil || len(findings) > 0 || got.TreeSHA256 != s.TreeSHA256 {
		t.Errorf("%v, %v", err, findings)
	}
	argv, env := Moved(command.Argv, map[string]string{"PYTHONPATH": filepath.Join(spec.Folder, "snapshot", "project")}, spec.Folder, second)
	if argv[1] != filepath.Join(second, "snapshot", "project", "train.py") || env["PYTHONPATH"] != filepath.Join(spec.Folder, "snapshot", "project") && !strings.HasPrefix(env["PYTHONPATH"], second) {
		t.Errorf("%v, %v", argv, env)
	}
	tree(t, filepath.Join(spec.Folder, Folder), map[string]string{"project/train.py": "pass\n"})
	third := filepath.Join(filepath.Dir(spec.Folder), "j-3")
	if _, err := s.CopyTo(third); strings.Join(refusal(err), " ") != "snapshot_altered" {
		t.Error(err)
	}
	if left, _ := os.ReadDir(third); len(left) != 0 {
		t.Errorf("%v is left of a copy that was refused", left)
	}
}

func TestTakeStaysWithinItsLimits(t *testing.T) {
	spec := example(t)
	tree(t, spec.ProjectRoot, map[string]string{"big.py": "#" + strings.Repeat(" ", 1000)})
	_, findings := take(t, spec)
	if got := strings.Join(codes(findings), " "); got != "snapshot_code_linked" {
		t.Errorf("code beyond a file's limit: %s", got)
	}
	spec.Limits = Limits{MaxFiles: 3}
	s, findings := take(t, spec)
	if got := paths(s.Roots[0].Files, copied); got != "big.py pkg/__init__.py train.py" || strings.Join(codes(findings), " ") != "snapshot_code_linked" {
		t.Errorf("%s, %v", got, findings)
	}
	spec.Limits = Limits{MaxLinks: 2, MaxHashBytes: 1}
	s, findings = take(t, spec)
	if n := len(s.Roots[0].Links) + len(s.Roots[1].Links); n != 2 || strings.Join(codes(findings), " ") != "snapshot_cut" || s.Inputs[0].SHA256 != "" {
		t.Errorf("%d links, %v, %+v", n, findings, s.Inputs)
	}
}

func TestTakeRefusesAnEntryPointThatItCannotCopy(t *testing.T) {
	for name, entry := range map[string]string{"missing": "trian.py", "outside": "../run/elsewhere.py", "large": "notes.txt"} {
		spec := example(t)
		spec.Entrypoint = filepath.Join(spec.ProjectRoot, entry)
		if _, _, err := Take(t.Context(), spec); strings.Join(refusal(err), " ") != "snapshot_entrypoint_missing" {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadDir(spec.Folder); len(left) != 0 {
			t.Errorf("%s: %v is left", name, left)
		}
	}
	spec := example(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Take(ctx, spec); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if left, _ := os.ReadDir(spec.Folder); len(left) != 0 {
		t.Errorf("%v is left of a take that was cancelled", left)
	}
}

// A run may live inside the project that it trains, and its own folders must not be copied into its jobs.
func TestTakeLeavesTheRunOut(t *testing.T) {
	root := t.TempDir()
	tree(t, root, map[string]string{"train.py": "", "runs/a/step_handoff.json": "{}", "runs/a/jobs/j-0/snapshot/project/train.py": "", "runs/a/code/override.yaml": "", "outputs/notes.txt": "x"})
	spec := Spec{ProjectRoot: root, CodeSaveDir: filepath.Join(root, "runs/a/code"), Entrypoint: filepath.Join(root, "train.py"), Folder: filepath.Join(root, "runs/a/jobs/j-1"),
		Exclude: []string{filepath.Join(root, "runs/a")}, Outputs: []string{filepath.Join(root, "outputs"), filepath.Join(root, "checkpoints")}, Now: now}
	s, _ := take(t, spec)
	if got := paths(s.Roots[0].Files, copied) + "; " + paths(s.Roots[0].Links, linked); got != "train.py; checkpoints outputs runs" {
		t.Errorf("project: %s", got)
	}
	if got := paths(s.Roots[1].Files, copied); got != "override.yaml" {
		t.Errorf("code_save_dir: %s", got)
	}
	// What the script writes beside itself lands in the original folder.
	tree(t, filepath.Join(spec.Folder, Folder), map[string]string{"project/checkpoints/one.pt": "PK"})
	if _, err := os.Stat(filepath.Join(root, "checkpoints/one.pt")); err != nil {
		t.Error(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func relink(t *testing.T, target, link string) {
	t.Helper()
	remove(t, link)
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
}

func touch(t *testing.T, file string) {
	t.Helper()
	if err := os.Chtimes(file, now, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
}

func hash(t *testing.T, file string) string {
	t.Helper()
	o, err := (&taker{limits: Limits{}.orDefault()}).original(file, file, "")
	if err != nil {
		t.Fatal(err)
	}
	return o.SHA256
}

func replace(t *testing.T, file, from, to string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(data), from) {
		t.Fatalf("%v; %s is not in %s", err, from, file)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(data), from, to)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	if runtime.GOOS == "windows" {
		os.Exit(0) // the fixtures are made of links
	}
	os.Exit(m.Run())
}
