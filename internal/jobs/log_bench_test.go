package jobs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bigLog is a log of 1 GiB. Its last 8 MiB are lines, what lies before is a hole, which no tail reads.
func bigLog(b *testing.B) (folder string) {
	b.Helper()
	const size = 1 << 30
	folder = b.TempDir()
	file, err := os.Create(filepath.Join(folder, StdoutFile))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	var lines strings.Builder
	for i := 0; lines.Len() < 8<<20; i++ {
		fmt.Fprintf(&lines, "step %06d loss 0.%04d lr 3e-4 samples/s 812.4\n", i, i%10000)
	}
	if err := file.Truncate(size); err != nil {
		b.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("\n"+lines.String()), int64(size-lines.Len()-1)); err != nil {
		b.Fatal(err)
	}
	return folder
}

// BenchmarkTailBesideTail reads the last 100 lines of a 1 GiB log as job_logs does (rendered, masked, errors first) and,
// in turn, with tail(1), which has a process to start; x-of-true takes only that start into account: the time of true(1).
func BenchmarkTailBesideTail(b *testing.B) {
	for _, name := range []string{"tail", "true"} {
		if _, err := exec.LookPath(name); err != nil {
			b.Fatalf("%s: this benchmark needs it beside", name)
		}
	}
	folder := bigLog(b)
	path := filepath.Join(folder, StdoutFile)
	var ours, theirs, start time.Duration
	for b.Loop() {
		began := time.Now()
		slices, err := ReadLog(folder, LogRequest{Stream: StreamStdout, Tail: 100, MaxTokens: maxTokens})
		ours += time.Since(began)
		if err != nil {
			b.Fatal(err)
		}
		began = time.Now()
		out, err := exec.Command("tail", "-n", "100", path).Output()
		theirs += time.Since(began)
		if err != nil || string(out) != slices[0].Text {
			b.Fatalf("tail says something else: %v, %d bytes and %d", err, len(out), len(slices[0].Text))
		}
		began = time.Now()
		if err := exec.Command("true").Run(); err != nil {
			b.Fatal(err)
		}
		start += time.Since(began)
	}
	b.ReportMetric(ours.Seconds()*1000/float64(b.N), "ours-ms")
	b.ReportMetric(theirs.Seconds()*1000/float64(b.N), "tail-ms")
	b.ReportMetric(ours.Seconds()/start.Seconds(), "x-of-true")
}
