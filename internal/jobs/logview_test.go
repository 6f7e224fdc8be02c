package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

func readOne(t *testing.T, log string, req LogRequest) LogSlice {
	t.Helper()
	req.Stream = StreamStdout
	slices, err := ReadLog(logFolder(t, log, ""), req)
	if err != nil || len(slices) != 1 {
		t.Fatalf("%v, %d slices", err, len(slices))
	}
	return slices[0]
}

func TestRepeatedLinesAreFolded(t *testing.T) {
	warning := "UserWarning: lr_scheduler.step() before optimizer.step()\n"
	log := "start\n" + strings.Repeat(warning, 50) + "a\na\na\nend\n"
	folded := "start\n" + warning + "[the line above 49 times more]\n" + "a\na\na\nend\n"
	for name, c := range map[string]struct {
		log  string
		req  LogRequest
		want string
	}{
		"forward":             {log, LogRequest{Cursor: at(0)}, folded},
		"tail":                {log, LogRequest{}, folded},
		"tail inside":         {log, LogRequest{Tail: 10}, warning + "[the line above 5 times more]\n" + "a\na\na\nend\n"},
		"head inside":         {log, LogRequest{Head: 11}, "start\n" + warning + "[the line above 9 times more]\n"},
		"kept":                {log, LogRequest{KeepRepeats: true}, log},
		"a few stay":          {"x\nx\nx\n", LogRequest{}, "x\nx\nx\n"},
		"short ones stay":     {strings.Repeat("\n", 20), LogRequest{}, strings.Repeat("\n", 20)},
		"same when rendered":  {strings.Repeat("\x1b[31m"+warning+"\x1b[0m"+warning, 4), LogRequest{Cursor: at(0)}, warning + "[the line above 7 times more]\n"},
		"the last without nl": {strings.Repeat(warning, 5) + strings.TrimSpace(warning), LogRequest{}, warning + "[the line above 4 times more]\n" + strings.TrimSpace(warning)},
	} {
		got := readOne(t, c.log, c.req)
		if got.Text != c.want || got.NextCursor != got.End || got.Cut != nil {
			t.Errorf("%s: %+v\nwant %q", name, got, c.want)
		}
	}
	page := readOne(t, strings.Repeat(warning, 100_000), LogRequest{Cursor: at(0)})
	if page.Cut == nil || page.End != 1<<20 || page.NextCursor != page.End || !strings.Contains(page.Cut.Why, "1048576") {
		t.Errorf("a window of one line: %+v, cut %+v", page, page.Cut)
	}
}

// Pages over folded lines meet without a gap: each raw line is shown or counted on exactly one page.
func TestFoldedPagesCountEveryLine(t *testing.T) {
	line := "the very same line, again and again and again\n"
	log := strings.Repeat("one\n"+strings.Repeat(line, 30), 40)
	times := regexp.MustCompile(`\[the line above (\d+) times more\]`)
	for _, tokens := range []int{15, 40, 400} {
		lines := 0
		for _, slice := range pages(t, []byte(log), tokens) {
			if len(slice.Text) > tokens*bytesPerToken {
				t.Fatalf("%d tokens: %d bytes", tokens, len(slice.Text))
			}
			lines += strings.Count(slice.Text, "very same line, again")
			for _, m := range times.FindAllStringSubmatch(slice.Text, -1) {
				var n int
				_, _ = fmt.Sscan(m[1], &n)
				lines += n
			}
		}
		if lines != 1200 {
			t.Errorf("%d tokens: %d lines", tokens, lines)
		}
	}
}

