package baseline

import (
	"gonum.org/v1/gonum/mat"
)

// Bounds of ridge regression: columns, outputs (classes), and multiplications in its normal equations.
const (
	maxRidgeWidth = 512
	maxClasses    = 100
	ridgeCost     = 4_000_000_000
	// lambda is the penalty on the weights of the standardised columns, 1 as scikit-learn's Ridge has it; the intercept
	// is free.
	lambda = 1.0
)

// ridge gathers the normal equations of least squares with a penalty; the last column is the intercept.
type ridge struct {
	gram    []float64 // upper triangle of (width+1)², row by row
	against *mat.Dense
	width   int
	row     []float64
	weights *mat.Dense // nil until solve
}

func newRidge(width, outputs int) *ridge {
	return &ridge{gram: make([]float64, (width+1)*(width+1)), against: mat.NewDense(width+1, outputs, nil), width: width, row: make([]float64, width+1)}
}

// add takes a row x with its outputs y.
func (r *ridge) add(x, y []float64) {
	copy(r.row, x)
	r.row[r.width] = 1
	n := r.width + 1
	for i, v := range r.row {
		if v == 0 {
			continue
		}
		line := r.gram[i*n : (i+1)*n]
		for j := i; j < n; j++ {
			line[j] += v * r.row[j]
		}
		out := r.against.RawRowView(i)
		for k, t := range y {
			out[k] += v * t
		}
	}
}

// solve finds the weights; false where the equations are singular.
func (r *ridge) solve() bool {
	n := r.width + 1
	for i := range r.width {
		r.gram[i*n+i] += lambda
	}
	var factor mat.Cholesky
	if !factor.Factorize(mat.NewSymDense(n, r.gram)) {
		return false
	}
	var weights mat.Dense
	if err := factor.SolveTo(&weights, r.against); err != nil {
		return false // too close to singular to mean anything
	}
	r.weights = &weights
	return true
}

// predict writes the outputs for x.
func (r *ridge) predict(x, out []float64) {
	copy(out, r.weights.RawRowView(r.width))
	for i, v := range x {
		if v == 0 {
			continue
		}
		for k, w := range r.weights.RawRowView(i) {
			out[k] += v * w
		}
	}
}
