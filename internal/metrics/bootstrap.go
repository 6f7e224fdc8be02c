package metrics

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// The bootstrap of a recomputed metric (B. Efron, 1979; the percentile method): samples are drawn with replacement, as many
// as there are, the metric is computed on each draw, and the 2.5th and 97.5th percentile of the values are the interval.
// It says how far the value would move with other samples of the same kind; not what another training run would give.
const (
	IntervalLevel = 0.95
	// maxResamples draws are made, fewer for large files: bootstrapWork samples are drawn in all, but minResamples times
	// at least.
	maxResamples  = 1000
	minResamples  = 100
	bootstrapWork = 20_000_000
	// minSamples is the size below which an interval would say more about the method than about the model.
	minSamples = 10
	// bootstrapSeed and the number of samples start the generator, so that the same file gives the same interval on every
	// machine.
	bootstrapSeed = 20130517
)

// statistic is a metric over n samples, each taken weights[i] times; nil weights take each once. ok is false where the
// metric has no value, as r2 of equal targets.
type statistic func(weights []int32) (value float64, ok bool)

// interval is the 95 % percentile interval of a statistic over n units, and the number of draws that it rests on: 0
// where there is none, because n is too small or one draw in twenty has no value.
func interval(n int, value statistic) (bounds [2]float64, resamples int) {
	if n < minSamples || value == nil {
		return bounds, 0
	}
	draws := max(minResamples, min(maxResamples, bootstrapWork/n))
	source := rand.NewPCG(bootstrapSeed, uint64(n))
	weights := make([]int32, n)
	values := make([]float64, 0, draws)
	for range draws {
		clear(weights)
		for range n {
			// The high word of the product is uniform below n (D. Lemire, 2019); its bias of n/2^64 does not show. Written
			// out, since how rand.IntN maps numbers is not promised to stay.
			index, _ := bits.Mul64(source.Uint64(), uint64(n))
			weights[index]++
		}
		if v, ok := value(weights); ok {
			values = append(values, v)
		}
	}
	if 20*len(values) < 19*draws {
		return bounds, 0
	}
	slices.Sort(values)
	const tail = (1 - IntervalLevel) / 2
	return [2]float64{percentile(values, tail), percentile(values, 1-tail)}, len(values)
}

// percentile interpolates between the two nearest of sorted values (NumPy's "linear", type 7 of Hyndman and Fan).
func percentile(sorted []float64, share float64) float64 {
	at := share * float64(len(sorted)-1)
	below := math.Floor(at)
	low := sorted[int(below)]
	if int(below)+1 >= len(sorted) {
		return low
	}
	return low + (at-below)*(sorted[int(below)+1]-low)
}

// weightOf is how often a draw takes sample i.
func weightOf(weights []int32, i int) float64 {
	if weights == nil {
		return 1
	}
	return float64(weights[i])
}
