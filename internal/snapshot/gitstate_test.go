package snapshot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/go-cmp/cmp"
)

// repository is one with a committed project in a folder of it.
func repository(t *testing.T) (root, commit string) {
	t.Helper()
	root = t.TempDir()
	tree(t, root, map[string]string{"proj/train.py": "import os\nlr = 0.1\nprint(lr)\n", "proj/same.py": "a = 1\n", "proj/gone.py": "", "proj/bytes.bin2": "a\x00b", "proj/image.bin2": "a\x00b", "elsewhere.py": "", "proj/data/x.csv": "1\n"})
	repo, err := git.PlainInit(root, false)
	if err != nil {
		t.Fatal(err)
	}
	work, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	if err := work.AddGlob("."); err != nil {
		t.Fatal(err)
	}
	hash, err := work.Commit("one", &git.CommitOptions{Author: &object.Signature{Name: "a", Email: "a@example.org", When: now}})
	if err != nil {
		t.Fatal(err)
	}
	return root, hash.String()
}

func TestGitStateIsThatOfWhatWillRun(t *testing.T) {
	root, commit := repository(t)
	tree(t, root, map[string]string{"proj/train.py": "import os\napi_key = \"sk-proj-abcdefghijklmnopqrstuvwxyz0123456789\"\nlr = 0.5\nprint(lr)\n", "proj/new.py": "b = 2\n", "proj/bytes.bin2": "c\x00d", "elsewhere.py": "changed"})
	remove(t, filepath.Join(root, "proj/gone.py"))
	project := filepath.Join(root, "proj")
	s, _ := take(t, Spec{ProjectRoot: project, Entrypoint: filepath.Join(project, "train.py"), Folder: filepath.Join(t.TempDir(), "j-1"), Now: now})
	g := s.Git
	if g == nil || g.Commit != commit || g.Branch != "master" || g.Error != "" || g.DiffCut {
		t.Fatalf("%+v", g)
	}
	got := strings.Join(g.Changed, " ") + "; " + strings.Join(g.Deleted, " ")
	if diff := cmp.Diff("proj/bytes.bin2 proj/train.py; proj/gone.py", got); diff != "" {
		t.Error(diff)
	}
	if len(g.Untracked) != 1 || g.Untracked["proj/new.py"] != hash(t, filepath.Join(project, "new.py")) {
		t.Errorf("untracked %v", g.Untracked)
	}
	for _, want := range []string{"--- a/proj/train.py", "+++ b/proj/train.py", "-lr = 0.1\n", "+lr = 0.5\n", "Binary files a/proj/bytes.bin2 and b/proj/bytes.bin2 differ"} {
		if !strings.Contains(g.Diff, want) {
			t.Errorf("the difference has no %q:\n%s", want, g.Diff)
		}
	}
	if strings.Contains(g.Diff, "abcdefghij") {
		t.Errorf("a secret is kept:\n%s", g.Diff)
	}
	short, _ := take(t, Spec{ProjectRoot: project, Entrypoint: filepath.Join(project, "train.py"), Folder: filepath.Join(t.TempDir(), "j-1"), Now: now, Limits: Limits{MaxDiffBytes: 120}})
	if !short.Git.DiffCut || len(short.Git.Diff) > 120 || !strings.HasSuffix(short.Git.Diff, "\n") {
		t.Errorf("cut %v: %q", short.Git.DiffCut, short.Git.Diff)
	}
}

func TestGitWithoutACommit(t *testing.T) {
	root := t.TempDir()
	tree(t, root, map[string]string{"train.py": ""})
	if _, err := git.PlainInit(root, false); err != nil {
		t.Fatal(err)
	}
	s, _ := take(t, Spec{ProjectRoot: root, Entrypoint: filepath.Join(root, "train.py"), Folder: filepath.Join(t.TempDir(), "j-1"), Now: now})
	if s.Git == nil || s.Git.Commit != "" || s.Git.Error == "" || s.Git.Untracked["train.py"] == "" {
		t.Errorf("%+v", s.Git)
	}
	damaged, commit := repository(t)
	remove(t, filepath.Join(damaged, ".git/objects", commit[:2]))
	if err := os.MkdirAll(filepath.Join(damaged, ".git/objects"), 0o755); err != nil {
		t.Fatal(err)
	}
	s, _ = take(t, Spec{ProjectRoot: damaged, Entrypoint: filepath.Join(damaged, "proj/train.py"), Folder: filepath.Join(t.TempDir(), "j-1"), Now: now})
	if s.Git == nil || s.Git.Error == "" {
		t.Errorf("a repository without its commit: %+v", s.Git)
	}
}
