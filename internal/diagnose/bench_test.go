package diagnose

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// benchBytes is the size of the log that BenchmarkScan reads.
const benchBytes = 1 << 30

// writeLog writes a log as training leaves it: metrics, messages of several levels, progress bars; a failure ends it.
func writeLog(tb testing.TB, path string, size int64) {
	tb.Helper()
	file, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	out := bufio.NewWriterSize(file, 1<<20)
	written := int64(0)
	for step := 0; written < size; step++ {
		n, _ := fmt.Fprintf(out, "step %d loss %.4f lr 3.0e-04 grad_norm %.3f tokens/s %d\n", step, 2.3/(1+float64(step%1000)/100), 0.4, 51234+step%77)
		written += int64(n)
		if step%10 == 0 {
			n, _ = fmt.Fprintf(out, "2026-11-30 19:25:32,%03d INFO trainer.py:212 epoch %d: inference on the validation set, accuracy 0.9731, 38 samples denied by the filter\n", step%1000, step/1000)
			written += int64(n)
		}
		if step%100 == 0 {
			for i := range 20 {
				n, _ = fmt.Fprintf(out, "\rEpoch %d:  %2d%%|%-20s| %d/2000 [00:12<00:34, 43.1it/s, loss=0.41]", step/1000, i*5, strings.Repeat("█", i), i*100)
				written += int64(n)
			}
			_ = out.WriteByte('\n')
		}
	}
	fmt.Fprint(out, "Traceback (most recent call last):\n  File \"/srv/train/train.py\", line 40, in <module>\n    main()\n"+
		"  File \"/srv/train/train.py\", line 22, in main\n    batch[\"label\"]\nKeyError: 'label'\n")
	if err := out.Flush(); err != nil {
		tb.Fatal(err)
	}
	if err := file.Close(); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkScan reads a log of 1 GB and, in the same run, has grep -E count the lines with the same literals,
// in the C locale, where grep is fastest.
func BenchmarkScan(b *testing.B) {
	grep, err := exec.LookPath("grep")
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "stderr.log")
	writeLog(b, path, benchBytes)
	literals := make([]string, len(signs))
	for i, s := range signs {
		literals[i] = regexp.QuoteMeta(s.literal)
	}
	code := 1
	var ours, theirs time.Duration
	b.SetBytes(benchBytes)
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		if cause := Why(Job{Logs: []string{path}, Code: &code}); cause.Frame == nil || cause.Frame.Line != 22 {
			b.Fatalf("%+v", cause)
		}
		ours += time.Since(start)
		b.StopTimer()
		start = time.Now()
		command := exec.CommandContext(b.Context(), grep, "-c", "-E", strings.Join(literals, "|"), path)
		command.Env = append(os.Environ(), "LC_ALL=C")
		if out, err := command.Output(); err != nil {
			b.Fatalf("grep: %v, %s", err, out)
		}
		theirs += time.Since(start)
		b.StartTimer()
	}
	b.ReportMetric(ours.Seconds()*1000/float64(b.N), "ours-ms")
	b.ReportMetric(theirs.Seconds()*1000/float64(b.N), "grep-ms")
}
