package dataset

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Keys are most often in the order of the row before, and that is looked at first; here they are not. A key in Latin-1 used to
// become a second column of the same name.
func TestKeysInAnyOrder(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		names []string
		sums  map[string]float64 // mean of the column
	}{
		"swapped":        {`{"a":1,"b":10}` + "\n" + `{"b":30,"a":3}` + "\n", []string{"a", "b"}, map[string]float64{"a": 2, "b": 20}},
		"one left out":   {`{"a":1,"b":10,"c":5}` + "\n" + `{"a":3,"c":7}` + "\n", []string{"a", "b", "c"}, map[string]float64{"a": 2, "b": 10, "c": 6}},
		"twice in a row": {`{"a":1,"b":10}` + "\n" + `{"a":1,"a":3,"b":30}` + "\n", []string{"a", "b"}, map[string]float64{"a": 2, "b": 20}},
		"nested":         {`{"a":{"x":1},"x":10}` + "\n" + `{"x":30,"a":{"x":3}}` + "\n", []string{"a.x", "x"}, map[string]float64{"a.x": 2, "x": 20}},
		"Latin-1":        {"{\"gr\xf6\xdfe\":1,\"b\":10}\n{\"b\":30,\"gr\xf6\xdfe\":3}\n", []string{"größe", "b"}, map[string]float64{"größe": 2, "b": 20}},
	} {
		path := filepath.Join(t.TempDir(), "table.jsonl")
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, _, err := ProfileTable(context.Background(), path, ProfileOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(p.Order, test.names) {
			t.Errorf("%s: columns %q, want %q", name, p.Order, test.names)
		}
		for column, want := range test.sums {
			if c := p.Columns[column]; c == nil || c.Mean == nil || *c.Mean != want {
				t.Errorf("%s: %s is %+v, want a mean of %g", name, column, c, want)
			}
		}
	}
}
