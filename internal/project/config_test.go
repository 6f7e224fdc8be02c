package project

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfigValues(t *testing.T) {
	tests := []struct {
		name, format, src string
		want              []string // "line key=value «quote»"
		codes             string
	}{
		{"yaml scalars", "yaml", "a: 1\nb: 1.5\nc: text\nd: null\ne: true\nf: no\ng: 'no'\nh: 2024-01-01\n",
			[]string{"1 a=1 «a: 1»", "2 b=1.5 «b: 1.5»", "3 c=text «c: text»", "4 d=<nil> «d: null»", "5 e=true «e: true»", "6 f=false «f: no»", "7 g=no «g: 'no'»", "8 h=2024-01-01 «h: 2024-01-01»"}, ""},
		{"yaml nesting", "yaml", "a:\n  b:\n    c: 1\n  d: [1, x]\n  e:\n    - 1\n    - 2\n  f:\n    - g: 1\n    - g: 2\n",
			[]string{"3 a.b.c=1 «c: 1»", "4 a.d=[1 x] «d: [1, x]»", "5 a.e=[1 2] «e:\n    - 1\n    - 2»", "9 a.f.0.g=1 «g: 1»", "10 a.f.1.g=2 «g: 2»"}, ""},
		{"yaml comment stays in the quote", "yaml", "lr: 0.1  # good\n", []string{"1 lr=0.1 «lr: 0.1  # good»"}, ""},
		{"yaml documents", "yaml", "a: 1\n---\na: 2\n", []string{"1 a=1 «a: 1»", "3 1.a=2 «a: 2»"}, ""},
		{"yaml anchors and merges", "yaml", "base: &b\n  lr: 1\n  wd: 2\nrun:\n  <<: *b\n  lr: 3\nsame: *b\n",
			[]string{"2 base.lr=1 «lr: 1»", "3 base.wd=2 «wd: 2»", "6 run.lr=3 «lr: 3»", "3 run.wd=2 «wd: 2»", "2 same.lr=1 «lr: 1»", "3 same.wd=2 «wd: 2»"}, ""},
		{"yaml block text", "yaml", "a: |\n  one\n  two\nb: 1\n", []string{"1 a=one\ntwo\n «a: |\n  one\n  two»", "4 b=1 «b: 1»"}, ""},
		{"yaml beyond ASCII", "yaml", "größe: {ü: 1, ö: 2}\n", []string{"1 größe.ü=1 «ü: 1, ö: 2}»", "1 größe.ö=2 «ö: 2}»"}, ""},
		{"yaml windows lines", "yaml", "a: 1\r\nb: 2\r\n", []string{"1 a=1 «a: 1»", "2 b=2 «b: 2»"}, ""},
		{"yaml twice", "yaml", "a: 1\na: 2\n", []string{"2 a=2 «a: 2»"}, "config_duplicate_key"},
		{"yaml interpolation", "yaml", "a: ${b}\nc: !custom x\n", []string{"1 a=${b} «a: ${b}»", "2 c=x «c: !custom x»"}, ""},
		{"yaml list root is data", "yaml", "- a: 1\n", nil, ""},
		{"yaml empty", "yaml", "", nil, ""},
		{"yaml malformed late", "yaml", "a: 1\n---\nb: 'x\n", []string{"1 a=1 «a: 1»"}, "config_malformed"},
		{"json", "json", "{\n \"a\": {\"b\": 1, \"c\": [1, 2.5]},\n \"d\": [{\"e\": null}],\n \"f\": \"x\\u00e9\"\n}", []string{"2 a.b=1 «\"b\": 1»", "2 a.c=[1 2.5] «\"c\": [1, 2.5]»", "3 d.0.e=<nil> «\"e\": null»", "4 f=xé «\"f\": \"x\\u00e9\"»"}, ""},
		{"json twice", "json", `{"a": 1, "a": 2}`, []string{"1 a=2 «\"a\": 2»"}, "config_duplicate_key"},
		{"json cut short", "json", `{"a": 1, "b": `, []string{"1 a=1 «\"a\": 1»"}, "config_malformed"},
		{"json with more after it", "json", "{\"a\": 1}\n}", []string{"1 a=1 «\"a\": 1»"}, "config_malformed"},
		{"json list is data", "json", "[1]", nil, ""},
		{"json byte order mark", "json", "\ufeff{}", nil, "config_malformed"},
		{"json too deep", "json", strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40), nil, "config_malformed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config, _, findings := readConfig("x."+test.format, test.format, test.src)
			var got []string
			for _, v := range config.Values {
				checkPlace(t, test.src, v.Place, v.Quote)
				got = append(got, fmt.Sprintf("%d %s=%v «%s»", v.Place.Line, v.Key, v.Value, v.Quote))
			}
			if diff := cmp.Diff(test.want, got); diff != "" || codes(findings) != test.codes {
				t.Errorf("(-want +got):\n%s%v", diff, findings)
			}
		})
	}
}