func TestGrep(t *testing.T) {
	log := numbered(1, 9) // 24 bytes a line
	line := func(n int, mark string) string { return fmt.Sprintf("%d%s%s", (n-1)*24, mark, numbered(n, n)) }
	zero := 0
	for name, c := range map[string]struct {
		log  string
		req  LogRequest
		want string
		n    int
	}{
		"context":             {log, LogRequest{Grep: "000005"}, line(3, "-") + line(4, "-") + line(5, ":") + line(6, "-") + line(7, "-"), 1},
		"no context":          {log, LogRequest{Grep: "00000[59]", Context: &zero}, line(5, ":") + "--\n" + line(9, ":"), 2},
		"neighbours":          {log, LogRequest{Grep: "00000[56]", Context: &zero}, line(5, ":") + line(6, ":"), 2},
		"contexts meet":       {log, LogRequest{Grep: "00000[48]", Head: 2}, line(2, "-") + line(3, "-") + line(4, ":") + line(5, "-") + line(6, "-") + line(7, "-") + line(8, ":") + line(9, "-"), 2},
		"first ones":          {log, LogRequest{Grep: "loss", Head: 1, Context: &zero}, line(1, ":"), 1},
		"last ones":           {log, LogRequest{Grep: "loss", Tail: 2, Context: &zero}, line(8, ":") + line(9, ":"), 2},
		"last, with context":  {log, LogRequest{Grep: "000009", Tail: 2}, line(7, "-") + line(8, "-") + line(9, ":"), 1},
		"from a cursor":       {log, LogRequest{Grep: "loss", Cursor: at(7 * 24), Context: &zero}, line(8, ":") + line(9, ":"), 2},
		"anchors":             {"a b\nb\n", LogRequest{Grep: "^b$", Context: &zero}, "4:b\n", 1},
		"no match":            {log, LogRequest{Grep: "accuracy"}, "", 0},
		"no match, last":      {log, LogRequest{Grep: "accuracy", Tail: 3}, "", 0},
		"no line end":         {"a\nlast", LogRequest{Grep: "last", Context: &zero}, "2:last\n", 1},
		"colours":             {"\x1b[31mError\x1b[0m: x\n", LogRequest{Grep: "Error: x"}, "0:Error: x\n", 1},
		"progress bar":        {"\r 10%\r 20%\r100%\n", LogRequest{Grep: "%"}, "0:100%\n", 1},
		"hidden by the bar":   {"\r 10%\r 20%\r100%\n", LogRequest{Grep: "10%"}, "", 0},
		"windows line ends":   {"a\r\nb\r\n", LogRequest{Grep: "^b$", Context: &zero}, "3:b\n", 1},
		"empty":               {"", LogRequest{Grep: "x"}, "", 0},
		"secret":              {"token=ghp_16C7e42F292c6912E7710c838347Ae178B4a\n", LogRequest{Grep: "token"}, "0:token=****************************************\n", 1},
		"secret can't be had": {"token=ghp_16C7e42F292c6912E7710c838347Ae178B4a\n", LogRequest{Grep: "ghp_16C7"}, "", 0},
		"long line":           {strings.Repeat("x", 5000) + "here" + strings.Repeat("y", 5000), LogRequest{Grep: "here"}, "0:…" + strings.Repeat("x", 250) + "here" + strings.Repeat("y", 746) + "…\n", 1},
	} {
		got := readOne(t, c.log, c.req)
		if diff := cmp.Diff(c.want, got.Text); diff != "" || got.Matches != c.n || got.Cut != nil {
			t.Errorf("%s: %d matches, cut %+v, text (-want +got):\n%s", name, got.Matches, got.Cut, diff)
		}
	}
}

// The pages of a search hold each match once, whatever the budget, and end.
func TestGrepPagesMeet(t *testing.T) {
	log := []byte(numbered(1, 3000))
	for _, c := range []struct{ tokens, head, context int }{{10, 0, 0}, {100, 0, 2}, {4000, 7, 1}, {1, 0, 0}} {
		matches, cursor := 0, int64(0)
		seen := map[string]bool{}
		for turn := 0; ; turn++ {
			slice, err := sliceLog(bytes.NewReader(log), int64(len(log)), LogRequest{Cursor: &cursor, Head: c.head, Grep: "[05] loss", Context: &c.context}, budgetBytes(c.tokens))
			if err != nil || turn > 700 || len(slice.Text) > budgetBytes(c.tokens) {
				t.Fatalf("%+v: turn %d: %v, %d bytes", c, turn, err, len(slice.Text))
			}
			matches += slice.Matches
			for _, l := range strings.Split(slice.Text, "\n") {
				if offset, _, is := strings.Cut(l, ":"); is && seen[offset] {
					t.Fatalf("%+v: %s twice", c, l)
				} else if is {
					seen[offset] = true
				}
			}
			if !slice.More {
				break
			}
			if slice.NextCursor <= cursor {
				t.Fatalf("%+v: stands still at %d", c, cursor)
			}
			cursor = slice.NextCursor
		}
		if matches != 600 {
			t.Errorf("%+v: %d matches", c, matches)
		}
	}
}

