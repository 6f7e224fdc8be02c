package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// environment makes an interpreter with packages of its own: the system's, started so that it sees them.
func environment(t *testing.T, site string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "python")
	text := fmt.Sprintf("#!/bin/sh\nexport PYTHONPATH=\"%s${PYTHONPATH:+:$PYTHONPATH}\"\nexec %s -S \"$@\"\n", site, python(t))
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPackagesAreListedAndCompared(t *testing.T) {
	site := t.TempDir()
	tree(t, site, map[string]string{
		"left-1.0.dist-info/METADATA":    "Metadata-Version: 2.1\nName: left\nVersion: 1.0\n",
		"kept-2.0.dist-info/METADATA":    "Metadata-Version: 2.1\nName: kept\nVersion: 2.0\n",
		"raised-1.0.dist-info/METADATA":  "Metadata-Version: 2.1\nName: raised\nVersion: 1.0\n",
		"damaged-1.0.dist-info/METADATA": "\n",
	})
	spec := example(t)
	spec.Python = environment(t, site)
	s, findings := take(t, spec)
	if len(findings) > 0 || !strings.HasPrefix(s.Python.Version, "3.") || s.Python.Prefix == "" {
		t.Errorf("%v, %+v", findings, s.Python)
	}
	if diff := cmp.Diff(map[string]string{"left": "1.0", "kept": "2.0", "raised": "1.0"}, s.Python.Packages); diff != "" {
		t.Error(diff)
	}
	if got, err := s.Packages(t.Context(), spec.Environ); err != nil || len(got) > 0 {
		t.Errorf("unchanged: %v, %v", got, err)
	}
	remove(t, filepath.Join(site, "left-1.0.dist-info"))
	remove(t, filepath.Join(site, "raised-1.0.dist-info"))
	tree(t, site, map[string]string{"raised-1.1.dist-info/METADATA": "Name: raised\nVersion: 1.1\n", "came-3.dist-info/METADATA": "Name: came\nVersion: 3\n"})
	got, err := s.Packages(t.Context(), spec.Environ)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"came 3 is new", "left 1.0 is gone", "raised 1.1, was 1.0"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnInterpreterThatDoesNotAnswerIsSaid(t *testing.T) {
	spec := example(t)
	spec.Python = "/bin/echo"
	s, findings := take(t, spec)
	if strings.Join(codes(findings), " ") != "freeze_failed" || s.Python.Error == "" {
		t.Errorf("%v, %+v", findings, s.Python)
	}
}

// An editable installation leads back to the tree that may be edited: without a word of ours the job would import from it.
func TestEditableInstallationsAreImportedFromTheCopies(t *testing.T) {
	spec := example(t)
	tree(t, spec.ProjectRoot, map[string]string{"src/mine/__init__.py": "", "lib/other.py": ""})
	site := t.TempDir()
	tree(t, site, map[string]string{"mine-0.1.dist-info/METADATA": "Name: mine\nVersion: 0.1\n",
		"mine-0.1.dist-info/direct_url.json": `{"url": "file://` + spec.ProjectRoot + `", "dir_info": {"editable": true}}`})
	spec.Python = environment(t, site)
	spec.Environ = append(spec.Environ, "PYTHONPATH="+filepath.Join(spec.ProjectRoot, "lib")+":/opt/other")
	s, _ := take(t, spec)
	command, _, err := s.Command([]string{spec.Python, spec.Entrypoint}, "")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(spec.Folder, Folder, "project")
	want := strings.Join([]string{filepath.Join(dir, "lib"), filepath.Join(dir, "src"), dir, "/opt/other"}, ":")
	if got := command.Env["PYTHONPATH"]; got != want {
		t.Errorf("PYTHONPATH is %s\nwant %s", got, want)
	}
}
