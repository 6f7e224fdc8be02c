package baseline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

func codes(found []finding.Finding) []string {
	var list []string
	for _, f := range found {
		list = append(list, f.Code)
	}
	return list
}

// Every score equals the one that testdata/make.py computed with numpy and the standard library.
func TestScoresEqualThoseOfNumpy(t *testing.T) {
	data, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var expected map[string]map[string]struct {
		Value float64
		N     int
	}
	if err := json.Unmarshal(data, &expected); err != nil {
		t.Fatal(err)
	}
	for task, spec := range map[string]Spec{
		"classes": {Train: "testdata/wdbc-train.csv", Test: "testdata/wdbc-test.csv", ID: "sample", Target: "diagnosis", Kind: Classification,
			Metrics: []string{"test/acc", "f1_macro", "logloss", "accuracy"}},
		"holes": {Train: "testdata/holes-train.csv", Test: "testdata/holes-test.csv", ID: "sample", Target: "worst_radius", Kind: Regression,
			Metrics: []string{"rmse", "mae", "r2"}},
		"months 1": {Train: "testdata/months-train.csv", Test: "testdata/months-test.csv", Target: "sst", Time: "date", Group: "station", Kind: Forecast,
			Metrics: []string{"rmse", "mae", "r2"}},
		"months 3": {Train: "testdata/months-train.csv", Test: "testdata/months-test.csv", Target: "sst", Time: "date", Group: "station", Kind: Forecast, Horizon: 3,
			Metrics: []string{"rmse", "mae", "r2"}},
	} {
		scores, found, err := Score(t.Context(), spec)
		if err != nil {
			t.Fatalf("%s: %v", task, err)
		}
		if finding.Has(found, finding.Error) || finding.Has(found, finding.Warning) {
			t.Errorf("%s: %v", task, found)
		}
		seen := map[string]bool{}
		for _, s := range scores {
			key := s.Name + " " + s.Metric
			want, known := expected[task][key]
			if !known || seen[key] || s.N != want.N || math.Abs(s.Value-want.Value) > 1e-9*math.Max(1, math.Abs(want.Value)) || s.Why == "" {
				t.Errorf("%s: %s = %.12g over %d, numpy has %.12g over %d (%s)", task, key, s.Value, s.N, want.Value, want.N, s.Why)
			}
			seen[key] = true
		}
		if len(seen) != len(expected[task]) {
			t.Errorf("%s: %d scores, numpy has %d: %v", task, len(seen), len(expected[task]), found)
		}
		again, _, err := Score(t.Context(), spec)
		if diff := cmp.Diff(scores, again); err != nil || diff != "" {
			t.Errorf("%s differs from call to call: %v %s", task, err, diff)
		}
	}
}

// write puts a file into the test's folder.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// by finds a score.
func by(scores []Result, name, metric string) (Result, bool) {
	i := slices.IndexFunc(scores, func(s Result) bool { return s.Name == name && s.Metric == metric })
	if i < 0 {
		return Result{}, false
	}
	return scores[i], true
}

