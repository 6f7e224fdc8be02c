package dataset

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trainwright/trainwright/internal/finding"
)

func TestParseSplitHint(t *testing.T) {
	two := func(train, test float64) map[string]float64 { return map[string]float64{Train: train, Test: test} }
	assumed, seedAndMore := []string{"split_assumed"}, []string{"split_assumed", "split_assumed"}
	tests := []struct {
		hint  string
		want  SplitSpec
		codes []string
	}{
		{"", SplitSpec{}, nil},
		{"random 70/15/15 seed 17", SplitSpec{Strategy: Random, Fractions: fractions(0.7, 0.15, 0.15), Seed: 17}, nil},
		{"stratified by species 0.7/0.15/0.15, seed 3", SplitSpec{Strategy: Stratified, Target: "species", Fractions: fractions(0.7, 0.15, 0.15), Seed: 3}, nil},
		{"Stratified on `bird-kind`, 80-10-10, seed=5", SplitSpec{Strategy: Stratified, Target: "bird-kind", Fractions: fractions(0.8, 0.1, 0.1), Seed: 5}, nil},
		{"stratified by year 8:1:1 seed 1", SplitSpec{Strategy: Stratified, Target: "year", Fractions: fractions(0.8, 0.1, 0.1), Seed: 1}, nil},
		{"stratified by class, 70/15/15, seed 1", SplitSpec{Strategy: Stratified, Fractions: fractions(0.7, 0.15, 0.15), Seed: 1}, nil},
		{"stratified split 70% train, 15% validation and 15% test with random_state=42", SplitSpec{Strategy: Stratified, Fractions: fractions(0.7, 0.15, 0.15), Seed: 42}, nil},
		{"80/20", SplitSpec{Strategy: Random, Fractions: two(0.8, 0.2)}, []string{"split_assumed", "split_assumed", "split_assumed"}},
		{"80/20 train/val seed 1", SplitSpec{Strategy: Random, Fractions: map[string]float64{Train: 0.8, Val: 0.2}, Seed: 1}, assumed},
		{"random train 0.8 test 0.2 seed 0", SplitSpec{Strategy: Random, Fractions: two(0.8, 0.2)}, nil},
		{"train=0.8, val=0.1, test=0.1 random seed 9", SplitSpec{Strategy: Random, Fractions: fractions(0.8, 0.1, 0.1), Seed: 9}, nil},
		{"train_test_split(test_size=0.2, random_state=42)", SplitSpec{Strategy: Random, Fractions: two(0.8, 0.2), Seed: 42}, seedAndMore},
		{"random, hold out 10% seed 1", SplitSpec{Strategy: Random, Seed: 1, Fractions: two(0.9, 0.1)}, assumed},
		{"random, 10% test, seed 1", SplitSpec{Strategy: Random, Seed: 1, Fractions: two(0.9, 0.1)}, assumed},
		{"random 0.7, 0.15, 0.15 seed 1", SplitSpec{Strategy: Random, Seed: 1, Fractions: fractions(0.7, 0.15, 0.15)}, nil},
		{"use the official split", SplitSpec{Strategy: Predefined}, nil},
		{`{"strategy": "random", "fractions": {"train": 0.5, "test": 0.5}, "seed": 2}`, SplitSpec{Strategy: Random, Fractions: two(0.5, 0.5), Seed: 2}, nil},
		{"random 70/15/15 seed 1, keep plates together", SplitSpec{Strategy: Random, Fractions: fractions(0.7, 0.15, 0.15), Seed: 1}, []string{"split_hint_words_ignored"}},
		{"random 70/20/20 seed 1", SplitSpec{Strategy: Random, Fractions: fractions(70, 20, 20), Seed: 1}, []string{"fractions_sum"}},
		{"random seed 1", SplitSpec{Strategy: Random, Seed: 1}, []string{"fractions_sum"}},
		{"group by patient 80/20 seed 1", SplitSpec{Strategy: Group, Group: "patient", Fractions: two(0.8, 0.2), Seed: 1}, assumed},
		{"80/10/10 by station seed 4", SplitSpec{Strategy: Group, Group: "station", Fractions: fractions(0.8, 0.1, 0.1), Seed: 4}, assumed},
		{"random split by subject 80/10/10 seed 2", SplitSpec{Strategy: Group, Group: "subject", Fractions: fractions(0.8, 0.1, 0.1), Seed: 2}, assumed},
		{"time by month 70/15/15 history 12, horizon 1 gap 3", SplitSpec{Strategy: Time, Time: "month", Fractions: fractions(0.7, 0.15, 0.15), History: 12, Horizon: 1, Gap: 3}, nil},
		{"chronological, last 20% for test", SplitSpec{Strategy: Time, Fractions: two(0.8, 0.2)}, assumed},
		{"80/20 by year", SplitSpec{Strategy: Time, Time: "year", Fractions: two(0.8, 0.2)}, assumed},
		{"first 80% train, rest test", SplitSpec{Strategy: Time, Fractions: two(0.8, 0.2)}, assumed},
		{"similarity by sequence 70/15/15 seed 5", SplitSpec{Strategy: Similarity, Sequence: "sequence", Fractions: fractions(0.7, 0.15, 0.15), Seed: 5}, nil},
		{"as usual", SplitSpec{}, []string{"split_hint_unclear"}},
	}
	for _, test := range tests {
		spec, found, err := ParseSplitHint(test.hint)
		if err != nil {
			t.Errorf("%q: %v", test.hint, err)
		}
		if diff := cmp.Diff(test.want, spec, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%q: %s", test.hint, diff)
		}
		if got := codes(found); !slices.Equal(test.codes, got) {
			t.Errorf("%q: %v", test.hint, found)
		}
	}
	if _, _, err := ParseSplitHint(`{"strategy": `); refusal(t, err)[0].Code != "split_hint_unclear" {
		t.Error(err)
	}
}

