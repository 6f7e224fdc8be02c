package dataset

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// stations is a table of ten stations with six months each, written station by station.
func stations(t *testing.T) string {
	var text strings.Builder
	text.WriteString("id,station,month,level\n")
	for s := range 10 {
		for m := range 6 {
			fmt.Fprintf(&text, "r%d-%d,S%02d,2024-%02d-01,%d\n", s, m, s, m+1, 100*s+m)
		}
	}
	return write(t, "stations.csv", text.String())
}

func TestAGroupStaysInOnePart(t *testing.T) {
	path, dir := stations(t), t.TempDir()
	split, found, err := MakeSplit(background, path, SplitSpec{Strategy: Group, Group: "station", ID: "id", Fractions: fractions(0.6, 0.2, 0.2), Seed: 17}, dir)
	if err != nil {
		t.Fatal(err)
	}
	home := map[string]string{}
	for part, list := range ids(t, dir, split) {
		for _, id := range list {
			station, _, _ := strings.Cut(id, "-")
			if other, seen := home[station]; seen && other != part {
				t.Errorf("station %s is in %s and %s", station, other, part)
			}
			home[station] = part
		}
	}
	if len(found) != 0 || split.Unit != "group" || !maps.Equal(split.Units, map[string]int64{Train: 6, Val: 2, Test: 2}) {
		t.Errorf("unit %q, units %v, findings %v", split.Unit, split.Units, found)
	}
	// The same on every machine and for every version of Go.
	var test []string
	for station, part := range home {
		if part == Test {
			test = append(test, station)
		}
	}
	slices.Sort(test)
	if got := strings.Join(test, " "); got != "r1 r4" {
		t.Errorf("the test stations are %s", got)
	}
}

