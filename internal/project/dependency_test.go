package project

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadDependencies(t *testing.T) {
	tests := []struct {
		path, src string
		want      []string // "line name constraint"
		codes     string
	}{
		{"requirements.txt", "# c\nnumpy\n  torch >= 2.0 # gpu\n-e .\n--index-url https://example.org\n./local\nhttps://example.org/a.whl\nx @ https://example.org/x.whl\ny==1 --hash=sha256:00\nz~=1.0 \\\n  --hash=sha256:00\n",
			[]string{"2 numpy ", "3 torch >= 2.0", "8 x @ https://example.org/x.whl", "9 y ==1", "10 z ~=1.0"}, ""},
		{"requirements-dev.txt", "a\r\nb[c,d]>1\r\n", []string{"1 a ", "2 b [c,d] >1"}, ""},
		{"notes.txt", "numpy\n", nil, ""},
		{"pyproject.toml", "[project]\ndependencies = [\"a>=1\", \"b\"]\n", []string{"2 a >=1", "2 b "}, ""},
		{"pyproject.toml", "[project]\nname = \"a\"\n", nil, ""},
		{"pyproject.toml", "[project]\ndependencies = [\n", nil, "dependencies_malformed"},
		{"environment.yml", "dependencies:\n- a=1\n- c::b\n- pip\n- pip:\n  - d>=2\n- e 1.2.*\n", []string{"2 a =1", "3 b ", "4 pip ", "6 d >=2", "7 e 1.2.*"}, ""},
		{"environment.yaml", "", nil, ""},
		{"environment.yml", "dependencies: none\n", nil, ""},
		{"environment.yml", "- a\n", nil, ""},
		{"environment.yml", "a: [\n", nil, "dependencies_malformed"},
	}
	for _, test := range tests {
		found, findings := readDependencies(test.path, test.src)
		var got []string
		for _, d := range found {
			got = append(got, fmt.Sprintf("%d %s %s", d.Place.Line, d.Name, d.Constraint))
		}
		if diff := cmp.Diff(test.want, got); diff != "" || codes(findings) != test.codes {
			t.Errorf("%s %q (-want +got):\n%s%v", test.path, test.src, diff, findings)
		}
	}
}

func TestUndeclared(t *testing.T) {
	root := write(t,
		"train.py", "import os, numpy as np, torch\nimport cv2\nfrom sklearn.svm import SVC\nimport yaml, mylib.a, helper, sibling\ntry:\n    import wandb\nexcept ImportError: pass\n",
		"mylib/a.py", "import sibling, tomllib\nfrom . import b\nimport __future__\n", "mylib/sibling.py", "", "helper.py", "",
		"requirements.txt", "scikit_learn\nopencv-python-headless\nPyYAML\nNumPy\n")
	tree, _ := scan(t, root, Options{})
	got := map[string]int{}
	for _, d := range tree.Dependencies {
		if d.Imported {
			got[d.Place.Path+" "+d.Name] = d.Place.Line
		}
	}
	// sibling lies beside mylib/a.py; it is named there first, so train.py's own import of it is the same module.
	if diff := cmp.Diff(map[string]int{"train.py torch": 1, "train.py wandb": 6}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