func TestGrepTellsWhatItDidNotSearch(t *testing.T) {
	log := endless{"step 1 loss 0.25\n"}
	const size = 1 << 30
	const most = 2 << 20
	forward, err := sliceLog(log, size, LogRequest{searchMost: most, Grep: "accuracy"}, budgetBytes(0))
	if err != nil || forward.Cut == nil || !forward.More || forward.NextCursor > most || forward.NextCursor < most-20 || forward.NextCursor%17 != 0 {
		t.Errorf("forward: %v, %+v, cut %+v", err, forward, forward.Cut)
	}
	slow, err := sliceLog(log, most/2, LogRequest{searchMost: most, Grep: "[a]ccuracy|x"}, budgetBytes(0))
	if err != nil || slow.Cut != nil || slow.More || slow.NextCursor != most/2 {
		t.Errorf("without literal text: %v, %+v, cut %+v", err, slow, slow.Cut)
	}
	backward, err := sliceLog(log, size, LogRequest{searchMost: most, Grep: "accuracy", Tail: 1}, budgetBytes(0))
	if err != nil || backward.Cut == nil || backward.Cut.To > size-most {
		t.Errorf("backward: %v, %+v, cut %+v", err, backward, backward.Cut)
	}
	few, err := sliceLog(log, size, LogRequest{searchMost: most, Grep: "loss", Tail: 100}, budgetBytes(50))
	if err != nil || few.Cut == nil || few.Matches == 0 || !strings.HasSuffix(few.Text, fmt.Sprintf("%d:%s", size-size%17, log.line[:size%17]+"\n")) {
		t.Errorf("a small budget keeps the last: %v, %q, cut %+v", err, few.Text, few.Cut)
	}
}

func TestErrorsComeFirst(t *testing.T) {
	failing := "  File \"train.py\", line 3\nValueError: bad shape\n"
	slices, err := ReadLog(logFolder(t, numbered(1, 200), failing), LogRequest{})
	if err != nil || slices[0].Stream != StreamStderr || len(slices[0].Errors) != 1 {
		t.Fatalf("%v, %+v", err, slices)
	}
	if want := (LogLine{Byte: 26, Text: "ValueError: bad shape", Times: 1}); slices[0].Errors[0] != want {
		t.Errorf("got %+v, want %+v", slices[0].Errors[0], want)
	}
	// An error that scrolled away: far above the last hundred lines, told with its place.
	log := numbered(1, 10) + "RuntimeError: CUDA out of memory. token=ghp_16C7e42F292c6912E7710c838347Ae178B4a\n" + numbered(11, 2000)
	got := readOne(t, log, LogRequest{Tail: 5})
	if len(got.Errors) != 1 || got.Errors[0].Byte != 240 || strings.Contains(got.Errors[0].Text, "ghp_") || got.Text != numbered(1996, 2000) {
		t.Errorf("%+v", got)
	}
	// Many of them: the first, the last, equal ones once; the budget holds.
	var many strings.Builder
	for i := range 500 {
		fmt.Fprintf(&many, "ERROR worker %d died\nERROR again\n", i)
	}
	got = readOne(t, many.String(), LogRequest{})
	if len(got.Errors) != 8 || got.Errors[0].Text != "ERROR worker 0 died" || got.Errors[1].Times != 500 || got.Errors[7].Text != "ERROR worker 499 died" {
		t.Errorf("%+v", got.Errors)
	}
	if got = readOne(t, many.String(), LogRequest{MaxTokens: 100}); len(got.Text)+sizeOf(got.Errors) > 400 || len(got.Errors) == 0 {
		t.Errorf("%d bytes of text, %+v", len(got.Text), got.Errors)
	}
	if got = readOne(t, failing, LogRequest{Cursor: at(0)}); got.Errors != nil {
		t.Errorf("a page by cursor tells errors: %+v", got.Errors)
	}
}

