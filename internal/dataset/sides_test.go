package dataset

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A record repeats another by its values: quotes that need not be, and the id, make no difference; where values begin and end does.
func TestRecordsAreComparedByTheirValues(t *testing.T) {
	for name, test := range map[string]struct {
		text, id string
		want     []Duplicate
	}{
		"needless quotes":    {"a,b\nx,y\n\"x\",y\nx,\"y\"\n", "", []Duplicate{{3, 2}, {4, 2}}},
		"needed quotes":      {"a,b\n\"x,1\",y\nz,z\n\"x,1\",\"y\"\n", "", []Duplicate{{4, 2}}},
		"a quote inside":     {"a,b\n\"say \"\"no\"\"\",y\n\"say \"\"no\"\"\",\"y\"\n\"say \"\"no\"\",y\",\n", "", []Duplicate{{3, 2}}},
		"the delimiter wins": {"a,b\n\"x,\",y\nx,\",y\"\nx,y\n", "", nil},
		"without the id":     {"a,id,b\nx,1,y\nx,2,y\n\"x\",3,y\nx,,y\ny,1,x\n", "id", []Duplicate{{3, 2}, {4, 2}, {5, 2}}},
		"quotes and an id":   {"id,a\n1,\"x,\"\n\"22,\",\"x,\"\n3,x\n", "id", []Duplicate{{3, 2}}},
		"the id is first":    {"id,a\n1,x\n22,x\n\"3\",x\n", "id", []Duplicate{{3, 2}, {4, 2}}},
		"the id is last":     {"a,id\nx,1\nx,22\nx,\"3\"\n", "id", []Duplicate{{3, 2}, {4, 2}}},
		"empty and absent":   {"{\"a\":\"\",\"b\":1}\n{\"b\":1}\n{\"b\":1,\"a\":\"\"}\n", "", []Duplicate{{2, 1}, {3, 1}}},
		"neighbours":         {"{\"a\":\"xy\",\"b\":\"z\"}\n{\"a\":\"x\",\"b\":\"yz\"}\n", "", nil},
	} {
		p, _, err := ProfileTable(context.Background(), write(t, "t.txt", test.text), ProfileOptions{ID: test.id})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, p.Duplicates.Examples); diff != "" || p.Duplicates.Rows != int64(len(test.want)) {
			t.Errorf("%s: %d\n%s", name, p.Duplicates.Rows, diff)
		}
	}
}

// Keys that come late, in the middle of a batch and at its beginning, are absent from every row before, whichever side has them.
func TestLateKeysAreCountedOverBatches(t *testing.T) {
	var text strings.Builder
	const rows = 5 * batchRecords
	late := map[string]int{"at once": 0, "next": 1, "full": batchRecords, "within": batchRecords + 7, "later": 3*batchRecords - 1, "last": rows - 1}
	for row := range rows {
		fmt.Fprintf(&text, `{"row":%d`, row)
		for name, from := range late {
			if row >= from {
				fmt.Fprintf(&text, `,%q:"x"`, name)
			}
		}
		text.WriteString("}\n")
	}
	p, _, err := ProfileTable(context.Background(), write(t, "t.jsonl", text.String()), ProfileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range late {
		c := p.Columns[name]
		if c == nil || c.Absent != int64(from) || c.Missing != int64(from) || c.Top[0] != (ValueCount{"x", int64(rows - from)}) {
			t.Errorf("%s: %+v, want %d rows without it", name, c, from)
		}
	}
}

// Places come out of batches as they go in, also where line ends stand inside quotes.
func TestPlacesInBatches(t *testing.T) {
	var text strings.Builder
	text.WriteString("a,b\n")
	for range 3 * batchRecords {
		text.WriteString("\"x\ny\",z\n")
	}
	at := text.Len()
	text.WriteString("\"x\ny\",7\nq,-inf\n")
	_, found, err := ProfileTable(context.Background(), write(t, "t.csv", text.String()), ProfileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Code == "values_non_finite" {
			if want := 2 + 2*(3*batchRecords+1); f.Where.Line != want || f.Where.Byte != int64(at+len("\"x\ny\",7\nq,")) {
				t.Errorf("%+v, want line %d", f.Where, want)
			}
			return
		}
	}
	t.Error("the infinity was not told of")
}

// A panic of a side reaches the caller, and the reader does not wait for ever.
func TestAPanicOfASideIsPassedOn(t *testing.T) {
	count := 0
	sides := gather(func(*batch) { count++ }, func(*batch) { panic("planted") })
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "planted") || count != 3*batchRing+1 {
			t.Errorf("%v after %d batches", p, count)
		}
	}()
	at := <-sides.free
	for range 3 * batchRing {
		sides.hand(at)
		at = <-sides.free
	}
	sides.finish(at)
}
