// Command bench runs the benchmarks of the jobs' logs, of the diagnosis and of a thousand jobs, and prints each figure beside
// that of a peer in the same run, or beside its limit. It exits with 1 where one is outside. make bench calls it.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"
)

const module = "github.com/trainwright/trainwright/internal/"

// benchmark is one to run, so many times.
type benchmark struct{ pkg, name, times string }

var benchmarks = []benchmark{
	{module + "jobs", "BenchmarkTailBesideTail", "100x"},
	{module + "diagnose", "BenchmarkScan", "3x"},
	{module + "jobs/local", "BenchmarkThousandJobs", "50x"},
}

// figure is one line of the table: a metric beside that of a peer, or beside a number.
type figure struct {
	says, metric, unit string
	peer, peerMetric   string
	limit              float64
	// most is how many times the peer it may be.
	most float64
}

var figures = []figure{
	{says: "tail of a log of 1 GB", metric: "ours-ms", unit: "ms", peer: "tail -n 100", peerMetric: "tail-ms", most: 2},
	{says: "failure scan of a log of 1 GB", metric: "ours-ms", unit: "ms", peer: "grep -E", peerMetric: "grep-ms", most: 2},
	{says: "status of 1,000 jobs", metric: "status-ms", unit: "ms", peer: "limit", limit: 100, most: 1},
	{says: "memory with 1,000 jobs", metric: "held-MB", unit: "MB", peer: "limit", limit: 100, most: 1},
	{says: "lost of 1,000 jobs", metric: "lost", peer: "limit", most: 1},
	{says: "run twice of 1,000 jobs", metric: "run-twice", peer: "limit", most: 1},
}

func main() {
	measured := map[string]map[string]float64{}
	for _, b := range benchmarks {
		fmt.Fprintf(os.Stderr, "%s …\n", b.name)
		metrics, err := b.run()
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", b.name, err)
			os.Exit(1)
		}
		measured[b.name] = metrics
	}
	within, err := table(os.Stdout, measured)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if !within || err != nil {
		os.Exit(1)
	}
}

// run runs the benchmark and answers its metrics by unit.
func (b benchmark) run() (map[string]float64, error) {
	var out bytes.Buffer
	cmd := exec.Command("go", "test", "-run", "^$", "-bench", "^"+b.name+"$", "-benchtime", b.times, "-timeout", "30m", b.pkg)
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out.String())
	}
	return metrics(&out, b.name)
}

// metrics reads "BenchmarkName-2  100  1234 ns/op  5.6 unit …" (the Go benchmark data format).
func metrics(out io.Reader, name string) (map[string]float64, error) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], name) {
			continue
		}
		found := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", lines.Text(), err)
			}
			found[fields[i+1]] = value
		}
		return found, nil
	}
	return nil, fmt.Errorf("it printed no line of its own: %w", lines.Err())
}

// table prints the figures and reports whether all are within their bounds.
func table(w io.Writer, measured map[string]map[string]float64) (within bool, err error) {
	within = true
	columns := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(columns, "what\tours\tbeside\tratio\twithin")
	for _, f := range figures {
		ours, theirs, found := f.of(measured)
		if !found {
			return false, fmt.Errorf("%s: no benchmark reports %s", f.says, f.metric)
		}
		bound, ratio := "the limit", "-"
		ok := ours <= theirs*f.most
		if f.most > 1 {
			bound = fmt.Sprintf("%.0f×", f.most)
		}
		if theirs > 0 {
			ratio = fmt.Sprintf("%.2f", ours/theirs)
		}
		answer := map[bool]string{true: "yes", false: "no"}[ok]
		fmt.Fprintf(columns, "%s\t%s\t%s %s\t%s\t%s: %s\n", f.says, shown(ours, f.unit), f.peer, shown(theirs, f.unit), ratio, bound, answer)
		within = within && ok
	}
	return within, columns.Flush()
}

// of is the figure and what it is compared with.
func (f figure) of(measured map[string]map[string]float64) (ours, theirs float64, found bool) {
	for _, metrics := range measured {
		ours, has := metrics[f.metric]
		theirs, hasPeer := metrics[f.peerMetric]
		if f.peerMetric == "" {
			theirs, hasPeer = f.limit, true
		}
		if has && hasPeer {
			return ours, theirs, true
		}
	}
	return 0, 0, false
}

func shown(value float64, unit string) string {
	return strings.TrimSpace(strconv.FormatFloat(value, 'f', -1, 64) + " " + unit)
}
