package project

import (
	"fmt"
	"strings"
	"testing"
)

func TestTOMLIsReadWithItsPlaces(t *testing.T) {
	src := "epochs = 40 # passes\n[optimizer]\nname = \"adamw\"\nlr = 3e-4\nbetas = [0.9, 0.95]\n[data]\nsplit = { train = \"a.csv\", val = 'b.csv' }\n[[stages]]\nlr = 0.1\n[[stages]]\nlr = 0.01\nwarmup.steps = 1_000\n"
	config, _, found := readConfig("conf.toml", "toml", src)
	var got []string
	for _, v := range config.Values {
		checkPlace(t, src, v.Place, v.Quote)
		got = append(got, fmt.Sprintf("%s=%v@%d", v.Key, v.Value, v.Place.Line))
	}
	want := "epochs=40@1 optimizer.name=adamw@3 optimizer.lr=0.0003@4 optimizer.betas=[0.9 0.95]@5 data.split.train=a.csv@7 data.split.val=b.csv@7 stages.0.lr=0.1@9 stages.1.lr=0.01@11 stages.1.warmup.steps=1000@12"
	if text := strings.Join(got, " "); text != want || len(found) > 0 {
		t.Errorf("%s\nwant %s\n%v", text, want, found)
	}
	_, _, found = readConfig("conf.toml", "toml", "a = 1\nb = = 2\n")
	if len(found) != 1 || found[0].Code != "config_malformed" || found[0].Where.Line != 2 {
		t.Errorf("%v", found)
	}
}

func FuzzTOML(f *testing.F) {
	f.Add("a = 1\n[b]\nc = [1, 2]\n")
	f.Fuzz(func(t *testing.T, src string) {
		config, _, _ := readConfig("a.toml", "toml", src)
		for _, v := range config.Values {
			if v.Place.Start < 0 || v.Place.End > len(src) || v.Place.End < v.Place.Start {
				t.Errorf("%+v of %q", v, src)
			}
		}
	})
}

func FuzzLaunches(f *testing.F) {
	f.Add("A=1\ntorchrun --nproc_per_node=2 \\\n train.py --lr $A '--x' \"y z\" && python -m a.b c=1\n")
	f.Fuzz(func(t *testing.T, src string) {
		for _, l := range readLaunches("run.sh", src) {
			if src[l.Place.Start:l.Place.End] != l.Quote {
				t.Errorf("%+v of %q", l, src)
			}
		}
	})
}
