package resources

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// whole reads an address and all that follows by the addresses of the rest.
func whole(t *testing.T, s *Source, uri string) (text string, reads int) {
	t.Helper()
	for reads = 1; ; reads++ {
		c, err := s.Read(t.Context(), uri)
		if err != nil || c.Binary {
			t.Fatalf("%s: %v", uri, err)
		}
		text += c.Text
		if uri = c.Rest; uri == "" {
			return text, reads
		}
		if reads > 1000 {
			t.Fatal("it does not end")
		}
	}
}

// A long text comes in parts that meet without gap, at line ends; the cut is said in words.
func TestALongTextComesInParts(t *testing.T) {
	s, dir := lay(t)
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "line %d äöü\n", i)
	}
	write(t, filepath.Join(dir, "runs/a/train.log"), []byte(text.String()))
	for _, uri := range []string{"run://r-20261130-aaaa/train.log", "workspace:///runs/a/train.log"} {
		c, err := s.Read(t.Context(), uri)
		if err != nil || !c.Cut || c.Total != int64(text.Len()) || len(c.Text) > WholeText || len(c.Text) < WholeText-100 || !strings.HasSuffix(c.Text, "\n") ||
			c.Rest != fmt.Sprintf("%s?offset=%d", uri, len(c.Text)) ||
			c.Note != fmt.Sprintf("[cut: the first %d of %d bytes are shown; go on with %s]", len(c.Text), text.Len(), c.Rest) {
			t.Errorf("%s: %v %d %q", uri, err, len(c.Text), c.Note)
		}
		if got, reads := whole(t, s, uri); got != text.String() || reads < 3 {
			t.Errorf("%s: %d bytes in %d parts, want %d", uri, len(got), reads, text.Len())
		}
	}
}

func TestRanges(t *testing.T) {
	s, dir := lay(t)
	write(t, filepath.Join(dir, "a.txt"), []byte("0123456789äöü"))
	for _, c := range []struct {
		query, text string
		cut         bool
		note        string
	}{
		{"", "0123456789äöü", false, ""},
		{"?offset=0", "0123456789äöü", false, ""},
		{"?offset=2&limit=3", "234", true, "bytes 2 to 5 of 16"},
		{"?limit=4", "0123", true, "the first 4 of 16 bytes"},
		{"?offset=12", "öü", true, "up to the end"},
		{"?offset=11", "öü", true, "bytes 12 to 16"},      // the middle of a character: the part before has it
		{"?offset=8&limit=3", "89", true, "offset=10"},    // half a character waits for the next part
		{"?offset=10&limit=1", "\uFFFD", true, "bytes 1"}, // nothing but half a character
		{"?offset=-4", "öü", true, "up to the end"},
		{"?offset=-100&limit=2", "01", true, "the first 2"},
		{"?offset=16", "", true, "nothing from byte 16 on: there are 16 bytes"},
		{"?offset=99", "", true, "nothing from byte 16 on"},
		{"?limit=999999999999", "0123456789äöü", false, ""},
	} {
		got, err := s.Read(t.Context(), "workspace:///a.txt"+c.query)
		if err != nil || got.Text != c.text || got.Cut != c.cut || !strings.Contains(got.Note, c.note) || got.URI != "workspace:///a.txt"+c.query || got.Total != 16 {
			t.Errorf("%q: %+v, %v", c.query, got, err)
		}
	}
	for _, query := range []string{"?offset=x", "?limit=0", "?limit=-1", "?from=3", "?offset=1&offset=2", "?offset=%zz", "?offset=1.5", "?offset="} {
		if got, err := s.Read(t.Context(), "workspace:///a.txt"+query); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "?offset=<bytes>&limit=<bytes>") {
			t.Errorf("%q: %+v, %v", query, got, err)
		}
	}
}

