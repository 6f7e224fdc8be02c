package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/dataset"
)

func TestWrittenTablesHoldWhatTheySay(t *testing.T) {
	for _, form := range []string{"csv", "jsonl"} {
		path := filepath.Join(t.TempDir(), "table."+form)
		w, err := writeFile(path, form, 400_000)
		if err != nil {
			t.Fatal(err)
		}
		p, found, err := dataset.ProfileTable(context.Background(), path, dataset.ProfileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if w.repeated < 2 || p.Coverage.RowsRead != w.rows || p.Duplicates.Rows != w.repeated || p.BadTotal != 0 || p.Files[0].Bytes != w.bytes {
			t.Errorf("%s: wrote %+v, read %d rows, %d repeated, %d bad, %d bytes", form, w, p.Coverage.RowsRead, p.Duplicates.Rows, p.BadTotal, p.Files[0].Bytes)
		}
		for _, f := range found {
			if f.Code != "rows_duplicate" {
				t.Errorf("%s: unexpected %s: %s", form, f.Code, f.What)
			}
		}
		types := map[string]string{"id": "integer", "date": "date", "site": "string", "value": "number", "count": "integer", "ok": "boolean", "note": "string"}
		for name, want := range types {
			if c := p.Columns[name]; c == nil || c.Type != want {
				t.Errorf("%s: %s is %+v, want %s", form, name, c, want)
			}
		}
	}
}

func TestTablesAreTheSameEachTime(t *testing.T) {
	var once, twice bytes.Buffer
	for _, to := range []*bytes.Buffer{&once, &twice} {
		if _, err := writeTable(to, "csv", 10_000); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(once.Bytes(), twice.Bytes()) {
		t.Error("two runs would measure different tables")
	}
}

func TestWrongAnswersAreNone(t *testing.T) {
	w := written{bytes: 300 * megabyte, rows: 10, repeated: 2}
	right, theirs := answer{Rows: 10, Compared: 10, Repeated: 2}, answer{Rows: 10}
	for name, test := range map[string]struct {
		ours, theirs answer
		want         string
	}{
		"right":                   {right, theirs, ""},
		"not all rows compared":   {answer{Rows: 10, Compared: 5}, theirs, ""},
		"ours lost a row":         {answer{Rows: 9, Compared: 9, Repeated: 2}, theirs, "9 rows were counted, 10 written"},
		"theirs lost a row":       {right, answer{Rows: 9}, "9 rows were counted, 10 written"},
		"a repetition overlooked": {answer{Rows: 10, Compared: 10, Repeated: 1}, theirs, "1 repeated rows were found, 2 written"},
	} {
		err := comparison{form: "csv", written: w, ours: []answer{test.ours}, theirs: []answer{test.theirs}}.check()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestAims(t *testing.T) {
	w := written{bytes: 300 * megabyte, rows: 10, repeated: 2}
	for name, test := range map[string]struct {
		ours, theirs []float64
		peak         float64
		met          bool
		says         string
	}{
		"both":      {[]float64{1, 9, 1}, []float64{3, 3, 3}, 149, true, "3.00: yes"},
		"slow":      {[]float64{2, 2, 1}, []float64{3, 3, 3}, 149, false, "1.50: NO"},
		"too large": {[]float64{1, 1, 1}, []float64{3, 3, 3}, 150, false, "150: NO"},
	} {
		c := comparison{form: "csv", written: w}
		for i := range test.ours {
			c.ours = append(c.ours, answer{Seconds: test.ours[i], Rows: 10, peak: test.peak})
			c.theirs = append(c.theirs, answer{Seconds: test.theirs[i], Rows: 10})
		}
		var out strings.Builder
		met, err := show(&out, []comparison{c})
		if err != nil || met != test.met || !strings.Contains(out.String(), test.says) {
			t.Errorf("%s: met %t, %v\n%s", name, met, err, out.String())
		}
	}
}
