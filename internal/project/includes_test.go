package project

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree scans a folder with these files.
func treeOf(t *testing.T, files map[string]string) (*Tree, []string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	scanned, findings, err := Scan(context.Background(), dir, Options{Python: "none"})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, f := range findings {
		said = append(said, fmt.Sprintf("%s %s:%d", f.Code, f.Where.Path, f.Where.Line))
	}
	return scanned, said
}

// A configuration is what it sets and what its bases set besides, each key where the value in force is written.
func TestComposed(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
		said  []string
	}{
		"yacs": {map[string]string{"c/main.yaml": "_BASE_: base.yaml\nlr: 0.1\n", "c/base.yaml": "lr: 0.5\nepochs: 3\n"},
			[]string{"_BASE_ = base.yaml at c/main.yaml:1", "lr = 0.1 at c/main.yaml:2", "epochs = 3 at c/base.yaml:2"}, nil},
		"the later base counts": {map[string]string{"c/main.yaml": "_base_: [a.yaml, b.yaml]\n", "c/a.yaml": "lr: 1\nseed: 4\n", "c/b.yaml": "lr: 2\n"},
			[]string{"_base_ = [a.yaml b.yaml] at c/main.yaml:1", "lr = 2 at c/b.yaml:1", "seed = 4 at c/a.yaml:2"}, nil},
		"a base of a base": {map[string]string{"c/main.yaml": "extends: ../d/mid.yaml\n", "d/mid.yaml": "extends: low.json\nlr: 1\n", "d/low.json": "{\"lr\": 9, \"seed\": 5}\n"},
			[]string{"extends = ../d/mid.yaml at c/main.yaml:1", "lr = 1 at d/mid.yaml:2", "seed = 5 at d/low.json:1"}, nil},
		"at its place": {map[string]string{"c/main.yaml": "train: !include train.yaml\n", "c/train.yaml": "lr: 0.2\n"},
			[]string{"train = train.yaml at c/main.yaml:1", "train.lr = 0.2 at c/train.yaml:1"}, nil},
		"a base that is not there": {map[string]string{"c/main.yaml": "lr: 1\n_BASE_: none.yaml\n"},
			[]string{"lr = 1 at c/main.yaml:1", "_BASE_ = none.yaml at c/main.yaml:2"}, []string{"config_base_missing c/main.yaml:2"}},
		"a circle": {map[string]string{"c/main.yaml": "_BASE_: other.yaml\nlr: 1\n", "c/other.yaml": "_BASE_: main.yaml\nseed: 2\n"},
			[]string{"_BASE_ = other.yaml at c/main.yaml:1", "lr = 1 at c/main.yaml:2", "seed = 2 at c/other.yaml:2"}, []string{"config_includes_itself c/main.yaml:1", "config_includes_itself c/other.yaml:1"}},
		"an ordinary word": {map[string]string{"c/main.yaml": "include: all\nbase_config: 3\n"}, []string{"include = all at c/main.yaml:1", "base_config = 3 at c/main.yaml:2"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tree, said := treeOf(t, c.files)
			var got []string
			for _, config := range tree.Composed([]Config{*tree.config("c/main.yaml")}) {
				for _, v := range config.Values {
					got = append(got, fmt.Sprintf("%s = %v at %s:%d", v.Key, v.Value, v.Place.Path, v.Place.Line))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.said, said); diff != "" {
				t.Error(diff)
			}
		})
	}
}
