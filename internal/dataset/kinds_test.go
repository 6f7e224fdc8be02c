package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/trainwright/trainwright/internal/finding"
)

func packed(t testing.TB, text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// bird is a row of a Parquet file.
type bird struct {
	ID    string    `parquet:"id"`
	Mass  *float64  `parquet:"mass,optional"`
	Seen  time.Time `parquet:"seen,timestamp(millisecond)"`
	Wings []int32   `parquet:"wings,list"`
	Nest  struct {
		Alt int64 `parquet:"alt"`
	} `parquet:"nest"`
}

func parquetBirds(t testing.TB) string {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[bird](&b)
	for i := range 40 {
		mass := 3.5 + float64(i)/4
		row := bird{ID: fmt.Sprintf("p%02d", i), Mass: &mass, Seen: time.Date(2024, 1, 1+i, 0, 0, 0, 0, time.UTC), Wings: []int32{int32(i), 2}}
		row.Nest.Alt = int64(i % 3)
		if i == 7 {
			row.Mass = nil
		}
		if _, err := w.Write([]bird{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const objects = `{"id": "a", "mass": 1.5, "nest": {"alt": 3, "tree": "el\u006d \"x\""}, "tags": [1, {"b": "]"}]}
{"id": "b", "mass": null, "nest": {"alt": 4}}
not an object
{"id": "c", "mass": 2.5, "late": true, "nest": {"alt": "high"}}
`

func TestOtherKindsAreProfiled(t *testing.T) {
	array := "[" + strings.ReplaceAll(strings.Replace(strings.TrimSpace(objects), "not an object\n", "", 1), "\n", ",\n ") + "]\n"
	for name, file := range map[string]struct{ name, in, kind, packed string }{
		"JSON lines":        {"a.jsonl", objects, KindJSONL, ""},
		"packed JSON lines": {"a.jsonl.gz", packed(t, objects), KindJSONL, "gzip"},
		"JSON array":        {"a.json", array, KindJSON, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, found, err := ProfileTable(background, write(t, file.name, file.in), ProfileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if p.Format.Kind != file.kind || p.Format.Packed != file.packed || !p.Coverage.Whole || p.Files[0].SHA256 == "" {
				t.Errorf("%+v %+v", p.Format, p.Coverage)
			}
			if want := []string{"id", "mass", "nest.alt", "nest.tree", "tags", "late"}; !slices.Equal(p.Order, want) {
				t.Fatalf("columns %v", p.Order)
			}
			c := p.Columns
			if c["mass"].Missing != 1 || c["mass"].MissingSpellings["null"] != 1 || *c["mass"].Mean != 2 || c["late"].Absent != 2 || c["late"].Missing != 2 || c["tags"].Absent != 2 {
				t.Errorf("mass %+v, late %+v", c["mass"], c["late"])
			}
			if got := c["nest.tree"].Top[0].Value; got != `elm "x"` || c["tags"].Top[0].Value != `[1, {"b": "]"}]` || c["nest.alt"].Type != TypeMixed {
				t.Errorf("%q %+v", got, c["nest.alt"])
			}
			i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.Code == "row_not_json" })
			if (i >= 0) != (file.kind == KindJSONL) || i >= 0 && (found[i].Where.Line != 3 || found[i].Where.Byte != int64(strings.Index(objects, "not an"))) {
				t.Errorf("%v", found)
			}
		})
	}
	p, _, err := ProfileTable(background, write(t, "a.csv.gz", packed(t, "a;b\n1;2\n3;4\n")), ProfileOptions{})
	if err != nil || p.Format.Packed != "gzip" || p.Format.Delimiter != ";" || p.Coverage.RowsRead != 2 || *p.Columns["b"].Mean != 3 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestParquetIsProfiled(t *testing.T) {
	p, found, err := ProfileTable(background, write(t, "birds.parquet", parquetBirds(t)), ProfileOptions{Target: "mass"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"id", "mass", "seen", "wings", "nest.alt"}; p.Format.Kind != KindParquet || p.Coverage.RowsRead != 40 || !p.Coverage.Whole || !slices.Equal(p.Order, want) {
		t.Fatalf("%+v %+v %v", p.Format, p.Coverage, p.Order)
	}
	c := p.Columns
	if c["seen"].Type != TypeDate || c["mass"].Missing != 1 || *c["mass"].Min != 3.5 || c["nest.alt"].Distinct != 3 || c["wings"].Top[0].Value != "[0,2]" || c["wings"].Type != TypeString {
		t.Errorf("%+v %+v %+v", c["seen"], c["mass"], c["wings"])
	}
	if i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.Code == "target_missing_values" }); i < 0 || found[i].Where.Line != 8 {
		t.Errorf("the row without a target: %v", found)
	}
}

// Parts of other kinds hold the same rows as objects on lines of their own.
func TestOtherKindsAreSplit(t *testing.T) {
	rows := make([]string, 20)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"id": "r%d", "x": %d, "s": "a\"b"}`, i, i)
	}
	for name, file := range map[string]struct{ name, in string }{
		"lines":   {"a.jsonl", strings.Join(rows, "\n")},
		"array":   {"a.json", "[\n" + strings.Join(rows, ",\n") + "\n]"},
		"parquet": {"a.parquet", parquetBirds(t)},
	} {
		t.Run(name, func(t *testing.T) {
			path, dir := write(t, file.name, file.in), t.TempDir()
			split, _, err := MakeSplit(background, path, SplitSpec{Strategy: Random, ID: "id", Fractions: fractions(0.6, 0.2, 0.2), Seed: 1}, dir)
			if err != nil {
				t.Fatal(err)
			}
			parts, _, err := WriteParts(background, path, split, dir, filepath.Join(dir, "data"), WriteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			seen := 0
			for part, path := range parts {
				if filepath.Base(path) != part+".jsonl" {
					t.Errorf("%s", path)
				}
				p, found, err := ProfileTable(background, path, ProfileOptions{ID: "id"})
				if err != nil || p.Coverage.RowsRead != split.Parts[part].N || finding.Has(found, finding.Error) {
					t.Errorf("%s: %+v %v %v", part, p, found, err)
				}
				seen += int(p.Coverage.RowsRead)
			}
			if want := map[string]int{"lines": 20, "array": 20, "parquet": 40}[name]; seen != want {
				t.Errorf("%d rows in the parts", seen)
			}
			if _, found, err := CheckParts(background, parts, "id", ""); err != nil || len(found) > 0 {
				t.Errorf("%v %v", found, err)
			}
		})
	}
}

// A file that breaks off anywhere is told of or read as far as it goes, and never hangs, whatever its kind.
func TestTruncatedAnywhere(t *testing.T) {
	for name, whole := range map[string]string{"a.csv": "id,x\na,1\nb,\"2\n3\"\n", "a.csv.gz": packed(t, "id,x\na,1\nb,2\n"), "a.jsonl": objects, "a.json": `[{"a": 1, "b": "x\u00e9"}, {"a": [2]}]`, "a.parquet": parquetBirds(t)} {
		step := max(len(whole)/150, 1)
		for cut := 0; cut < len(whole); cut += step {
			_, found, err := ProfileTable(background, write(t, name, whole[:cut]), ProfileOptions{})
			var refused *finding.Refused
			if err != nil && !errors.As(err, &refused) {
				t.Errorf("%s cut at %d: %v", name, cut, err)
			}
			if packedOrBinary := name != "a.csv" && name != "a.jsonl"; packedOrBinary && cut > 4 && err == nil && !finding.Has(found, finding.Error) {
				t.Errorf("%s cut at %d of %d: nothing is said", name, cut, len(whole))
			}
		}
	}
}

func TestADamagedParquetNeverHangs(t *testing.T) {
	whole := []byte(parquetBirds(t))
	began := time.Now()
	for i := 0; i < len(whole); i += 11 {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x55
		_, _, err := ProfileTable(background, write(t, "a.parquet", string(damaged)), ProfileOptions{})
		var refused *finding.Refused
		if err != nil && !errors.As(err, &refused) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

// A footer longer than the file took 4 GB of memory and half a minute to be refused.
func TestAParquetFooterIsNoLongerThanTheFile(t *testing.T) {
	whole := []byte(parquetBirds(t))
	copy(whole[len(whole)-8:], "\xff\xff\xff\xff")
	path := write(t, "a.parquet", string(whole))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := ProfileTable(background, path, ProfileOptions{})
	runtime.ReadMemStats(&after)
	if found := refusal(t, err); found[0].Code != "parquet_damaged" || found[0].Where.Byte != int64(len(whole)-8) {
		t.Errorf("%+v", found)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("%d MB were allocated", used>>20)
	}
}

// bomb packs a text again and again, best it can.
func bomb(t *testing.T, name, head, line string, size int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := gzip.NewWriterLevel(file, gzip.BestCompression)
	_, _ = w.Write([]byte(head))
	lines := bytes.Repeat([]byte(line), (1<<20)/len(line))
	for written := 0; written < size; written += len(lines) {
		_, _ = w.Write(lines)
	}
	if err := errors.Join(w.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// A small file that unpacks to 160 MB is given up for what it is: with rows, with nothing but blank lines, and where
// the caller wants to read on and on.
func TestABombIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ file, head, line string }{
		"rows":              {"bomb.csv.gz", "a,b\n", strings.Repeat("1", 4000) + ",1\n"},
		"blank lines":       {"bomb.csv.gz", "", "\n"},
		"blank lines below": {"bomb.csv.gz", "a,b\n", "\n"},
		"blank JSON lines":  {"bomb.jsonl.gz", "{\"a\": 1}\n", "\n"},
		"spaces in JSON":    {"bomb.json.gz", "[{\"a\": 1},", " "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := bomb(t, c.file, c.head, c.line, 160<<20)
			began := time.Now()
			profile, found, err := ProfileTable(background, path, ProfileOptions{MaxBytes: 1 << 40})
			if err != nil {
				var refused *finding.Refused
				if !errors.As(err, &refused) || refused.Findings[0].Code != "gzip_bomb" {
					t.Errorf("%v after %s", err, time.Since(began))
				}
			} else if profile.Coverage.Whole || !slices.Contains(codes(found), "gzip_bomb") {
				t.Errorf("%v after %s", codes(found), time.Since(began))
			}
		})
	}
}

// A bound holds, and a cancelled call ends, also where nothing but blank lines is left to read.
func TestBlankLinesEnd(t *testing.T) {
	const blank = 96 << 20 // below what counts as a bomb
	for name, head := range map[string]string{"csv": "a,b\n1,2\n", "jsonl": "{\"a\": 1}\n", "spaces": "a,b\n1,2\n"} {
		t.Run(name, func(t *testing.T) {
			line := "\n"
			if name == "spaces" {
				line = "  \n"
			}
			path := bomb(t, "blank."+name, head, line, blank)
			profile, found, err := ProfileTable(background, path, ProfileOptions{MaxBytes: 1 << 20})
			if err != nil || profile.Coverage.RowsRead != 1 || profile.Coverage.Whole || !slices.Contains(codes(found), "coverage_partial") {
				t.Errorf("%+v %v %v", profile.Coverage, codes(found), err)
			}
			ctx, cancel := context.WithCancel(background)
			timer := time.AfterFunc(20*time.Millisecond, cancel)
			defer timer.Stop()
			began := time.Now()
			_, _, err = ProfileTable(ctx, path, ProfileOptions{})
			if took := time.Since(began); !errors.Is(err, context.Canceled) || took > time.Second {
				t.Errorf("%v after %s", err, took)
			}
		})
	}
}

// What ended a reading is told, and not the bound where that was not it.
func TestCoverageSaysWhatEndedIt(t *testing.T) {
	_, found, err := ProfileTable(background, write(t, "a.csv", "a,b\n1,2\n3,\"open\n"), ProfileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f := found[slices.Index(codes(found), "coverage_partial")]
	if !strings.Contains(f.What, "reading ended there (quote_unterminated)") || strings.Contains(f.Remedy, "max_bytes") {
		t.Errorf("%s; %s", f.What, f.Remedy)
	}
}

// A page that was saved under a table's name is no table.
func TestAPageIsNoTable(t *testing.T) {
	for _, page := range []string{"<!DOCTYPE html>\n<html><body>Please log in</body></html>\n", "\n  <HTML lang=en>\n<a,b>\n"} {
		_, _, err := ProfileTable(background, write(t, "a.csv", page), ProfileOptions{})
		if found := refusal(t, err); found[0].Code != "not_text" || !strings.Contains(found[0].What, "HTML") {
			t.Errorf("%+v", found)
		}
	}
}

// Wide characters without a byte order mark are named, with the command that converts them.
func TestWideTextIsNamed(t *testing.T) {
	for order, pair := range map[string]func(byte) string{
		"LE": func(c byte) string { return string([]byte{c, 0}) }, "BE": func(c byte) string { return string([]byte{0, c}) }} {
		var wide string
		for _, c := range []byte("station,temperature\nA,1.5\nB,2.5\n") {
			wide += pair(c)
		}
		_, _, err := ProfileTable(background, write(t, "wide.csv", wide), ProfileOptions{})
		var refused *finding.Refused
		if !errors.As(err, &refused) || refused.Findings[0].Code != "not_text" || refused.Findings[0].Remedy != "convert it: iconv -f UTF-16"+order+" -t UTF-8" {
			t.Errorf("%s: %v", order, err)
		}
	}
}

func TestALineOf100MB(t *testing.T) {
	long := strings.Repeat("x", 100<<20)
	for name, in := range map[string]string{"a.csv": "a,b\n1,2\n" + long, "a.jsonl": "{\"a\": 1}\n{\"a\": \"" + long + "\"}\n", "a.json": `[{"a": 1}, {"a": "` + long + `"}]`} {
		path := write(t, name, in)
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, found, err := ProfileTable(background, path, ProfileOptions{})
		runtime.ReadMemStats(&after)
		line := map[string]int{"a.csv": 3, "a.jsonl": 2, "a.json": 1}[name]
		if i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.Code == "line_too_long" }); err != nil || i < 0 || found[i].Where.Line != line {
			t.Errorf("%s: %v %v", name, found, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 160<<20 {
			t.Errorf("%s: %d MB were allocated", name, used>>20)
		}
	}
}

func FuzzProfile(f *testing.F) {
	for _, seed := range []string{"id,x\na,1\nb,\"2\n3\"\n", packed(f, "a,b\n1,2\n"), objects, `[{"a": 1, "b": "x\u00e9"}, {"a": [2]}]`, parquetBirds(f), "a;b\n1,5;2\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		first, _, err := ProfileTable(background, path, ProfileOptions{})
		var refused *finding.Refused
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		if err == nil {
			again, _, _ := ProfileTable(background, path, ProfileOptions{})
			if first.Coverage != again.Coverage || !maps.Equal(columnTypes(first), columnTypes(again)) {
				t.Error("a second look says something else")
			}
		}
	})
}

func columnTypes(p *Profile) map[string]string {
	out := map[string]string{}
	for name, c := range p.Columns {
		out[name] = c.Type
	}
	return out
}
