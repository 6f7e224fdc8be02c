package dataset

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// patients are rows as they stand in real tables: numbers with noise, a few words.
func patients(rows int, row func(i int, r *rand.Rand) string) string {
	var in strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		in.WriteString(row(i, r))
	}
	return in.String()
}

// What a part of a packed file lets expect of the whole is told within a fifth, or not at all.
func TestRowsOfAPackedFileAreEstimated(t *testing.T) {
	const rows = 120_000
	csv := "id,mass,site,count\n" + patients(rows, func(i int, r *rand.Rand) string {
		return fmt.Sprintf("p%06d,%.4f,%s,%d\n", i, 3500+700*r.NormFloat64(), []string{"north", "south", "west"}[r.IntN(3)], r.IntN(1000))
	})
	lines := patients(rows, func(i int, r *rand.Rand) string {
		return fmt.Sprintf("{\"id\": \"p%06d\", \"mass\": %.4f, \"site\": %q}\n", i, 3500+700*r.NormFloat64(), []string{"north", "south", "west"}[r.IntN(3)])
	})
	var members bytes.Buffer // as bgzip and cat write it: many members
	for part := range slices.Chunk([]byte(csv), 100_000) {
		members.WriteString(packed(t, string(part)))
	}
	for name, file := range map[string]struct{ name, in string }{
		"CSV": {"a.csv.gz", packed(t, csv)}, "JSON lines": {"a.jsonl.gz", packed(t, lines)}, "many members": {"a.csv.gz", members.String()},
	} {
		path, known := write(t, file.name, file.in), 0
		for _, bound := range []int64{1 << 10, 100 << 10, 300 << 10, 1 << 20, 3 << 20} {
			p, found, err := ProfileTable(background, path, ProfileOptions{MaxBytes: bound})
			if err != nil || p.Coverage.Whole || !slices.Contains(codes(found), "coverage_partial") {
				t.Fatalf("%s up to %d: %+v %v %v", name, bound, p, codes(found), err)
			}
			c := p.Coverage
			if !c.Estimated {
				if !c.Unknown || c.Rows != c.RowsRead {
					t.Errorf("%s up to %d: %+v", name, bound, c)
				}
				continue
			}
			known++
			if off := math.Abs(float64(c.Rows)/rows - 1); off > 0.2 || c.Unknown {
				t.Errorf("%s up to %d: %d rows are expected, %.0f %% off", name, bound, c.Rows, 100*off)
			}
		}
		if known < 3 {
			t.Errorf("%s: only %d of 5 bounds led to an estimate", name, known)
		}
	}
}
