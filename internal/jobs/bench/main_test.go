package main

import (
	"strings"
	"testing"
)

const printed = `goos: linux
BenchmarkScan-2   	       3	1234567 ns/op	 800 MB/s	      1500 grep-ms	      1200 ours-ms
PASS
`

func TestTable(t *testing.T) {
	scan, err := metrics(strings.NewReader(printed), "BenchmarkScan")
	if err != nil || scan["ours-ms"] != 1200 || scan["grep-ms"] != 1500 {
		t.Fatalf("%v, %v", scan, err)
	}
	jobs := map[string]float64{"status-ms": 40, "held-MB": 24, "lost": 0, "run-twice": 0}
	for tail, want := range map[float64]string{1.5: "yes", 7: "no"} {
		var out strings.Builder
		within, err := table(&out, map[string]map[string]float64{"a": {"ours-ms": tail, "tail-ms": 3}, "b": scan, "c": jobs})
		if err != nil || within != (want == "yes") || !strings.Contains(out.String(), "2×: "+want) {
			t.Errorf("within %t, %v\n%s", within, err, out.String())
		}
	}
	jobs["lost"] = 1
	if within, err := table(&strings.Builder{}, map[string]map[string]float64{"a": {"ours-ms": 1, "tail-ms": 3}, "b": scan, "c": jobs}); within || err != nil {
		t.Errorf("a lost job passes: %v", err)
	}
	if _, err := metrics(strings.NewReader("PASS\n"), "BenchmarkScan"); err == nil {
		t.Error("no line is no error")
	}
}
