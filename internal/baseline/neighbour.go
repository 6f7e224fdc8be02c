package baseline

// neighbourCost bounds the multiplications of all distances, about two seconds' worth. Fewer train rows are compared where
// it would be more, at least fewestNeighbours.
const (
	neighbourCost    = 1_500_000_000
	fewestNeighbours = 200
	maxNeighbours    = 50_000
	maxCells         = 8_000_000 // numbers kept of the train rows: 64 MB
)

// neighbours are encoded train rows with what is known of them.
type neighbours struct {
	width int
	rows  []float64
	index []int // number of the row among the train rows with a target
}

// sampleOf says how many of n train rows are compared with each of m test rows of that width.
func sampleOf(n, m, width int) int {
	limit := neighbourCost / max(1, m*max(width, 1))
	limit = min(max(limit, fewestNeighbours), maxNeighbours, maxCells/max(width, 1))
	return min(n, max(limit, 1))
}

// nearest is the position of the row closest to x by squared Euclidean distance, the first of equals.
func (n *neighbours) nearest(x []float64) int {
	best, least := 0, -1.0
	for i := range n.index {
		row := n.rows[i*n.width : (i+1)*n.width]
		distance := 0.0
		for j, v := range row {
			d := v - x[j]
			distance += d * d
			if least >= 0 && distance >= least {
				break
			}
		}
		if least < 0 || distance < least {
			best, least = i, distance
		}
	}
	return best
}
