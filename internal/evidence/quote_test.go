package evidence

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFindQuote(t *testing.T) {
	tests := []struct{ name, text, quote, want string }{
		{"verbatim", "a: 1\noptimizer: AdamW\n", "optimizer: AdamW", "optimizer: AdamW"},
		{"the first of several", "lr lr", "lr", "lr"},
		{"white space folded", "optimizer:\t AdamW,\r\n   lr 3e-4", "optimizer: AdamW, lr 3e-4", "optimizer:\t AdamW,\r\n   lr 3e-4"},
		{"white space around the quote", "x optimizer y", "  optimizer\n", "optimizer"},
		{"no-break and ideographic space", "batch\u00a0size\u3000is 32", "batch size is 32", "batch\u00a0size\u3000is 32"},
		{"ligature", "eﬃcient ﬁne-tuning", "efficient fine-tuning", "eﬃcient ﬁne-tuning"},
		{"full width", "学习率：３ｅ－４", "学习率:3e-4", "学习率：３ｅ－４"},
		{"superscript", "10 m² grid", "10 m2 grid", "10 m² grid"},
		{"decomposed text", "cafe\u0301 model", "café model", "cafe\u0301 model"},
		{"decomposed quote", "le café model", "cafe\u0301 model", "café model"},
		{"soft hyphens", "opti\u00admizer is Adam", "optimizer is Adam", "opti\u00admizer is Adam"},
		{"soft hyphen at a line end", "opti\u00ad\nmizer is Adam", "optimizer is Adam", "opti\u00ad\nmizer is Adam"},
		{"soft hyphen in the quote", "optimizer is Adam", "opti\u00admizer is Adam", "optimizer is Adam"},
		{"hyphenated at a line end", "the optimi-\n  zer is Adam", "the optimizer is Adam", "the optimi-\n  zer is Adam"},
		{"hyphenated with CRLF", "the optimi-\r\nzer", "the optimizer", "the optimi-\r\nzer"},
		{"a word with a hyphen at a line end", "a well-\nknown loss", "a well-known loss", "a well-\nknown loss"},
		{"hyphen copied with its line end", "the optimi-\nzer is", "optimi-\nzer", "optimi-\nzer"},
		{"unicode hyphen", "optimi\u2010\nzer", "optimizer", "optimi\u2010\nzer"},
		{"a list is not hyphenated", "losses:\n- mse\n- mae", "losses: - mse - mae", "losses:\n- mse\n- mae"},
		{"a minus at a line end", "x = a -\n b", "x = a - b", "x = a -\n b"},
		{"emoji and after", "🚀 lr: 0.1", "lr: 0.1", "lr: 0.1"},
		{"invalid bytes around", "\xff\xfe lr:\t0.1 \xff", "lr: 0.1", "lr:\t0.1"},
		{"at the very end", "x  y", "x y", "x  y"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			start, end, _, ok := FindQuote([]byte(test.text), test.quote)
			if !ok || test.text[start:end] != test.want {
				t.Errorf("found %v: %q, want %q", ok, test.text[start:end], test.want)
			}
		})
	}
}

func TestFindQuoteRefuses(t *testing.T) {
	tests := []struct{ name, text, quote string }{
		{"empty", "text", ""},
		{"blank", "text", " \n\t"},
		{"only a soft hyphen", "text", "\u00ad"},
		{"empty text", "", "quote"},
		{"other case", "AdamW", "adamw"},
		{"other number", "lr: 3e-4", "lr: 3e-5"},
		{"half a ligature", "ﬁne", "ine"},
		{"a letter without its accent", "cafe\u0301", "cafe"},
		{"words apart", "optimizer is AdamW", "optimizer AdamW"},
		{"missing space", "batch size", "batchsize"},
	}
	for _, test := range tests {
		if start, end, _, ok := FindQuote([]byte(test.text), test.quote); ok {
			t.Errorf("%s: found %q", test.name, test.text[start:end])
		}
	}
}

func TestNearest(t *testing.T) {
	text := "# Training\n\nUse a batch size of 32.\nThe optimizer is AdamW with\nlearning rate 3e-4.\n\nEvaluate every epoch.\n"
	tests := []struct {
		name, text, quote string
		want              Nearest
	}{
		{"one line", text, "batch size is 64", Nearest{"Use a batch size of 32.", 3, 12}},
		{"two lines", text, "optimizer AdamW\nwith learning rate 1e-3", Nearest{"The optimizer is AdamW with\nlearning rate 3e-4.", 4, 36}},
		{"other case", text, "EVALUATE EVERY STEP", Nearest{"Evaluate every epoch.", 7, 85}},
		{"nothing in common", text, "zzz", Nearest{}},
		{"chinese", "批量大小为32\n学习率 0.1", "学习率 0.2", Nearest{"学习率 0.1", 2, 18}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, _, got, ok := FindQuote([]byte(test.text), test.quote); ok || got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
	long := strings.Repeat(`{"x": 1}, `, 1000) + `{"optimizer": "sgd"}, ` + strings.Repeat(`{"y": 2}, `, 1000)
	_, _, got, _ := FindQuote([]byte(long), `{"optimizer": "adam"}`)
	if !strings.Contains(got.Text, "optimizer") || len(got.Text) > pieceBytes || got.Line != 1 {
		t.Errorf("in a long line: %+v", got)
	}
}

// TestFindQuoteInLargeText would take minutes if any step were worse than linear.
func TestFindQuoteInLargeText(t *testing.T) {
	const size = 1 << 20
	for name, text := range map[string]string{
		"ascii":     strings.Repeat("the quick brown fox\n", size/20),
		"one line":  strings.Repeat("x", size),
		"ligatures": strings.Repeat("ﬁ", size/12),
		"newlines":  strings.Repeat("\n", size),
		"marks":     strings.Repeat("\u0301", size/8),
	} {
		if _, _, _, ok := FindQuote([]byte(text), "i"+strings.Repeat("fi", 500)+" brown dog"); ok {
			t.Errorf("%s: found what is not there", name)
		}
	}
}

func FuzzFindQuote(f *testing.F) {
	f.Add("the optimi-\nzer is AdamW", "optimizer is")
	f.Add("a well-\nknown loss", "well-known")
	f.Add("eﬃcient", "ffi")
	f.Add("x ´y", "´y")
	f.Add("opti\u00ad\nmizer", "optimizer")
	f.Add("e"+strings.Repeat("\u0301", 40), "é")
	f.Add("\xff\xfea", "\xfea")
	f.Add("ᄀ각ᆨ", "각")
	f.Fuzz(func(t *testing.T, text, quote string) {
		start, end, nearest, ok := FindQuote([]byte(text), quote)
		if !ok {
			if nearest.Start < 0 || nearest.Start > len(text) || !utf8.ValidString(nearest.Text) {
				t.Fatalf("nearest %+v", nearest)
			}
			return
		}
		if start < 0 || end <= start || end > len(text) {
			t.Fatalf("range %d:%d of %d", start, end, len(text))
		}
		same := func(keep bool) bool {
			return bytes.Equal(fold([]byte(text[start:end]), keep).text, fold([]byte(quote), keep).text)
		}
		if !same(false) && !same(true) {
			t.Fatalf("%q is not %q", text[start:end], quote)
		}
	})
}
