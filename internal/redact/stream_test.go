package redact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// corpus is text in which secrets stand next to everything that a part may cut them from.
func corpus() []string {
	key := strings.Repeat(alnum48[:46]+"+/\n", 20)
	texts := []string{
		"", "x", "\n", "token=" + "ghp_" + alnum36 + "\n", "ghp_" + alnum36, "a ghp_" + alnum36 + " b",
		"password=password=hunter22 token=token=abcd1234efgh\n",
		"password" + strings.Repeat(" ", 200) + "=" + strings.Repeat(" ", 200) + "hunter22\n",
		"password" + strings.Repeat(" ", 300) + "= hunter22\n",
		`{"client_secret": "correct horse`, `{"a": "{\"password\": \"hunter22\"}"}` + "\n",
		"-----BEGIN RSA PRIVATE KEY-----\n" + key + "-----END RSA PRIVATE KEY-----\nnext\n",
		"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n" + key + "-----END RSA PRIVATE KEY-----\n",
		"-----BEGIN RSA PRIVATE KEY-----\n" + key + "no key any more (\n-----END RSA PRIVATE KEY-----\n",
		"-----BEGIN OPENSSH PRIVATE KEY-----\n" + key,
		"-----BEGIN PRIVATE KEY-----" + strings.Repeat("A", 60<<10) + "\n",
		"-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("A\n", 30<<10) + "-----END PRIVATE KEY-----",
		"-----BEGIN \nPRIVATE KEY-----\nAAAA\n", "-----BEGIN PRIVATE", "-----BEGIN CERTIFICATE-----\nAAAA\n",
		"Authorization: Bearer " + strings.Repeat("a1", 9000) + "\n", "eyJ" + strings.Repeat("a", 9000) + ".eyJ" + strings.Repeat("b", 9000) + ".c\n",
		"wandb\nlogin " + hex40 + "\nwandb login " + hex40, "https://me:s3cr3t@host/x?token=abcd1234efgh&x=1\r\n", "pässword=\"pässwört\" 温度\xff\xe2\x82\n",
		"f(a, {b}, db_password=hun)ter2&3) (" + strings.Repeat("x", 230) + " password=hunter2)\n(" + strings.Repeat("x", 260) + " password=hunter2)\n",
		`{"m": "password=hunter2\\nnext pwd=C:\\x"}` + "\npassword=hun\\der2\\\\\n", "Server=x;Password=a&b;User=me?api_key=abcd&x=1\n",
		"https://me:pa/ss@host https://host.org:me/x@y\n", `passwd: ["hunter2", "x"] secret: {"a": 1}`,
		"(password=" + strings.Repeat("x)", 9000) + "\n",
		"password=<" + strings.Repeat("your ", 3000) + ">\n", strings.Repeat("key ", 30000), strings.Repeat("x", 100<<10) + "AKIA" + "ABCDEFGHIJKLMNOP",
	}
	return append(texts, strings.Join(texts, ""), strings.Join(texts, "\n"), strings.ReplaceAll(strings.Join(texts, " "), "\n", " "))
}

// inParts masks text through a stream, cut as the seed says.
func inParts(text []byte, stride int, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 7))
	s := newStream(stride)
	var out []byte
	for at := 0; at < len(text); {
		most := []int{3, 90, 4000, 50 << 10}[random.IntN(4)]
		if len(text) > 20<<10 {
			most = 50 << 10 // byte by byte would take long
		}
		n := min(len(text)-at, 1+random.IntN(most))
		out = append(out, s.take(text[at:at+n], false)...)
		at += n
	}
	return append(out, s.take(nil, true)...)
}

func same(t *testing.T, how string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	cut := func(b []byte) []byte { return b[min(len(b), max(0, at-60)):min(len(b), at+60)] }
	t.Fatalf("%s: %d bytes for %d, first difference at %d\ngot  %q\nwant %q", how, len(got), len(want), at, cut(got), cut(want))
}

func TestAStreamMasksWhatTheWholeTextMasks(t *testing.T) {
	for i, text := range corpus() {
		want := Bytes([]byte(text))
		for _, stride := range []int{1, 700, strideSize} {
			for seed := range uint64(3) {
				same(t, fmt.Sprintf("text %d stride %d seed %d", i, stride, seed), inParts([]byte(text), stride, seed), want)
			}
		}
	}
}

// Every place where two parts may meet, for the texts that are short enough.
func TestEveryCut(t *testing.T) {
	for _, text := range corpus() {
		if len(text) > 1500 {
			continue
		}
		want := Bytes([]byte(text))
		for cut := range len(text) {
			s := newStream(1)
			got := append(s.take([]byte(text[:cut]), false), s.take([]byte(text[cut:]), false)...)
			same(t, fmt.Sprintf("%q cut at %d", text, cut), append(got, s.take(nil, true)...), want)
		}
	}
}

