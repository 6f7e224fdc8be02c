package project

import (
	"reflect"
	"strings"
	"testing"
)

func TestTokenizeStatements(t *testing.T) {
	tests := []struct {
		name, src string
		want      []string // "indent|text of the tokens joined by a space"
	}{
		{"comments and blank lines", "# one\n\nx = 1  # two\n", []string{"0|x = 1"}},
		{"semicolons", "a=1; b=2;\n", []string{"0|a = 1", "0|b = 2"}},
		{"brackets join lines", "f(1,\n  # inside\n  2)\ny\n", []string{"0|f ( 1 , 2 )", "0|y"}},
		{"backslash joins lines", "x = 1 + \\\n  2\n", []string{"0|x = 1 + 2"}},
		{"blocks", "if a:\n\tb\nelse: c\n", []string{"0|if a :", "8|b", "0|else :", "1|c"}},
		{"colon of an annotation", "x: int = 3", []string{"0|x : int = 3"}},
		{"colon of a lambda", "if f(lambda x: x): y\nk = lambda: 3\nif lambda x: x: z", []string{"0|if f ( lambda x : x ) :", "1|y", "0|k = lambda : 3", "0|if lambda x : x :", "1|z"}},
		{"walrus and comparison", "if (n := 3) == n: pass", []string{"0|if ( n := 3 ) == n :", "1|pass"}},
		{"triple quotes", "s = '''a\n'b' \"\"\"\n'''\nt", []string{"0|s = '''a\n'b' \"\"\"\n'''", "0|t"}},
		{"escaped quote", `s = 'it\'s' "\\"`, []string{`0|s = 'it\'s' "\\"`}},
		{"raw string", `s = r'\'' Rb"x"`, []string{`0|s = r'\'' Rb"x"`}},
		{"f-string with nested quotes", `s = f"{x["a"]!r:>{w}} {{}}"; y`, []string{`0|s = f"{x["a"]!r:>{w}} {{}}"`, "0|y"}},
		{"f-string with braces in it", `s = f'{ {"a": 1}["a"] :02d}'`, []string{`0|s = f'{ {"a": 1}["a"] :02d}'`}},
		{"carriage returns", "a\r\nb\rc", []string{"0|a", "0|b", "0|c"}},
		{"byte order mark", "\ufeffa = 1", []string{"0|a = 1"}},
		{"names beyond ASCII", "größe = 'ä'", []string{"0|größe = 'ä'"}},
		{"numbers", "a = 1e-3-1_000*.5+0xe-1j", []string{"0|a = 1e-3 - 1_000 * .5 + 0xe - 1j"}},
		{"soft keywords are names", "match: int = 3\nmatch x:\n case 1: y", []string{"0|match : int = 3", "0|match x :", "1|case 1 :", "2|y"}},
		{"unknown characters", "!ls $x ?\ny", []string{"0|! ls $ x ?", "0|y"}},
		{"no line end at the end", "x", []string{"0|x"}},
		{"empty", "", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			statements, err := tokenize(test.src)
			if err != nil {
				t.Fatalf("tokenize: %v at %d", err, err.at)
			}
			if got := render(test.src, statements); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestTokenizeFaults(t *testing.T) {
	tests := []struct {
		src  string
		at   int
		want string
	}{
		{"x = 'abc\ny", 4, "string is never closed"},
		{"x = '''abc\ny", 4, "string is never closed"},
		{"x = (1, [2)", 10, `")" closes nothing`},
		{"x = f(1,\ny = 2\n", 5, `"(" is never closed`},
		{"}", 0, `"}" closes nothing`},
		{"x = f'{a", 4, "string is never closed"},
		{"x = f'{a'", 4, "string is never closed"},
		{strings.Repeat("(", 300), 200, "nested too deeply"},
		{"f'" + strings.Repeat("{:", 300), 0, "nested too deeply"},
	}
	for _, test := range tests {
		_, err := tokenize(test.src)
		if err == nil || err.at != test.at || !strings.Contains(err.what, test.want) {
			t.Errorf("%.20q: got %+v, want %q at %d", test.src, err, test.want, test.at)
		}
	}
}

func TestTokenizeKeepsWhatStandsBeforeAFault(t *testing.T) {
	src := "a = 1\nb = 'x\n"
	statements, err := tokenize(src)
	if err == nil || len(statements) != 1 {
		t.Fatalf("got %v, %v", render(src, statements), err)
	}
}

func TestEvaluate(t *testing.T) {
	tests := []struct {
		src  string
		want any
		ok   bool
	}{
		{"None", nil, true}, {"True", true, true}, {"False", false, true},
		{"1e-3", 1e-3, true}, {"1_000", int64(1000), true}, {"-1", int64(-1), true}, {"0x10", int64(16), true}, {"0b101", int64(5), true},
		{".5", 0.5, true}, {"5.", 5.0, true}, {"010", nil, false}, {"1__0", nil, false}, {"3j", nil, false}, {"99999999999999999999", nil, false}, {"1e999", nil, false},
		{"2*16", int64(32), true}, {"1 / 4", 0.25, true}, {"-7 // 2", int64(-4), true}, {"7 // -2", int64(-4), true}, {"-2 ** 2", int64(-4), true}, {"2 ** -1", 0.5, true}, {"2**100", nil, false}, {"1//0", nil, false},
		{"(1 + 2) * 3", int64(9), true}, {"2 ** 3 ** 2", int64(512), true},
		{`"a" 'b'`, "ab", true}, {`'\x41\n\u00e9\101\q'`, "A\né" + `A\q`, true}, {`r"\n"`, `\n`, true}, {`"""a` + "\r\n" + `b"""`, "a\nb", true}, {`""`, "", true}, {`''''''`, "", true},
		{`f"x"`, nil, false}, {`b"x"`, nil, false}, {`"\N{DASH}"`, nil, false}, {`"\xzz"`, nil, false},
		{"[1, 'a', None]", []any{int64(1), "a", nil}, true}, {"(1,)", []any{int64(1)}, true}, {"(1)", int64(1), true}, {"()", []any{}, true}, {"[[1], [2]]", []any{[]any{int64(1)}, []any{int64(2)}}, true},
		{"{1: 2}", nil, false}, {"os.cpu_count()", nil, false}, {"x", nil, false}, {"1 if x else 2", nil, false}, {"1,", nil, false}, {"[x for x in y]", nil, false}, {"'a' * 2", nil, false}, {"True + 1", nil, false}, {"", nil, false}, {"-", nil, false}, {"[1 2]", nil, false},
	}
	for _, test := range tests {
		statements, err := tokenize(test.src)
		if err != nil {
			t.Fatalf("%s: %v", test.src, err)
		}
		var tokens []token
		for _, s := range statements {
			tokens = append(tokens, s.tokens...)
		}
		got, ok := evaluate(test.src, tokens)
		if ok != test.ok || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %#v, %v; want %#v, %v", test.src, got, ok, test.want, test.ok)
		}
	}
}

func render(src string, statements []statement) []string {
	var out []string
	for _, s := range statements {
		words := make([]string, len(s.tokens))
		for i, tok := range s.tokens {
			words[i] = src[tok.start:tok.end]
		}
		out = append(out, strings.Join([]string{itoa(s.indent), strings.Join(words, " ")}, "|"))
	}
	return out
}

func itoa(n int) string { return string(rune('0' + n)) }
