package baseline

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/trainwright/trainwright/internal/finding"
)

// Bounds of a feature table: levels of a category that become columns of their own, and levels counted before a column
// counts as text.
const (
	maxLevels  = 20
	maxCounted = 1000
)

// feature is a column as the train part shows it.
type feature struct {
	name          string
	train, test   int // position in each file
	n             float64
	mean, squares float64 // Welford's running moments
	words         map[string]int
	numeric       bool // every value so far is a number or missing
	levels        []string
}

func newFeature(name string, train, test int) *feature {
	return &feature{name: name, train: train, test: test, numeric: true, words: map[string]int{}}
}

// see takes a value of the train part.
func (f *feature) see(value string) {
	if missing(value) {
		return
	}
	if len(f.words) <= maxCounted {
		f.words[value]++
	}
	if v, ok := number(value); ok && f.numeric {
		f.n++
		delta := v - f.mean
		f.mean += delta / f.n
		f.squares += delta * (v - f.mean)
	} else if !ok {
		f.numeric = false
	}
}

// std is the population's deviation.
func (f *feature) std() float64 { return math.Sqrt(f.squares / math.Max(f.n, 1)) }

// encoder turns rows into numbers: numeric columns standardised with the train part's mean and deviation (a missing
// value becomes the mean), categories of at most maxLevels levels as one column of 0 and 1 for each.
type encoder struct {
	used  []*feature
	width int
	left  []string // columns that are left out: constant, or text
}

// fit decides how each column is encoded.
func fit(features []*feature) *encoder {
	e := &encoder{}
	for _, f := range features {
		switch {
		case f.numeric && f.n > 0 && f.std() > 0 && !math.IsInf(f.std(), 0):
			e.width++
		case !f.numeric && len(f.words) > 1 && len(f.words) <= maxLevels:
			for word := range f.words {
				f.levels = append(f.levels, word)
			}
			slices.Sort(f.levels)
			e.width += len(f.levels)
		default:
			e.left = append(e.left, f.name)
			continue
		}
		e.used = append(e.used, f)
	}
	return e
}

// row encodes one record into out, which has width numbers. of picks the position of a feature in the file.
func (e *encoder) row(fields [][]byte, of func(*feature) int, out []float64) {
	at := 0
	for _, f := range e.used {
		value := trimmed(fields[of(f)])
		if f.numeric {
			out[at] = 0
			if v, ok := number(value); ok {
				out[at] = (v - f.mean) / f.std()
			}
			at++
			continue
		}
		for _, level := range f.levels {
			out[at] = 0
			if level == value {
				out[at] = 1
			}
			at++
		}
	}
}

func inTrain(f *feature) int { return f.train }
func inTest(f *feature) int  { return f.test }

// says is what a Why tells of the features.
func (e *encoder) says() string {
	text := fmt.Sprintf("%d columns", e.width)
	if len(e.left) > 0 {
		text += fmt.Sprintf(", without %s (constant or text)", finding.Few(e.left, 5))
	}
	return text
}

// stride is k such that every k-th of n rows makes at most limit.
func stride(n, limit int) int {
	if limit < 1 {
		limit = 1
	}
	return max(1, (n+limit-1)/limit)
}

// sorted gives the keys of counts, the most frequent first, then by name.
func sorted(counts map[string]int) []string {
	keys := make([]string, 0, len(counts))
	for key := range counts {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	return keys
}
