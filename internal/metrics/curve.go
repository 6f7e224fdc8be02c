package metrics

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Bounds of the judgements about curves. They are conservative: a finding on an honest run costs more than a plateau
// that nobody named.
const (
	minCurve        = 6    // values below which a curve is not judged
	minPlateau      = 20   // values below which an early standstill is not judged
	plateauShare    = 5e-3 // of all that was gained: less than this over the last two thirds is a standstill
	minFlat         = 5    // equal values of at least flatDigits digits in a row
	flatDigits      = 4
	filteredAtMost  = 0.25 // share of places without a value up to which a gap is one, not a rhythm of its own
	minFilteredRows = 8
)

// curve is a series by its places: steps, else epochs.
type curve struct {
	points  []*Point // finite and not, in file order
	places  []float64
	byEpoch bool
	unique  []float64 // places in order, each once
}

// curves are all series of a log. Gaps are looked for beside the fullest ones alone, so that a log of many names takes
// no time of their square.
type curves struct {
	order   []Key
	of      map[Key]*curve
	fullest []Key
	whole   bool // nothing was thinned, so that places can be compared
	path    string
}

// maxFullest bounds the series that others are compared with.
const maxFullest = 8

func curvesOf(l *Log) curves {
	c := curves{of: map[Key]*curve{}, whole: l.Dropped == 0, path: l.Path}
	for i := range l.Points {
		p := &l.Points[i]
		one := c.of[p.Key()]
		if one == nil {
			one = &curve{byEpoch: p.Step == nil}
			c.of[p.Key()] = one
			c.order = append(c.order, p.Key())
		}
		one.points = append(one.points, p)
		if place, byEpoch, ok := placeNumber(p); ok && byEpoch == one.byEpoch {
			one.places = append(one.places, place)
		}
	}
	for _, one := range c.of {
		one.unique = slices.Compact(slices.Sorted(slices.Values(one.places)))
	}
	c.fullest = slices.Clone(c.order)
	slices.SortStableFunc(c.fullest, func(a, b Key) int { return len(c.of[b].unique) - len(c.of[a].unique) })
	c.fullest = c.fullest[:min(maxFullest, len(c.fullest))]
	return c
}

// placeNumber is the step of a point, else its epoch.
func placeNumber(p *Point) (place float64, byEpoch, ok bool) {
	switch {
	case p.Step != nil:
		return float64(*p.Step), false, true
	case p.Epoch != nil:
		return *p.Epoch, true, true
	}
	return 0, false, false
}

// direction is the side of a measure that is better, "" for a name that is none.
func direction(key Key) string {
	_, mode, _ := MetricKind(key.Name)
	if mode == "" && (strings.HasSuffix(key.Name, "_loss") || strings.HasPrefix(key.Name, "loss_")) {
		mode = "min"
	}
	return mode
}

// health judges one curve.
func (c curves) health(path string, key Key, t *tally) []finding.Finding {
	one, mode := c.of[key], direction(key)
	if one == nil || mode == "" || t.startedOver().count > 0 { // two courses in one are judged as neither
		return nil
	}
	var found []finding.Finding
	if f := flatFinding(path, key, mode, t); f != nil {
		found = append(found, *f)
	} else if f := copied(path, key, mode, one, t); f != nil {
		found = append(found, *f)
	} else if f := c.course(path, key, mode, one); f != nil {
		found = append(found, *f)
	}
	if f := c.endsEarly(path, key, one); f != nil {
		found = append(found, *f)
	}
	return found
}

// flatFinding is about a quantity that never repeats by itself: a loss printed with four digits or more. A share of
// samples, such as accuracy, repeats honestly.
func flatFinding(path string, key Key, mode string, t *tally) *finding.Finding {
	p := t.flat.longestFrom
	if mode != "min" || t.flat.longest < minFlat || significantDigits(p.Text) < flatDigits {
		return nil
	}
	return &finding.Finding{
		Code: "series_flat", Severity: finding.Warning, Where: pointPlace(path, p),
		What:     fmt.Sprintf("%s is %s %d times in a row from %s", clip(key.String()), clip(p.Text), t.flat.longest, placeText(p)),
		Expected: "values that differ in their last digits",
		Remedy:   "check that the weights change (learning rate, frozen parameters, optimizer step) and that the value is computed anew each time, not copied",
	}
}

