package metrics

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Whatever bytes a file has: no panic, every point inside the file, whole file hashed, JSON writable; and the follower
// sees no row that the reader does not see.
func FuzzReadJSONL(f *testing.F) {
	seeds, err := filepath.Glob("testdata/logs/*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range seeds {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"id":"a","target":[1],"prediction":{"x":NaN}}` + "\n" + `{"id":"a","prediction":[[]]}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "predictions-test.jsonl")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		log, _, err := ReadJSONL(path)
		if err != nil {
			t.Fatal(err)
		}
		if log.Bytes != int64(len(data)) {
			t.Errorf("%d of %d bytes read", log.Bytes, len(data))
		}
		for _, p := range log.Points {
			if p.Start < 0 || p.End > log.Bytes || p.Start >= p.End || p.Name == "" {
				t.Errorf("point %+v", p)
			}
		}
		if _, err := json.Marshal(log); err != nil {
			t.Error(err)
		}
		Health(log)
		points, err := NewFollower(path).Poll()
		if err != nil || len(points) > len(log.Points) && log.Bytes > 512 {
			t.Errorf("follower: %d points, log %d, %v", len(points), len(log.Points), err)
		}
		preds, _, err := ReadPredictions(path, "")
		if err != nil {
			t.Fatal(err)
		}
		targets := map[string]string{"a": "1", "b": "0"}
		for _, metric := range recomputable() {
			_, _, _ = Recompute(metric, preds, targets)
		}
	})
}

// fuzzFiles adds the files of a folder as seeds.
func fuzzFiles(f *testing.F, patterns ...string) {
	for _, pattern := range patterns {
		seeds, err := filepath.Glob(pattern)
		if err != nil || len(seeds) == 0 {
			f.Fatal(pattern, err)
		}
		for _, path := range seeds {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			if len(data) < 10_000 {
				f.Add(data)
			}
		}
	}
}

// checkLog holds what is true of every log that was read of these bytes.
func checkLog(t *testing.T, log *Log, data []byte) {
	t.Helper()
	if log.Bytes != int64(len(data)) || log.Shape == "" {
		t.Errorf("%d of %d bytes read, shape %q", log.Bytes, len(data), log.Shape)
	}
	rows := 0
	for _, n := range log.Shapes {
		rows += n
	}
	if rows > len(log.Points)+log.Dropped {
		t.Errorf("%d rows gave %d points", rows, len(log.Points))
	}
	for _, p := range log.Points {
		if p.Start < 0 || p.End > log.Bytes || p.Start >= p.End || p.Name == "" || p.Line != 1+bytes.Count(data[:p.Start], []byte("\n")) {
			t.Fatalf("point %+v", p)
		}
		row := data[p.Start:p.End]
		hidden := func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == '"' } // what plain and JSON strings take out
		if !bytes.Contains(row, []byte(p.Text)) && bytes.IndexFunc(row, hidden) < 0 {
			t.Fatalf("%q is not in its bytes %q", p.Text, row)
		}
	}
	if _, err := json.Marshal(log); err != nil {
		t.Error(err)
	}
	Health(log)
}

// Whatever stands in a text log: no panic, and every number lies in the bytes that it is said to be from.
func FuzzReadText(f *testing.F) {
	fuzzFiles(f, "testdata/text/*.log")
	f.Add([]byte("Epoch 1/2\r 1/10 [>...]\r10/10 [====] - 1s - loss: nan\b\b\r\n{'a': {'b': [1, '}']}, \"loss\": 1e9999}"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "train.log")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		log, _, err := readText(path, MaxPoints)
		if err != nil {
			t.Fatal(err)
		}
		checkLog(t, log, data)
	})
}

// The same for tables, with every separator.
func FuzzReadCSV(f *testing.F) {
	fuzzFiles(f, "testdata/csv/*.?sv")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "metrics.csv")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, comma := range []byte{',', ';', '\t'} {
			log, _, err := readCSV(path, comma, MaxPoints)
			if err != nil {
				t.Fatal(err)
			}
			checkLog(t, log, data)
		}
	})
}

// Any file by the one door, whatever its name says it is.
func FuzzRead(f *testing.F) {
	fuzzFiles(f, "testdata/text/*.log", "testdata/csv/*.?sv", "testdata/logs/*.jsonl")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"a.jsonl", "a.csv", "a.log"} {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			log, _, err := Read(path)
			if err != nil {
				t.Fatal(err)
			}
			checkLog(t, log, data)
		}
	})
}
