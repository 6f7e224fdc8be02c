package dataset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// days is a table of dates in this layout, a day apart, without those for which skip says so.
func days(layout string, n int, skip func(int) bool) string {
	var b strings.Builder
	b.WriteString("date,v\n")
	for i := range n {
		if !skip(i) {
			fmt.Fprintf(&b, "%s,%d\n", time.Date(2023, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(layout), i)
		}
	}
	return b.String()
}

func TestDates(t *testing.T) {
	never := func(int) bool { return false }
	week := func(i int) bool { return i >= 100 && i < 107 || i == 200 }
	for name, c := range map[string]struct {
		text  string
		want  Dates
		codes []string
	}{
		"regular":                    {days("2006-01-02", 300, never), Dates{Format: "YYYY-MM-DD", First: "2023-01-01", Last: "2023-10-27", Step: 86400}, nil},
		"gaps":                       {days("2006-01-02", 300, week), Dates{Format: "YYYY-MM-DD", First: "2023-01-01", Last: "2023-10-27", Step: 86400, Gaps: 2, Widest: &Gap{8 * 86400, 102, 1397}}, []string{"time_gaps"}},
		"working days":               {days("2006-01-02", 300, func(i int) bool { return (i+6)%7 >= 5 }), Dates{Format: "YYYY-MM-DD", First: "2023-01-02", Last: "2023-10-27", Step: 86400, Gaps: 42, Widest: &Gap{3 * 86400, 0, 0}}, nil},
		"German":                     {days("02.01.2006", 300, never), Dates{Format: "DD.MM.YYYY", First: "2023-01-01", Last: "2023-10-27", Step: 86400}, nil},
		"with the clock":             {"t,x\n2024-02-28 23:30:00,1\n2024-02-29 00:00:00,2\n2024-02-29 00:30:00,3\n", Dates{Format: "YYYY-MM-DD hh:mm:ss", First: "2024-02-28T23:30:00", Last: "2024-02-29T00:30:00", Step: 1800}, nil},
		"months":                     {"t,x\n2024-01-01,1\n2024-02-01,2\n2024-03-01,3\n2024-04-01,4\n2024-05-01,5\n", Dates{Format: "YYYY-MM-DD", First: "2024-01-01", Last: "2024-05-01", Step: 31 * 86400}, nil},
		"two series":                 {"t,s\n2024-01-01,a\n2024-01-02,a\n2024-01-03,a\n2024-01-01,b\n2024-01-02,b\n", Dates{Format: "YYYY-MM-DD", First: "2024-01-01", Last: "2024-01-03", Step: 86400, Backward: 1}, nil},
		"a gap in one of two series": {"t,s\n2024-01-01,a\n2024-01-02,a\n2024-01-03,a\n2024-01-04,a\n2024-01-05,a\n2024-01-01,b\n2024-01-02,b\n2024-01-09,b\n2024-01-10,b\n", Dates{Format: "YYYY-MM-DD", First: "2024-01-01", Last: "2024-01-10", Step: 86400, Gaps: 1, Widest: &Gap{7 * 86400, 9, 95}, Backward: 1}, []string{"time_gaps"}},
		"nearly in order":            {days("2006-01-02", 100, never) + "2023-01-05,7\n", Dates{Format: "YYYY-MM-DD", First: "2023-01-01", Last: "2023-04-10", Step: 86400, Backward: 1}, []string{"time_unordered"}},
		"mixed":                      {"t,x\n2024-01-01,1\n2024/01/02,2\n2024-01-03,3\n2024-01-03,4\n", Dates{Format: "YYYY-MM-DD", First: "2024-01-01", Last: "2024-01-03", Step: 86400, Repeated: 1, Odd: 1}, []string{"dates_mixed"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, found, err := ProfileTable(background, write(t, "a.csv", c.text), ProfileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := p.Columns[p.Order[0]]
			if c.want.Widest != nil && c.want.Widest.Line == 0 { // its place does not matter here
				got.Dates.Widest.Line, got.Dates.Widest.Byte = 0, 0
			}
			if diff := cmp.Diff(&c.want, got.Dates); diff != "" || got.Type != TypeDate {
				t.Errorf("%s: %s", got.Type, diff)
			}
			if got := codes(found); !slices.Equal(slices.Sorted(slices.Values(got)), c.codes) {
				t.Errorf("findings %v, want %v", got, c.codes)
			}
		})
	}
}

// A number that stands for "no value" is told with its count and first place; ordinary extremes are not.
func TestSentinels(t *testing.T) {
	var b strings.Builder
	b.WriteString("t,humidity,count,flat\n")
	for i := range 200 {
		temp := fmt.Sprintf("%.1f", float64(i%40)-10)
		if i%50 == 7 {
			temp = "-999"
		}
		fmt.Fprintf(&b, "%s,%d,%d,-9999\n", temp, i%100, i*10)
	}
	p, found, err := ProfileTable(background, write(t, "a.csv", b.String()), ProfileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]ValueCount{{"-999", 4}}, p.Columns["t"].Sentinels); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"humidity", "count", "flat"} {
		if got := p.Columns[name].Sentinels; got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	f := found[slices.Index(codes(found), "sentinel_suspected")]
	if f.Where.Line != 9 || f.Where.Field != "t" || !strings.Contains(f.Remedy, "na_values=[-999]") {
		t.Errorf("%+v %+v", f, f.Where)
	}
}

// The days of every date from 1583 on agree with the standard library's.
func TestDaysFromCivil(t *testing.T) {
	for at := time.Date(1583, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2400; at = at.AddDate(0, 0, 13) {
		if got, want := daysFromCivil(at.Year(), int(at.Month()), at.Day()), at.Unix()/86400; got != want && at.Unix()%86400 == 0 {
			t.Fatalf("%s is day %d, want %d", at.Format("2006-01-02"), got, want)
		}
	}
}