// significantDigits counts the digits of a printed number without leading and trailing zeros: 0.0000 has none.
func significantDigits(text string) int {
	mantissa, _ := splitNumber(text)
	digits := strings.Trim(strings.ReplaceAll(mantissa, ".", ""), "0")
	return len(digits)
}

// course finds a curve that ended worse than it began, never moved, or stood still early.
func (c curves) course(path string, key Key, mode string, one *curve) *finding.Finding {
	values, at := one.finite(mode)
	n := len(values)
	if n < minCurve {
		return nil
	}
	width := max(3, n/10)
	start, end := median(values[:width]), median(values[n-width:])
	noise := jitter(values)
	significant := math.Max(3*noise, 0.1*math.Abs(start))
	name := clip(key.String())
	train := key.Split == "" || key.Split == "train" || c.of[Key{Split: "train", Name: key.Name}] == nil
	best := 0
	for i, v := range values {
		if v < values[best] {
			best = i
		}
	}
	if train && end-start > significant {
		return &finding.Finding{
			Code: "series_diverged", Severity: finding.Warning, Where: pointPlace(path, *one.points[at[best]]),
			What: fmt.Sprintf("%s ends worse than it began: %s at first, best %s at %s, %s at the end", name,
				shown(start, mode), one.points[at[best]].Text, placeText(*one.points[at[best]]), shown(end, mode)),
			Expected: "a value that is better at the end than at the start",
			Remedy:   "training diverged after its best value: lower the learning rate or clip gradients, and train again; the last checkpoint is not the one to use",
		}
	}
	if !train || mode != "min" || n < minPlateau {
		return nil
	}
	third := n / 3
	middle := median(values[third-width/2 : third-width/2+width])
	gained := start - math.Min(middle, end)
	// Medians of some values scatter less than one does. What fell within its first values has got better too.
	scatter := math.Max(3*noise/math.Sqrt(float64(width)), 1e-3*math.Abs(start))
	fell := values[0]-math.Min(middle, end) > math.Max(5*noise, 1e-3*math.Abs(values[0]))
	switch {
	case gained <= scatter && !fell:
		return &finding.Finding{
			Code: "series_plateau", Severity: finding.Warning, Where: pointPlace(path, *one.points[at[0]]),
			What:     fmt.Sprintf("%s never got better: %s at first, %s at the end, over %d values", name, shown(start, mode), shown(end, mode), n),
			Expected: "a loss that falls",
			Remedy:   "nothing was learned: check the learning rate, that the parameters are given to the optimizer, the labels and the scaling of the inputs",
		}
	case middle-end < plateauShare*gained:
		return &finding.Finding{
			Code: "series_plateau", Severity: finding.Note, Where: pointPlace(path, *one.points[at[third]]),
			What: fmt.Sprintf("%s stands still from %s on (%s, at the end %s): the last two thirds of the run gained nothing", name,
				placeText(*one.points[at[third]]), shown(middle, mode), shown(end, mode)),
			Remedy: "fewer epochs would do; if the value is not good enough, change the learning rate, the model or the data",
		}
	}
	return nil
}

// finite are the curve's finite values, smaller being better, and the places of their points.
func (c *curve) finite(mode string) (values []float64, at []int) {
	for i, p := range c.points {
		if p.NonFinite != "" {
			continue
		}
		v := p.Value
		if mode == "max" {
			v = -v
		}
		values, at = append(values, v), append(at, i)
	}
	return values, at
}

// shown prints a value that finite may have turned around.
func shown(v float64, mode string) string {
	if mode == "max" {
		v = -v
	}
	return fmt.Sprintf("%.4g", v)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return sorted[n/2-1]/2 + sorted[n/2]/2
}

// jitter is how much a value differs from the next, typically.
func jitter(values []float64) float64 {
	distances := make([]float64, len(values)-1)
	for i := range distances {
		distances[i] = math.Abs(values[i+1] - values[i])
	}
	return median(distances)
}

