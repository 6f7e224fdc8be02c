package dataset

import (
	"math/rand/v2"
	"testing"
)

func TestTallyAgreesWithAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var counts tally
	want := map[uint64]int64{}
	for range 20_000 {
		hash := random.Uint64N(4000) * 0x1_0001 // many share their low bits
		want[hash]++
		if known := counts.find(hash); known != nil {
			known.Count++
		} else {
			counts.add(hash, ValueCount{Count: 1})
		}
	}
	agree := func() {
		t.Helper()
		if len(counts.values) != len(want) {
			t.Errorf("%d values, want %d", len(counts.values), len(want))
		}
		for hash, n := range want {
			if known := counts.find(hash); known == nil || known.Count != n {
				t.Fatalf("%d is %v, want %d", hash, known, n)
			}
		}
	}
	agree()
	singles := 0
	for hash, n := range want {
		if n == 1 {
			singles++
			delete(want, hash)
		}
	}
	if counts.dropSingles(); singles == 0 {
		t.Fatal("the test drops nothing")
	}
	agree()
	if counts.find(1) != nil {
		t.Error("a value that was never added is found")
	}
}
