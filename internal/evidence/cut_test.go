package evidence

import "testing"

// A quote that begins or ends inside a word or a number states nothing.
func TestQuoteCutsWord(t *testing.T) {
	for quote, want := range map[string]string{
		"batch size is 1024": "", "size is 10": "1024", "24. We train": "1024", "atch size": "batch", "lr 0": "0.05", "lr 0.05": "", "批大小为 3": "32", "批大小为 32": "", "We train": "",
	} {
		text := "The batch size is 1024. We train with lr 0.05; 批大小为 32"
		start, end, _, ok := FindQuote([]byte(text), quote)
		if !ok {
			t.Fatalf("%q is not found", quote)
		}
		if got := cutWord([]byte(text), start, end); got != want {
			t.Errorf("%q cuts %q, want %q", quote, got, want)
		}
	}
}
