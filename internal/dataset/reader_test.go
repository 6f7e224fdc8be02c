package dataset

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

type seenRecord struct {
	Line   int
	Byte   int64
	Fields []string
}

func readAll(r *Reader) ([]seenRecord, error) {
	var out []seenRecord
	for {
		record, err := r.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		seen := seenRecord{Line: record.Line, Byte: record.Byte, Fields: []string{}}
		for _, field := range record.Fields {
			seen.Fields = append(seen.Fields, string(field))
		}
		out = append(out, seen)
	}
}

func TestReader(t *testing.T) {
	tests := []struct {
		name, in string
		opts     ReaderOptions
		want     []seenRecord
	}{
		{"plain", "a,b\n1,2\n", ReaderOptions{}, []seenRecord{{1, 0, []string{"a", "b"}}, {2, 4, []string{"1", "2"}}}},
		{"no line end at the end", "a,b\n1,2", ReaderOptions{}, []seenRecord{{1, 0, []string{"a", "b"}}, {2, 4, []string{"1", "2"}}}},
		{"CRLF", "a,b\r\n1,2\r\n", ReaderOptions{}, []seenRecord{{1, 0, []string{"a", "b"}}, {2, 5, []string{"1", "2"}}}},
		{"line break in quotes", "a,b\n\"x\ny\",2\n3,4\n", ReaderOptions{}, []seenRecord{{1, 0, []string{"a", "b"}}, {2, 4, []string{"x\ny", "2"}}, {4, 12, []string{"3", "4"}}}},
		{"doubled quotes", "\"say \"\"no\"\"\",\"\"\n", ReaderOptions{}, []seenRecord{{1, 0, []string{`say "no"`, ""}}}},
		{"delimiter in quotes", "\"a,b\",c\n", ReaderOptions{}, []seenRecord{{1, 0, []string{"a,b", "c"}}}},
		{"quote inside text", "5\" pipe,2\n", ReaderOptions{}, []seenRecord{{1, 0, []string{`5" pipe`, "2"}}}},
		{"text behind the closing quote", "\"a\"b,c\n", ReaderOptions{}, []seenRecord{{1, 0, []string{"ab", "c"}}}},
		{"blank lines", "\na\n\r\n\nb\n", ReaderOptions{}, []seenRecord{{2, 1, []string{"a"}}, {5, 6, []string{"b"}}}},
		{"empty fields", ",\n,,\n", ReaderOptions{}, []seenRecord{{1, 0, []string{"", ""}}, {2, 2, []string{"", "", ""}}}},
		{"old Macintosh", "a;b\r1;2\r", ReaderOptions{Delimiter: ';', LineEnd: '\r'}, []seenRecord{{1, 0, []string{"a", "b"}}, {2, 4, []string{"1", "2"}}}},
		{"offset", "a\tb\n", ReaderOptions{Delimiter: '\t', Offset: 3}, []seenRecord{{1, 3, []string{"a", "b"}}}},
		{"nothing", "", ReaderOptions{}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := readAll(NewReader(strings.NewReader(test.in), test.opts))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			slow, err := readAll(NewReader(iotest.OneByteReader(strings.NewReader(test.in)), test.opts))
			if diff := cmp.Diff(test.want, slow); diff != "" || err != nil {
				t.Error("read a byte at a time:", err, diff)
			}
		})
	}
}