// Of a table the first rows come; a range gives any bytes of it.
func TestTablesGiveTheirHead(t *testing.T) {
	s, dir := lay(t)
	var rows strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&rows, "%d,%d\n", i, i*i)
	}
	long := strings.Repeat(strings.Repeat("x", 999)+"\n", 50)
	write(t, filepath.Join(dir, "d.csv"), []byte(rows.String()))
	write(t, filepath.Join(dir, "d.jsonl"), []byte(strings.Repeat("{\"a\":1}\n", 101)))
	write(t, filepath.Join(dir, "short.tsv"), []byte("a\tb\n1\t2"))
	write(t, filepath.Join(dir, "long.ndjson"), []byte(long))
	write(t, filepath.Join(dir, "one.csv"), []byte(strings.Repeat("1,", TableBytes)))
	for name, lines := range map[string]int{"d.csv": TableLines, "d.jsonl": TableLines, "short.tsv": 1, "long.ndjson": 16, "one.csv": 0} {
		c, err := s.Read(t.Context(), "workspace:///"+name)
		if err != nil || strings.Count(c.Text, "\n") != lines || len(c.Text) > TableBytes || c.Cut != (name != "short.tsv") {
			t.Errorf("%s: %d lines, %d bytes, %q, %v", name, strings.Count(c.Text, "\n"), len(c.Text), c.Note, err)
		}
	}
	c, _ := s.Read(t.Context(), "workspace:///d.csv")
	if !strings.Contains(c.Note, ", 100 lines; go on with workspace:///d.csv?offset=") {
		t.Error(c.Note)
	}
	if got, _ := whole(t, s, "workspace:///d.csv"); got != rows.String() {
		t.Errorf("the parts have %d bytes, want %d", len(got), rows.Len())
	}
}

// A secret is masked also where a range begins or ends in it.
func TestRangesDoNotSplitSecrets(t *testing.T) {
	s, dir := lay(t)
	const secret = "sk-abcdefghijklmnopqrstuvwxyz123456"
	text := strings.Repeat("a line of a log\n", 1000) + "api_key: " + secret + "\n" + strings.Repeat("more\n", 1000)
	write(t, filepath.Join(dir, "x.log"), []byte(text))
	at := strings.Index(text, secret)
	shown := ""
	for i := range len(secret) {
		c, err := s.Read(t.Context(), fmt.Sprintf("workspace:///x.log?offset=%d&limit=1", at+i))
		if err != nil {
			t.Fatal(err)
		}
		shown += c.Text
	}
	if strings.Contains(shown, "abc") || strings.Contains(shown, "123456") || len(shown) != len(secret) {
		t.Errorf("byte by byte the secret is %s", shown)
	}
	if all, _ := whole(t, s, "workspace:///x.log"); strings.Contains(all, "abcdefgh") || len(all) != len(text) {
		t.Error("the secret is shown")
	}
}

// A stray byte does not make a log unreadable, and does not hide a secret from the mask; what is no text is a blob.
func TestTextWithStrayBytes(t *testing.T) {
	s, dir := lay(t)
	line := strings.Repeat("an ordinary line of text\n", 50)
	write(t, filepath.Join(dir, "x.log"), []byte("\x00\xff "+line+"password = hunter2hunter2\n"))
	write(t, filepath.Join(dir, "x.txt"), []byte(strings.Repeat("\x00\xff", 500)+" password = hunter2hunter2\n"))
	c, err := s.Read(t.Context(), "workspace:///x.log")
	if err != nil || c.Binary || !strings.HasPrefix(c.Text, "\uFFFD\uFFFD an ordinary") || strings.Contains(c.Text, "hunter2") || c.Cut {
		t.Errorf("%.80q, %v", c.Text, err)
	}
	c, err = s.Read(t.Context(), "workspace:///x.txt")
	if err != nil || !c.Binary || strings.Contains(string(c.Blob), "hunter2") || len(c.Blob) != 1027 {
		t.Errorf("%d, %.80q, %v", len(c.Blob), c.Blob, err)
	}
}

// Of a job's log the end comes, which has the reason of a failure.
func TestTheEndOfALog(t *testing.T) {
	for _, c := range []struct {
		text  string
		shown string
	}{
		{"short\n", "short\n"},
		{strings.Repeat("0123456789abcde\n", 10_000), strings.Repeat("0123456789abcde\n", WholeText/16-1)},
		{strings.Repeat("x", WholeText+5), strings.Repeat("x", WholeText)},
	} {
		got, err := address{uri: "u", base: "u"}.read(stored{ReaderAt: strings.NewReader(c.text), name: "stdout.log", size: int64(len(c.text)), tail: true})
		if err != nil || got.Text != c.shown || got.Cut != (len(c.text) > WholeText) || got.Rest != "" || got.Cut && !strings.Contains(got.Note, "from the start with u?offset=0") {
			t.Errorf("%d bytes: %d shown, %q, %v", len(c.text), len(got.Text), got.Note, err)
		}
	}
}
