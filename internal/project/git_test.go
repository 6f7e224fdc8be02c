package project

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/go-cmp/cmp"
)

var signature = &object.Signature{Name: "A", Email: "a@example.org", When: time.Unix(1_700_000_000, 0)}

// repository commits files into a fresh repository and returns its folder and the commit.
func repository(t *testing.T, files ...string) (root, commit string) {
	t.Helper()
	root = write(t, files...)
	r, err := git.PlainInit(root, false)
	if err != nil {
		t.Fatal(err)
	}
	worktree, err := r.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	if err := worktree.AddGlob("."); err != nil {
		t.Fatal(err)
	}
	hash, err := worktree.Commit("one", &git.CommitOptions{Author: signature})
	if err != nil {
		t.Fatal(err)
	}
	return root, hash.String()
}

func change(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func state(root, dir, ceiling string) *Git {
	return ReadGit(context.Background(), filepath.Join(root, dir), ceiling, 30*time.Second)
}

func TestGitState(t *testing.T) {
	root, commit := repository(t, "sub/train.py", "x = 1\n", "other.py", "y\n", ".gitignore", "*.csv\n")
	want := &Git{Root: root, Commit: commit, Branch: "master", Modified: []string{}, Untracked: []string{}}
	if diff := cmp.Diff(want, state(root, "sub", "")); diff != "" {
		t.Errorf("clean, from a folder below (-want +got):\n%s", diff)
	}
	change(t, filepath.Join(root, "data.csv"), "ignored")
	change(t, filepath.Join(root, ".onescience", "trainer", "x"), "ours")
	change(t, filepath.Join(root, "new.py"), "z")
	want.Untracked = []string{"new.py"}
	if diff := cmp.Diff(want, state(root, "", "")); diff != "" {
		t.Errorf("an untracked file alone is not dirty (-want +got):\n%s", diff)
	}
	change(t, filepath.Join(root, "sub", "train.py"), "x = 2\n")
	if err := os.Remove(filepath.Join(root, "other.py")); err != nil {
		t.Fatal(err)
	}
	want.Dirty, want.Modified = true, []string{"other.py", "sub/train.py"}
	if diff := cmp.Diff(want, state(root, "", root)); diff != "" {
		t.Errorf("changed and deleted (-want +got):\n%s", diff)
	}
}

func TestGitIsNotFooled(t *testing.T) {
	root, commit := repository(t, "sub/deep/train.py", "x = 1\n")
	if got := state(root, "sub/deep", filepath.Join(root, "sub")); got != nil {
		t.Errorf("a repository above the ceiling was taken: %+v", got)
	}
	if got := state(root, "sub", filepath.Join(root, "sub")); got != nil {
		t.Errorf("a repository above a ceiling that is the folder itself was taken: %+v", got)
	}

	r, err := git.PlainOpen(root)
	if err != nil {
		t.Fatal(err)
	}
	worktree, _ := r.Worktree()
	head, _ := r.Head()
	if err := worktree.Checkout(&git.CheckoutOptions{Hash: head.Hash()}); err != nil {
		t.Fatal(err)
	}
	if got := state(root, "", root); got.Branch != "" || got.Commit != commit || got.Error != "" {
		t.Errorf("detached HEAD: %+v", got)
	}
	if got := ReadGit(context.Background(), root, root, time.Nanosecond); got.Commit != commit || !strings.Contains(got.Error, "not found out within 1ns") {
		t.Errorf("out of time: %+v", got)
	}

	empty := t.TempDir()
	if _, err := git.PlainInit(empty, false); err != nil {
		t.Fatal(err)
	}
	change(t, filepath.Join(empty, "a.py"), "")
	if got := state(empty, "", empty); got.Commit != "" || got.Branch != "master" || got.Error != "the repository has no commit yet" || len(got.Untracked) != 1 {
		t.Errorf("no commit: %+v", got)
	}

	for name, path := range map[string]string{"a file": ".git", "a folder": ".git/x"} {
		broken := t.TempDir()
		change(t, filepath.Join(broken, path), "gitdir: nowhere\x00")
		tree, _, err := Scan(context.Background(), broken, Options{})
		if err != nil || tree.Git == nil || tree.Git.Error == "" || tree.Git.Commit != "" {
			t.Errorf(".git is %s: %+v, %v", name, tree.Git, err)
		}
	}

	lost, _ := repository(t, "a.py", "x")
	if err := os.RemoveAll(filepath.Join(lost, ".git", "objects")); err != nil {
		t.Fatal(err)
	}
	if got := state(lost, "", lost); got == nil || got.Error == "" {
		t.Errorf("objects are gone: %+v", got)
	}
}

func TestGitListsAreCut(t *testing.T) {
	g := &Git{}
	status := git.Status{}
	for i := range maxGitPaths + 7 {
		status[string(rune('a'+i/26))+string(rune('a'+i%26))] = &git.FileStatus{Worktree: git.Untracked, Staging: git.Untracked}
	}
	g.take(status)
	if n := len(g.Untracked); n != maxGitPaths+1 || g.Untracked[n-1] != "… and 7 more" {
		t.Errorf("%d: %q", n, g.Untracked[n-1])
	}
}
