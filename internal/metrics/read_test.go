package metrics

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every shape by one door: what is read, and what it was taken for, stands in a golden file.
func TestReadGolden(t *testing.T) {
	var files []string
	for _, pattern := range []string{"testdata/text/*.log", "testdata/csv/*.?sv"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			log, found, err := Read(filepath.ToSlash(path))
			if err != nil {
				t.Fatal(err)
			}
			got := "shape " + log.Shape + shapesText(log) + "\n" + render(log, found, Health(log))
			golden := path + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range log.Points {
				if row := string(data[p.Start:p.End]); !strings.Contains(row, p.Text) || strings.ContainsAny(row, "\r\n") {
					t.Errorf("line %d: %s = %q is not within its bytes %q", p.Line, p.Key(), p.Text, row)
				}
				if line := 1 + strings.Count(string(data[:p.Start]), "\n"); line != p.Line {
					t.Errorf("%s: line %d, counted %d", p.Key(), p.Line, line)
				}
			}
			if log.Bytes != int64(len(data)) {
				t.Errorf("%d of %d bytes", log.Bytes, len(data))
			}
		})
	}
}

func shapesText(log *Log) string {
	var b strings.Builder
	for _, shape := range []string{ShapeJSONL, ShapeCSV, ShapeLightning, ShapeKeras, ShapeHuggingFace, ShapeTqdm, ShapeKeyValue} {
		if n := log.Shapes[shape]; n > 0 {
			fmt.Fprintf(&b, " %s:%d", shape, n)
		}
	}
	return b.String()
}

// A whole training on one physical line, as a bar of tqdm leaves it, is longer than any line may be.
func TestReadTextOfOneEndlessLine(t *testing.T) {
	var b strings.Builder
	bar := strings.Repeat(" ", 900)
	for i := 1; b.Len() < 2*MaxLine; i++ {
		fmt.Fprintf(&b, "\r  0%%|%s| %d/90000 [00:01<00:02, 99.0it/s, loss=%.4f]", bar, i, falling(i))
	}
	log, found, err := Read(writeFile(t, "train.err", b.String()))
	if err != nil || len(found) > 0 || log.Shape != ShapeTqdm || len(log.Names) != 1 || len(log.Points) < 2000 {
		t.Fatalf("%d points, names %v, %v, %v", len(log.Points), log.Names, found, err)
	}
	last, _ := log.Last(Key{Name: "loss"})
	if last.Line != 1 || *last.Step != int64(len(log.Points)) {
		t.Errorf("%+v", last)
	}
	if found := Health(log); len(codes(found)) != 2 { // settled early, and of which split is not said
		t.Error(found)
	}
}

// A file that is cut anywhere gives the rows before the cut, and no number that nobody wrote goes unremarked.
func TestReadCutAnywhere(t *testing.T) {
	for name, whole := range map[string]string{
		"metrics.csv": "epoch,val_loss\n1,0.512\n2,0.256\n3,0.128\n",
		"train.log":   "start\nepoch=1 val_loss=0.512\nepoch=2 val_loss=0.256\nepoch=3 val_loss=0.128\n",
	} {
		path := writeFile(t, name, "")
		for cut := range whole {
			if err := os.WriteFile(path, []byte(whole[:cut]), 0o644); err != nil {
				t.Fatal(err)
			}
			log, found, err := Read(path)
			if err != nil {
				t.Fatal(cut, err)
			}
			for i, p := range log.Points {
				if want := []float64{0.512, 0.256, 0.128}[i]; p.Value != want && !hasCode(found, "line_unterminated") {
					t.Errorf("%s cut at %d: %v for %v, %v", name, cut, p.Value, want, found)
				}
			}
			if rows := strings.Count(whole[:cut], "\n") - 1; len(log.Points) < rows {
				t.Errorf("%s cut at %d: %d of %d rows", name, cut, len(log.Points), rows)
			}
		}
	}
}

func TestSniffing(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"m.txt", `{"loss": 1}` + "\n", ShapeJSONL},
		{"m.csv", `{"loss": 1}` + "\n", ShapeJSONL},
		{"m.jsonl", "garbage\n" + `{"loss": 1}` + "\nmore\ngarbage\n", ShapeJSONL},
		{"m.jsonl", "epoch,loss\n1,2\n", ShapeCSV},
		{"m.log", "epoch\tloss\n1\t2\n", ShapeCSV},
		{"m.log", "loss: 0.5, acc: 0.9\nloss: 0.4, acc: 0.9\n", ShapeKeyValue},
		{"m.log", "Loading, please wait\n1, 2\n", ShapeCSV}, // a header and a row, as far as anyone can tell
		{"m.csv", "loss\n0.5\n", ShapeCSV},
		{"m.out", "{'loss': 0.5, 'epoch': 1.0}\n", ShapeHuggingFace},
		{"m.out", "Epoch 1/2\n2/2 [====] - 0s 1ms/step - loss: 0.5\n", ShapeKeras},
		{"m.csv", "", ShapeJSONL},
		{"m.log", "", ShapeKeyValue},
	} {
		log, _, err := Read(writeFile(t, c.name, c.text))
		if err != nil || log.Shape != c.want {
			t.Errorf("%s %q: %v, want %s, %v", c.name, c.text, log, c.want, err)
		}
	}
}

// The tail of a long log is what people read; this is how long a reader takes that has to see all of it.
func BenchmarkReadText(b *testing.B) {
	var text strings.Builder
	for i := 0; text.Len() < 8<<20; i++ {
		fmt.Fprintf(&text, "2026-11-30 12:00:01,123 INFO worker %d: loaded shard /data/part-%05d.tar in 0.31s\n", i%8, i)
		if i%10 == 0 {
			fmt.Fprintf(&text, "epoch=%d step=%d train_loss=%.5f\n", i/1000, i, falling(i))
		}
	}
	path := filepath.Join(b.TempDir(), "train.log")
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, _, err := Read(path); err != nil {
			b.Fatal(err)
		}
	}
}