// A split that is asked for and not known must never become a random one.
func TestParseSplitHintRefusesOtherStrategies(t *testing.T) {
	for _, hint := range []string{"5-fold cross validation", "k-fold", "leave-one-out", "scaffold split 80/10/10", "spatial blocks 80/20"} {
		_, found, err := ParseSplitHint(hint)
		if err != nil || len(found) == 0 || found[0].Code != "split_strategy_unsupported" || found[0].Severity != finding.Error {
			t.Errorf("%q: %v %v", hint, found, err)
			continue
		}
		if !strings.Contains(found[0].Expected, "stratified by") {
			t.Errorf("%q does not say what works: %s", hint, found[0].Expected)
		}
	}
}

func TestContract(t *testing.T) {
	path := write(t, "a.csv", "id,mass,bill,species\na,1,2.5,u\nb,2,3.5,v\nb,3,,\n")
	profile, _, err := ProfileTable(background, path, ProfileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, id, target string
		features         []string
		want             SampleContract
		codes            []string
	}{
		{"all that is left", "", "mass", nil,
			SampleContract{RowIDs, false, []string{"id", "bill", "species"}, map[string]string{"id": "string", "bill": "number", "species": "string"}, Target{Name: "mass", Type: "integer"}}, []string{}},
		{"named", "", "species", []string{"mass"},
			SampleContract{RowIDs, false, []string{"mass"}, map[string]string{"mass": "integer"}, Target{Name: "species", Type: "string"}}, []string{"target_missing_values"}},
		{"an id that is none", "id", "mass", nil,
			SampleContract{"id", true, []string{"bill", "species"}, map[string]string{"bill": "number", "species": "string"}, Target{Name: "mass", Type: "integer"}}, []string{"id_duplicate"}},
		{"misspelt", "", "mas", []string{"Bill"},
			SampleContract{RowIDs, false, []string{}, map[string]string{}, Target{}}, []string{"column_unknown", "column_unknown", "features_empty"}},
		{"target among the features", "", "mass", []string{"mass", "bill"},
			SampleContract{RowIDs, false, []string{"bill"}, map[string]string{"bill": "number"}, Target{Name: "mass", Type: "integer"}}, []string{"column_role_conflict"}},
		{"no target", "", "", []string{"mass"},
			SampleContract{RowIDs, false, []string{"mass"}, map[string]string{"mass": "integer"}, Target{}}, []string{"target_unknown"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, found := Contract(profile, test.id, test.target, test.features)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.codes, codes(found)); diff != "" {
				t.Error(diff)
			}
			if test.name == "misspelt" && !strings.Contains(found[0].Remedy, "mean mass") {
				t.Error(found[0].Remedy)
			}
		})
	}
}

func TestParseNumberIsExact(t *testing.T) {
	for in, want := range map[string]float64{"0.1": 0.1, "123456789012345": 123456789012345, "1234567890123456789": 1234567890123456789, "-0.000001": -0.000001,
		"3.141592653589793": math.Pi, "1e-7": 1e-7, "+7": 7, "1e400": math.Inf(1), "-1e400": math.Inf(-1)} {
		if got, _, ok := parseNumber([]byte(in)); !ok || got != want {
			t.Errorf("%s is read as %v", in, got)
		}
	}
}