func TestFewUnevenGroupsFillEveryPart(t *testing.T) {
	path := write(t, "a.csv", "g,x\na,1\na,2\na,3\na,4\nb,5\nb,6\nb,7\nc,8\nc,9\n")
	split, found, err := MakeSplit(background, path, SplitSpec{Strategy: Group, Group: "g", Fractions: fractions(0.7, 0.15, 0.15)}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(split.Units, map[string]int64{Train: 1, Val: 1, Test: 1}) || !slices.Contains(codes(found), "split_sizes_inexact") {
		t.Errorf("%v %v", split.Units, found)
	}
}

func TestATimeSplitHoldsOutTheFuture(t *testing.T) {
	path, dir := stations(t), t.TempDir()
	spec := SplitSpec{Strategy: Time, Time: "month", ID: "id", Fractions: map[string]float64{Train: 0.67, Test: 0.33}, History: 1, Horizon: 1}
	split, found, err := MakeSplit(background, path, spec, dir)
	if err != nil {
		t.Fatal(err)
	}
	got := ids(t, dir, split)
	if slices.Contains(codes(found), "gap_shorter_than_horizon") || split.Gap != 1 || split.LeftOut != 10 || len(got[Train]) != 30 || len(got[Test]) != 20 {
		t.Errorf("gap %d, left out %d, %d in train, %v", split.Gap, split.LeftOut, len(got[Train]), found)
	}
	train, test := split.Parts[Train], split.Parts[Test]
	if train.From != "2024-01-01" || train.To >= test.From || test.To != "2024-06-01" || split.Unit != "window" {
		t.Errorf("train %s to %s, test %s to %s", train.From, train.To, test.From, test.To)
	}
	// A left-out row is in no file either.
	paths, _, err := WriteParts(background, path, split, dir, filepath.Join(dir, "data"), WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for part, file := range paths {
		text, _ := os.ReadFile(file)
		if lines := int64(strings.Count(string(text), "\n")); lines != split.Parts[part].N+1 {
			t.Errorf("%s has %d lines for %d rows", part, lines, split.Parts[part].N)
		}
	}
}

func TestSimilarSequencesStayTogether(t *testing.T) {
	var text strings.Builder
	text.WriteString("id,seq,y\n")
	state := uint64(7)
	letter := func() byte {
		state = state*6364136223846793005 + 1442695040888963407
		return "ACGT"[state>>62]
	}
	for family := range 20 {
		ancestor := make([]byte, 80)
		for i := range ancestor {
			ancestor[i] = letter()
		}
		for copy := range 5 {
			mutant := slices.Clone(ancestor)
			mutant[10*copy+5] = letter()
			fmt.Fprintf(&text, "f%02d-%d,%s,%d\n", family, copy, mutant, family%2)
		}
	}
	dir := t.TempDir()
	split, _, err := MakeSplit(background, write(t, "s.csv", text.String()), SplitSpec{Strategy: Similarity, Sequence: "seq", ID: "id", Fractions: fractions(0.6, 0.2, 0.2), Seed: 1}, dir)
	if err != nil {
		t.Fatal(err)
	}
	home := map[string]string{}
	for part, list := range ids(t, dir, split) {
		for _, id := range list {
			if other, seen := home[id[:3]]; seen && other != part {
				t.Errorf("family %s is in %s and %s", id[:3], other, part)
			}
			home[id[:3]] = part
		}
	}
	if split.Units[Train]+split.Units[Val]+split.Units[Test] != 20 || split.Unit != "sequence" {
		t.Errorf("%d clusters: %v", len(home), split.Units)
	}
}

func TestUnitSplitsRefuse(t *testing.T) {
	two := map[string]float64{Train: 0.5, Test: 0.5}
	for _, test := range []struct {
		name, in string
		spec     SplitSpec
		want     []said
	}{
		{"no group column named", "g,x\na,1\nb,2\n", SplitSpec{Strategy: Group, Fractions: two}, []said{{"split_column_missing", finding.Error, 0, 0}}},
		{"unknown column", "g,x\na,1\nb,2\n", SplitSpec{Strategy: Group, Group: "h", Fractions: two}, []said{{"column_unknown", finding.Error, 1, 0}}},
		{"one group", "g,x\na,1\na,2\n", SplitSpec{Strategy: Group, Group: "g", Fractions: two}, []said{{"split_units_few", finding.Error, 0, 0}}},
		{"no group in a record", "g,x\na,1\n,2\n", SplitSpec{Strategy: Group, Group: "g", Fractions: two}, []said{{"split_value_missing", finding.Error, 3, 8}}},
		{"day first", "d,x\n31/12/2024,1\n01/01/2025,2\n", SplitSpec{Strategy: Time, Time: "d", Fractions: two}, []said{{"time_unreadable", finding.Error, 2, 4}}},
		{"two ways", "d,x\n2024-12-31,1\n2025,2\n", SplitSpec{Strategy: Time, Time: "d", Fractions: two}, []said{{"time_unreadable", finding.Error, 3, 17}}},
		{"window longer than a part", "d,x\n1,1\n2,2\n3,3\n4,4\n", SplitSpec{Strategy: Time, Time: "d", Fractions: two, History: 3, Horizon: 1}, []said{{"part_shorter_than_window", finding.Error, 0, 0}}},
		{"negative gap", "d,x\n1,1\n2,2\n", SplitSpec{Strategy: Time, Time: "d", Fractions: two, Gap: -1}, []said{{"split_steps_negative", finding.Error, 0, 0}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := MakeSplit(background, write(t, "a.csv", test.in), test.spec, t.TempDir())
			if got := saidOf(refusal(t, err)); !slices.Equal(got, test.want) {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

// The parts of a split by time pass the check of their own windows, also where steps were left out before a cut; and one row too many is
// found, whether or not the file that was cut is at hand.
func TestAGapIsNoStraddlingWindow(t *testing.T) {
	day := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	series := map[string]func(i int) string{
		"days":          func(i int) string { return day.AddDate(0, 0, i).Format("2006-01-02") },
		"months":        func(i int) string { return day.AddDate(0, i, 0).Format("2006-01-02") },
		"years":         func(i int) string { return fmt.Sprint(1900 + i) },
		"business days": func(i int) string { return day.AddDate(0, 0, i/5*7+i%5).Format("2006-01-02") },
	}
	for name, at := range series {
		for _, horizon := range []int{1, 7} {
			var text strings.Builder
			text.WriteString("at,y\n")
			for i := range 200 {
				fmt.Fprintf(&text, "%s,%d\n", at(i), i*i%17)
			}
			path, dir := write(t, "series.csv", text.String()), t.TempDir()
			spec := SplitSpec{Strategy: Time, Time: "at", Fractions: fractions(0.7, 0.15, 0.15), History: 3, Horizon: horizon}
			split, _, err := MakeSplit(background, path, spec, dir)
			if err != nil {
				t.Fatal(err)
			}
			parts, _, err := WriteParts(background, path, split, dir, filepath.Join(dir, "data"), WriteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, whole := range []string{path, ""} {
				if _, found, err := CheckUnits(background, parts, whole, spec); err != nil || len(found) > 0 {
					t.Errorf("%s, horizon %d, whole %q: %v %v", name, horizon, whole, found, err)
				}
			}
			late := read(t, parts[Train]) + at(140-horizon) + ",1\n"
			if err := os.WriteFile(parts[Train], []byte(late), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, whole := range []string{path, ""} {
				_, found, err := CheckUnits(background, parts, whole, spec)
				if want := []said{{"leakage_window", finding.Error, 142 - horizon, 0}}; err != nil || !slices.Equal(saidOf(found), want) {
					t.Errorf("%s, horizon %d, whole %q, one row more: %v %v", name, horizon, whole, found, err)
				}
			}
		}
	}
}

func TestInstants(t *testing.T) {
	const noon = 1717243200.0 // 2024-06-01 12:00 UTC
	for _, value := range []string{"2024-06-01T12:00:00Z", "2024-06-01 12:00:00", "2024/06/01 12:00", "2024-06-01 12:00:00.000", "2024-06-01 14:00:00+02:00", "2024-06-01T14:00+0200",
		"2024-06-01 07:00:00.000000-05", "2024-06-01T12:00Z", "2024-06-01 12:00:00 UTC", "01.06.2024 12:00", "01.06.2024 12:00:00"} {
		if at, number, ok := Instant(value); at != noon || number || !ok {
			t.Errorf("%s is %v, %v, %v", value, at, number, ok)
		}
	}
	for _, value := range []string{"31.02.2024", "1.6.2024", "6/1/2024", "2024-02-30", "2024-06-01 25:00", "Jun 1 2024", "2024-W05", "inf", "1e999", "", "2024-06-01 12:00:00 CET"} {
		if at, _, ok := Instant(value); ok {
			t.Errorf("%q is read as %v", value, at)
		}
	}
}

// Days as whole numbers are shown as such, not as 2.0240101e+07, and no zone is made up.
func TestTimesAreShownAsWritten(t *testing.T) {
	for first, want := range map[string]string{"20240101": "20240101", "2024-01-01": "2024-01-01", "2024-01-01 06:30": "2024-01-01T06:30:00", "2024-01-01T06:30:00+02:00": "2024-01-01T04:30:00Z"} {
		path := write(t, "a.csv", "day,y\n"+first+",1\n"+strings.Replace(first, "2024", "2025", 1)+",2\n")
		split, _, err := MakeSplit(background, path, SplitSpec{Strategy: Time, Time: "day", Fractions: map[string]float64{Train: 0.5, Test: 0.5}}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if got := split.Parts[Train].From; got != want {
			t.Errorf("%s is shown as %s, want %s", first, got, want)
		}
	}
}

// Groups of very different sizes fill the parts as asked for, whatever the seed, and no part is one group where there are many.
func TestUnevenGroupsFillThePartsAsAskedFor(t *testing.T) {
	for name, size := range map[string]func(g int) int{
		"even":     func(int) int { return 10 },
		"zipf":     func(g int) int { return 1000/(g+1) + 1 },
		"one huge": func(g int) int { return 5 + 495*(max(0, 1-g)) },
		"two big":  func(g int) int { return 5 + 245*(max(0, 1-g/2)) },
	} {
		for seed := range int64(10) {
			var rows []row
			for g := range 100 {
				for k := range size(g) {
					rows = append(rows, row{identity: uint64(g + 1), rank: rankOf(seed, fmt.Sprint(g, "-", k))})
				}
			}
			weights := []int64{70, 15, 15}
			part, _ := deal(rows, weights, 1)
			counts, groups := make([]int64, 3), make([]map[uint64]bool, 3)
			for i, p := range part {
				if counts[p]++; groups[p] == nil {
					groups[p] = map[uint64]bool{}
				}
				groups[p][rows[i].identity] = true
			}
			for p, want := range shares(int64(len(rows)), weights) {
				if 20*max(counts[p]-want, want-counts[p]) > want || len(groups[p]) < 5 {
					t.Errorf("%s, seed %d: part %d has %d rows of %d groups, want %d", name, seed, p, counts[p], len(groups[p]), want)
				}
			}
		}
	}
}

// A split that is not made by the classes may leave a part without one of them.
func TestAClassThatAPartLacks(t *testing.T) {
	table := func(label func(i int) string) string {
		var text strings.Builder
		text.WriteString("day,site,y\n")
		for i := range 100 {
			fmt.Fprintf(&text, "%d,s%d,%s\n", i, i/10, label(i))
		}
		return write(t, "a.csv", text.String())
	}
	early := func(i int) string { return fmt.Sprint(i < 60 && i%2 == 0) }
	for name, test := range map[string]struct {
		label func(i int) string
		want  int
	}{
		"an event of the early days": {early, 2},
		"as a code":                  {func(i int) string { return map[string]string{"true": "1", "false": "0"}[early(i)] }, 2},
		"both everywhere":            {func(i int) string { return fmt.Sprint(i%2 == 0) }, 0},
		"a quantity":                 {func(i int) string { return fmt.Sprintf("%.1f", float64(i/20)) }, 0},
		"names":                      {func(i int) string { return fmt.Sprint("n", i/4) }, 0},
	} {
		_, found, err := MakeSplit(background, table(test.label), SplitSpec{Strategy: Time, Time: "day", Target: "y", Fractions: fractions(0.7, 0.15, 0.15)}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, f := range found {
			if f.Code == "class_not_in_part" && f.Severity == finding.Warning && f.Where.Field == "y" {
				got++
			}
		}
		if got != test.want {
			t.Errorf("%s: %d parts, want %d: %v", name, got, test.want, found)
		}
	}
}

// Whole time steps go where most of them lies, and few steps still fill every part.
func TestTimeStepsOfManyRows(t *testing.T) {
	for name, test := range map[string]struct {
		rows  []int // by step
		spec  SplitSpec
		units [3]int64
	}{
		"twelve years":         {[]int{9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, SplitSpec{}, [3]int64{8, 2, 2}},
		"three years":          {[]int{9, 9, 9}, SplitSpec{}, [3]int64{1, 1, 1}},
		"a full first year":    {[]int{95, 1, 1, 1}, SplitSpec{}, [3]int64{1, 1, 2}},
		"a full last year":     {[]int{1, 1, 1, 95}, SplitSpec{}, [3]int64{2, 1, 1}},
		"windows in few years": {[]int{5, 5, 5, 5, 5, 5, 5, 5}, SplitSpec{History: 1, Horizon: 1}, [3]int64{2, 2, 2}},
	} {
		var text strings.Builder
		text.WriteString("year,y\n")
		for step, n := range test.rows {
			for i := range n {
				fmt.Fprintf(&text, "%d,%d.5\n", 2000+step, i)
			}
		}
		spec := test.spec
		spec.Strategy, spec.Time, spec.Fractions = Time, "year", fractions(0.7, 0.15, 0.15)
		split, _, err := MakeSplit(background, write(t, "a.csv", text.String()), spec, t.TempDir())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := [3]int64{split.Units[Train], split.Units[Val], split.Units[Test]}; got != test.units {
			t.Errorf("%s: %v steps, want %v", name, got, test.units)
		}
	}
}
