//go:build unix

package skill

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A named pipe in the place of a file makes nobody wait, not even where it takes the file's place between look and open.
func TestPipesDoNotBlock(t *testing.T) {
	workspace := t.TempDir()
	folder := filepath.Join(workspace, ".agents/skills/a")
	write(t, filepath.Join(folder, "SKILL.md"), markdown("a", "d", ""))
	file := filepath.Join(folder, "r.md")
	write(t, file, "text")
	library, findings := NewLibrary(WorkspaceRoots(workspace)...)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 300 {
			_ = os.Remove(file)
			_ = syscall.Mkfifo(file, 0o644)
			_, _ = library.Read("a", "r.md")
			_ = os.Remove(file)
			_ = os.WriteFile(file, []byte("text"), 0o644)
		}
	}()
	for range 300 {
		_, _ = library.Read("a", "r.md")
	}
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("a pipe blocks")
	}
}
