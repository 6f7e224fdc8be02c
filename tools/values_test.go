package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/trainer"
)

// What a workspace completes: its own files by folder, neither hidden nor secret ones nor what lies outside; runs by any
// part of their id, the newest first.
func TestValues(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"data/wdbc.csv", "data/more/x.csv", "train.py", ".env", ".git/config", "id_rsa", "api_token.txt", "sub/.hidden/x"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	roots, err := rundir.NewRoots(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	index := rundir.Index{Workspace: roots.Workspace()}
	for i, id := range []string{"r-20261201-aaaa", "r-20261130-bbbb", "r-20261130-cccc"} {
		if err := index.Put(rundir.IndexEntry{RunID: id, CreatedAt: time.Date(2026, 12, 1, 10-i, 0, 0, 0, time.UTC), TrainerWorkdir: id, CodeSaveDir: id, Skill: "s", HandoffSHA256: "sha256:x"}); err != nil {
			t.Fatal(err)
		}
	}
	deps := Deps{Trainer: func() (*trainer.Trainer, error) {
		return &trainer.Trainer{Engine: engine.New(roots, time.Now)}, nil
	}}
	for _, c := range []struct{ kind, typed, want string }{
		{Paths, "", "[data/ out sub/ train.py]"},
		{Paths, "da", "[data/]"},
		{Paths, "./data/w", "[data/wdbc.csv]"},
		{Paths, "data/", "[data/more/ data/wdbc.csv]"},
		{Paths, "sub/", "[]"},
		{Paths, "sub/.hidden/", "[]"},
		{Paths, ".git/", "[]"},
		{Paths, "../", "[]"},
		{Paths, "data/../../", "[]"},
		{Paths, "/etc/", "[]"},
		{Paths, "out/pass", "[]"},
		{Paths, "nowhere/", "[]"},
		{Paths, "train.py/", "[]"},
		{RunIDs, "", "[r-20261201-aaaa r-20261130-bbbb r-20261130-cccc]"},
		{RunIDs, "r-20261130", "[r-20261130-bbbb r-20261130-cccc]"},
		{RunIDs, "cccc", "[r-20261130-cccc]"},
		{JobIDs, "", "[]"},
	} {
		if got, err := deps.Values(t.Context(), c.kind, c.typed); err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%s %q: %v, %v, want %s", c.kind, c.typed, got, err, c.want)
		}
	}
	if _, err := deps.Values(t.Context(), "colour", ""); err == nil {
		t.Error("an unknown kind is completed")
	}
}
