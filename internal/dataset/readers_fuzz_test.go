package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

// rowsOfObjects reads objects to the end; broken counts the lines that are none.
func rowsOfObjects(data []byte, array bool) (rows, broken int, err error) {
	reader := newJSONRows(bytes.NewReader(data), array, 0)
	reader.broken = func(int, int64, string) { broken++ }
	for before := int64(-1); ; rows++ {
		record, err := reader.Next()
		if err == io.EOF {
			return rows, broken, nil
		}
		if err != nil {
			return rows, broken, err
		}
		if record.Byte <= before || record.Byte+int64(len(record.Raw)) > int64(len(data)) || len(record.Fields) > len(reader.names) {
			return rows, broken, errors.New("the record is not where it says")
		}
		before = record.Byte
	}
}

// plain says whether a value is an object that the readers must take: encoding/json does, and it is not deeper than their limit.
func plain(b []byte) bool {
	var value map[string]any
	if json.Unmarshal(b, &value) != nil || value == nil {
		return false
	}
	return bytes.Count(b, []byte("{"))+bytes.Count(b, []byte("[")) < maxDepth/2
}

// FuzzJSONLines holds the reader of lines against encoding/json: what that takes for an object is a row.
func FuzzJSONLines(f *testing.F) {
	for _, seed := range []string{objects, "{}\n{}\n", "{\"a\": 1}\r\n\n{\"a\": [1, {}]}", "{\"a\": \"\\ud83d\\ude00\"}", "{\"a\": {\"a\": null}, \"a.a\": 2}\n[1]\nnull\n", "{\"a\":1}x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, broken, err := rowsOfObjects(data, false)
		if err != nil {
			t.Fatal(err)
		}
		want, lines := 0, 0
		for line := range bytes.Lines(data) {
			if plain(line) {
				want++
			}
			if len(bytes.TrimSpace(line)) > 0 {
				lines++
			}
		}
		if rows < want || rows+broken != lines {
			t.Fatalf("%d rows and %d broken of %d lines, %d of them objects: %q", rows, broken, lines, want, data)
		}
	})
}

// FuzzJSONArray does so with an array.
func FuzzJSONArray(f *testing.F) {
	for _, seed := range []string{`[{"a": 1, "b": "x\u00e9"}, {"a": [2]}]`, "[]", "[{}]", "[\n{\"a\": \"]\"},\n{\"b\": \"\\\"}\"}]\n", "[{\"a\": 1}", "[{\"a\": 1},]", "[{}] x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, _, err := rowsOfObjects(data, true)
		var damage *RecordError
		if err != nil && !errors.As(err, &damage) {
			t.Fatal(err)
		}
		var elements []json.RawMessage
		if json.Unmarshal(data, &elements) != nil || elements == nil {
			return
		}
		for _, element := range elements {
			if !plain(element) {
				return
			}
		}
		if err != nil || rows != len(elements) {
			t.Fatalf("%d of %d rows, %v: %q", rows, len(elements), err, data)
		}
	})
}

// FuzzGzip packs a text, and the profile must be that of the text itself; broken off, it must be told of or refused.
func FuzzGzip(f *testing.F) {
	for _, seed := range []string{"id,x\na,1\nb,\"2\n3\"\n", "a;b\n1,5;2\n", objects, "a\n\n\n", "\xef\xbb\xbfa\tb\n1\t2\n"} {
		f.Add([]byte(seed), uint(7))
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint) {
		if bytes.HasPrefix(data, []byte(parquetMagic)) || bytes.HasPrefix(data, []byte(gzipMagic)) || len(data) == 0 {
			return
		}
		dir := t.TempDir()
		profile := func(name, text string) (*Profile, []finding.Finding, error) {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return ProfileTable(background, path, ProfileOptions{})
		}
		whole := packed(t, string(data))
		p, _, err := profile("a.csv", string(data))
		q, _, err2 := profile("a.csv.gz", whole)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("plain: %v, packed: %v", err, err2)
		}
		if err == nil {
			if diff := cmp.Diff(p.Columns, q.Columns); diff != "" || p.Coverage != q.Coverage {
				t.Fatalf("%+v %+v %s", p.Coverage, q.Coverage, diff)
			}
		}
		_, found, err := profile("b.csv.gz", whole[:max(cut%uint(len(whole)), 3)])
		if err == nil && !finding.Has(found, finding.Error) {
			t.Fatal("a file that breaks off is taken for whole")
		}
	})
}

// FuzzParquet damages a file: it is read, told of or refused, and a library's panic is none of ours.
func FuzzParquet(f *testing.F) {
	whole := parquetBirds(f)
	f.Add([]byte(whole))
	f.Add([]byte(whole[:len(whole)/2]))
	f.Add([]byte(whole[len(whole)/2:]))
	f.Add([]byte(parquetMagic + parquetMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "a.parquet")
		if err := os.WriteFile(path, append([]byte(parquetMagic), bytes.TrimPrefix(data, []byte(parquetMagic))...), 0o600); err != nil {
			t.Fatal(err)
		}
		p, _, err := ProfileTable(background, path, ProfileOptions{})
		var refused *finding.Refused
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		if err == nil && (p.Format.Kind != KindParquet || len(p.Order) != len(p.Columns)) {
			t.Fatalf("%+v", p.Format)
		}
	})
}