// By hand: train targets 1, 2, 9 have mean 4 and median 2; the test targets are 3 and 6. Errors of the mean are 1 and -2,
// of the median -1 and -4; x=11 is closest to 10 (2), x=19 to 20 (9). Persistence: 9 before 3, 3 before 6.
func TestByHand(t *testing.T) {
	train := write(t, "train.csv", "x,t,y\n0,1,1\n10,2,2\n20,3,9\n20,4,\n")
	test := write(t, "test.csv", "t,y,x\n4,3,11\n5,6,19\n6,NA,5\n")
	scores, found, err := Score(t.Context(), Spec{Train: train, Test: test, Target: "y", Time: "t", Kind: Regression, Metrics: []string{"mae", "mse"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]float64{Mean: {1.5, 2.5}, Median: {2.5, 8.5}, NearestNeighbour: {2, 5}, Persistence: {4.5, 22.5}} {
		for i, metric := range []string{"mae", "mse"} {
			if s, ok := by(scores, name, metric); !ok || math.Abs(s.Value-want[i]) > 1e-12 || s.N != 2 {
				t.Errorf("%s %s: %+v, want %g", name, metric, s, want[i])
			}
		}
	}
	if !slices.Equal(codes(found), []string{"baseline_rows_skipped", "baseline_left_out"}) || !strings.Contains(found[1].What, "without a calendar") {
		t.Errorf("%v", found)
	}
}

func TestMajorityTieAndSpelling(t *testing.T) {
	train := write(t, "train.csv", "x;c\n1;1\n2;1.0\n3;2\n4;2\n5;7\n")
	test := write(t, "test.csv", "x;c\n1;01\n9;2\n")
	scores, _, err := Score(t.Context(), Spec{Train: train, Test: test, Target: "c", Kind: Classification, Metrics: []string{"accuracy", "f1"}})
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := by(scores, MajorityClass, "accuracy"); !ok || s.Value != 0.5 || !strings.Contains(s.Why, `"1", 40.0% of 5`) {
		t.Errorf("%+v", s)
	}
	if s, ok := by(scores, NearestNeighbour, "f1_macro"); !ok || math.Abs(s.Value-1.0/3) > 1e-12 { // 1 is hit, 9 is closest to 7: f1 of 1, 2 and 7 are 1, 0, 0
		t.Errorf("%+v", s)
	}
}

// A column that only the test part varies, or a statistic of the test part, must not move a score of train.
func TestStatisticsComeFromTrainOnly(t *testing.T) {
	train := write(t, "train.csv", "x,k,y\n0,5,0\n1,5,1\n2,5,2\n")
	var values []float64
	for _, last := range []string{"1,5,1", "1,999,1"} {
		test := write(t, "test.csv", "x,k,y\n0,5,0\n"+last+"\n")
		scores, _, err := Score(t.Context(), Spec{Train: train, Test: test, Target: "y", Kind: Regression, Metrics: []string{"rmse"}})
		s, ok := by(scores, Ridge, "rmse")
		if err != nil || !ok || !strings.Contains(s.Why, "without k (constant or text)") {
			t.Fatalf("%+v %v", s, err)
		}
		values = append(values, s.Value)
	}
	if values[0] != values[1] {
		t.Errorf("%v", values)
	}
}

func TestRefusals(t *testing.T) {
	good := write(t, "good.csv", "x,y\n1,2\n2,3\n")
	words := write(t, "words.csv", "x,y\n1,a\n2,b\n")
	none := write(t, "none.csv", "x,y\n1,\n2,NA\n")
	open := write(t, "open.csv", "x,y\n1,2\n\"2,3\n")
	for name, c := range map[string]struct {
		spec Spec
		code string
	}{
		"kind":                {Spec{Train: good, Test: good, Target: "y", Kind: "ranking"}, "baseline_kind_unknown"},
		"no target":           {Spec{Train: good, Test: good, Kind: Regression}, "baseline_target_missing"},
		"no part":             {Spec{Train: good, Target: "y", Kind: Regression}, "baseline_part_missing"},
		"horizon":             {Spec{Train: good, Test: good, Target: "y", Kind: Forecast, Horizon: -1}, "baseline_horizon_invalid"},
		"file":                {Spec{Train: good, Test: good + "x", Target: "y", Kind: Regression}, "file_missing"},
		"target":              {Spec{Train: good, Test: good, Target: "z", Kind: Regression}, "column_unknown"},
		"feature":             {Spec{Train: good, Test: good, Target: "y", Features: []string{"w"}, Kind: Regression}, "column_unknown"},
		"words for numbers":   {Spec{Train: words, Test: good, Target: "y", Kind: Regression}, "target_not_numeric"},
		"words in the test":   {Spec{Train: good, Test: words, Target: "y", Kind: Regression}, "target_not_numeric"},
		"no targets":          {Spec{Train: none, Test: good, Target: "y", Kind: Classification}, "baseline_no_rows"},
		"a quote left open":   {Spec{Train: open, Test: good, Target: "y", Kind: Regression}, "quote_unterminated"},
		"unfinished test row": {Spec{Train: good, Test: open, Target: "y", Kind: Regression}, "quote_unterminated"},
	} {
		c.spec.Metrics = []string{"rmse", "accuracy"}
		_, _, err := Score(t.Context(), c.spec)
		var refused *finding.Refused
		if !errors.As(err, &refused) || refused.Findings[0].Code != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMetricsOfAnotherKind(t *testing.T) {
	good := write(t, "good.csv", "x,y\n1,2\n2,3\n")
	scores, found, err := Score(t.Context(), Spec{Train: good, Test: good, Target: "y", Kind: Regression, Metrics: []string{"accuracy", "val_loss", "auc"}})
	if err != nil || len(scores) != 0 || !slices.Equal(codes(found), []string{"baseline_metric_not_computed", "baseline_metric_not_computed", "baseline_metric_not_computed"}) {
		t.Errorf("%v %v %v", scores, found, err)
	}
}

// Wide tables, many classes and unreadable times cost a baseline, not the answer.
func TestWhatIsLeftOut(t *testing.T) {
	wide := func(columns int) string {
		var b strings.Builder
		for i := range columns {
			fmt.Fprintf(&b, "c%d,", i)
		}
		b.WriteString("d,y\n")
		for row := range 30 {
			for i := range columns {
				fmt.Fprintf(&b, "%d,", (row*7+i*3)%11)
			}
			fmt.Fprintf(&b, "31.%d.2020,%d\n", row, row%5)
		}
		return b.String()
	}
	path := write(t, "wide.csv", wide(maxRidgeWidth+1))
	scores, found, err := Score(t.Context(), Spec{Train: path, Test: path, Target: "y", Time: "d", Kind: Forecast, Metrics: []string{"rmse"}})
	if err != nil || !slices.Equal(codes(found), []string{"baseline_left_out", "baseline_time_unread"}) {
		t.Errorf("%v %v", found, err)
	}
	var names []string
	for _, s := range scores {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{Mean, Median, NearestNeighbour}) {
		t.Errorf("%v", names)
	}
	text := write(t, "text.csv", "name,y\nann,1\nbob,2\ncyd,1\n")
	if scores, found, err = Score(t.Context(), Spec{Train: text, Test: text, ID: "name", Target: "y", Kind: Forecast, Metrics: []string{"r2"}}); err != nil || len(scores) != 2 || !slices.Equal(codes(found), []string{"baseline_left_out", "baseline_left_out"}) {
		t.Errorf("%v %v %v", scores, found, err)
	}
}

// Twenty times as many rows as are compared: the sample is even, said, and the same each time.
func TestLargeTrainIsSampled(t *testing.T) {
	if n := sampleOf(1_000_000, 100, 10); n != maxNeighbours {
		t.Errorf("%d", n)
	}
	if n := sampleOf(1_000_000, 100_000, 100); n != fewestNeighbours {
		t.Errorf("%d", n)
	}
	if n := sampleOf(300, 10, 5); n != 300 {
		t.Errorf("%d", n)
	}
	var b strings.Builder
	b.WriteString("x,y\n")
	for i := range 3 * maxNeighbours {
		fmt.Fprintf(&b, "%d,%d\n", i, i)
	}
	train, test := write(t, "train.csv", b.String()), write(t, "test.csv", "x,y\n0,0\n149997,149997\n")
	scores, _, err := Score(t.Context(), Spec{Train: train, Test: test, Target: "y", Kind: Regression, Metrics: []string{"mae"}})
	s, ok := by(scores, NearestNeighbour, "mae")
	if err != nil || !ok || s.Value != 0 || !strings.Contains(s.Why, "of 50000 train rows, evenly taken from 150000") {
		t.Errorf("%+v %v", s, err)
	}
}

// spaced are n times from a first one, hours apart.
func spaced(first string, n int, hours float64) []string {
	start, err := time.Parse("2006-01-02", first[:10])
	if err != nil {
		panic(err)
	}
	times := make([]string, n)
	for i := range times {
		times[i] = start.Add(time.Duration(float64(i) * hours * float64(time.Hour))).Format(time.RFC3339)
	}
	return times
}

func TestSeasons(t *testing.T) {
	for _, c := range []struct {
		name  string
		times []string
		want  season
	}{
		{name: "ten years of months", times: spaced("2010-01-15", 120, 30.4375*24), want: season{month: true}},
		{name: "a year of hours", times: spaced("2020-01-01T00:00:00Z", 8784, 1), want: season{month: true, hour: true}},
		{name: "a week of hours", times: spaced("2020-01-01T00:00:00Z", 168, 1), want: season{hour: true}},
		{name: "three months of days", times: spaced("2020-01-01", 90, 24), want: season{weekday: true}},
		{name: "years", times: spaced("1950-01-01", 60, 365.25*24)},
		{name: "a few days", times: spaced("2020-01-01", 5, 24)},
		{name: "numbers", times: []string{"1", "2", "3", "4"}},
	} {
		s := newSeries()
		for _, at := range c.times {
			s.add("", at, 1, -1)
		}
		if got := s.seasonOf(); got != c.want || s.unread > 0 {
			t.Errorf("%s: %+v, want %+v (%d unread)", c.name, got, c.want, s.unread)
		}
	}
}

func TestMoments(t *testing.T) {
	for text, want := range map[string]moment{
		"2020-01-01": {1577836800, true}, "2020-01-01T01:00:00+01:00": {1577836800, true}, "2020/01/01 00:00": {1577836800, true}, "2020-01": {1577836800, true},
		"20200101": {1577836800, true}, "1577836800": {1577836800, true}, "1577836800000": {1577836800, true}, "17": {17, false}, "2020": {2020, false}, "20201301": {20201301, false},
	} {
		if got, ok := parseMoment(text); !ok || got != want {
			t.Errorf("%s: %+v %v, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "31.12.2020", "yesterday", "NaN"} {
		if got, ok := parseMoment(text); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestBetter(t *testing.T) {
	for _, c := range []struct {
		metric      string
		model, base float64
		want        bool
	}{
		{"accuracy", 0.9, 0.8, true}, {"test/acc", 0.8, 0.8, false}, {"rmse", 0.4, 0.5, true}, {"rmse", 0.5, 0.4, false}, {"val_loss", 1, 2, true},
		{"r2", math.NaN(), 0, false}, {"r2", 0.1, math.NaN(), false}, {"my_own", 2, 1, false},
	} {
		if got := Better(c.metric, c.model, c.base); got != c.want {
			t.Errorf("%s %g %g: %v", c.metric, c.model, c.base, got)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := Score(ctx, Spec{Train: "testdata/wdbc-train.csv", Test: "testdata/wdbc-test.csv", Target: "diagnosis", Kind: Classification, Metrics: []string{"accuracy"}})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