func TestReaderRefuses(t *testing.T) {
	long := strings.Repeat("x", 400<<10)
	tests := []struct {
		name, in string
		limit    int
		want     RecordError
	}{
		{"open quote", "a,b\n1,2\n3,\"four\n5,6\n", 0, RecordError{Code: "quote_unterminated", Line: 3, Byte: 10}},
		{"open quote behind a broken field", "a\n\"x\ny\",\"z\n", 0, RecordError{Code: "quote_unterminated", Line: 3, Byte: 8}},
		{"open quote in a large file", "a\n\"" + strings.Repeat("x\n", 400<<10), 1000, RecordError{Code: "quote_unterminated", Line: 2, Byte: 2}},
		{"long line", "a\n" + long + "\n", 1000, RecordError{Code: "line_too_long", Line: 2, Byte: 2}},
		{"long line without an end", "a\n" + long, 1000, RecordError{Code: "line_too_long", Line: 2, Byte: 2}},
		{"long record of quoted fields", "a\n" + strings.Repeat("\"x\",", 1000) + "\n", 1000, RecordError{Code: "line_too_long", Line: 2, Byte: 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			reader := NewReader(strings.NewReader(test.in), ReaderOptions{MaxRecord: test.limit})
			_, err := readAll(reader)
			var got *RecordError
			if !errors.As(err, &got) {
				t.Fatalf("error is %v", err)
			}
			got.Why = ""
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Error(diff)
			}
			if _, again := reader.Next(); again != err {
				t.Error("a second call answers", again)
			}
		})
	}
}

func TestReaderPassesReadErrors(t *testing.T) {
	broken := errors.New("the disk is gone")
	got, err := readAll(NewReader(io.MultiReader(strings.NewReader("a\nb\nc"), iotest.ErrReader(broken)), ReaderOptions{}))
	if !errors.Is(err, broken) || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
}

// A long record must not be returned in pieces where the read-ahead ends just behind the limit.
func TestReaderLimitIsExact(t *testing.T) {
	for n := 95; n < 110; n++ {
		in := strings.Repeat("x", n) + "\nb\n"
		got, err := readAll(NewReader(iotest.OneByteReader(strings.NewReader(in)), ReaderOptions{MaxRecord: 100}))
		if err == nil && (len(got) != 2 || len(got[0].Fields[0]) != n) {
			t.Errorf("%d bytes: %v", n, got)
		}
		if n <= 100 && err != nil || n > 102 && err == nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// FuzzReader holds the reader against encoding/csv on every input that encoding/csv takes.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{"a,b\n1,2\n", "\"a\"\"b\",c\r\n", "\"x\r\ny\",z", "\r\n\n,\n\"\"\n", "a\r", "\"a\"b\n", "é;ü\n", "a,\"b", "\"\"\"\"", "a\r\r\n", "\"a\"\r"} {
		f.Add([]byte(seed), byte(','))
		f.Add([]byte(seed), byte(';'))
	}
	f.Fuzz(func(t *testing.T, in []byte, delim byte) {
		if !slices.Contains([]byte(",;\t|"), delim) {
			delim = ','
		}
		got, err := readAll(NewReader(bytes.NewReader(in), ReaderOptions{Delimiter: delim}))
		for i := 1; i < len(got); i++ {
			if got[i].Byte <= got[i-1].Byte || got[i].Line <= got[i-1].Line {
				t.Fatalf("record %d is not behind the one before: %+v", i, got[i-1:i+1])
			}
		}
		theirs := csv.NewReader(bytes.NewReader(in))
		theirs.Comma, theirs.FieldsPerRecord = rune(delim), -1
		want, refused := theirs.ReadAll()
		if refused != nil {
			return
		}
		if err != nil {
			t.Fatalf("encoding/csv takes %q, the reader answers %v", in, err)
		}
		if len(got) != len(want) {
			t.Fatalf("%d records instead of %d of %q", len(got), len(want), in)
		}
		for i := range got {
			for j := range got[i].Fields {
				got[i].Fields[j] = strings.ReplaceAll(got[i].Fields[j], "\r\n", "\n") // encoding/csv does so inside quotes
			}
			if !slices.Equal(got[i].Fields, want[i]) {
				t.Fatalf("record %d of %q: %q instead of %q", i, in, got[i].Fields, want[i])
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	in := []byte("id,bill,mass\n" + strings.Repeat("p01,39.1,3750\n", 100_000))
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		reader := NewReader(bytes.NewReader(in), ReaderOptions{})
		for {
			if _, err := reader.Next(); err != nil {
				break
			}
		}
	}
}
