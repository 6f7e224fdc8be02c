package metrics

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

// The log of examples/breast-cancer/train.py as it wrote it: nothing to say.
func TestHealthOfAnHonestRun(t *testing.T) {
	log, found, err := Read("testdata/honest/metrics.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if found = append(found, Health(log)...); len(found) > 0 || len(log.Points) != 182 || log.Shape != ShapeJSONL {
		t.Errorf("%d points, shape %s, findings %v", len(log.Points), log.Shape, found)
	}
}

// logOf makes wide rows by step; f gives the fields of a step, "" leaves the row out.
func logOf(steps int, f func(i int) string) string {
	var b strings.Builder
	for i := range steps {
		if fields := f(i); fields != "" {
			fmt.Fprintf(&b, `{"step": %d, %s}`+"\n", 10*(i+1), fields)
		}
	}
	return b.String()
}

// wobble is a small irregular number that is the same each time.
func wobble(i int) float64 {
	_, fraction := math.Modf(math.Abs(math.Sin(float64(i)*12.9898) * 43758.5453))
	return fraction - 0.5
}

func falling(i int) float64 { return 2*math.Exp(-float64(i)/15) + 0.1 + 0.01*wobble(i) }

func TestHealthOfCurves(t *testing.T) {
	honest := logOf(60, func(i int) string {
		return fmt.Sprintf(`"train/loss": %.5f, "val/loss": %.5f, "val/accuracy": %.4f, "lr": 0.001`, falling(i), falling(i)+0.02+0.01*wobble(i+7), min(0.98, 0.5+0.02*float64(i)))
	})
	for _, c := range []struct {
		name, text string
		codes      []string
		line       int // of the first finding
	}{
		{"honest", honest, nil, 0},
		{"overfitting is not divergence", logOf(60, func(i int) string {
			return fmt.Sprintf(`"train/loss": %.5f, "val/loss": %.5f`, falling(i)/(1+float64(i)/10), 1+0.02*math.Abs(float64(i)-15)+0.01*wobble(i))
		}), nil, 0},
		{"noise about a good value", logOf(30, func(i int) string {
			return fmt.Sprintf(`"train/loss": %.5f`, math.Max(0.3, 2-float64(i)*0.06)+0.1*wobble(i)-0.005*float64(i))
		}), nil, 0},
		{"a spike that heals", logOf(60, func(i int) string {
			v := falling(i)
			if i == 30 {
				v = 50
			}
			return fmt.Sprintf(`"train/loss": %.5f`, v)
		}), nil, 0},
		{"a rising penalty is no measure", logOf(30, func(i int) string { return fmt.Sprintf(`"train/loss": %.5f, "train/kl": %d`, falling(i), i) }), nil, 0},
		{"diverged", logOf(40, func(i int) string {
			return fmt.Sprintf(`"train/loss": %.5g`, math.Max(falling(i), math.Exp(float64(i-15)/3)))
		}), []string{"series_diverged"}, 15},
		{"accuracy collapsed", logOf(20, func(i int) string {
			return fmt.Sprintf(`"train/accuracy": %.4f`, map[bool]float64{true: 0.5 + 0.04*float64(i), false: 0.1 + 0.001*float64(i)}[i < 10])
		}), []string{"series_diverged"}, 10},
		{"never learned", logOf(40, func(i int) string { return fmt.Sprintf(`"train/loss": %.5f`, 0.6931+0.002*wobble(i)) }), []string{"series_plateau"}, 1},
		{"stood still early", logOf(60, func(i int) string {
			return fmt.Sprintf(`"train/loss": %.6f`, 2*math.Exp(-float64(i)/2)+0.1+1e-5*wobble(i))
		}), []string{"series_plateau"}, 21},
		{"frozen", logOf(30, func(i int) string {
			if i > 12 && i < 20 {
				i = 12
			}
			return fmt.Sprintf(`"train/loss": %.5f`, falling(i))
		}), []string{"series_flat"}, 13},
		{"accuracy repeats honestly", logOf(30, func(i int) string { return fmt.Sprintf(`"train/loss": %.5f, "val/accuracy": 0.98245`, falling(i)) }), nil, 0},
		{"a loss of zero is not suspicious", logOf(30, func(i int) string { return fmt.Sprintf(`"train/loss": %.4f`, 2*math.Exp(-float64(i))) }), []string{"series_plateau"}, 11},
		{"rows pasted a second time", logOf(40, func(i int) string { return fmt.Sprintf(`"train/loss": %.5f`, falling(10+i%20)) }), []string{"series_copied"}, 21},
		{"copied from the other split", logOf(20, func(i int) string { return fmt.Sprintf(`"train/loss": %.5f, "val/loss": %.5f`, falling(i), falling(i)) }),
			[]string{"series_identical"}, 1},
		{"NaN rows left out", logOf(40, func(i int) string {
			if i > 20 && i < 25 {
				return ""
			}
			return fmt.Sprintf(`"train/loss": %.5f`, falling(i))
		}), []string{"steps_gap"}, 22},
		{"NaN values left out of their rows", logOf(40, func(i int) string {
			if i > 20 && i < 25 || i == 30 {
				return `"lr": 0.001`
			}
			return fmt.Sprintf(`"train/loss": %.5f, "lr": 0.001`, falling(i))
		}), []string{"values_filtered"}, 21},
		{"NaN to the end left out", logOf(40, func(i int) string {
			if i > 20 {
				return `"lr": 0.001`
			}
			return fmt.Sprintf(`"train/loss": %.5f, "lr": 0.001`, falling(i))
		}), []string{"series_ends_early"}, 21},
		{"validation every fifth row", logOf(60, func(i int) string {
			fields := fmt.Sprintf(`"train/loss": %.5f`, falling(i))
			if i%5 == 4 {
				fields += fmt.Sprintf(`, "val/loss": %.5f`, falling(i)+0.1)
			}
			return fields
		}), nil, 0},
		{"null in between", logOf(40, func(i int) string {
			if i == 30 {
				return `"lr": 0.001, "train/loss": null`
			}
			return fmt.Sprintf(`"train/loss": %.5f, "lr": 0.001`, falling(i))
		}), []string{"values_filtered"}, 30},
		{"resumed at zero", logOf(20, func(i int) string { return fmt.Sprintf(`"train/loss": %.5f`, falling(i)) }) +
			logOf(30, func(i int) string { return fmt.Sprintf(`"train/loss": %.5f`, falling(i+1)) }), []string{"steps_restarted"}, 21},
		{"resumed from a checkpoint, rows twice", logOf(20, func(i int) string { return fmt.Sprintf(`"train/loss": %.5f`, falling(i)) }) +
			`{"step": 160, "train/loss": 0.5}` + "\n", []string{"steps_backward"}, 21},
		{"steps that each epoch counts anew", func() string {
			var b strings.Builder
			for i := range 40 {
				fmt.Fprintf(&b, `{"epoch": %d, "step": %d, "train/loss": %.5f}`+"\n", i/10, i%10, falling(i))
			}
			return b.String()
		}(), nil, 0},
		{"step to zero while epochs go on", func() string {
			var b strings.Builder
			for i := range 40 {
				fmt.Fprintf(&b, `{"epoch": %d, "step": %d, "train/loss": %.5f}`+"\n", i/4, i%25, falling(i))
			}
			return b.String()
		}(), []string{"steps_restarted"}, 26},
		{"a loss that falls at once", logOf(60, func(i int) string {
			if i == 0 {
				return `"train/loss": 2.31`
			}
			return fmt.Sprintf(`"train/loss": %.5f`, 0.31-0.0005*float64(i)+0.001*wobble(i))
		}), nil, 0},
		{"a loss that falls by less than it scatters", logOf(60, func(i int) string { return fmt.Sprintf(`"train/loss": %.5f`, 0.7-0.002*float64(i)+0.06*wobble(i)) }), nil, 0},
		{"epochs with two decimals", func() string {
			var b strings.Builder
			for i := range 60 {
				fmt.Fprintf(&b, `{"epoch": %.2f, "train_loss": %.5f}`+"\n", float64(i)*0.0134, falling(i))
			}
			return b.String()
		}(), nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, found, err := Read(writeFile(t, "metrics.jsonl", c.text))
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, Health(log)...)
			if got := codes(found); !cmp.Equal(got, c.codes) {
				t.Fatalf("got %v, want %v\n%v", got, c.codes, found)
			}
			if len(found) > 0 && (found[0].Where.Line != c.line || found[0].Remedy == "") {
				t.Errorf("place %v, want line %d: %s", found[0].Where, c.line, found[0])
			}
		})
	}
}

// Many names take no time of their square, and thinning hides nothing that was said of rows.
func TestHealthOfManyNames(t *testing.T) {
	var b strings.Builder
	for i := range 12 {
		fmt.Fprintf(&b, `{"step": %d`, i)
		for n := range 1500 {
			fmt.Fprintf(&b, `, "val/loss_%d": %.6f`, n, falling(i)+float64(n))
		}
		b.WriteString("}\n")
	}
	path := writeFile(t, "metrics.jsonl", b.String())
	log, found, err := Read(path)
	if err != nil || len(found) > 0 || len(log.Points) != 18_000 {
		t.Fatal(len(log.Points), found, err)
	}
	if found := Health(log); len(found) > 0 {
		t.Errorf("%d findings, first %v", len(found), found[0])
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestEveryHealthFindingHasSeverity(t *testing.T) {
	log, _, err := Read(writeFile(t, "metrics.jsonl", logOf(40, func(int) string { return `"train/loss": 0.69315` })))
	if err != nil {
		t.Fatal(err)
	}
	found := Health(log)
	if len(found) != 1 || found[0].Severity != finding.Warning {
		t.Error(found)
	}
}