// TestYAMLFaultLines pins yaml.v3's messages whose line counts from 0.
func TestYAMLFaultLines(t *testing.T) {
	tests := []struct {
		src  string
		line int
	}{
		{"a: 1\nb: [1, 2\nc: 3\n", 2},
		{"a: 1\nb: c: d\n", 2},
		{"a: 1\n\tb: 2\n", 2},
		{"a: 1\n  b: 2\n", 2},
		{"a: *nothing\n", 1},
		{"a: 1\nb: @x\n", 2},
		{"{a: 1\n", 2}, // where the file ends
	}
	for _, test := range tests {
		_, _, findings := readConfig("x.yaml", "yaml", test.src)
		if codes(findings) != "config_malformed" || findings[0].Where.Line != test.line {
			t.Errorf("%q: %v, want line %d", test.src, findings, test.line)
		}
	}
}

func TestConfigIsBounded(t *testing.T) {
	src := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b {k1: *a, k2: *a, k3: *a, k4: *a, k5: *a, k6: *a, k7: *a}\n"
	for i := range 6 {
		src += fmt.Sprintf("%c: &%c {k1: *%c, k2: *%c, k3: *%c, k4: *%c, k5: *%c, k6: *%c}\n", 'c'+i, 'c'+i, 'b'+i, 'b'+i, 'b'+i, 'b'+i, 'b'+i, 'b'+i)
	}
	config, _, findings := readConfig("x.yaml", "yaml", src)
	if len(config.Values) != maxConfigValues || codes(findings) != "config_cut" {
		t.Errorf("%d values, %v", len(config.Values), findings)
	}
	config, _, _ = readConfig("x.yaml", "yaml", "a: "+strings.Repeat("ä", 1000)+"\n")
	if n := len(config.Values[0].Quote); n > maxQuoteBytes || n < maxQuoteBytes-1 {
		t.Errorf("the quote has %d bytes", n)
	}
}

func TestConfigRoles(t *testing.T) {
	config, traps, _ := readConfig("x.yaml", "yaml", "lr: 1e-3\noptimizer:\n  name: sgd\n  lr: 0.1\nstages:\n  - epochs: 3\n  - epochs: 4\nsplit: {train: 0.8, val: 0.1, test: 0.1}\nmetrics: [rmse]\nval: true\n")
	got := map[string]string{}
	for _, v := range config.Values {
		got[v.Key] = v.Role
		if v.Role == "" {
			got[v.Key] = "? " + v.RoleReason
		}
	}
	want := map[string]string{"lr": RoleLearningRate, "optimizer.name": RoleOptimizer, "optimizer.lr": "? training.extra.learning_rate is taken by lr, which has the same name and is less deep",
		"stages.0.epochs": `? 2 keys are named "epochs", so none of them is taken for training.epochs_or_steps`, "stages.1.epochs": `? 2 keys are named "epochs", so none of them is taken for training.epochs_or_steps`,
		"split.train": RoleSplitFraction, "split.val": RoleSplitFraction, "split.test": RoleSplitFraction,
		"metrics": `? the name "metrics" means output.metrics, but it takes a list`, "val": `? the name "val" means data.val_source, but it takes no value, it is a switch`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(traps) != 1 || traps[0].Kind != TrapYAMLText || traps[0].Place != (Place{"x.yaml", 1, 4, 8}) {
		t.Errorf("traps %+v", traps)
	}
}
