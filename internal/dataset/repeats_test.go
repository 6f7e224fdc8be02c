package dataset

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The plain way: a map from hash to first line.
func TestRepeatsAgreeWithAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, test := range []struct{ records, distinct, most int }{{0, 1, 0}, {1, 1, 0}, {50, 1, 0}, {40_000, 30_000, 0}, {300_000, 290_000, 0}, {50, 1, 7}, {300_000, 290_000, 50_000}} {
		hashes := make([]uint64, test.distinct)
		for i := range hashes {
			hashes[i] = random.Uint64()
		}
		hashes[0] = 0 // a hash like any other
		found := repeats{most: test.most}
		first := map[uint64]int{}
		var want int64
		var examples []Duplicate
		for line := 1; line <= test.records; line++ {
			hash := hashes[random.IntN(len(hashes))]
			found.add(hash, line)
			if earlier, known := first[hash]; !known {
				first[hash] = line
			} else if want++; len(examples) < keptExamples {
				examples = append(examples, Duplicate{Line: line, FirstLine: earlier})
			}
		}
		n, shown, err := found.find(keptExamples)
		found.close()
		if spilled := found.file != nil; spilled != (test.most > 0) || err != nil {
			t.Errorf("%+v: spilled %v, %v", test, spilled, err)
		}
		if diff := cmp.Diff(examples, shown); n != want || diff != "" {
			t.Errorf("%+v: %d repeat, want %d\n%s", test, n, want, diff)
		}
	}
}

// Halves of a hash that agree are no equal hash.
func TestRepeatsCompareTheWholeHash(t *testing.T) {
	var found repeats
	for line, hash := range []uint64{0x01_00000000000001, 0x01_00000100000001, 0x01_00000000000002, 0x01_00000000000001} {
		found.add(hash, line+1)
	}
	n, shown, err := found.find(keptExamples)
	if diff := cmp.Diff([]Duplicate{{Line: 4, FirstLine: 1}}, shown); n != 1 || err != nil || diff != "" {
		t.Errorf("%d repeat\n%s", n, diff)
	}
}

// A temporary file that can't be written ends the comparison, not the profile: what was not compared is told.
func TestRepeatsWithoutRoom(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	found := repeats{most: 10}
	for line := 1; line <= 25; line++ {
		found.add(7, line)
	}
	n, _, err := found.find(keptExamples)
	if !found.full || found.n != 10 || n != 9 || err != nil {
		t.Errorf("%d compared, %d repeat, %v", found.n, n, err)
	}
}
