package dataset

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

func fractions(train, val, test float64) map[string]float64 {
	return map[string]float64{Train: train, Val: val, Test: test}
}

// ids reads every part's ids.
func ids(t *testing.T, dir string, split *Split) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for name, part := range split.Parts {
		list, err := MapPartIDs(filepath.Join(dir, part.IDsFile))
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(list)) != part.N {
			t.Errorf("%s: %d ids, n is %d", name, len(list), part.N)
		}
		out[name] = list
	}
	return out
}

// The committed ids hold on every machine and every version of Go: a run made elsewhere can be judged here.
func TestSplitGolden(t *testing.T) {
	tests := []struct {
		name string
		spec SplitSpec
	}{
		{"random", SplitSpec{Strategy: Random, Fractions: fractions(0.7, 0.15, 0.15), Seed: 17, ID: "id"}},
		{"stratified", SplitSpec{Strategy: Stratified, Fractions: fractions(0.7, 0.15, 0.15), Seed: 3, ID: "id", Target: "species"}},
		{"numbered", SplitSpec{Strategy: Random, Fractions: map[string]float64{Train: 0.8, Test: 0.2}, Seed: 0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			split, found, err := MakeSplit(background, "testdata/birds.csv", test.spec, dir)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			for _, name := range Parts {
				if part, ok := split.Parts[name]; ok {
					fmt.Fprintf(&text, "-- %s --\n%s", name, read(t, filepath.Join(dir, part.IDsFile)))
				}
			}
			fmt.Fprintf(&text, "-- split.json --\n%s-- findings --\n", read(t, filepath.Join(dir, "split.json")))
			for _, f := range found {
				fmt.Fprintln(&text, f)
			}
			goldenText(t, "birds."+test.name+".txt", text.String())
		})
	}
}

func TestSplitIsAPartition(t *testing.T) {
	spec := SplitSpec{Strategy: Stratified, Fractions: fractions(0.7, 0.15, 0.15), Seed: 3, ID: "id", Target: "species"}
	dir := t.TempDir()
	split, _, err := MakeSplit(background, "testdata/birds.csv", spec, dir)
	if err != nil {
		t.Fatal(err)
	}
	parts := ids(t, dir, split)
	var all []string
	for _, list := range parts {
		if !slices.IsSorted(list) {
			t.Error("ids are not in file order:", list)
		}
		all = append(all, list...)
	}
	slices.Sort(all)
	if len(all) != 40 || len(slices.Compact(all)) != 40 {
		t.Error("not a partition:", all)
	}
	if len(parts[Train]) != 28 || len(parts[Val]) != 6 || len(parts[Test]) != 6 {
		t.Error("sizes:", split.Parts)
	}
	for name, tally := range split.Classes {
		if len(tally) != 3 {
			t.Errorf("%s lacks a class: %v", name, tally)
		}
	}
	inTrain, twin := slices.Contains(parts[Train], "p03"), slices.Contains(parts[Train], "p30")
	if inTrain != twin {
		t.Error("equal rows stand in different parts")
	}
	spec.Seed = 4
	other := t.TempDir()
	again, _, err := MakeSplit(background, "testdata/birds.csv", spec, other)
	if err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(parts, ids(t, other, again)) {
		t.Error("another seed gives the same split")
	}
}

// A row's place depends on seed and id only: adding a row leaves the others nearly where they were.
func TestSplitKeepsPlaces(t *testing.T) {
	table := func(n int) string {
		var b strings.Builder
		b.WriteString("id,x\n")
		for i := range n {
			fmt.Fprintf(&b, "s%d,%d.5\n", i, i)
		}
		return b.String()
	}
	place := func(n int) map[string]string {
		dir := t.TempDir()
		split, _, err := MakeSplit(background, write(t, "a.csv", table(n)), SplitSpec{Strategy: Random, Fractions: fractions(0.5, 0.25, 0.25), ID: "id"}, dir)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for name, list := range ids(t, dir, split) {
			for _, id := range list {
				out[id] = name
			}
		}
		return out
	}
	before, after, moved := place(400), place(401), 0
	for id, part := range before {
		if after[id] != part {
			moved++
		}
	}
	if moved > 3 {
		t.Errorf("%d rows changed their part", moved)
	}
}

