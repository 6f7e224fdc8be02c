package metrics

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFollower(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	follower := NewFollower(path)
	change := func(flag int, text string) {
		t.Helper()
		file, err := os.OpenFile(path, flag|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	appended := func(text string) func() { return func() { change(os.O_APPEND, text) } }
	written := func(text string) func() { return func() { change(os.O_TRUNC, text) } }
	for _, step := range []struct {
		name     string
		do       func()
		values   []float64
		line     int // of the last point
		start    int64
		restarts int
	}{
		{"no file yet", func() {}, nil, 0, 0, 0},
		{"a row and a half", appended(`{"val/loss":4}` + "\n" + `{"val/lo`), []float64{4}, 1, 0, 0},
		{"nothing new", func() {}, nil, 0, 0, 0},
		{"the other half", appended(`ss":3}` + "\r\n"), []float64{3}, 2, 15, 0},
		{"noise between rows", appended("\nnoise\n" + `{"val/loss":2}` + "\n"), []float64{2}, 5, 38, 0},
		{"cut: starts over", written(`{"val/loss":9}` + "\n"), []float64{9}, 1, 0, 1},
		{"written anew and longer", written(`{"val/loss":8}` + "\n" + `{"val/loss":7}` + "\n"), []float64{8, 7}, 2, 15, 2},
		{"a row longer than any", appended(`{"note":"` + strings.Repeat("x", MaxLine+10)), nil, 0, 0, 2},
		{"its end, and one more", appended(`"}` + "\n" + `{"val/loss":6}` + "\n"), []float64{6}, 4, int64(30 + 9 + MaxLine + 10 + 3), 2},
		{"replaced by another file", func() {
			if err := os.Rename(path, path+".old"); err != nil {
				t.Fatal(err)
			}
			data, _ := os.ReadFile(path + ".old")
			written(string(data) + `{"val/loss":5}` + "\n")()
		}, []float64{8, 7, 6, 5}, 5, int64(30 + 9 + MaxLine + 10 + 3 + 15), 3},
		{"gone", func() { os.Remove(path) }, nil, 0, 0, 4},
		{"back", appended(`{"val/loss":1}` + "\n"), []float64{1}, 1, 0, 4},
	} {
		step.do()
		points, err := follower.Poll()
		if err != nil {
			t.Fatal(step.name, err)
		}
		var values []float64
		for _, p := range points {
			values = append(values, p.Value)
		}
		if len(values) != len(step.values) {
			t.Fatalf("%s: %v, want %v", step.name, values, step.values)
		}
		for i := range values {
			if values[i] != step.values[i] {
				t.Errorf("%s: %v, want %v", step.name, values, step.values)
			}
		}
		if n := len(points); n > 0 && (points[n-1].Line != step.line || points[n-1].Start != step.start) {
			t.Errorf("%s: line %d byte %d, want %d %d", step.name, points[n-1].Line, points[n-1].Start, step.line, step.start)
		}
		if follower.Restarts != step.restarts {
			t.Errorf("%s: %d restarts, want %d", step.name, follower.Restarts, step.restarts)
		}
	}
}

func TestFollowerRefusesADirectory(t *testing.T) {
	if _, err := NewFollower(t.TempDir()).Poll(); err == nil {
		t.Error("a directory was followed")
	}
}
