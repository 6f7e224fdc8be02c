package project

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/trainwright/trainwright/internal/finding"
)

// write unpacks files (path, content, path, content …) under a fresh folder that has no repository above it.
func write(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(root, filepath.FromSlash(files[i]))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func scan(t *testing.T, root string, opts Options) (*Tree, []finding.Finding) {
	t.Helper()
	opts.GitCeiling = root
	tree, findings, err := Scan(context.Background(), root, opts)
	if err != nil {
		t.Fatal(err)
	}
	return tree, findings
}

func codes(findings []finding.Finding) string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Code)
	}
	return strings.Join(out, " ")
}

func TestScanGolden(t *testing.T) {
	archive, err := txtar.ParseFile(filepath.Join("testdata", "tree.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, f := range archive.Files {
		files = append(files, f.Name, string(f.Data))
	}
	root := write(t, files...)
	tree, findings := scan(t, root, Options{Python: "none"}) // the same on machines with and without one
	again, _ := scan(t, root, Options{Python: "none"})
	if diff := cmp.Diff(tree, again); diff != "" {
		t.Errorf("a second scan differs:\n%s", diff)
	}
	for _, config := range tree.Configs {
		src, _ := os.ReadFile(filepath.Join(root, config.Path))
		for _, v := range config.Values {
			checkPlace(t, string(src), v.Place, v.Quote)
		}
	}
	for _, d := range tree.Dependencies {
		src, _ := os.ReadFile(filepath.Join(root, d.Place.Path))
		if text := string(src[d.Place.Start:d.Place.End]); !strings.Contains(text, d.Name) {
			t.Errorf("%s: the place holds %q", d.Name, text)
		}
	}
	tree.Root = "ROOT"
	golden(t, "tree", map[string]any{"tree": tree, "findings": findings})
}

func TestScanRefusesWhatIsNotThere(t *testing.T) {
	_, _, err := Scan(context.Background(), filepath.Join(t.TempDir(), "nowhere"), Options{})
	var refused *finding.Refused
	if !errors.As(err, &refused) || codes(refused.Findings) != "file_missing" {
		t.Fatalf("got %v", err)
	}
}

func TestScanOfAFileTakesItsFolder(t *testing.T) {
	root := write(t, "a.py", "x = 1\n", "train.py", "if __name__ == '__main__': pass\n")
	tree, findings := scan(t, filepath.Join(root, "a.py"), Options{})
	if tree.Root != root || len(tree.Entrypoints) != 2 || tree.Entrypoints[0].Path != "a.py" || len(findings) != 0 {
		t.Errorf("root %s, entry points %+v, findings %v", tree.Root, tree.Entrypoints, findings)
	}
	if e := tree.Entrypoint("train.py"); e == nil || !e.HasMain {
		t.Errorf("Entrypoint(train.py) = %+v", e)
	}
	if e := tree.Entrypoint("b.py"); e != nil {
		t.Errorf("Entrypoint(b.py) = %+v", e)
	}
}

func TestScanHint(t *testing.T) {
	root := write(t, "train.py", "if __name__ == '__main__': pass\n", "lib/odd.py", "x = 1\n")
	tests := []struct{ hint, first, codes string }{
		{"lib/odd.py", "lib/odd.py", ""},
		{"./lib/../lib/odd.py", "lib/odd.py", ""},
		{filepath.Join(root, "lib", "odd.py"), "lib/odd.py", ""},
		{"gone.py", "train.py", "entrypoint_missing"},
		{"../train.py", "train.py", "entrypoint_missing"},
	}
	for _, test := range tests {
		tree, findings := scan(t, root, Options{Entrypoint: test.hint})
		if tree.Entrypoints[0].Path != test.first || codes(findings) != test.codes {
			t.Errorf("%s: first is %s, findings %v", test.hint, tree.Entrypoints[0].Path, findings)
		}
	}
}

// TestScanGoesOnAfterFaults has one broken file of each kind beside a good script.
func TestScanGoesOnAfterFaults(t *testing.T) {
	root := write(t,
		"train.py", "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', default=0.1)\n",
		"binary.py", "x = 1\x00\x01",
		"latin.py", "x = '\xe4'\n",
		"declared.py", "# -*- coding: latin-1 -*-\nif __name__ == '__main__': x = '\xe4'\n",
		"open.py", "import argparse\np = argparse.ArgumentParser()\np.add_argument('--ok')\np.add_argument('--open\n",
		"bad.json", "{\"a\": 1,\n \"b\": }",
		"bad.yaml", "a: 1\nb: [\n",
		"nan.json", "{\"a\": NaN}",
		"large.yaml", "a: 1\n"+strings.Repeat("# padding of a large file\n", 50_000),
		"large.json", "{\"a\": \""+strings.Repeat("x", 1<<20)+"\"}",
		"pyproject.toml", "[project\n",
		"environment.yml", "a: [",
	)
	tree, findings := scan(t, root, Options{})
	want := map[string]string{"binary.py": "not_text@5", "latin.py": "not_text@5", "open.py": "python_unreadable:4", "bad.json": "config_malformed:2", "bad.yaml": "config_malformed:3", "nan.json": "config_malformed:1",
		"large.yaml": "config_too_large", "large.json": "config_too_large", "pyproject.toml": "dependencies_malformed:1", "environment.yml": "dependencies_malformed:1"}
	got := map[string]string{}
	for _, f := range findings {
		place := f.Code
		if f.Where.Line > 0 {
			place = fmt.Sprintf("%s:%d", f.Code, f.Where.Line)
		} else if f.Where.Byte > 0 {
			place = fmt.Sprintf("%s@%d", f.Code, f.Where.Byte)
		}
		got[f.Where.Path] = place
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if e := tree.Entrypoint("train.py"); e == nil || len(e.Arguments) != 1 {
		t.Errorf("train.py was not read: %+v", e)
	}
	if e := tree.Entrypoint("open.py"); e == nil || len(e.Arguments) != 1 || e.Arguments[0].Name != "--ok" {
		t.Errorf("what stands before the fault was not read: %+v", e)
	}
	if tree.Entrypoint("declared.py") == nil {
		t.Error("a script with a declared encoding was not read")
	}
}

func TestScanIsBounded(t *testing.T) {
	files := []string{"zz/train.py", "if __name__ == '__main__': pass\n"}
	for i := range maxBulk + 20 {
		files = append(files, fmt.Sprintf("data/%05d.csv", i), "x")
	}
	root := write(t, files...)
	tree, findings := scan(t, root, Options{})
	if len(tree.DataFiles) != maxBulk || len(tree.Entrypoints) != 1 || codes(findings) != "folder_cut" {
		t.Errorf("%d data files, %d entry points, %v", len(tree.DataFiles), len(tree.Entrypoints), findings)
	}
	tree, findings = scan(t, root, Options{MaxFiles: 100})
	if len(tree.Files) != 100 || codes(findings) != "folder_cut scan_cut" {
		t.Errorf("%d files, %v", len(tree.Files), findings)
	}
	tree, findings = scan(t, root, Options{MaxBytes: 40})
	if codes(findings) != "folder_cut not_hashed" || tree.Files[len(tree.Files)-1].SHA256 == "" || tree.Files[500].SHA256 != "" {
		t.Errorf("%v; code is hashed before data: %+v", findings, tree.Files[len(tree.Files)-1])
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := Scan(ctx, root, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled scan: %v", err)
	}
}

func TestScanDoesNotFollowLinksOutOfTheRoot(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	outside := write(t, "secret.py", "if __name__ == '__main__': pass\n", "folder/train.py", "if __name__ == '__main__': pass\n")
	root := write(t, "real/train.py", "if __name__ == '__main__': pass\n")
	for link, target := range map[string]string{"out.py": filepath.Join(outside, "secret.py"), "outdir": filepath.Join(outside, "folder"),
		"in.py": "real/train.py", "indir": "real", "loop": ".", "dangling.py": "nothing.py"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	tree, findings := scan(t, root, Options{})
	var paths []string
	for _, f := range tree.Files {
		paths = append(paths, f.Path)
	}
	if diff := cmp.Diff([]string{"in.py", "real/train.py"}, paths); diff != "" || codes(findings) != "link_leaves_root" {
		t.Errorf("%s, %v", diff, findings)
	}
}

func TestKindOf(t *testing.T) {
	tests := map[string]string{"train.py": KindPython, "a/config.yaml": KindConfig, "README": KindDoc, "docs/a.md": KindDoc, "requirements-gpu.txt": KindConfig, "notes.txt": KindOther, "job.slurm": KindShell,
		"x.csv": KindData, "x.csv.gz": KindData, "model.pt": KindCheckpoint, "era5.h5": KindData, "best.weights.h5": KindCheckpoint, "pytorch_model.bin": KindCheckpoint, "x.bin": KindData,
		"checkpoints/epoch-0007.pt.complete.json": KindCheckpoint, "outputs/summary.json": KindData, "runs/7/hparams.yaml": KindData, "run/config.json": KindConfig}
	for name, want := range tests {
		if got := kindOf(name); got != want {
			t.Errorf("kindOf(%q) = %s, want %s", name, got, want)
		}
	}
}