func TestSplitRefuses(t *testing.T) {
	rows := "id,x,y\na,1,u\nb,2,u\nc,3,v\nd,4,v\n"
	random := func(f map[string]float64) SplitSpec { return SplitSpec{Strategy: Random, Fractions: f, ID: "id"} }
	halves := map[string]float64{Train: 0.5, Test: 0.5}
	tests := []struct {
		name, in string
		spec     SplitSpec
		want     []said
	}{
		{"strategy", rows, SplitSpec{Strategy: "scaffold", Fractions: halves}, []said{{"split_strategy_unsupported", finding.Error, 0, 0}}},
		{"fractions beyond 1", rows, random(fractions(0.7, 0.2, 0.2)), []said{{"fractions_sum", finding.Error, 0, 0}}},
		{"no fractions", rows, random(nil), []said{{"fractions_sum", finding.Error, 0, 0}}},
		{"nothing to train", rows, random(map[string]float64{Test: 1}), []said{{"fractions_sum", finding.Error, 0, 0}}},
		{"negative fraction", rows, random(fractions(1.2, -0.2, 0)), []said{{"fractions_sum", finding.Error, 0, 0}}},
		{"unknown part", rows, random(map[string]float64{Train: 0.5, "dev": 0.5}), []said{{"part_unknown", finding.Error, 0, 0}}},
		{"no class column", rows, SplitSpec{Strategy: Stratified, Fractions: halves}, []said{{"split_target_missing", finding.Error, 0, 0}}},
		{"no files", rows, SplitSpec{Strategy: Predefined}, []said{{"split_files_missing", finding.Error, 0, 0}}},
		{"unknown id", rows, SplitSpec{Strategy: Random, Fractions: halves, ID: "di"}, []said{{"column_unknown", finding.Error, 1, 0}}},
		{"equal ids", "id,x\na,1\nb,2\n\nb,3\na,4\n", random(halves), []said{{"id_duplicate", finding.Error, 5, 0}, {"id_duplicate", finding.Error, 6, 0}}},
		{"empty id", "x,id\n1,a\n2, \n", random(halves), []said{{"id_missing", finding.Error, 3, 11}}},
		{"line break in an id", "id,x\na,1\n\"b\nc\",2\n", random(halves), []said{{"id_unusable", finding.Error, 3, 9}}},
		{"empty part", rows, random(fractions(0.8, 0.1, 0.1)), []said{{"part_empty", finding.Error, 0, 0}}},
		{"all rows equal", "x,y\n1,u\n1,u\n1,u\n1,u\n", SplitSpec{Strategy: Random, Fractions: halves}, []said{{"part_empty", finding.Error, 0, 0}}},
		{"classes that are numbers", "id,y\na,1.5\nb,2.5\nc,3.5\nd,4.5\n", SplitSpec{Strategy: Stratified, Target: "y", Fractions: halves}, []said{{"stratify_too_many_classes", finding.Error, 0, 0}}},
		{"missing class", "id,y\na,u\nb,NA\nc,u\n", SplitSpec{Strategy: Stratified, Target: "y", Fractions: halves}, []said{{"target_missing_values", finding.Error, 3, 11}}},
		{"ragged row", "id,x\na,1\nb\nc,3\n", random(halves), []said{{"row_ragged", finding.Error, 3, 9}}},
		{"open quote", "id,x\na,1\nb,\"2\nc,3\n", random(halves), []said{{"quote_unterminated", finding.Error, 3, 11}}},
		{"no rows", "id,x\n", random(halves), []said{{"no_rows", finding.Error, 1, 0}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			_, _, err := MakeSplit(background, write(t, "a.csv", test.in), test.spec, dir)
			if diff := cmp.Diff(test.want, saidOf(refusal(t, err))); diff != "" {
				t.Error(diff)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Error("files are left behind:", left)
			}
		})
	}
	_, _, err := MakeSplit(background, write(t, "a.csv", "id,x\na,1\nb,2\n\nb,3\n"), random(halves), t.TempDir())
	if what := refusal(t, err)[0].What; !strings.Contains(what, `"b" stands in line 3 and again in line 5`) {
		t.Error(what)
	}
}

func TestSplitTellsOfClassesAndTwins(t *testing.T) {
	in := "x,y\n" + strings.Repeat("1,u\n2,u\n", 1) + "3,u\n4,u\n5,u\n6,u\n7,u\n8,u\n9,rare\n9.0,u\n1,u\n"
	spec := SplitSpec{Strategy: Stratified, Target: "y", Fractions: map[string]float64{Train: 0.6, Test: 0.4}}
	for seed := range int64(20) {
		spec.Seed = seed
		dir := t.TempDir()
		split, found, err := MakeSplit(background, write(t, "a.csv", in), spec, dir)
		if err != nil {
			t.Fatal(err)
		}
		if split.Classes[Train]["rare"] != 1 {
			t.Errorf("seed %d: the only row of a class is not for training", seed)
		}
		got := codes(found)
		if !slices.Contains(got, "class_not_in_part") || !slices.Contains(got, "duplicates_kept_together") {
			t.Errorf("seed %d: %v", seed, got)
		}
		parts := ids(t, dir, split)
		apart := slices.Contains(parts[Train], "row-8") != slices.Contains(parts[Train], "row-9")
		if apart != slices.Contains(got, "leakage_features") {
			t.Errorf("seed %d: 9 and 9.0 apart is %v, told is %v", seed, apart, got)
		}
	}
}

