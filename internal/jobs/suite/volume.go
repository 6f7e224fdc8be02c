package suite

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainwright/trainwright/internal/jobs"
)

// largeOutput: every byte arrives, and the job is not slowed by whoever should carry them.
func largeOutput(t *testing.T, c Constructor) {
	size, err := c.large()
	if err != nil {
		t.Fatalf("%s: %v", LargeVariable, err)
	}
	j := NewJob(t, c, Shell(fmt.Sprintf("yes 0123456789abcde | head -c %d; printf the-end", size)))
	if status := j.Run(); status.State != jobs.StateSucceeded {
		t.Errorf("state %s", status.State)
	}
	file, err := os.Open(filepath.Join(j.Folder, jobs.StdoutFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil || end != size+7 {
		t.Errorf("the log has %d bytes, %v; want %d", end, err, size+7)
	}
	tail := make([]byte, 7)
	if _, err := file.ReadAt(tail, max(0, end-7)); err != nil || string(tail) != "the-end" {
		t.Errorf("the log ends in %q, %v", tail, err)
	}
}

// fullDisk: a job whose folder, with its logs and records, lies on a disk that gets full. The command sees the error of its
// write, as it would anywhere. Its supervisor neither waits for room nor loses the exit record, for which it has kept some.
func fullDisk(t *testing.T, c Constructor) {
	t.Run("by the log", func(t *testing.T) {
		t.Parallel()
		root, limit, err := smallDisk(t)
		if err != nil { // nobody but root may mount; a limit on the file's size is what comes nearest
			t.Logf("no small disk: %v; the log is limited instead", err)
			root, limit = t.TempDir(), "trap '' XFSZ; ulimit -f 100; "
		}
		j := NewJobIn(t, c, root, Shell(limit+"head -c 4000000 /dev/zero || exit 5"))
		status := j.Run()
		if status.State != jobs.StateFailed || CodeOf(*status.Exit) != "5" {
			t.Errorf("state %s, exit %+v", status.State, status.Exit)
		}
		j.gone()
	})
	t.Run("by others, while it runs", func(t *testing.T) {
		t.Parallel()
		j := filled(t, c)
		if j == nil {
			return
		}
		if got := j.Status().State; got != jobs.StateRunning {
			t.Errorf("state %s on a full disk, want running", got)
		}
		j.touch("go")
		if status := j.Finished(); status.State != jobs.StateSucceeded || CodeOf(*status.Exit) != "0" {
			t.Errorf("state %s, exit %+v", status.State, status.Exit)
		}
		j.gone()
	})
	t.Run("and the job is cancelled", func(t *testing.T) {
		t.Parallel()
		j := filled(t, c)
		if j == nil {
			return
		}
		if status := j.Cancel(); status.State != jobs.StateCancelled {
			t.Errorf("state %s, exit %+v", status.State, status.Exit)
		}
		j.gone()
	})
}

// filled is a running job on a disk that others have filled; nil where no small disk can be had.
func filled(t *testing.T, c Constructor) *Job {
	t.Helper()
	root, _, err := smallDisk(t)
	if err != nil {
		t.Logf("no small disk: %v; the case of the log stands for this one", err)
		return nil
	}
	j := NewJobIn(t, c, root, Shell("echo ready; while [ ! -e go ]; do sleep 0.05; done; echo unheard; echo 1 >result"),
		func(r *jobs.Request) { r.ExpectedOutputs = []string{"result"} })
	j.Submit()
	j.says("ready", 1)
	fill(t, filepath.Join(root, "other"))
	return j
}

// gone checks that the supervisor has ended, so that it does not wait for anything.
func (j *Job) gone() {
	j.t.Helper()
	state := j.State()
	j.until("the supervisor has left", func() bool { return !alive(state.SupervisorPID, state.SupervisorTicks) })
	if _, err := os.Stat(filepath.Join(j.Folder, jobs.ReserveFile)); err == nil {
		j.t.Error("the room that was kept for the record is still taken")
	}
}

// fill writes until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	block := make([]byte, 4096)
	for range 1 << 14 {
		if _, err := file.Write(block); err != nil {
			return
		}
	}
	t.Fatal("the small disk is not small")
}
