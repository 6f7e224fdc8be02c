package metrics

import (
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
		preds, _, err := ReadPredictions(path)
		if err != nil {
			t.Fatal(err)
		}
		targets := map[string]string{"a": "1", "b": "0"}
		for _, metric := range recomputable() {
			_, _, _ = Recompute(metric, preds, targets)
		}
	})
}