func TestStatisticsAreOfTrainOnly(t *testing.T) {
	in := "id,x,y\n"
	for i := range 20 {
		in += fmt.Sprintf("s%02d,%d,%d.25\n", i, i, i*i)
	}
	spec := SplitSpec{Strategy: Random, Fractions: fractions(0.6, 0.2, 0.2), Seed: 5, ID: "id"}
	split := func(in string) (*Split, map[string][]string) {
		dir := t.TempDir()
		split, _, err := MakeSplit(background, write(t, "a.csv", in), spec, dir)
		if err != nil {
			t.Fatal(err)
		}
		return split, ids(t, dir, split)
	}
	before, parts := split(in)
	if diff := cmp.Diff([]string{"x", "y"}, slices.Sorted(maps.Keys(before.Statistics))); diff != "" {
		t.Error(diff)
	}
	change := func(id string) *Split {
		number := strings.TrimLeft(id[1:], "0")
		if number == "" {
			number = "0"
		}
		after, _ := split(strings.Replace(in, id+","+number+",", id+",1000,", 1))
		return after
	}
	if after := change(parts[Test][0]); !cmp.Equal(before.Statistics, after.Statistics) {
		t.Error("a row of the test part changes the statistics")
	} else if after.Source[0].SHA256 == before.Source[0].SHA256 {
		t.Error("the change is not in the hash")
	}
	if after := change(parts[Train][0]); cmp.Equal(before.Statistics, after.Statistics) {
		t.Error("a row of the train part does not change the statistics")
	}
	x := before.Statistics["x"]
	if x.From != Train || x.N != 12 {
		t.Errorf("%+v", x)
	}
}

func TestPredefinedSplit(t *testing.T) {
	files := map[string]string{
		Train: write(t, "train.csv", "id,x,y\na,1,u\nb,2,v\nc,3,u\n"),
		Test:  write(t, "test.csv", "id,x,y\nd,4,u\nb,5,v\n"),
	}
	dir := t.TempDir()
	split, found, err := MakeSplit(background, "", SplitSpec{Strategy: Predefined, Files: files, ID: "id", Target: "y"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{Train: {"a", "b", "c"}, Test: {"d", "b"}}, ids(t, dir, split)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"leakage_id"}, codes(found)); diff != "" {
		t.Error(diff)
	}
	if split.Statistics["x"].Mean != 2 {
		t.Errorf("%+v", split.Statistics)
	}
	if len(split.Source) != 2 || split.Source[1].Part != Test || split.Source[1].SHA256 == "" {
		t.Errorf("%+v", split.Source)
	}
	written, _, err := WriteParts(background, "", split, dir, t.TempDir(), WriteOptions{})
	if diff := cmp.Diff(files, written); diff != "" || err != nil {
		t.Error("the files are their own parts:", diff, err)
	}
}

func TestSplitRemovesOldParts(t *testing.T) {
	dir := t.TempDir()
	spec := SplitSpec{Strategy: Random, Fractions: fractions(0.7, 0.15, 0.15), ID: "id"}
	if _, _, err := MakeSplit(background, "testdata/birds.csv", spec, dir); err != nil {
		t.Fatal(err)
	}
	spec.Fractions = map[string]float64{Train: 0.8, Test: 0.2}
	if _, _, err := MakeSplit(background, "testdata/birds.csv", spec, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "split", "val.ids")); err == nil {
		t.Error("the ids of a part that is no more are left")
	}
}

func TestQuotas(t *testing.T) {
	tests := []struct {
		sizes, weights []int64
		want           [][]int64
	}{
		{[]int64{100}, []int64{700, 150, 150}, [][]int64{{70, 15, 15}}},
		{[]int64{10}, []int64{800, 200}, [][]int64{{8, 2}}},
		{[]int64{7}, []int64{700, 150, 150}, [][]int64{{5, 1, 1}}},
		{[]int64{50, 50}, []int64{700, 150, 150}, [][]int64{{35, 8, 7}, {35, 7, 8}}},
		{[]int64{97, 3}, []int64{700, 150, 150}, [][]int64{{69, 14, 14}, {1, 1, 1}}},
		{[]int64{99, 1}, []int64{500, 500}, [][]int64{{49, 50}, {1, 0}}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, quotas(test.sizes, test.weights)); diff != "" {
			t.Errorf("%v in %v: %s", test.sizes, test.weights, diff)
		}
	}
}

// Whatever the classes, rows and parts must come out exactly as counted.
func TestQuotasComeOutEven(t *testing.T) {
	state := uint64(1)
	next := func(n int64) int64 {
		state = state*6364136223846793005 + 1442695040888963407
		return int64(state>>33) % n
	}
	for range 3000 {
		sizes := make([]int64, 1+next(8))
		total := int64(0)
		for c := range sizes {
			sizes[c] = next(30)
			total += sizes[c]
		}
		weights := []int64{1 + next(1000), 1 + next(500), 1 + next(500)}
		quota := quotas(sizes, weights)
		for p, want := range shares(total, weights) {
			got := int64(0)
			for c := range sizes {
				got += quota[c][p]
				if quota[c][p] < 0 {
					t.Fatalf("%v in %v: %v", sizes, weights, quota)
				}
			}
			if got != want {
				t.Fatalf("%v in %v: part %d has %d instead of %d: %v", sizes, weights, p, got, want, quota)
			}
		}
		for c, size := range sizes {
			if got := quota[c][0] + quota[c][1] + quota[c][2]; got != size {
				t.Fatalf("%v in %v: class %d has %d instead of %d", sizes, weights, c, got, size)
			}
		}
	}
}
