package dataset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

func TestWritePartsKeepsBytes(t *testing.T) {
	tests := []struct{ name, file, header, rows, last, eol string }{
		{"LF", "a.csv", "id,x\n", "a,\"1\n,2\"|b, 2|c,\"say \"\"no\"\"\"|d,4", "", "\n"},
		{"CRLF", "a.csv", "id,x\r\n", "a,1|b,2|c,3|d,4", "", "\r\n"},
		{"no line end at the end", "a.csv", "id,x\n", "a,1|b,2|c,3|d,4", "cut", "\n"},
		{"CRLF without the last", "a.csv", "id,x\r\n", "a,1|b,2|c,3|d,4", "cut", "\r\n"},
		{"byte order mark", "a.csv", "\xEF\xBB\xBFid,x\n", "a,1|b,2|c,3|d,4", "", "\n"},
		{"Latin-1", "a.tsv", "id\tx\n", "\xfc\t1|b\t2|\xe9\t3|d\t4", "", "\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rows := strings.Split(test.rows, "|")
			in := test.header + strings.Join(rows, test.eol) + test.eol
			if test.last == "cut" {
				in = strings.TrimSuffix(in, test.eol)
			}
			path, dir, out := write(t, test.file, in), t.TempDir(), t.TempDir()
			split, _, err := MakeSplit(background, path, SplitSpec{Strategy: Random, Fractions: map[string]float64{Train: 0.5, Test: 0.5}, ID: "id"}, dir)
			if err != nil {
				t.Fatal(err)
			}
			written, _, err := WriteParts(background, path, split, dir, out, WriteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for name, list := range ids(t, dir, split) {
				want := test.header
				for _, row := range rows {
					for _, id := range list {
						if strings.HasPrefix(row, id) || text([]byte(row[:1])) == id {
							want += row + test.eol
						}
					}
				}
				if written[name] != filepath.Join(out, name+filepath.Ext(test.file)) {
					t.Error(written[name])
				}
				if diff := cmp.Diff(want, read(t, written[name])); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
			if left, _ := os.ReadDir(out); len(left) != 2 {
				t.Error("a temporary file is left:", left)
			}
		})
	}
}

func TestWritePartsAddsIDs(t *testing.T) {
	path, dir, out := write(t, "a.csv", "x,y\n1,u\n2,v\n3,u\n4,v\n"), t.TempDir(), t.TempDir()
	split, _, err := MakeSplit(background, path, SplitSpec{Strategy: Random, Fractions: map[string]float64{Train: 0.5, Test: 0.5}, Seed: 2}, dir)
	if err != nil {
		t.Fatal(err)
	}
	written, _, err := WriteParts(background, path, split, dir, out, WriteOptions{AddID: "row_id"})
	if err != nil {
		t.Fatal(err)
	}
	all := read(t, written[Train]) + strings.TrimPrefix(read(t, written[Test]), "row_id,x,y\n")
	for _, line := range []string{"row_id,x,y\n", "row-0,1,u\n", "row-1,2,v\n", "row-2,3,u\n", "row-3,4,v\n"} {
		if strings.Count(all, line) != 1 {
			t.Errorf("%q is not in\n%s", line, all)
		}
	}
}

// A file without a header has parts without one.
func TestWritePartsWithoutHeader(t *testing.T) {
	path, dir := write(t, "a.csv", "1,2\n3,4\n5,6\n7,8\n"), t.TempDir()
	split, _, err := MakeSplit(background, path, SplitSpec{Strategy: Random, Fractions: map[string]float64{Train: 0.5, Test: 0.5}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	written, _, err := WriteParts(background, path, split, dir, t.TempDir(), WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(read(t, written[Train])+read(t, written[Test]), "\n"); got != 4 {
		t.Errorf("%d lines", got)
	}
}

func TestWritePartsRefusesAnotherSource(t *testing.T) {
	in := "id,x\na,1\nb,2\nc,3\nd,4\n"
	tests := []struct {
		name   string
		change func(path, dir string) error
		want   string
	}{
		{"a value changed", func(path, _ string) error {
			return os.WriteFile(path, []byte(strings.Replace(in, "c,3", "c,9", 1)), 0o644)
		}, "source_changed"},
		{"a row added", func(path, _ string) error { return os.WriteFile(path, []byte(in+"e,5\n"), 0o644) }, "source_changed"},
		{"a row gone", func(path, _ string) error {
			return os.WriteFile(path, []byte(strings.Replace(in, "d,4\n", "", 1)), 0o644)
		}, "source_changed"},
		{"an id added", func(_, dir string) error {
			return os.WriteFile(filepath.Join(dir, "split/train.ids"), []byte("a\nb\nc\nd\nz\n"), 0o644)
		}, "ids_changed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path, dir, out := write(t, "a.csv", in), t.TempDir(), t.TempDir()
			split, _, err := MakeSplit(background, path, SplitSpec{Strategy: Random, Fractions: map[string]float64{Train: 1}, ID: "id"}, dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := test.change(path, dir); err != nil {
				t.Fatal(err)
			}
			_, _, err = WriteParts(background, path, split, dir, out, WriteOptions{})
			if diff := cmp.Diff([]string{test.want}, codes(refusal(t, err))); diff != "" {
				t.Error(diff)
			}
			if left, _ := os.ReadDir(out); len(left) > 0 {
				t.Error("files are left behind:", left)
			}
		})
	}
}

func TestCheckParts(t *testing.T) {
	train := "id,x,z,y\na,1.0,Red,u\nb,2,blue,v\nc,3,,u\n"
	tests := []struct {
		name, test, id, target string
		want                   map[string]int64
		codes                  []string
	}{
		{"nothing in common", "id,x,z,y\nd,4,red,u\ne,5,blue,v\n", "id", "y", map[string]int64{}, []string{}},
		{"an id", "id,x,z,y\nb,4,red,u\n", "id", "y", map[string]int64{LeakID: 1}, []string{"leakage_id"}},
		{"an equal row", "id,x,z,y\nd,2,blue,v\ne,6,red,v\n", "id", "y", map[string]int64{LeakRow: 1}, []string{"leakage_row"}},
		{"spelled differently", "id,x,z,y\nd,1, red,u\ne,3.00,NA,u\n", "id", "y", map[string]int64{LeakFeatures: 2}, []string{"leakage_features"}},
		{"labelled differently", "id,x,z,y\nd,2,blue,u\n", "id", "y", map[string]int64{LeakFeatures: 1}, []string{"leakage_features"}},
		{"columns in another order", "y,z,x,id\nv,blue,2,d\n", "id", "y", map[string]int64{LeakRow: 1}, []string{"leakage_row"}},
		{"no target in the test part", "id,x,z\nd,2,blue\n", "id", "y", map[string]int64{LeakRow: 1}, []string{"columns_differ", "leakage_row"}},
		{"without ids and target", "id,x,z,y\nb,2,blue,v\n", "", "", map[string]int64{LeakRow: 1}, []string{"leakage_row"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			parts := map[string]string{Train: write(t, "train.csv", train), Test: write(t, "test.csv", test.test)}
			leaks, found, err := CheckParts(background, parts, test.id, test.target)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int64{}
			for _, leak := range leaks {
				got[leak.Kind] = leak.Count
				example := leak.Examples[0]
				if example.First.Part != Train || example.Second.Part != Test || example.First.Line < 2 || example.Second.Line < 2 {
					t.Errorf("%+v", example)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.codes, codes(found)); diff != "" {
				t.Error(diff)
			}
		})
	}
	parts := map[string]string{Train: write(t, "train.csv", train), Test: write(t, "test.csv", "a,b\n1,2\n")}
	_, _, err := CheckParts(background, parts, "", "y")
	found := refusal(t, err)
	if last := found[len(found)-1]; last.Code != "columns_differ" || last.Severity != finding.Error {
		t.Error(found)
	}
	if _, _, err := CheckParts(background, parts, "id", "y"); refusal(t, err)[0].Code != "column_unknown" {
		t.Error(err)
	}
}

func TestStatistics(t *testing.T) {
	path := write(t, "train.csv", "x,n,word\n1,,a\n2,4,b\n3,6,c\n")
	got, err := Statistics(background, path, []string{"x", "n"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Stat{"x": {2, 0.816496580927726, Train, 3}, "n": {5, 1, Train, 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if all, err := Statistics(background, path, nil); err != nil || len(all) != 2 {
		t.Error(all, err)
	}
	_, err = Statistics(background, path, []string{"word"})
	if diff := cmp.Diff([]said{{"column_not_numeric", finding.Error, 2, 12}}, saidOf(refusal(t, err))); diff != "" {
		t.Error(diff)
	}
	_, err = Statistics(background, path, []string{"xx"})
	if got := refusal(t, err)[0]; got.Code != "column_unknown" || !strings.Contains(got.Remedy, "x") {
		t.Error(got)
	}
}

func TestTargets(t *testing.T) {
	path := write(t, "a.csv", "id,y\na, 1.50\nM\xfc,NA\n")
	got, err := Targets(background, path, "id", "y")
	if diff := cmp.Diff(map[string]string{"a": "1.50", "Mü": "NA"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	got, err = Targets(background, path, "", "y")
	if diff := cmp.Diff(map[string]string{"row-0": "1.50", "row-1": "NA"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for name, test := range map[string]struct{ in, id, target, want string }{
		"equal ids":  {"id,y\na,1\na,2\n", "id", "y", "id_duplicate"},
		"no target":  {"id,y\na,1\n", "id", "", "column_unknown"},
		"no such id": {"id,y\na,1\n", "no", "y", "column_unknown"},
		"ragged":     {"id,y\na\n", "id", "y", "row_ragged"},
	} {
		_, err := Targets(background, write(t, "a.csv", test.in), test.id, test.target)
		if got := refusal(t, err)[0].Code; got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
