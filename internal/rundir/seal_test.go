package rundir

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// writeSealed tries every way of writing in a sealed process.
func writeSealed(dir string) error {
	Seal()
	run := Dir{Path: filepath.Join(dir, "run")}
	_, lockErr := Lock(context.Background(), filepath.Join(dir, "lock"))
	_, artifactsErr := run.WriteArtifacts(map[string][]byte{"a.md": nil})
	for name, err := range map[string]error{
		"WriteFile": WriteFile(filepath.Join(dir, "new"), nil), "over a file": WriteFile(filepath.Join(dir, "kept"), nil), "WriteJSON": WriteJSON(filepath.Join(dir, "new.json"), 1),
		"Lock": lockErr, "Move": Move(filepath.Join(dir, "kept"), filepath.Join(dir, "moved")), "AppendEvent": run.AppendEvent(Event{Event: "x"}), "WriteArtifacts": artifactsErr,
		"CommitRecord": run.CommitRecord(Record{Phase: "0_input_acquisition"}), "Put": Index{Workspace: dir}.Put(IndexEntry{RunID: "r-20261130-7f3a"}), "MayWrite": MayWrite(),
	} {
		if got := codes(nil, err); !slices.Equal(got, []string{"read_only"}) {
			return fmt.Errorf("%s: %v %v", name, got, err)
		}
	}
	return nil
}

// A sealed process has no way to write: each refuses with read_only, and the disk stays as it was.
func TestASealedProcessWritesNothing(t *testing.T) {
	if err := MayWrite(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "kept"), "kept")
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), "RUNDIR_TEST_PROCESS=sealed", "RUNDIR_TEST_DIR="+dir)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || content(t, filepath.Join(dir, "kept")) != "kept" {
		t.Errorf("%v %v", entries, err)
	}
}
