//go:build linux

package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/suite"
)

// manyJobs creates, submits (twice, as a client does whose first call was cut off) and awaits n short jobs under root. Each
// writes its id as a line of one file. It answers the folders and the statuses at the end.
func manyJobs(tb testing.TB, root string, n int) (folders []string, statuses []jobs.Status) {
	tb.Helper()
	ran := filepath.Join(root, "ran")
	for i := range n {
		id := fmt.Sprintf("j-%04d", i)
		folder := filepath.Join(root, "jobs", id)
		if err := jobs.Create(folder, jobs.Request{JobID: id, RunID: "r-1", Command: suite.Shell("echo $TRAINWRIGHT_JOB_ID >>" + ran), WorkDir: root, CreatedAt: time.Now()}); err != nil {
			tb.Fatal(err)
		}
		folders = append(folders, folder)
	}
	const atOnce = 8
	var all sync.WaitGroup
	for first := range atOnce {
		all.Go(func() {
			for i := first; i < n; i += atOnce {
				for range 2 {
					if _, err := newRuntime().Submit(context.Background(), folders[i]); err != nil {
						tb.Errorf("submit %s: %v", folders[i], err)
					}
				}
			}
		})
	}
	all.Wait()
	ended, err := jobs.Await(tb.Context(), time.Minute, func() (bool, error) {
		statuses = statusOf(tb, folders)
		return !slices.ContainsFunc(statuses, func(s jobs.Status) bool { return !jobs.Terminal(s.State) }), nil
	})
	if err != nil || !ended {
		tb.Fatalf("not all jobs end: %v", err)
	}
	return folders, statuses
}

func statusOf(tb testing.TB, folders []string) []jobs.Status {
	tb.Helper()
	statuses, err := newRuntime().Status(context.Background(), folders)
	if err != nil || len(statuses) != len(folders) {
		tb.Fatalf("%d answers for %d jobs, %v", len(statuses), len(folders), err)
	}
	return statuses
}

// runs counts the jobs that did not run, or did not end well, and those that ran more than once.
func runs(tb testing.TB, root string, statuses []jobs.Status) (lost, twice int) {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(root, "ran"))
	if err != nil {
		tb.Fatal(err)
	}
	times := map[string]int{}
	for id := range strings.Lines(string(data)) {
		times[strings.TrimSpace(id)]++
	}
	for _, status := range statuses {
		switch ran := times[status.JobID]; {
		case ran == 0 || status.State != jobs.StateSucceeded:
			lost++
		case ran > 1:
			twice++
		}
	}
	return lost, twice
}

// None of many jobs is lost or run twice, and asking for all of them reads their records, not their logs.
func TestManyJobs(t *testing.T) {
	const n = 60
	root := t.TempDir()
	folders, statuses := manyJobs(t, root, n)
	if lost, twice := runs(t, root, statuses); lost > 0 || twice > 0 {
		t.Errorf("of %d jobs %d are lost and %d ran twice", n, lost, twice)
	}
	for _, folder := range folders {
		for _, log := range []string{jobs.StdoutFile, jobs.StderrFile} {
			path := filepath.Join(folder, log)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(path, 0o600); err != nil { // whoever opens it to read waits
				t.Fatal(err)
			}
		}
	}
	done := make(chan uint64, 1)
	go func() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		statusOf(t, folders)
		runtime.ReadMemStats(&after)
		done <- after.TotalAlloc - before.TotalAlloc
	}()
	select {
	case allocated := <-done:
		if most := uint64(n * 100 << 10); allocated > most {
			t.Errorf("the status of %d jobs allocated %d bytes, want at most %d", n, allocated, most)
		}
	case <-time.After(time.Minute):
		t.Error("the status of jobs that have ended opens their logs")
	}
}

// BenchmarkThousandJobs runs a thousand jobs and asks for all of them in one call. It reports the fastest of these calls, since
// a machine is rarely idle, and the largest memory that this process, which submits and tracks them, has held.
func BenchmarkThousandJobs(b *testing.B) {
	const n = 1000
	root := b.TempDir()
	began := time.Now()
	folders, statuses := manyJobs(b, root, n)
	took := time.Since(began)
	lost, twice := runs(b, root, statuses)
	fastest := time.Hour
	b.ResetTimer()
	for b.Loop() {
		began := time.Now()
		statusOf(b, folders)
		fastest = min(fastest, time.Since(began))
	}
	held, err := kilobytes("/proc/self/status", "VmHWM:")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(fastest.Microseconds())/1000, "status-ms")
	b.ReportMetric(float64(held["VmHWM:"])/1000, "held-MB")
	b.ReportMetric(float64(lost), "lost")
	b.ReportMetric(float64(twice), "run-twice")
	b.ReportMetric(took.Seconds(), "all-s")
}
