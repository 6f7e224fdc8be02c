package dataset

import (
	"math"
	"math/bits"
)

// moments gathers count, range, mean and variance in one pass (Welford 1962). The conversions to float64 keep compilers
// from fusing multiply and add, so that every machine gets the same last digit.
type moments struct {
	n        int64
	min, max float64
	mean, m2 float64
}

func (m *moments) add(value float64) {
	m.n++
	if m.n == 1 || value < m.min {
		m.min = value
	}
	if m.n == 1 || value > m.max {
		m.max = value
	}
	delta := value - m.mean
	m.mean += float64(delta / float64(m.n))
	m.m2 += float64(delta * float64(value-m.mean))
}

// std is the standard deviation of the population (divided by n, not n-1), as scikit-learn's StandardScaler takes it.
func (m *moments) std() float64 {
	if m.n == 0 {
		return 0
	}
	return math.Sqrt(m.m2 / float64(m.n))
}

// finite returns a pointer for JSON, nil where the value overflowed.
func finite(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	return &value
}

// reservoir keeps every value up to a bound, and beyond it a uniform sample (Vitter's algorithm R) drawn by a fixed
// generator, so that two reads of the same file agree.
type reservoir struct {
	bound int
	seen  uint64
	state uint64
	kept  []float64
}

func (r *reservoir) add(value float64) {
	r.seen++
	if len(r.kept) < r.bound {
		r.kept = append(r.kept, value)
		return
	}
	// SplitMix64 (Steele, Lea, Flood 2014).
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	if at, _ := bits.Mul64(z^z>>31, r.seen); at < uint64(len(r.kept)) { // a number below seen without a division (Lemire 2019)
		r.kept[at] = value
	}
}

// quantile of sorted values by linear interpolation, as numpy.quantile does by default.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	share := at - float64(low)
	return sorted[low] + float64(share*float64(sorted[low+1]-sorted[low]))
}
