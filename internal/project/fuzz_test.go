package project

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// FuzzScript holds for every input: no panic, tokens in order and inside the source, places that give the quote, and a
// result that JSON can hold.
func FuzzScript(f *testing.F) {
	scripts, _ := filepath.Glob(filepath.Join("testdata", "scripts", "*.py"))
	for _, name := range scripts {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	for _, src := range []string{"p.add_argument('--x', default=f'{a[\"b\"]:{w}}')", "a.add_argument(\"-\")", "x = (1,\r", "if a: b; c\n\td", "\"\"\"", "p.add_argument(dest='x')", "1e+", "0x", "().add_argument('x')[0].add_argument('y')"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		s, fault := newScript("x.py", src)
		if fault != nil && (fault.at < 0 || fault.at >= len(src)) {
			t.Fatalf("fault at %d of %d", fault.at, len(src))
		}
		last := 0
		for _, st := range s.statements {
			if len(st.tokens) == 0 {
				t.Fatal("a statement without tokens")
			}
			for _, tok := range st.tokens {
				if tok.start < last || tok.end <= tok.start || tok.end > len(src) {
					t.Fatalf("token %+v after byte %d of %d", tok, last, len(src))
				}
				last = tok.end
			}
		}
		entry, _ := readEntrypoint(s, "x.py")
		for _, a := range entry.Arguments {
			if a.Quote != s.quote(a.Place) || len(a.Flags) == 0 || a.Place.Line < 1 {
				t.Fatalf("argument %+v", a)
			}
		}
		if _, err := json.Marshal([]any{entry, s.traps(entry.Arguments)}); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzConfig holds the same for configurations.
func FuzzConfig(f *testing.F) {
	f.Add("a: &b {c: 1}\nd: *b\n<<: [*b, *b]\n", true)
	f.Add("{\"a\": [1, {\"b\": 2}]}", false)
	f.Add("a: &a [*a]\n", true)
	f.Fuzz(func(t *testing.T, src string, yaml bool) {
		config, traps, _ := readConfig("x", map[bool]string{true: "yaml", false: "json"}[yaml], src)
		for _, v := range config.Values {
			if v.Place.Start < 0 || v.Place.End > len(src) || v.Place.Start > v.Place.End {
				t.Fatalf("%+v in %d bytes", v, len(src))
			}
		}
		if _, err := json.Marshal([]any{config, traps}); err != nil {
			t.Fatal(err)
		}
	})
}
