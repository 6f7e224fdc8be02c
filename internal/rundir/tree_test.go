package rundir

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func paths(entries []Entry) string {
	var list []string
	for _, e := range entries {
		list = append(list, e.Path)
	}
	return strings.Join(list, " ")
}

func TestTree(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"train.py", "a-b/x", "a/x", ".git/HEAD", "src/__pycache__/m.pyc", "node_modules/x", ".onescience/job", "large.bin"} {
		put(t, filepath.Join(root, name), name)
	}
	put(t, filepath.Join(root, "large.bin"), strings.Repeat("x", 100))
	if runtime.GOOS != "windows" {
		for link, target := range map[string]string{"link.py": "train.py", "loop": ".", "dev": "/dev/zero"} {
			if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
				t.Fatal(err)
			}
		}
	}
	entries, findings, err := Tree(root, TreeOptions{MaxHashBytes: 50})
	if err != nil || paths(entries) != "a-b/x a/x large.bin train.py" || !slices.Equal(codes(findings, nil), []string{"file_not_hashed"}) {
		t.Errorf("%s, %v, %v", paths(entries), findings, err)
	}
	if e := entries[3]; e.SHA256 != HashBytes([]byte("train.py")) || e.Size != 8 || e.ModTime.IsZero() || entries[2].SHA256 != "" || entries[2].Size != 100 {
		t.Errorf("%+v", entries)
	}
	if entries, _, err := Tree(filepath.Join(root, ".onescience"), TreeOptions{}); err != nil || paths(entries) != "job" {
		t.Errorf("a skipped folder as the root: %s, %v", paths(entries), err)
	}
	if entries, _, err := Tree(root, TreeOptions{Include: []string{".git"}}); err != nil || !strings.Contains(paths(entries), ".git/HEAD") {
		t.Errorf("included: %s, %v", paths(entries), err)
	}
	if entries, findings, err := Tree(root, TreeOptions{MaxFiles: 2}); err != nil || len(entries) != 2 || !slices.Equal(codes(findings, nil), []string{"tree_cut"}) {
		t.Errorf("cut: %s, %v, %v", paths(entries), findings, err)
	}
	if entries, findings, err := Tree(filepath.Join(root, "missing"), TreeOptions{}); entries != nil || findings != nil || err != nil {
		t.Errorf("missing: %v, %v, %v", entries, findings, err)
	}
}

func TestDiff(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	before := []Entry{{"gone", 1, at, "a"}, {"same", 1, at, "a"}, {"touched", 1, at, "a"}, {"rewritten", 1, at, "a"}, {"large", 9, at, ""}, {"large same", 9, at, ""}}
	after := []Entry{{"same", 1, at, "a"}, {"touched", 1, at.Add(1), "a"}, {"rewritten", 1, at, "b"}, {"large", 9, at.Add(1), ""}, {"large same", 9, at, ""}, {"new", 1, at, "c"}}
	created, changed, removed := Diff(before, after)
	if paths(created) != "new" || paths(changed) != "rewritten large" || paths(removed) != "gone" {
		t.Errorf("created %s, changed %s, removed %s", paths(created), paths(changed), paths(removed))
	}
}
