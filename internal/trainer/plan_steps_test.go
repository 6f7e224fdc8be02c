package trainer

import (
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
)

// The steps of a plan are those of the optimizer: accumulation and processes count, and nothing is said of an incomplete last
// batch that is not known.
func TestStepsOfAPlan(t *testing.T) {
	rows := func(counts ...int64) (m contract.DataManifest) {
		for _, n := range counts {
			m.Files = append(m.Files, contract.DataFile{Path: "train.csv", Part: "train", Rows: &n})
		}
		return m
	}
	for _, c := range []struct {
		micro, accumulation, processes, epochs any
		data                                   contract.DataManifest
		want                                   string
	}{
		{10, nil, nil, 3, rows(100), "optimizer steps in all = 10 × 3 epochs = 30"},
		{10, 2, 5.0, 3, rows(100), "optimizer steps in all = 1 × 3 epochs = 3"},
		{10, 2, nil, 3, rows(60, 40), "optimizer steps in all = 5 × 3 epochs = 15"},
		{16, 1, 1, 40, rows(398), "optimizer steps in all = 960 to 1000 over 40 epochs"},
		{200, nil, nil, 2, rows(100), "optimizer steps in all = 0 to 2 over 2 epochs"},
		{nil, nil, nil, 2, rows(100), "steps: unknown"},
		{16, nil, nil, 2, contract.DataManifest{Files: []contract.DataFile{{Part: "train"}}}, "steps: unknown"},
	} {
		plan := Plan{Leaves: map[string]Leaf{"batch.micro": {Value: c.micro}, "batch.accumulation": {Value: c.accumulation},
			"batch.world_size": {Value: c.processes}, "epochs": {Value: c.epochs}}}
		got := strings.Join(stepEstimates(plan, c.data), "\n")
		if !strings.Contains(got, c.want) {
			t.Errorf("%v × %v × %v, %v epochs: %q, want %q", c.micro, c.accumulation, c.processes, c.epochs, got, c.want)
		}
	}
}
