package review

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

// interpreter is the python3 of PATH itself, without the shims that a version manager may put before it.
var interpreter = sync.OnceValues(func() (string, error) {
	path, err := exec.Command("python3", "-c", "import sys; print(sys.executable, end='')").Output()
	return string(path), err
})

// installed are modules that the samples import and that no interpreter of a test is asked for.
var installed = []string{"h5py", "pandas", "nltk", "requests", "tensorflow", "torch", "torchvision", "datasets", "huggingface_hub", "sklearn", "transformers", "numpy"}

func found(_ context.Context, modules []string) (map[string]string, error) {
	missing := map[string]string{}
	for _, m := range modules {
		if !slices.Contains(installed, m) {
			missing[m] = "not found"
		}
	}
	return missing, nil
}

func sample(t *testing.T, name string, change func(*Spec)) Report {
	t.Helper()
	python, err := interpreter()
	if err != nil {
		t.Fatalf("python3: %v", err)
	}
	root, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{Python: python, Entry: filepath.Join(root, "train.py"), Root: root, Installed: found}
	if change != nil {
		change(&spec)
	}
	report, err := script(t.Context(), spec, every)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// every is more findings of a class than a sample has.
const every = 100

// wanted reads the comments `# want: severity code [module]` of a sample.
func wanted(t *testing.T, root string) []string {
	t.Helper()
	var want []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".py" {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		for n := 1; lines.Scan(); n++ {
			if _, says, ok := strings.Cut(lines.Text(), "# want: "); ok {
				want = append(want, fmt.Sprintf("%s:%d %s", filepath.Base(path), n, says))
			}
		}
		return lines.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	return want
}

func told(findings []finding.Finding) []string {
	var out []string
	for _, f := range findings {
		line := fmt.Sprintf("%s:%d %s %s", filepath.Base(f.Where.Path), f.Where.Line, f.Severity, f.Code)
		if module, _, is := strings.Cut(f.What, " can't be imported"); is {
			line += " " + module
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// Each sample says in comments what is wrong in it; everything else in it looks like a fault and is none.
func TestSamples(t *testing.T) {
	for _, name := range []string{"imports", "relative_script", "sys_path", "namespace", "paths", "downloads", "downloads_asked", "random", "seeded", "seeded_elsewhere"} {
		t.Run(name, func(t *testing.T) {
			report := sample(t, name, func(s *Spec) { s.Passed, s.Data = []string{"--train-data"}, []string{"/x/data/all.csv"} })
			if diff := cmp.Diff(wanted(t, filepath.Join("testdata", name)), told(report.Findings)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			for _, f := range report.Findings {
				if f.Remedy == "" || f.Expected == "" {
					t.Errorf("%s does not say what to do", f)
				}
			}
			if len(report.Checks) != 6 {
				t.Errorf("checks %+v", report.Checks)
			}
		})
	}
}

func TestExampleIsClean(t *testing.T) {
	python, err := interpreter()
	if err != nil {
		t.Fatal(err)
	}
	root, _ := filepath.Abs("../../examples/breast-cancer")
	report, err := Script(t.Context(), Spec{Python: python, Entry: filepath.Join(root, "train.py"), Root: root, Installed: found})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Findings) > 0 || len(report.Files) != 1 {
		t.Errorf("files %v, findings %v", report.Files, report.Findings)
	}
	for _, c := range report.Checks {
		if !c.OK || c.Why == "" {
			t.Errorf("check %+v", c)
		}
	}
	if !strings.HasPrefix(report.By, "ast of ") {
		t.Errorf("it does not say how it was read: %q", report.By)
	}
}

func TestModuleThatDoesNotCompile(t *testing.T) {
	report := sample(t, "syntax", nil)
	if diff := cmp.Diff([]string{"helper.py:1 error does_not_compile"}, told(report.Findings)); diff != "" {
		t.Error(diff)
	}
	if report.Checks[0].OK {
		t.Error("the check is passed")
	}
}

func TestSeverityFollowsWhatIsAllowed(t *testing.T) {
	refused := sample(t, "downloads", func(s *Spec) { s.NoNetwork = true })
	for _, f := range refused.Findings {
		if f.Code == "hidden_download" && f.Severity != finding.Error {
			t.Errorf("network refused: %s is a %s", f.What, f.Severity)
		}
	}
	lenient := sample(t, "imports", func(s *Spec) { s.Lenient = true })
	for _, f := range lenient.Findings {
		if want := map[bool]finding.Severity{true: finding.Warning, false: finding.Error}[strings.Contains(f.What, "nosuchpackage") || strings.Contains(f.What, "_of_another_world")]; f.Severity != want {
			t.Errorf("%s is a %s", f.What, f.Severity)
		}
	}
	elsewhere := sample(t, "imports", func(s *Spec) { s.Installed = nil })
	if diff := cmp.Diff([]string{"needed_of_another_world", "nosuchpackage"}, slices.Sorted(slices.Values(elsewhere.Modules))); diff != "" {
		t.Errorf("what it can't do without: %s", diff)
	}
	if slices.ContainsFunc(elsewhere.Findings, func(f finding.Finding) bool { return strings.HasPrefix(f.What, "nosuchpackage") }) {
		t.Error("a module of another machine was looked for here")
	}
}

// More than a few findings of a class are counted, not listed.
func TestManyFindingsAreCounted(t *testing.T) {
	all := sample(t, "downloads", nil)
	r := reviewer{shown: shown}
	r.check("no_hidden_downloads", "", all.Findings)
	if n, last := len(r.report.Findings), r.report.Findings[len(r.report.Findings)-1].What; n != shown || !strings.HasSuffix(last, fmt.Sprintf("; %d more like it", len(all.Findings)-shown)) {
		t.Errorf("%d findings, the last: %s", n, last)
	}
}

// A link out of the project is not followed: what lies there is nobody's to read.
func TestModulesOutsideAreNotRead(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.py"), []byte("KEY = '/home/me/key'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "secret.py"), filepath.Join(root, "secret.py")); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(root, "train.py")
	if err := os.WriteFile(script, []byte("import secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	report := sample(t, "syntax", func(s *Spec) { s.Entry, s.Root = script, root })
	if len(report.Files) != 1 || len(report.Findings) != 0 {
		t.Errorf("files %v findings %v", report.Files, report.Findings)
	}
}

func TestInterpreterThatDoesNotAnswer(t *testing.T) {
	report := sample(t, "seeded", func(s *Spec) { s.Python = filepath.Join(t.TempDir(), "python3") })
	if len(report.Findings) != 1 || report.Findings[0].Code != "compile_unchecked" || report.Checks[0].OK {
		t.Errorf("%+v", report)
	}
}

// The review of a script leaves no bytecode behind and runs nothing of it.
func TestNothingIsRun(t *testing.T) {
	root := t.TempDir()
	script := filepath.Join(root, "train.py")
	for name, text := range map[string]string{"train.py": "import json, helper\nopen('ran', 'w')\n", "helper.py": "open('ran', 'w')\n", "json.py": "open('ran', 'w')\n", "ast.py": "open('ran', 'w')\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	report := sample(t, "syntax", func(s *Spec) { s.Entry, s.Root = script, root })
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 4 {
		t.Errorf("left behind: %v %v", entries, err)
	}
	if len(report.Files) != 3 {
		t.Errorf("files %v", report.Files)
	}
}