func TestReaderAndWriter(t *testing.T) {
	text := []byte(strings.Join(corpus(), "\n"))
	want := Bytes(text)
	for name, r := range map[string]io.Reader{"plain": bytes.NewReader(text), "half": iotest.HalfReader(bytes.NewReader(text)), "with data at the end": iotest.DataErrReader(bytes.NewReader(text))} {
		got, err := io.ReadAll(NewReader(r))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		same(t, name, got, want)
	}
	if err := iotest.TestReader(NewReader(bytes.NewReader(text[:3000])), Bytes(text[:3000])); err != nil {
		t.Error(err)
	}
	var out bytes.Buffer
	w := NewWriter(&out)
	if n, err := w.Write(text); n != len(text) || err != nil {
		t.Fatal(n, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "writer", out.Bytes(), want)
}

// A person who follows a log must see a line when it is there.
func TestWholeLinesAreNotHeldBack(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	for _, c := range []struct{ write, shown string }{
		{"epoch 1\nepo", "epoch 1\n"},
		{"ch 2 token=ghp_", "epoch 1\n"},
		{alnum36 + "\n", "epoch 1\nepoch 2 token=****" + strings.Repeat("*", 36) + "\n"},
	} {
		if _, err := io.WriteString(w, c.write); err != nil || out.String() != c.shown {
			t.Errorf("after %q: %q, want %q (%v)", c.write, out.String(), c.shown, err)
		}
	}
	out.Reset()
	if _, err := io.WriteString(w, "-----BEGIN PRIVATE KEY-----\nAAAA\n"); err != nil || out.Len() > 0 {
		t.Errorf("a key that may go on is shown: %q", out.String())
	}
	if _, err := io.WriteString(w, "epoch 3 (best)\n"); err != nil || !strings.HasSuffix(out.String(), "epoch 3 (best)\n") {
		t.Errorf("a key that has ended holds back the rest: %q", out.String())
	}
}

func TestAnErrorComesAfterAllBytes(t *testing.T) {
	broken := errors.New("broken")
	got, err := io.ReadAll(NewReader(io.MultiReader(strings.NewReader("password=hunter22"), iotest.ErrReader(broken))))
	if !errors.Is(err, broken) || string(got) != "password=********" {
		t.Errorf("%q, %v", got, err)
	}
	w := NewWriter(full{})
	n, err := w.Write([]byte("line\n"))
	if n != 0 || !errors.Is(err, errFull) || !errors.Is(w.Close(), errFull) {
		t.Errorf("%d, %v", n, err)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestMemoryIsBounded(t *testing.T) {
	const size = 8 << 20
	for name, line := range map[string]string{"lines": "step 1 loss 0.25\n", "no line end": "step 1 loss 0.25 ", "keys": "-----BEGIN PRIVATE KEY-----\n", "one value": "x"} {
		s := newStream(strideSize)
		part := []byte(strings.Repeat(line, partSize/len(line)))
		largest := 0
		for taken := 0; taken < size/4; taken += len(part) {
			s.take(part, false)
			largest = max(largest, cap(s.buf))
		}
		if largest > 256<<10 {
			t.Errorf("%s: a buffer of %d bytes", name, largest)
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n, err := io.Copy(io.Discard, NewReader(io.LimitReader(repeated("step 1 loss 0.25\n"), size)))
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err != nil || n != size || after.HeapAlloc > before.HeapAlloc+4<<20 {
		t.Errorf("%d bytes, %v, heap %d before and %d after", n, err, before.HeapAlloc, after.HeapAlloc)
	}
}

type repeated string

func (r repeated) Read(p []byte) (int, error) { return copy(p, strings.Repeat(string(r), 1000)), nil }

// Whatever stands in a text and however it is cut, a stream masks it as a whole. Filler makes windows of short inputs.
func FuzzStream(f *testing.F) {
	for _, text := range corpus() {
		if len(text) < 4<<10 {
			f.Add([]byte(text), uint64(1), uint16(50))
			f.Add([]byte(text), uint64(2), uint16(50_000))
		}
	}
	files, err := filepath.Glob("testdata/corpus/*")
	if err != nil || len(files) == 0 {
		f.Fatal("no corpus", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint64(len(text)), uint16(45_000))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64, filler uint16) {
		long := append(bytes.Clone(text), bytes.Repeat([]byte{'A'}, int(filler))...)
		long = append(append(long, text...), text...)
		same(t, "fuzzed", inParts(long, 1+int(seed%5000), seed), Bytes(long))
	})
}

func BenchmarkReader(b *testing.B) {
	text := []byte(strings.Repeat("2026-11-30 12:00:00 INFO step 1 loss 0.25 key_rate 3\n", 20_000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := io.Copy(io.Discard, NewReader(bytes.NewReader(text))); err != nil {
			b.Fatal(err)
		}
	}
}
