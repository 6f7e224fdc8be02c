package dataset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Parts that were made elsewhere are looked at for classes that one lacks, and for sequences that are alike.
func TestGivenParts(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	protein := func() string {
		var b strings.Builder
		for range 120 {
			b.WriteByte("ACDEFGHIKLMNPQRSTVWY"[random.IntN(20)])
		}
		return b.String()
	}
	train, test := "id,seq,y\n", "id,seq,y\n"
	var first string
	for i := range 40 {
		s := protein()
		if i == 3 {
			first = s
		}
		train += fmt.Sprintf("a%d,%s,%s\n", i, s, []string{"red", "green", "blue"}[i%3])
	}
	for i := range 20 {
		s := protein()
		if i == 7 {
			s = "M" + first[:110] + "WW" // a relative of line 5 of train
		}
		test += fmt.Sprintf("b%d,%s,%s\n", i, s, []string{"red", "green"}[i%2])
	}
	spec := SplitSpec{Strategy: Predefined, ID: "id", Target: "y", Sequence: "seq", Files: map[string]string{"train": write(t, "train.csv", train), "test": write(t, "test.csv", test)}}
	split, found, err := MakeSplit(background, spec.Files["train"], spec, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	class := found[slices.Index(codes(found), "class_not_in_part")]
	if !strings.Contains(class.What, `"test" has no row of 1 class(es) of y: `) || !strings.Contains(class.What, "blue") {
		t.Error(class.What)
	}
	alike := found[slices.Index(codes(found), "leakage_similarity")]
	if alike.Where.Line != 9 || !strings.Contains(alike.What, "1 sequence(s) are alike one of an earlier part, such as line 5 of train and line 9 of test") {
		t.Errorf("%+v %s", alike.Where, alike.What)
	}
	if n := len(split.Leakage); n != 1 || split.Leakage[0].Kind != LeakSimilar || split.Leakage[0].Count != 1 {
		t.Errorf("%+v", split.Leakage)
	}
	spec.Sequence, spec.Target = "", ""
	if _, found, err := MakeSplit(background, spec.Files["train"], spec, t.TempDir()); err != nil || len(found) > 0 {
		t.Errorf("%v %v", codes(found), err)
	}
}
