package rundir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// TestMain lets the test binary be its own second process.
func TestMain(m *testing.M) {
	switch os.Getenv("RUNDIR_TEST_PROCESS") {
	case "count":
		exit(countUnderLock(os.Getenv("RUNDIR_TEST_DIR"), 20))
	case "commit":
		exit(commitAll(os.Getenv("RUNDIR_TEST_DIR")))
	case "sealed":
		exit(writeSealed(os.Getenv("RUNDIR_TEST_DIR")))
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// countUnderLock adds n to the number in a file, one at a time: without the lock, additions get lost.
func countUnderLock(dir string, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	path := filepath.Join(dir, "count.json")
	for range n {
		unlock, err := Lock(ctx, filepath.Join(dir, "lock"))
		if err != nil {
			return err
		}
		count := 0
		if err := ReadJSON(path, &count); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		err = WriteJSON(path, count+1)
		unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// commitAll writes the files of a small run.
func commitAll(dir string) error {
	for _, name := range []string{"facts.json", "facts.json", "phases/1_training_knowledge.json"} {
		if err := WriteFile(filepath.Join(dir, name), []byte("new\n")); err != nil {
			return err
		}
	}
	return nil
}

// codes lists the codes of findings, or of a refusal.
func codes(findings []finding.Finding, err error) []string {
	var refused *finding.Refused
	if errors.As(err, &refused) {
		findings = append(findings, refused.Findings...)
	}
	list := []string{}
	for _, f := range findings {
		list = append(list, f.Code)
	}
	return list
}

func put(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func canonicalTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
