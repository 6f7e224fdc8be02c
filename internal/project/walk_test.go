package project

import (
	"slices"
	"testing"
)

// A job's folder holds copies of the code: they are no entry points, and a folder that is only called so is code as any other.
func TestScanLeavesJobSnapshotsOut(t *testing.T) {
	script := "if __name__ == '__main__':\n    pass\n"
	root := write(t, "train.py", script,
		"out/jobs/j-1/snapshot.json", "{}", "out/jobs/j-1/snapshot/project/train.py", script, "out/jobs/j-1/stdout.log", "",
		"snapshot/make.py", script)
	tree, _ := scan(t, root, Options{})
	var paths []string
	for _, f := range tree.Files {
		paths = append(paths, f.Path)
	}
	want := []string{"out/jobs/j-1/snapshot.json", "out/jobs/j-1/stdout.log", "snapshot/make.py", "train.py"}
	if !slices.Equal(paths, want) {
		t.Errorf("listed %q, want %q", paths, want)
	}
}
