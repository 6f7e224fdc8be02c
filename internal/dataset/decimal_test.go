package dataset

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecimalComma(t *testing.T) {
	for value, want := range map[string]bool{"3,14": true, "-0,25": true, "+1,5": true, "1.234,5": true, "1.234.567,25": true, "2,5e-3": true, ",5": true,
		"3": false, "3.14": false, "3,": false, "1,2,3": false, "a,b": false, "12.34,5": false, "1234.567,8": false, "--1,5": false, "1,5e": false, "1.,5": false} {
		if got := isDecimalComma([]byte(value)); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}

// A spreadsheet's export with decimal commas is numbers throughout: in the profile, in the statistics and as the target; the
// parts keep the text as it was.
func TestDecimalCommasAreNumbers(t *testing.T) {
	text := "station;temp;level;note;code\nA;3,5;1.000,25;1,2 or 3;1\nB;-4,5;2;x;2\nC;;3,75;y;3\nD;7;4,00;z;4\n"
	path := write(t, "wetter.csv", text)
	p, found, err := ProfileTable(background, path, ProfileOptions{Target: "temp"})
	if err != nil {
		t.Fatal(err)
	}
	temp, level := p.Columns["temp"], p.Columns["level"]
	if temp.Type != TypeNumber || *temp.Min != -4.5 || *temp.Max != 7 || temp.Missing != 1 || temp.Decimal != "," {
		t.Errorf("temp %+v", temp)
	}
	if level.Type != TypeNumber || *level.Max != 1000.25 {
		t.Errorf("level %+v", level)
	}
	if note := p.Columns["note"]; note.Type != TypeString || note.Decimal != "" {
		t.Errorf("note %+v", note)
	}
	f := found[slices.Index(codes(found), "decimal_comma")]
	if f.Severity != "note" || !strings.Contains(f.What, `"temp", "level"`) || !strings.Contains(f.Remedy, "decimal=','") {
		t.Errorf("%+v", f)
	}
	stats, err := Statistics(background, path, []string{"temp"})
	if err != nil || stats["temp"].N != 3 || stats["temp"].Mean != 2 {
		t.Errorf("%+v %v", stats, err)
	}
	targets, err := Targets(background, path, "station", "temp")
	if diff := cmp.Diff(map[string]string{"A": "3.5", "B": "-4.5", "C": "", "D": "7"}, targets); diff != "" || err != nil {
		t.Errorf("%s %v", diff, err)
	}
}

// A point among decimal commas is told: whether it parts thousands or decimals, only a person knows.
func TestPointAmongCommas(t *testing.T) {
	_, found, err := ProfileTable(background, write(t, "a.csv", "a;b\n1,5;x\n2,5;y\n1.234;z\n"), ProfileOptions{})
	if err != nil || !slices.Contains(codes(found), "decimal_mixed") {
		t.Errorf("%v %v", codes(found), err)
	}
}

// In a file that commas cut, a quoted comma is no decimal comma.
func TestNoDecimalCommaBetweenCommas(t *testing.T) {
	p, _, err := ProfileTable(background, write(t, "a.csv", "a,b\n\"1,5\",x\n\"2,5\",y\n"), ProfileOptions{})
	if err != nil || p.Columns["a"].Type != TypeString {
		t.Errorf("%+v %v", p.Columns["a"], err)
	}
}