func TestErrorLine(t *testing.T) {
	for line, want := range map[string]bool{
		"ValueError: bad":                               true,
		"torch.cuda.OutOfMemoryError: CUDA":             true,
		"KeyError":                                      true,
		"[rank3]: RuntimeError: NCCL":                   true,
		"subprocess.CalledProcessError: x":              true,
		"train.py: error: unrecognized arguments: --x":  true,
		"slurmstepd: error: *** JOB 1 ON n1 CANCELLED":  true,
		"error: could not open x":                       true,
		"2026-11-30 12:00 ERROR worker died":            true,
		"fatal: not a git repository":                   true,
		"OSError: [Errno 28] No space left on device":   true,
		"bash: line 1: 7 Killed":                        true,
		"Killed":                                        true,
		"sh: 1: nonsense: not found":                    false,
		"bash: nonsense: command not found":             true,
		"mean absolute error: 0.25":                     false,
		"error: 0.25":                                   false,
		"val error: -1.5e-3":                            false,
		"loss 0.2 error 0.1":                            false,
		"error_rate=0.25":                               false,
		"0 errors, 0 warnings":                          false,
		"standard error of the mean":                    false,
		"class MeanSquaredError(nn.Module)":             false,
		"epoch 3 accuracy 0.99":                         false,
		"UserWarning: lr_scheduler.step() before error": false,
	} {
		if got := errorLine.MatchString(line); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}

func TestRankLogs(t *testing.T) {
	folder := logFolder(t, "out\n", "")
	for _, rank := range []int{0, 3} {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("rank-%04d.log", rank)), []byte(fmt.Sprintf("rank %d\n", rank)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	three, seven := 3, 7
	got, err := ReadLog(folder, LogRequest{Rank: &three})
	if err != nil || len(got) != 1 || got[0].Stream != "rank-0003" || got[0].Text != "rank 3\n" {
		t.Errorf("%v, %+v", err, got)
	}
	var refused *finding.Refused
	if _, err = ReadLog(folder, LogRequest{Rank: &seven}); !errors.As(err, &refused) || refused.Findings[0].Code != "rank_unknown" || refused.Findings[0].Expected != "one of 0, 3" {
		t.Errorf("%v", err)
	}
	if _, err = ReadLog(t.TempDir(), LogRequest{Rank: &seven}); !errors.As(err, &refused) || !strings.Contains(refused.Findings[0].Expected, "no rank") {
		t.Errorf("%v", err)
	}
}

func follow(t *testing.T, f Following) (lines []string) {
	t.Helper()
	if err := f.Follow(t.Context(), func(line string) error { lines = append(lines, line); return nil }); err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestFollowAnEndedLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stdout.log")
	if lines := follow(t, Following{Path: path}); lines != nil {
		t.Errorf("a log that is not there: %q", lines)
	}
	log := "one\n\r 10%\r 20%\n\x1b[31mred\x1b[0m\n\ntoken=ghp_16C7e42F292c6912E7710c838347Ae178B4a end"
	if err := os.WriteFile(path, []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	want := []string{"one", " 20%", "red", "", "token=" + strings.Repeat("*", 40) + " end"}
	if diff := cmp.Diff(want, follow(t, Following{Path: path})); diff != "" {
		t.Error(diff)
	}
	from, err := TailStart(path, 2)
	if diff := cmp.Diff(want[3:], follow(t, Following{Path: path, From: from})); diff != "" || err != nil {
		t.Error(diff, err)
	}
	// From stands inside the secret.
	if diff := cmp.Diff([]string{strings.Repeat("*", 8) + " end"}, follow(t, Following{Path: path, From: int64(len(log) - 12)})); diff != "" {
		t.Error(diff)
	}
}

// A log that grows: each line comes when it is whole, a secret written in two halves is masked, and what is written last
// before the end is not lost.
func TestFollowAGrowingLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stdout.log")
	parts := []string{"epoch 1\nepo", "ch 2 token=ghp_16C7e42F292c", "6912E7710c838347Ae178B4a\n", "last"}
	write := func(text string) {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = io.WriteString(file, text)
			_ = file.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	turn := 0
	lines := follow(t, Following{Path: path, Every: time.Millisecond, Over: func(context.Context) (bool, error) {
		if turn++; turn > 1 && turn-2 < len(parts) {
			write(parts[turn-2])
		}
		return turn-1 == len(parts), nil
	}})
	want := []string{"epoch 1", "epoch 2 token=" + strings.Repeat("*", 40), "last"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

func TestFollowEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stdout.log")
	if err := os.WriteFile(path, []byte("a\nb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	never := func(context.Context) (bool, error) { return false, nil }
	var once sync.Once
	err := Following{Path: path, Every: time.Millisecond, Over: never}.Follow(ctx, func(string) error { once.Do(cancel); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	broken := errors.New("broken pipe")
	if err := (Following{Path: path}).Follow(t.Context(), func(string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a reader that went away: %v", err)
	}
	if err := (Following{Path: path, Over: func(context.Context) (bool, error) { return false, broken }}).Follow(t.Context(), func(string) error { return nil }); !errors.Is(err, broken) {
		t.Errorf("a state that can't be read: %v", err)
	}
}

// Passing over blocks without the literal start of an expression changes nothing but the time.
func TestPassingOverBlocksFindsTheSame(t *testing.T) {
	var log bytes.Buffer
	for i := range 60_000 {
		fmt.Fprintf(&log, "step %06d loss 0.%04d\n", i, i%10000)
		if i%9973 == 0 {
			log.WriteString("\x1b[31maccuracy\x1b[0m of the model\n")
		}
		if i%7919 == 0 {
			log.WriteString("accuracy\n")
		}
	}
	for _, context := range []int{0, 2, 5} {
		var texts []string
		for _, expression := range []string{"accuracy", "[a]ccuracy"} {
			slice, err := sliceLog(bytes.NewReader(log.Bytes()), int64(log.Len()), LogRequest{Grep: expression, Context: &context}, budgetBytes(0))
			if err != nil || slice.Matches != 15 || slice.More {
				t.Errorf("%s: %v, %d matches, more %v", expression, err, slice.Matches, slice.More)
			}
			texts = append(texts, slice.Text)
		}
		if diff := cmp.Diff(texts[1], texts[0]); diff != "" {
			t.Errorf("context %d: %s", context, diff)
		}
	}
}

// Whatever a log holds and whatever is asked for: the pages end, do not overlap, keep the budget and show no raw control
// characters and nothing of a secret.
func FuzzGrepPages(f *testing.F) {
	f.Add([]byte("step 1\r 10%|#|\r 20%|##|\nnext\n"), "step|20%", 3, 1)
	f.Add([]byte("a\nb\na\n\n\na"), "^a?$", 1, 0)
	f.Add([]byte("\x1b[31mred\xff\xe2\x82\r\r\n\n\n"), "red", 200, 2)
	f.Fuzz(func(t *testing.T, log []byte, expression string, tokens, context int) {
		if _, err := regexp.Compile(expression); err != nil || expression == "" {
			return
		}
		tokens, context = 1+(tokens&0xff), context&3
		const secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
		log = append(bytes.Clone(log), "\ntoken="+secret+"\n"...)
		for cursor := int64(0); ; {
			slice, err := sliceLog(bytes.NewReader(log), int64(len(log)), LogRequest{Cursor: &cursor, Grep: expression, Context: &context}, budgetBytes(tokens))
			if err != nil || slice.Start != cursor || len(slice.Text) > budgetBytes(tokens) || !utf8.ValidString(slice.Text) || strings.ContainsAny(slice.Text, "\r\x1b\x00") || strings.Contains(slice.Text, secret[:8]) {
				t.Fatalf("%v, %+v", err, slice)
			}
			if !slice.More {
				break
			}
			if slice.NextCursor <= cursor {
				t.Fatalf("stands still at %d: %+v", cursor, slice)
			}
			cursor = slice.NextCursor
		}
		last, err := sliceLog(bytes.NewReader(log), int64(len(log)), LogRequest{Tail: 1 + context, Grep: expression, Context: &context}, budgetBytes(tokens))
		if err != nil || len(last.Text) > budgetBytes(tokens) || strings.Contains(last.Text, secret[:8]) {
			t.Fatalf("the last matches: %v, %+v", err, last)
		}
	})
}
