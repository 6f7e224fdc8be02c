package dataset

import (
	"fmt"
	"hash/maphash"
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
		_, found, err := ProfileTable(background, path, ProfileOptions{Target: target, ID: "id"})
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

// Far values that two columns share, such as the same code for "not measured", correlate perfectly and copy nothing.
func TestASharedCodeForMissingIsNoCopy(t *testing.T) {
	var text strings.Builder
	text.WriteString("wind,fahrenheit,temp\n")
	for i := range 400 {
		if i%10 == 3 {
			text.WriteString("-9999,-9999,-9999\n")
			continue
		}
		temp := float64(i*37%200)/10 - 5
		fmt.Fprintf(&text, "%.1f,%.2f,%.1f\n", float64(i*101%97)/9, temp*1.8+32, temp)
	}
	_, found, err := ProfileTable(background, write(t, "a.csv", text.String()), ProfileOptions{Target: "temp"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		if f.Code == "target_in_features" {
			got = append(got, f.Where.Field)
		}
	}
	if !slices.Equal(got, []string{"fahrenheit"}) {
		t.Errorf("%v give the target away", got)
	}
}

// What is remembered of a wide table is bounded by the number of values, not by that of columns times rows.
func TestCopiesOfAWideTableAreBounded(t *testing.T) {
	const columns, rows = 200, 20_000
	c, seed := newCopies(0, columns), maphash.MakeSeed()
	record, most := &Record{Fields: make([][]byte, columns)}, 0
	for i := range rows {
		value := fmt.Appendf(nil, "%d.5", i/2) // every value twice, so that none is taken for unique
		for f := range record.Fields {
			record.Fields[f] = value
		}
		c.add(seed, record)
		followed := 0
		for i := range c.columns {
			followed += len(c.columns[i].forth)
		}
		most = max(most, followed)
	}
	if most < copyBudget/2 || most > copyBudget {
		t.Errorf("%d values are followed", most)
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
	spelled := map[string]string{Train: write(t, "train.csv", "patient,x\n7,1\n8,2\n"), Val: write(t, "val.csv", "patient,x\n9.0,4\n7.0,5\n,6\n")}
	if _, found, err := CheckUnits(background, spelled, "", SplitSpec{Group: "patient"}); err != nil || !slices.Equal(saidOf(found), []said{{"units_unchecked", finding.Warning, 4, 22}, {"leakage_group", finding.Error, 3, 0}}) {
		t.Errorf("a patient as a whole and as a decimal number: %v %v", found, err)
	}
	mixed := map[string]string{Train: val, Test: train}
	_, found, err := CheckUnits(background, mixed, "", SplitSpec{Time: "day"})
	if err != nil || len(found) != 1 || found[0].Code != "leakage_window" || found[0].Severity != finding.Warning {
		t.Errorf("training on the future: %v, %v", found, err)
	}
	undated := map[string]string{Train: write(t, "t.csv", "day,x\n2024-01-01,1\n,2\n"), Val: write(t, "v.csv", "day,x\nNA,1\nNA,2\n")}
	if _, found, err := CheckUnits(background, undated, "", SplitSpec{Time: "day", Horizon: 1}); err != nil || !slices.Equal(saidOf(found), []said{{"units_unchecked", finding.Warning, 3, 19}}) || !strings.HasPrefix(found[0].What, "3 row") {
		t.Errorf("rows without a day: %v %v", found, err)
	}
	_, _, err = CheckUnits(background, map[string]string{Train: write(t, "t.csv", "day,x\n1.2.2024,1\n")}, "", SplitSpec{Time: "day"})
	if got := saidOf(refusal(t, err)); !slices.Equal(got, []said{{"time_unreadable", finding.Error, 2, 6}}) {
		t.Errorf("%+v", got)
	}
}
