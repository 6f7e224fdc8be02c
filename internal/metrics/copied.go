package metrics

import (
	"fmt"

	"github.com/trainwright/trainwright/internal/finding"
)

// copied finds a stretch of a loss whose values stand in the series before already, digit for digit and in the same order,
// at other places: rows that were pasted and not trained. A resumed run that trains the same steps again writes the same
// values honestly; its steps go back, which is told by itself.
func copied(path string, key Key, mode string, one *curve, t *tally) *finding.Finding {
	if mode != "min" || t.backward.count > 0 || t.repeated.count > 0 {
		return nil
	}
	earlier := map[string]int{} // index of a value's last appearance
	longest, length, end, from := 0, 0, 0, 0
	previous := -2
	for i, p := range one.points {
		at, seen := earlier[p.Text]
		switch {
		case !seen || significantDigits(p.Text) < flatDigits:
			length, previous = 0, -2
		case at == previous+1:
			length++
			previous = at
		default:
			length, previous = 1, at
		}
		if length > longest {
			longest, end, from = length, i, previous
		}
		earlier[p.Text] = i
	}
	if longest < minFlat {
		return nil
	}
	first, original := one.points[end-longest+1], one.points[from-longest+1]
	return &finding.Finding{
		Code: "series_copied", Severity: finding.Warning, Where: pointPlace(path, *first),
		What: fmt.Sprintf("%s repeats %d values digit for digit from %s on: those from %s", clip(key.String()), longest,
			placeText(*first), placeText(*original)),
		Expected: "values that differ in their last digits",
		Remedy:   "find out what wrote these rows: training does not give the same values again at other steps",
	}
}
