package rundir

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

func TestLockHoldsBetweenGoroutines(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if err := countUnderLock(dir, 10); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := content(t, filepath.Join(dir, "count.json")); got != "40\n" {
		t.Errorf("counted %s", got)
	}
	if len(inProcess.gates) != 0 {
		t.Errorf("%d gates left", len(inProcess.gates))
	}
}

func TestLockHoldsBetweenProcesses(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "RUNDIR_TEST_PROCESS=count", "RUNDIR_TEST_DIR="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	group.Wait()
	if got := content(t, filepath.Join(dir, "count.json")); got != "40\n" {
		t.Errorf("counted %s", got)
	}
}

func TestLockGivesUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "lock")
	unlock, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err = Lock(ctx, path)
	var refused *finding.Refused
	if !errors.As(err, &refused) || !slices.Equal(codes(nil, err), []string{"locked"}) || refused.Findings[0].Where.Path != path {
		t.Errorf("after the deadline: %v", err)
	}
	cancelled, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Lock(cancelled, path); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancellation: %v", err)
	}
	unlock()
	unlock() // a second time does no harm
	again, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	again()
}