// filtered finds places between the first and the last value of a measure at which other series of the file have a value
// and it has none: what a curve looks like from which NaN was left out.
func (c curves) filtered(key Key) *finding.Finding {
	one := c.of[key]
	if !c.whole || one == nil || direction(key) == "" || len(one.places) < minFilteredRows {
		return nil
	}
	own := setOf(one.places)
	low, high := one.places[0], one.places[len(one.places)-1]
	var lacking []float64
	var beside Key
	for _, other := range c.fullest {
		that := c.of[other]
		if other == key || that.byEpoch != one.byEpoch {
			continue
		}
		var missing []float64
		shared := 0
		for _, place := range that.unique {
			switch {
			case own[place]:
				shared++
			case place > low && place < high:
				missing = append(missing, place)
			}
		}
		within := shared + len(missing)
		if len(missing) > len(lacking) && float64(len(missing)) <= filteredAtMost*float64(within) && 10*shared >= 9*len(own) {
			lacking, beside = missing, other
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	before := one.points[0]
	for _, p := range one.points {
		if place, _, ok := placeNumber(p); ok && place < lacking[0] {
			before = p
		}
	}
	return &finding.Finding{
		Code: "values_filtered", Severity: finding.Warning, Where: pointPlace(c.path, *before),
		What: fmt.Sprintf("%s has no value at %d of %d places where %s has one, first at %s %g, after %s", clip(key.String()), len(lacking),
			len(lacking)+len(own), clip(beside.String()), one.noun(), lacking[0], placeText(*before)),
		Expected: "a value in every row, NaN included",
		Remedy:   "find out what the script left out there: a NaN that is dropped hides that training broke; log it as null with \"nonfinite\": \"nan\"",
	}
}

func (c *curve) noun() string {
	if c.byEpoch {
		return "epoch"
	}
	return "step"
}

func setOf(places []float64) map[float64]bool {
	set := make(map[float64]bool, len(places))
	for _, place := range places {
		set[place] = true
	}
	return set
}

// endsEarly finds a measure that stops while another series with the same rhythm goes on.
func (c curves) endsEarly(path string, key Key, one *curve) *finding.Finding {
	if !c.whole || len(one.places) < minCurve {
		return nil
	}
	own := setOf(one.places)
	last := slices.Max(one.places)
	for _, other := range c.fullest {
		that := c.of[other]
		if other == key || that.byEpoch != one.byEpoch || len(that.unique) < len(one.unique)+2 {
			continue
		}
		shared, after := 0, 0
		for _, place := range that.unique {
			switch {
			case own[place]:
				shared++
			case place > last:
				after++
			}
		}
		// the same rhythm: up to its end it has nearly all that the other has
		if after < 2 || 10*shared < 9*len(own) || 10*shared < 9*(len(that.unique)-after) {
			continue
		}
		p := one.points[len(one.points)-1]
		return &finding.Finding{
			Code: "series_ends_early", Severity: finding.Warning, Where: pointPlace(path, *p),
			What:   fmt.Sprintf("%s ends at %s; %s goes on to %s %g (%d more places)", clip(key.String()), placeText(*p), clip(other.String()), one.noun(), that.unique[len(that.unique)-1], after),
			Remedy: "find out why the script stopped logging it there: a value that is no longer finite may have been left out",
		}
	}
	return nil
}

// identical finds a measure that is the same in two splits, digit for digit: one of them was copied, or computed on the
// other's data.
func (c curves) identical(path string) []finding.Finding {
	var found []finding.Finding
	earlier := map[string][]Key{} // by name
	for _, b := range c.order {
		if direction(b) != "min" || len(c.of[b].points) < minFlat || len(earlier[b.Name]) >= maxFullest {
			continue
		}
		same := earlier[b.Name]
		earlier[b.Name] = append(same, b)
		for _, a := range same {
			if len(c.of[a].points) != len(c.of[b].points) {
				continue
			}
			first, second := c.of[a].points, c.of[b].points
			exact := 0
			same := true
			for j := range first {
				same = same && first[j].Text == second[j].Text
				if significantDigits(first[j].Text) >= flatDigits {
					exact++
				}
			}
			if same && exact >= minFlat {
				found = append(found, finding.Finding{
					Code: "series_identical", Severity: finding.Warning, Where: pointPlace(path, *second[0]),
					What:     fmt.Sprintf("%s and %s have the same %d values, digit for digit", clip(a.String()), clip(b.String()), len(first)),
					Expected: "values of different data differ",
					Remedy:   "one of them is a copy, or both were computed on the same samples: see what the script evaluates for each split",
				})
			}
		}
	}
	return found
}
