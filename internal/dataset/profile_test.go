package dataset

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

func TestProfileGolden(t *testing.T) {
	profile, found, err := ProfileTable(background, "testdata/birds.csv", ProfileOptions{ID: "id", Target: "species"})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "birds.profile.json", map[string]any{"profile": profile, "findings": found})
}

func TestProfileFormats(t *testing.T) {
	tests := []struct {
		name, file, in string
		opts           ProfileOptions
		format         Format
		order          []string
		rows           int64
		findings       []said
	}{
		{"comma", "a.csv", "a,b\n1,2\n3,4\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 2, nil},
		{"byte order mark", "a.csv", "\xEF\xBB\xBFa,b\n1,2\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: true}, []string{"a", "b"}, 1, nil},
		{"CRLF", "a.csv", "a,b\r\n1,2\r\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "crlf", BOM: false}, []string{"a", "b"}, 1, nil},
		{"mixed line ends", "a.csv", "a,b\r\n1,2\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "mixed", BOM: false}, []string{"a", "b"}, 1, nil},
		{"old Macintosh", "a.csv", "a,b\r1,2\r", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "cr", BOM: false}, []string{"a", "b"}, 1, nil},
		{"semicolon with decimal commas", "a.csv", "a;b\n1,5;2,5\n3,5;4,5\n", ProfileOptions{}, Format{Delimiter: ";", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 2,
			[]said{{"decimal_comma", finding.Note, 0, 0}}},
		{"tab", "a.tsv", "a\tb\nx,y\t2\n", ProfileOptions{}, Format{Delimiter: "\t", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 1, nil},
		{"pipe", "a.txt", "a|b\n1|2\n", ProfileOptions{}, Format{Delimiter: "|", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 1, nil},
		{"forced delimiter", "a.csv", "a,b;c\n1,2;3\n", ProfileOptions{Dialect: Dialect{Delimiter: ","}}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b;c"}, 1, nil},
		{"line break in quotes", "a.csv", "a,b\n\"x\ny\",\"say \"\"no\"\"\"\nz,w\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 2, nil},
		{"Latin-1", "a.csv", "a,b\nx,2\nM\xfcller,3\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "latin-1", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 2,
			[]said{{"encoding_not_utf8", finding.Warning, 3, 9}}},
		{"NUL bytes", "a.csv", "a,b\n" + strings.Repeat("xxxxxxxxxx,1\n", 20) + "x\x00,2\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 21,
			[]said{{"nul_bytes", finding.Error, 22, 265}, {"rows_duplicate", finding.Warning, 3, 0}}},
		{"ragged rows", "a.csv", "a,b\n1,2\n3\n4,5,6\n\"7\n\",8\n9\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 5,
			[]said{{"row_ragged", finding.Error, 3, 8}}},
		{"blank lines", "a.csv", "\na,b\n\n1,2\n  \n3,4\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 2,
			[]said{{"blank_lines", finding.Note, 0, 0}}},
		{"no header, numbers", "a.csv", "1,2\n3,4\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: false, Newline: "lf", BOM: false}, []string{"0", "1"}, 2,
			[]said{{"header_missing", finding.Warning, 1, 0}}},
		{"no header, numbers and a class", "iris.data", "5.1,3.5,1.4,setosa\n4.9,3.0,1.4,setosa\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: false, Newline: "lf", BOM: false}, []string{"0", "1", "2", "3"}, 2,
			[]said{{"header_missing", finding.Warning, 1, 0}, {"column_constant", finding.Note, 0, 0}, {"column_constant", finding.Note, 0, 0}}},
		{"years head a wide table", "a.csv", "country,1990,1991\nFR,1.5,2\nDE,2.5,3\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"country", "1990", "1991"}, 2, nil},
		{"a header of numbers, as told", "a.csv", "1,2\n3,4\n", ProfileOptions{Dialect: Dialect{Header: new(true)}}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"1", "2"}, 1, nil},
		{"duplicate and empty names", "a.csv", ",a,a, b\n1,2,3,4\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"Unnamed: 0", "a", "a.1", " b"}, 1,
			[]said{{"column_duplicate", finding.Warning, 1, 0}, {"column_unnamed", finding.Note, 1, 0}, {"column_name_spaces", finding.Note, 1, 0}}},
		{"header only", "a.csv", "a,b\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 0, []said{{"no_rows", finding.Error, 1, 0}}},
		{"open quote", "a.csv", "a,b\n1,2\n3,\"x\n5,6\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 1,
			[]said{{"quote_unterminated", finding.Error, 3, 10}, {"coverage_partial", finding.Note, 0, 8}}},
		{"stray quote", "a.csv", "a,b\n5\" pipe,2\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 1, []said{{"quote_stray", finding.Warning, 2, 4}}},
		{"carriage return inside", "a.csv", "a,b\n1,2\r3,4\n5,6\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 2,
			[]said{{"row_ragged", finding.Error, 2, 4}, {"bare_cr", finding.Warning, 2, 7}}},
		{"one column", "a.csv", "a\nx\ny\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a"}, 2, []said{{"single_column", finding.Note, 1, 0}}},
		{"equal rows", "a.csv", "a,b\n1,x\n2,y\n1,\"x\"\n1,x\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 4, []said{{"rows_duplicate", finding.Warning, 4, 0}}},
		{"target missing", "a.csv", "a,y\n1,\n2,3\n3,NA\n", ProfileOptions{Target: "y"}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "y"}, 3, []said{{"target_missing_values", finding.Error, 2, 6}}},
		{"words among numbers", "a.csv", "a,b\n1,1\n2,2\nlow,3\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 3, []said{{"column_mixed", finding.Warning, 4, 12}}},
		{"infinities", "a.csv", "a,b\n1,1\ninf,2\n1e999,3\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 3, []said{{"values_non_finite", finding.Warning, 3, 8}}},
		{"empty column", "a.csv", "a,b\n,1\nNA,2\n", ProfileOptions{}, Format{Delimiter: ",", Encoding: "utf-8", Header: true, Newline: "lf", BOM: false}, []string{"a", "b"}, 2, []said{{"column_empty", finding.Warning, 0, 0}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			profile, found, err := ProfileTable(background, write(t, test.file, test.in), test.opts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.format, profile.Format); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.order, profile.Order); diff != "" {
				t.Error(diff)
			}
			if profile.Coverage.RowsRead != test.rows {
				t.Errorf("%d rows instead of %d", profile.Coverage.RowsRead, test.rows)
			}
			if got := saidOf(found); len(got)+len(test.findings) > 0 {
				if diff := cmp.Diff(test.findings, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestProfileRefuses(t *testing.T) {
	tests := []struct {
		name, in string
		opts     ProfileOptions
		want     string
	}{
		{"empty file", "", ProfileOptions{}, "file_empty"},
		{"blank lines only", "\n \n\n", ProfileOptions{}, "file_empty"},
		{"binary", "\x7fELF\x01\x00\x00\x00\x00\x00", ProfileOptions{}, "not_text"},
		{"no gzip after all", "\x1f\x8b\x08abc", ProfileOptions{}, "gzip_damaged"},
		{"no Parquet after all", "PAR1 is what it begins with", ProfileOptions{}, "parquet_damaged"},
		{"UTF-16", "\xff\xfea\x00,\x00b\x00\n\x00", ProfileOptions{}, "not_text"},
		{"spreadsheet", "PK\x03\x04xxxx", ProfileOptions{}, "not_text"},
		{"long delimiter", "a,b\n1,2\n", ProfileOptions{Dialect: Dialect{Delimiter: "::"}}, "delimiter_invalid"},
		{"unknown target", "a,b\n1,2\n", ProfileOptions{Target: "c"}, "column_unknown"},
		{"unknown id", "a,b\n1,2\n", ProfileOptions{ID: "c"}, "column_unknown"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := ProfileTable(background, write(t, "a.csv", test.in), test.opts)
			if got := codes(refusal(t, err)); !cmp.Equal(got, []string{test.want}) {
				t.Errorf("refused with %v instead of %s", got, test.want)
			}
		})
	}
	_, _, err := ProfileTable(background, t.TempDir(), ProfileOptions{})
	if got := codes(refusal(t, err)); got[0] != "path_is_directory" {
		t.Error("a directory:", got)
	}
	_, _, err = ProfileTable(background, "testdata/none.csv", ProfileOptions{})
	if got := codes(refusal(t, err)); got[0] != "file_missing" {
		t.Error("a missing file:", got)
	}
	ctx, cancel := context.WithCancel(background)
	cancel()
	if _, _, err = ProfileTable(ctx, "testdata/birds.csv", ProfileOptions{}); !errors.Is(err, context.Canceled) {
		t.Error("a cancelled call:", err)
	}
}

func TestColumnTypes(t *testing.T) {
	tests := []struct {
		values, want string
		missing, bad int64
	}{
		{"1 2 -3 +4", TypeInteger, 0, 0},
		{"1 2.5 1e3 .5 5.", TypeNumber, 0, 0},
		{"1 NA 3 ? - null", TypeInteger, 4, 0},
		{"true FALSE yes", TypeBoolean, 0, 0},
		{"2008-01-02 2008/01/02 2008-01-02T03:04:05Z 2008-01-02T03:04:05.25+02:00", TypeDate, 0, 0},
		{"2008-13-02 01/02/2008", TypeString, 0, 0},
		{"a b 1", TypeString, 0, 0},
		{"1 2 3 x y", TypeMixed, 0, 2},
		{"2008-01-02 2008-01-03 soon", TypeMixed, 0, 1},
		{"0x10 1_000", TypeString, 0, 0},
		{"inf -inf 1", TypeNumber, 0, 0},
		{"NA nan None", TypeEmpty, 3, 0},
		{"1e 1e+ 1.2.3 --1 - e5", TypeString, 1, 0},
	}
	for _, test := range tests {
		in := "a,b\n" + strings.ReplaceAll(test.values, " ", ",x\n") + ",x\n"
		profile, _, err := ProfileTable(background, write(t, "a.csv", in), ProfileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := profile.Columns["a"]
		if got.Type != test.want || got.Missing != test.missing || got.BadTotal != test.bad {
			t.Errorf("%s: %s, %d missing, %d bad", test.values, got.Type, got.Missing, got.BadTotal)
		}
	}
}

func TestColumnStatistics(t *testing.T) {
	profile, _, err := ProfileTable(background, write(t, "a.csv", "a,b\n2,x\n4,x\n4,x\n4,x\n5,x\n5,x\n7,x\n9,y\n"), ProfileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := profile.Columns["a"]
	if *c.Mean != 5 || *c.Std != 2 || *c.Min != 2 || *c.Max != 9 { // the population's deviation: n, not n-1
		t.Errorf("mean %v, std %v, min %v, max %v", *c.Mean, *c.Std, *c.Min, *c.Max)
	}
	want := map[string]float64{"0.05": 2.7, "0.25": 4, "0.5": 4.5, "0.75": 5.5, "0.95": 8.3} // numpy.quantile
	for q, value := range want {
		if math.Abs(c.Quantiles[q]-value) > 1e-12 {
			t.Errorf("quantile %s is %v instead of %v", q, c.Quantiles[q], value)
		}
	}
	if diff := cmp.Diff([]ValueCount{{"x", 7}, {"y", 1}}, profile.Columns["b"].Top); diff != "" {
		t.Error(diff)
	}
}

// Numbers too large for the sums must not put NaN into the JSON.
func TestColumnOverflow(t *testing.T) {
	profile, _, err := ProfileTable(background, write(t, "a.csv", "a,b\n1.7e308,1\n-1.7e308,1\n1.7e308,2\n"), ProfileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := profile.Columns["a"]
	if c.Std != nil || *c.Max != 1.7e308 {
		t.Errorf("std %v, max %v", c.Std, c.Max)
	}
}

func TestProfileBounds(t *testing.T) {
	var in strings.Builder
	in.WriteString("n,c\n")
	for i := range 3000 {
		fmt.Fprintf(&in, "%d,%c\n", i, 'a'+i%3)
	}
	in.WriteString("0,a\n")
	path := write(t, "a.csv", in.String())
	profile, found, err := ProfileTable(background, path, ProfileOptions{DistinctBound: 100, QuantileBound: 500, DuplicateBound: 1000})
	if err != nil {
		t.Fatal(err)
	}
	n, c := profile.Columns["n"], profile.Columns["c"]
	if n.Distinct != 100 || !n.DistinctAtLeast || c.Distinct != 3 || c.DistinctAtLeast {
		t.Errorf("distinct %d %v, %d %v", n.Distinct, n.DistinctAtLeast, c.Distinct, c.DistinctAtLeast)
	}
	if n.QuantilesFrom != 500 || math.Abs(n.Quantiles["0.5"]-1500) > 200 {
		t.Errorf("median %v from %d values", n.Quantiles["0.5"], n.QuantilesFrom)
	}
	if profile.Duplicates.Rows != 0 || profile.Duplicates.RowsChecked != 1000 {
		t.Errorf("%+v", profile.Duplicates)
	}
	if diff := cmp.Diff([]string{"duplicates_unchecked"}, codes(found)); diff != "" {
		t.Error(diff)
	}
	again, _, err := ProfileTable(background, path, ProfileOptions{DistinctBound: 100, QuantileBound: 500, DuplicateBound: 1000})
	if diff := cmp.Diff(profile.Columns, again.Columns); diff != "" || err != nil {
		t.Error("a second reading differs:", diff, err)
	}
}

func TestProfileStopsAtMaxBytes(t *testing.T) {
	in := "a,b\n" + strings.Repeat("1,2\n", 1000)
	profile, found, err := ProfileTable(background, write(t, "a.csv", in), ProfileOptions{MaxBytes: 404})
	if err != nil {
		t.Fatal(err)
	}
	if got := profile.Coverage; got.RowsRead != 100 || got.Whole || !got.Estimated || got.Rows < 900 || got.Rows > 1100 {
		t.Errorf("%+v", got)
	}
	if profile.Files[0].SHA256 != "" {
		t.Error("a hash of a file that was not read whole")
	}
	if got := codes(found); !cmp.Equal(got, []string{"rows_duplicate", "coverage_partial"}) && got[len(got)-1] != "column_constant" {
		t.Error(got)
	}
	// A bound at the very end is no bound.
	profile, _, err = ProfileTable(background, write(t, "a.csv", in), ProfileOptions{MaxBytes: int64(len(in))})
	if err != nil || !profile.Coverage.Whole || profile.Files[0].SHA256 == "" {
		t.Errorf("%+v, %v", profile.Coverage, err)
	}
}

func TestReaderSkipsNothingAtTheBufferEdge(t *testing.T) {
	row := strings.Repeat("x", 995) + ",1\n"
	profile, _, err := ProfileTable(background, write(t, "a.csv", "a,b\n"+strings.Repeat(row, 700)), ProfileOptions{})
	if err != nil || profile.Coverage.RowsRead != 700 || profile.BadTotal != 0 {
		t.Errorf("%+v, %v", profile.Coverage, err)
	}
}

// A first record longer than the look-ahead must still be counted to its end.
func TestProfileOfVeryWideRows(t *testing.T) {
	row := strings.Repeat("1.25,", 60_000) + "2\n"
	profile, found, err := ProfileTable(background, write(t, "a.csv", row+strings.Replace(row, "1.25", "1.5", 1)), ProfileOptions{})
	if err != nil || len(profile.Order) != 60_001 || profile.BadTotal != 0 || found[0].Code != "header_missing" {
		t.Errorf("%d columns, %d ragged, %v", len(profile.Order), profile.BadTotal, err)
	}
}

func BenchmarkProfile(b *testing.B) {
	var in strings.Builder
	in.WriteString("id,x,y,n,class\n")
	for i := range 100_000 {
		fmt.Fprintf(&in, "p%06d,%.4f,%.2f,%d,%s\n", i, math.Sin(float64(i)), float64(i)/7, i%1000, []string{"a", "b", "c"}[i%3])
	}
	path := b.TempDir() + "/a.csv"
	if err := os.WriteFile(path, []byte(in.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(in.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := ProfileTable(background, path, ProfileOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
