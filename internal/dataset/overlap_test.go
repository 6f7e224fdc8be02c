package dataset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/finding"
)

func TestATargetUnderAnotherName(t *testing.T) {
	var text strings.Builder
	text.WriteString("id,kelvin,rounded,code,noise,class,celsius\n")
	for i := range 60 {
		celsius := float64(i*37%60)/3 - 5
		fmt.Fprintf(&text, "r%d,%.3f,%.1f,%c,%d,%s,%.3f\n", i, celsius+273.15, celsius, 'a'+rune(i%3), i*i%7, []string{"x", "y", "z"}[i%3], celsius)
	}
	path := write(t, "a.csv", text.String())
	for target, want := range map[string][]string{"celsius": {"kelvin", "rounded"}, "class": {"code"}, "noise": nil} {
		_, found, err := ProfileCSV(background, path, ProfileOptions{Target: target, ID: "id"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			if f.Code == "target_in_features" {
				got = append(got, f.Where.Field)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("target %s: %v give it away, want %v", target, got, want)
		}
	}
}

func TestUnitsOfParts(t *testing.T) {
	train := write(t, "train.csv", "patient,day,x\np1,2024-01-01,1\np1,2024-01-02,2\np2,2024-01-03,3\n")
	val := write(t, "val.csv", "patient,day,x\np3,2024-01-04,4\np2,2024-01-05,5\n")
	parts := map[string]string{Train: train, Val: val}
	for _, test := range []struct {
		name string
		spec SplitSpec
		want []said
	}{
		{"a patient in two parts", SplitSpec{Group: "patient"}, []said{{"leakage_group", finding.Error, 3, 0}}},
		{"no horizon, nothing straddles", SplitSpec{Time: "day"}, nil},
		{"the last window reaches the next part", SplitSpec{Time: "day", Horizon: 1}, []said{{"leakage_window", finding.Error, 4, 0}}},
		{"both", SplitSpec{Group: "patient", Time: "day", Horizon: 2}, []said{{"leakage_group", finding.Error, 3, 0}, {"leakage_window", finding.Error, 3, 0}}},
	} {
		leaks, found, err := CheckUnits(background, parts, "", test.spec)
		if err != nil || !slices.Equal(saidOf(found), test.want) || len(leaks) != len(test.want) {
			t.Errorf("%s: %v, %+v, %v", test.name, leaks, found, err)
		}
	}
	mixed := map[string]string{Train: val, Test: train}
	_, found, err := CheckUnits(background, mixed, "", SplitSpec{Time: "day"})
	if err != nil || len(found) != 1 || found[0].Code != "leakage_window" || found[0].Severity != finding.Warning {
		t.Errorf("training on the future: %v, %v", found, err)
	}
	_, _, err = CheckUnits(background, map[string]string{Train: write(t, "t.csv", "day,x\n1.2.2024,1\n")}, "", SplitSpec{Time: "day"})
	if got := saidOf(refusal(t, err)); !slices.Equal(got, []said{{"time_unreadable", finding.Error, 2, 6}}) {
		t.Errorf("%+v", got)
	}
}
