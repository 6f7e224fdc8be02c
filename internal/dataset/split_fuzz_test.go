package dataset

import (
	"math"
	"testing"
)

// What people write about a split never brings the server down, and a share is a number.
func FuzzSplitWords(f *testing.F) {
	for _, hint := range []string{"random 70/15/15 seed 17", "stratified by 'a b', grouped by patient 8:1:1", "time by valid_time 80% train gap 3, no shuffle", "按 id 分组 70/15/15", `{"strategy":"time"}`} {
		f.Add(hint)
	}
	f.Fuzz(func(t *testing.T, hint string) {
		spec, _, _ := ParseSplitHint(hint)
		for part, share := range spec.Fractions {
			if math.IsNaN(share) {
				t.Errorf("%q gives %s the share %v", hint, part, share)
			}
		}
		Instant(hint)
		var c clusters
		c.add([]byte(hint))
		c.add([]byte(hint))
		if leaders, err := c.leaders(t.Context()); err != nil || leaders[1] != 0 {
			t.Errorf("%q is not like itself: %v %v", hint, leaders, err)
		}
	})
}
