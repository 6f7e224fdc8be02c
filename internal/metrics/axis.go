package metrics

import (
	"math"
	"strconv"
	"strings"
)

// axis maps values to a share of its length, 0 at low and 1 at high.
type axis struct {
	low, high float64 // of the logarithm where log is set
	log       bool
}

// logRatio is how much the largest value must exceed the smallest for a logarithmic axis to show more than a linear one.
const logRatio = 30

// newAxis spans the values, with a margin (a share of the span) on both sides.
func newAxis(values []float64, scale string, margin float64) axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			low, high = math.Min(low, v), math.Max(high, v)
		}
	}
	if low > high {
		low, high = 0, 1
	}
	a := axis{low: low, high: high}
	if scale != ScaleLinear && low > 0 && high > low && (scale == ScaleLog || high/low > logRatio) {
		a.log = true
		a.low, a.high = math.Log10(low), math.Log10(high)
	}
	span := a.high/2 - a.low/2 // halves, since the span of two floats may be none
	if span <= 1e-12*math.Max(math.Abs(a.low), math.Abs(a.high)) || span == 0 {
		span = math.Max(math.Abs(a.low)*0.05, 1e-9)
		if a.low == 0 {
			span = 0.5
		}
		a.low, a.high = a.low-span, a.high+span
	}
	a.low, a.high = a.low-2*margin*span, a.high+2*margin*span
	if math.IsInf(a.low, 0) || math.IsInf(a.high, 0) {
		a.low, a.high = math.Max(a.low, -math.MaxFloat64/4), math.Min(a.high, math.MaxFloat64/4)
	}
	return a
}

// at is where a value lies, outside [0, 1] for one beyond the axis.
func (a axis) at(v float64) float64 {
	if a.log {
		v = math.Log10(v)
	}
	return (v/2 - a.low/2) / (a.high/2 - a.low/2)
}

// tick is a marked value of an axis.
type tick struct {
	value float64
	text  string
}

// ticks are round values on the axis, about as many as asked; whole numbers only where whole is set.
func (a axis) ticks(about int, whole bool) []tick {
	if a.log {
		if found := a.logTicks(about); len(found) >= 2 {
			return found
		}
	}
	low, high := a.low, a.high
	if a.log {
		low, high = math.Pow(10, low), math.Pow(10, high)
	}
	step := roundStep((high/2 - low/2) / float64(max(about, 2)) * 2)
	if whole {
		step = math.Max(1, math.Ceil(step))
	}
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	var found []tick
	for i := math.Ceil(low / step); i*step <= high && len(found) < 50; i++ {
		found = append(found, tick{i * step, number(i*step, decimals)})
	}
	return found
}

// logTicks are powers of ten, with 2 and 5 between them where there are few.
func (a axis) logTicks(about int) []tick {
	decades := a.high - a.low
	factors := []float64{1}
	if decades < 1.5 {
		factors = []float64{1, 2, 3, 5, 7}
	} else if decades < float64(about)/2 {
		factors = []float64{1, 2, 5}
	}
	every := max(1, int(math.Ceil(decades/float64(about))))
	var found []tick
	for exponent := int(math.Floor(a.low)); exponent <= int(math.Ceil(a.high)); exponent++ {
		if exponent%every != 0 {
			continue
		}
		for _, factor := range factors {
			v := factor * math.Pow(10, float64(exponent))
			if share := a.at(v); share >= 0 && share <= 1 {
				found = append(found, tick{v, number(v, max(0, -exponent))})
			}
		}
	}
	return found
}

// roundStep is the nearest of 1, 2, 2.5, 5 and 10 times a power of ten that is not smaller.
func roundStep(raw float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, factor := range []float64{1, 2, 2.5, 5} {
		if factor*power >= raw*(1-1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

// number prints a tick: 0.05, 12000 as 12k, 1e-07.
func number(v float64, decimals int) string {
	size := math.Abs(v)
	switch {
	case v == 0:
		return "0"
	case size >= 1e6 || size < 1e-4:
		text := strconv.FormatFloat(v, 'e', 2, 64)
		mantissa, exponent, _ := strings.Cut(text, "e")
		return strings.TrimRight(strings.TrimRight(mantissa, "0"), ".") + "e" + exponent
	case size >= 10_000 && math.Mod(size, 100) == 0:
		return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(v/1000, 'f', 1, 64), "0"), ".") + "k"
	}
	text := strconv.FormatFloat(v, 'f', min(decimals+1, 8), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}
