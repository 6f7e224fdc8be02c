package project

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares v as readable JSON with testdata/golden/<name>.json.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	var got bytes.Buffer
	encoder := json.NewEncoder(&got)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	goldenText(t, name+".json", got.String())
}

func goldenText(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func readScript(t *testing.T, name string) (*script, string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "scripts", name))
	if err != nil {
		t.Fatal(err)
	}
	s, fault := newScript(name, string(data))
	if fault != nil {
		t.Fatalf("%s: %v at byte %d", name, fault, fault.at)
	}
	return s, string(data)
}

func TestEntrypointGolden(t *testing.T) {
	for _, name := range []string{"plain.py", "multiline.py", "subcommands.py", "aliased.py", "silent.py", "strings.py"} {
		t.Run(name, func(t *testing.T) {
			s, src := readScript(t, name)
			entry, findings := readEntrypoint(s, "")
			traps := s.traps(entry.Arguments)
			golden(t, strings.TrimSuffix(name, ".py"), map[string]any{"entrypoint": entry, "traps": traps, "findings": findings})
			for _, a := range entry.Arguments {
				checkPlace(t, src, a.Place, a.Quote)
				if a.DefaultPlace != nil {
					checkPlace(t, src, *a.DefaultPlace, a.DefaultQuote)
				}
			}
		})
	}
}

// checkPlace holds the promise of the package: the quote is the text at the place, and the line is where it begins.
func checkPlace(t *testing.T, src string, p Place, quote string) {
	t.Helper()
	if got := src[p.Start:p.End]; got != quote {
		t.Errorf("%s:%d: text at the place is %q, quote is %q", p.Path, p.Line, got, quote)
	}
	if line := strings.Count(src[:p.Start], "\n") + 1; line != p.Line {
		t.Errorf("%s: %q begins in line %d, place says %d", p.Path, quote, line, p.Line)
	}
}

func TestConstants(t *testing.T) {
	tests := []struct {
		name, src string
		want      any // of LR, "none" where it must not be taken
	}{
		{"plain", "LR = 1", int64(1)},
		{"annotated", "LR: float = 0.5", 0.5},
		{"twice", "LR = 1\nLR = 2", "none"},
		{"in a block too", "LR = 1\nif x:\n  LR = 2", "none"},
		{"added to", "LR = 1\nLR += 2", "none"},
		{"loop variable", "LR = 1\nfor LR in x: pass", "none"},
		{"second loop variable", "LR = 1\nfor a, LR in x: pass", "none"},
		{"parameter", "LR = 1\ndef f(a, LR=3): pass", "none"},
		{"global", "LR = 1\ndef f():\n  global LR\n", "none"},
		{"walrus", "LR = 1\nf(LR := 3)", "none"},
		{"unpacked", "a, LR = 1, 2", "none"},
		{"imported", "LR = 1\nfrom x import LR", "none"},
		{"with as", "LR = 1\nwith f() as LR: pass", "none"},
		{"not a literal", "LR = f()", "none"},
		{"only in a block", "if x:\n  LR = 1", "none"},
		{"keyword of a call is none", "LR = 1\nf(LR=3)", int64(1)},
		{"comparison is none", "LR = 1\nLR == 2\nLR <= 2", int64(1)},
		{"attribute is none", "LR = 1\nx.LR = 2", int64(1)},
	}
	for _, test := range tests {
		s, _ := newScript("x.py", test.src)
		got := any("none")
		if c, ok := s.constants["LR"]; ok {
			got = c.value
		}
		if got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func TestHasMain(t *testing.T) {
	tests := map[string]bool{
		`if __name__ == "__main__": main()`:       true,
		"if '__main__' == __name__:\n  main()":    true,
		"if x:\n if __name__ == '__main__': pass": false,
		`# if __name__ == "__main__": main()`:     false,
		`s = """if __name__ == "__main__":"""`:    false,
		`if __name__ == "x": main()`:              false,
	}
	for src, want := range tests {
		s, _ := newScript("x.py", src)
		if got := s.hasMain(); got != want {
			t.Errorf("%q: %v", src, got)
		}
	}
}
