package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/trainwright/trainwright/internal/finding"
)

// logFolder is a job's folder with the given logs.
func logFolder(t testing.TB, stdout, stderr string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{StdoutFile: stdout, StderrFile: stderr} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func at(n int64) *int64 { return &n }

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "step %06d loss 0.%04d\n", i, i%10000)
	}
	return b.String()
}

func TestReadLog(t *testing.T) {
	bar := "start\n"
	for i := range 2000 {
		bar += fmt.Sprintf("\r%3d%%|%-20s| %d/2000", i/20, strings.Repeat("#", i/100), i)
	}
	bar += "\r100%|####################| 2000/2000\ndone\n"
	cases := map[string]struct {
		log  string
		req  LogRequest
		want LogSlice // without Size
	}{
		"tail":                  {numbered(1, 9), LogRequest{Tail: 2}, LogSlice{Text: numbered(8, 9), Start: 7 * 24, End: 216, NextCursor: 216}},
		"tail of fewer lines":   {numbered(1, 2), LogRequest{Tail: 9}, LogSlice{Text: numbered(1, 2), End: 48, NextCursor: 48}},
		"tail without newline":  {"a\nb\nc", LogRequest{Tail: 2}, LogSlice{Text: "b\nc", Start: 2, End: 5, NextCursor: 5}},
		"tail of empty lines":   {"a\n\n\n", LogRequest{Tail: 2}, LogSlice{Text: "\n\n", Start: 2, End: 4, NextCursor: 4}},
		"nothing asked":         {"a\nb\n", LogRequest{}, LogSlice{Text: "a\nb\n", End: 4, NextCursor: 4}},
		"empty":                 {"", LogRequest{}, LogSlice{}},
		"head":                  {numbered(1, 9), LogRequest{Head: 2}, LogSlice{Text: numbered(1, 2), End: 48, NextCursor: 48, More: true}},
		"head of fewer lines":   {"a\nb", LogRequest{Head: 5}, LogSlice{Text: "a\nb", End: 3, NextCursor: 3}},
		"cursor":                {"one\ntwo\n", LogRequest{Cursor: at(4)}, LogSlice{Text: "two\n", Start: 4, End: 8, NextCursor: 8}},
		"cursor inside a line":  {"one\ntwo\n", LogRequest{Cursor: at(5)}, LogSlice{Text: "wo\n", Start: 5, End: 8, NextCursor: 8}},
		"cursor at the end":     {"one\n", LogRequest{Cursor: at(4)}, LogSlice{Start: 4, End: 4, NextCursor: 4}},
		"a rune is not there":   {"temp\xe2\x82", LogRequest{Cursor: at(0)}, LogSlice{Text: "temp", End: 4, NextCursor: 4, More: true}},
		"and stays away":        {"temp\xe2\x82", LogRequest{Cursor: at(4)}, LogSlice{Text: "\ufffd", Start: 4, End: 6, NextCursor: 6}},
		"progress bar":          {bar, LogRequest{Tail: 3}, LogSlice{Text: "start\n100%|####################| 2000/2000\ndone\n", End: int64(len(bar)), NextCursor: int64(len(bar))}},
		"progress bar, forward": {bar, LogRequest{Cursor: at(0), MaxTokens: 30}, LogSlice{Text: "start\n100%|####################| 2000/2000\ndone\n", End: int64(len(bar)), NextCursor: int64(len(bar))}},
		"secret":                {"token=ghp_16C7e42F292c6912E7710c838347Ae178B4a\n", LogRequest{}, LogSlice{Text: "token=****************************************\n", End: 47, NextCursor: 47}},
		"budget, tail": {numbered(1, 100), LogRequest{Tail: 50, MaxTokens: 24}, LogSlice{Text: numbered(97, 100), Start: 96 * 24, End: 2400, NextCursor: 2400,
			Cut: &Cut{From: 1200, To: 2304, Why: "the budget of 24 tokens is used up; the lines before are at cursor 1200"}}},
		"budget, forward": {numbered(1, 100), LogRequest{Cursor: at(0), MaxTokens: 20}, LogSlice{Text: numbered(1, 3), End: 72, NextCursor: 72, More: true,
			Cut: &Cut{From: 72, To: 2400, Why: "the budget of 20 tokens is used up; read on with cursor 72"}}},
		"one long line": {strings.Repeat("x", 100), LogRequest{Cursor: at(0), MaxTokens: 4}, LogSlice{Text: strings.Repeat("x", 16), End: 16, NextCursor: 16, More: true,
			Cut: &Cut{From: 16, To: 100, Why: "the budget of 4 tokens is used up; read on with cursor 16"}}},
		"one long line, tail": {strings.Repeat("é", 50), LogRequest{Tail: 1, MaxTokens: 4}, LogSlice{Text: strings.Repeat("é", 8), Start: 84, End: 100, NextCursor: 100,
			Cut: &Cut{From: 0, To: 84, Why: "the budget of 4 tokens is used up; the lines before are at cursor 0"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.req.Stream = StreamStdout
			slices, err := ReadLog(logFolder(t, c.log, ""), c.req)
			if err != nil || len(slices) != 1 {
				t.Fatalf("%v, %d slices", err, len(slices))
			}
			got := slices[0]
			c.want.Stream, c.want.Size = StreamStdout, int64(len(c.log))
			if (got.Cut == nil) != (c.want.Cut == nil) || got.Cut != nil && *got.Cut != *c.want.Cut {
				t.Errorf("cut %+v, want %+v", got.Cut, c.want.Cut)
			}
			got.Cut, c.want.Cut = nil, nil
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestReadBothStreamsShareTheBudget(t *testing.T) {
	folder := logFolder(t, numbered(1, 1000), "warning\n")
	got, err := ReadLog(folder, LogRequest{MaxTokens: 100})
	if err != nil || len(got) != 2 || got[0].Stream != StreamStdout || got[1].Text != "warning\n" {
		t.Fatalf("%v, %+v", err, got)
	}
	if got[0].Text != numbered(985, 1000) { // 16 lines of 24 bytes, and 8 bytes of stderr, are 392 of 400
		t.Errorf("stdout has %d bytes: %q", len(got[0].Text), got[0].Text)
	}
	if missing, err := ReadLog(t.TempDir(), LogRequest{}); err != nil || missing[0].Findings[0].Code != "log_not_there_yet" {
		t.Errorf("a job that has not started: %v, %+v", err, missing)
	}
}

func TestLogRequestRefusals(t *testing.T) {
	folder := logFolder(t, "a\n", "")
	for code, req := range map[string]LogRequest{
		"stream_unknown":       {Stream: "out"},
		"log_request_conflict": {Head: 1, Tail: 1},
		"lines_invalid":        {Tail: -1},
		"grep_invalid":         {Grep: "(unclosed"},
		"cursor_invalid":       {Cursor: at(-1)},
		"cursor_needs_stream":  {Cursor: at(0), Stream: StreamBoth},
	} {
		_, err := ReadLog(folder, req)
		var refused *finding.Refused
		if !errors.As(err, &refused) || refused.Findings[0].Code != code {
			t.Errorf("%+v: %v, want %s", req, err, code)
		}
	}
	got, err := ReadLog(folder, LogRequest{Cursor: at(9)})
	if err != nil || got[0].NextCursor != 2 || got[0].Findings[0].Code != "cursor_past_end" {
		t.Errorf("a cursor behind the end: %v, %+v", err, got)
	}
}

// pages reads a log from its start by cursor.
func pages(t testing.TB, log []byte, tokens int) []LogSlice {
	t.Helper()
	var out []LogSlice
	for cursor := int64(0); ; {
		slice, err := sliceLog(bytes.NewReader(log), int64(len(log)), LogRequest{Cursor: &cursor}, budgetBytes(tokens))
		if err != nil {
			t.Fatal(err)
		}
		if slice.Start != cursor || slice.End < slice.Start || slice.NextCursor != slice.End || slice.More && slice.End == cursor {
			t.Fatalf("the slice at %d does not go on: %+v", cursor, slice)
		}
		out = append(out, slice)
		if cursor = slice.NextCursor; !slice.More {
			return out
		}
	}
}

func TestPagingReassemblesTheLog(t *testing.T) {
	for tokens, size := range map[int]int{1: 1_000, 7: 3_000, 100: 20_000, 4000: 150_000} {
		log := mixedLog(size)
		var text strings.Builder
		end := int64(0)
		for _, slice := range pages(t, log, tokens) {
			if slice.Start != end || len(slice.Text) > tokens*bytesPerToken {
				t.Fatalf("%d tokens: %d bytes at %d after %d", tokens, len(slice.Text), slice.Start, end)
			}
			end = slice.End
			text.WriteString(slice.Text)
		}
		if text.String() != string(log) {
			t.Errorf("%d tokens: the pages are not the log", tokens)
		}
	}
}

// mixedLog is plain text with lines of every length.
func mixedLog(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	var log bytes.Buffer
	for log.Len() < size {
		switch random.IntN(12) {
		case 0:
			log.WriteString(strings.Repeat("long ", random.IntN(2000)) + "\n")
		case 1:
			log.WriteString(strings.Repeat("温度 °C ", random.IntN(30)))
		case 2:
			log.WriteString("\n")
		default:
			fmt.Fprintf(&log, "step %d loss %f\n", log.Len(), random.Float64())
		}
	}
	return log.Bytes()
}

// A secret that a page cuts in two is masked in both halves.
func TestSecretAcrossPages(t *testing.T) {
	secret := "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	log := strings.Repeat("x", 30) + " " + secret + " " + strings.Repeat("y", 30)
	var text string
	for _, slice := range pages(t, []byte(log), 10) {
		text += slice.Text
	}
	if want := strings.Replace(log, secret, strings.Repeat("*", len(secret)), 1); text != want {
		t.Errorf("got  %q\nwant %q", text, want)
	}
	tailed, err := ReadLog(logFolder(t, log, ""), LogRequest{Tail: 1, MaxTokens: 12, Stream: StreamStdout})
	if err != nil || strings.Contains(tailed[0].Text, "178B4a") {
		t.Errorf("the tail shows %q, %v", tailed[0].Text, err)
	}
}

// counting counts what is read.
type counting struct {
	io.ReaderAt
	bytes int
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	c.bytes += len(p)
	return c.ReaderAt.ReadAt(p, off)
}

// endless is a log of the given line, over and over.
type endless struct{ line string }

func (e endless) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, e.line[off%int64(len(e.line)):])
	for n < len(p) {
		n += copy(p[n:], e.line)
	}
	return n, nil
}

func TestLargeLogsAreReadInPart(t *testing.T) {
	const size = 1 << 30
	cases := map[string]struct {
		line   string
		req    LogRequest
		atMost int
	}{
		"nothing asked":        {"step 1 loss 0.25\n", LogRequest{}, 512 << 10},
		"tail":                 {"step 1 loss 0.25\n", LogRequest{Tail: 100}, 512 << 10},
		"tail of errors":       {"ValueError: 1\n", LogRequest{Tail: 100}, 512 << 10},
		"head":                 {"step 1 loss 0.25\n", LogRequest{Head: 100}, 256 << 10},
		"cursor":               {"step 1 loss 0.25\n", LogRequest{Cursor: at(100 << 20), KeepRepeats: true}, 256 << 10},
		"cursor, folded":       {"step 1 loss 0.25\n", LogRequest{Cursor: at(100 << 20)}, 3 << 20},
		"grep":                 {"step 1 loss 0.25\n", LogRequest{Grep: "loss"}, 1 << 20},
		"grep, last matches":   {"step 1 loss 0.25\n", LogRequest{Grep: "loss", Tail: 10}, 1 << 20},
		"grep, context":        {"step 1 loss 0.25\n", LogRequest{Grep: "loss", Head: 1}, 1 << 20},
		"tail, no line end":    {"step 1 loss 0.25 ", LogRequest{Tail: 100}, 3 << 20},
		"tail, a progress bar": {"\r 10%|####      |", LogRequest{Tail: 100}, 3 << 20},
		"cursor, no line end":  {"step 1 loss 0.25 ", LogRequest{Cursor: at(0)}, 3 << 20},
	}
	for name, c := range cases {
		log := &counting{ReaderAt: endless{c.line}}
		slice, err := sliceLog(log, size, c.req, budgetBytes(0))
		if err != nil || slice.Text == "" || len(slice.Text) > budgetBytes(0) {
			t.Errorf("%s: %v, %d bytes of text", name, err, len(slice.Text))
		}
		if log.bytes > c.atMost {
			t.Errorf("%s: read %d bytes of %d, want at most %d", name, log.bytes, size, c.atMost)
		}
	}
}

func TestTailSaysWhatItDidNotSearch(t *testing.T) {
	slice, err := sliceLog(endless{"\r 10%|####      |"}, 64<<20, LogRequest{Tail: 100}, budgetBytes(0))
	if err != nil || slice.Text != " 10%|####      |" || slice.Cut == nil || slice.Cut.From != 0 || slice.Cut.To != slice.Start {
		t.Errorf("%v, %+v, cut %+v", err, slice, slice.Cut)
	}
}

func TestTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                 "plain\ttext\n",
		"abc\rX":                        "Xbc",
		"long text\rshort\n":            "shorttext\n",
		"long text\rshort    \n":        "short\n",
		"windows\r\nlines\r\n":          "windows\nlines\n",
		"\x1b[31mred\x1b[0m\n":          "red\n",
		"\x1b[1;32;40mbold\x1b[m":       "bold",
		"50%\x1b[K\r100%\x1b[K\n":       "100%\n",
		"long text\r\x1b[Kshort\n":      "short\n",
		"long text\x1b[2K\rshort\n":     "short\n",
		"abc\b\bX\n":                    "aXc\n",
		"\x1b]0;title\abody\n":          "body\n",
		"\x1b]8;;http://x\x1b\\link\n":  "link\n",
		"bell\a nul\x00 del\x7f\n":      "bell nul del\n",
		"bad \xff\xfe\xfd bytes\n":      "bad \ufffd bytes\n",
		"\x1b":                          "",
		"\x1b[":                         "",
		"cut \x1b[38;5":                 "cut ",
		"温度\r湿\n":                       "湿度\n",
		"a  \nb  \n":                    "a  \nb  \n",
		"\r\r\r\n":                      "\n",
		"1\r\x1b[A2\n":                  "2\n",
		"tail \xe2\x82\n":               "tail \ufffd\n",
		"\ufffd real\n":                 "\ufffd real\n",
		"\x1b(Bcharset\n":               "Bcharset\n",
		"one\r\x1b[1Ktwo\n":             "two\n",
		"\x1b]0;unfinished title\nnext": "\nnext",
	} {
		if got := terminal([]byte(in)); got != want {
			t.Errorf("terminal(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzLogPages(f *testing.F) {
	f.Add([]byte("step 1\r 10%|#|\r 20%|##|\nnext\n"), 1)
	f.Add([]byte("\x1b[31mred\xff\xe2\x82\r\r\n\n\n"), 2)
	f.Add([]byte("\xe2\x82\xac\xf0\x9f\x98\x80"), 1)
	f.Fuzz(func(t *testing.T, log []byte, tokens int) {
		if tokens <= 0 || tokens > 100 {
			tokens = 1
		}
		for _, slice := range pages(t, log, tokens) {
			if !utf8.ValidString(slice.Text) || strings.ContainsAny(slice.Text, "\r\x1b\x00") {
				t.Fatalf("text %q", slice.Text)
			}
		}
		slice, err := sliceLog(bytes.NewReader(log), int64(len(log)), LogRequest{Tail: tokens}, budgetBytes(tokens))
		if err != nil || !utf8.ValidString(slice.Text) || slice.Start > slice.End || slice.End > slice.Size {
			t.Fatalf("tail %+v, %v", slice, err)
		}
	})
}
