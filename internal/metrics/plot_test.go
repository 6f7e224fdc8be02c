package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

func decodedPlot(t *testing.T, log *Log, keys []Key, opts PlotOptions) image.Image {
	t.Helper()
	data, err := Plot(log, keys, opts)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Plot(log, keys, opts)
	if err != nil || !bytes.Equal(data, again) {
		t.Error("the same plot has other bytes", err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// extent is the box of all pixels of a colour.
func extent(img image.Image, c color.RGBA, within image.Rectangle) image.Rectangle {
	var box image.Rectangle
	for y := within.Min.Y; y < within.Max.Y; y++ {
		for x := within.Min.X; x < within.Max.X; x++ {
			if r, g, b, _ := img.At(x, y).RGBA(); uint8(r>>8) == c.R && uint8(g>>8) == c.G && uint8(b>>8) == c.B {
				box = box.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return box
}

func TestPlotOfTheHonestRun(t *testing.T) {
	log, _, err := Read("testdata/honest/metrics.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	img := decodedPlot(t, log, nil, PlotOptions{Title: "breast cancer"})
	if img.Bounds() != image.Rect(0, 0, 900, 480) {
		t.Fatal(img.Bounds())
	}
	inside := image.Rect(73, 58, 880, 436)
	train, val := extent(img, palette[0], inside), extent(img, palette[1], inside)
	if train.Dx() < 700 || train.Dy() < 300 || val.Dx() < 700 || val.Min.Y < train.Min.Y+200 {
		t.Errorf("train %v, val %v", train, val)
	}
	if test := extent(img, palette[2], inside); test.Dx() < 6 || test.Dx() > 10 || test.Dy() < 6 || test.Dy() > 10 {
		t.Errorf("the one value of test is no dot: %v", test)
	}
	// the dashed line stands at the best epoch, 21 of 60
	best, ok := log.Best(Key{"val", "loss"})
	if dashes := extent(img, softColor, inside); !ok || *best.Epoch != 21 || dashes.Dx() != 1 || dashes.Min.X != 350 || dashes.Dy() < 300 {
		t.Errorf("best %+v, line %v", best, dashes)
	}
}

func TestPlotKeepsPanelsApart(t *testing.T) {
	log, _, err := Read("testdata/honest/metrics.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	chosen, _ := log.At(Key{"val", "loss"}, nil, new(float64(35)))
	img := decodedPlot(t, log, log.Names, PlotOptions{Width: 800, Height: 600, Best: &chosen})
	loss, accuracy := extent(img, palette[0], img.Bounds()), extent(img, palette[2], img.Bounds())
	if loss.Max.Y >= accuracy.Min.Y || accuracy.Dx() < 600 {
		t.Errorf("loss %v, accuracy %v", loss, accuracy)
	}
}

func TestPlotShowsWhatIsNotFinite(t *testing.T) {
	log, _, err := Read(writeFile(t, "m.jsonl", logOf(3000, func(i int) string {
		if i == 1500 {
			return `"train/loss": NaN`
		}
		return fmt.Sprintf(`"train/loss": %g`, 1000*falling(i/20))
	})))
	if err != nil {
		t.Fatal(err)
	}
	img := decodedPlot(t, log, nil, PlotOptions{Width: 500, Height: 300})
	if cross := extent(img, alarmColor, image.Rect(73, 34, 480, 60)); cross.Dx() < 5 || math.Abs(float64(cross.Min.X+cross.Max.X)/2-276) > 3 {
		t.Errorf("no cross in the middle of the top: %v", cross)
	}
}

func TestPlotRefusesWhatIsNotThere(t *testing.T) {
	log, _, err := Read("testdata/honest/metrics.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		log  *Log
		keys []Key
	}{{log, []Key{{"val", "rmse"}}}, {&Log{Path: "m"}, nil}} {
		_, err := Plot(c.log, c.keys, PlotOptions{})
		var refused *finding.Refused
		if !errors.As(err, &refused) || refused.Findings[0].Code != "metrics_nothing_to_plot" {
			t.Errorf("%v: %v", c.keys, err)
		}
	}
}

// Whatever the values are, there is a picture.
func TestPlotOfOddValues(t *testing.T) {
	for _, text := range []string{
		`{"loss": 1}`, `{"loss": NaN}`, `{"step": 1, "loss": 0}` + "\n" + `{"step": 1, "loss": 0}`, `{"epoch": 1, "loss": 1e308}` + "\n" + `{"epoch": 2, "loss": -1e308}`,
		`{"step": 9223372036854775807, "loss": 1e-320}` + "\n" + `{"step": -9223372036854775807, "loss": 2e-320}`, `{"loss": 1e300}` + "\n" + `{"loss": 1e-300}`,
		`{"epoch": 1e308, "loss": 1}` + "\n" + `{"epoch": -1e308, "loss": 2}`, `{"val/a": 5}`, strings.Repeat(`{"step": 3, "val/loss": 0.5}`+"\n", 3) + `{"step": 1, "val/loss": 0.7}`,
	} {
		log, _, err := Read(writeFile(t, "m.jsonl", text))
		if err != nil {
			t.Fatal(err)
		}
		for _, scale := range []string{ScaleAuto, ScaleLinear, ScaleLog} {
			if _, err := Plot(log, log.Names, PlotOptions{Width: 320, Height: 200, Scale: scale}); err != nil {
				t.Error(text, scale, err)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		scale  string
		whole  bool
		log    bool
		want   string
	}{
		{"epochs", []float64{1, 60}, ScaleLinear, true, false, "0 20 40 60"},
		{"steps", []float64{0, 30000}, ScaleLinear, true, false, "0 10k 20k 30k"},
		{"loss", []float64{0.06, 0.36}, ScaleAuto, false, false, "0.1 0.2 0.3"},
		{"narrow", []float64{0.98112, 0.98214}, ScaleAuto, false, false, "0.9815 0.982"},
		{"wide", []float64{0.003, 3}, ScaleAuto, false, true, "0.01 0.1 1"},
		{"one decade", []float64{2, 80}, ScaleAuto, false, true, "2 5 10 20 50"},
		{"few epochs", []float64{1, 3}, ScaleLinear, true, false, "1 2 3"},
		{"negative", []float64{-2, 2}, ScaleLog, false, false, "-2 0 2"},
		{"tiny", []float64{1e-7, 2e-7}, ScaleAuto, false, false, "1e-07 1.5e-07 2e-07"},
		{"one value", []float64{5}, ScaleAuto, false, false, "4.8 5 5.2"},
		{"none", nil, ScaleAuto, false, false, "0 0.5 1"},
	} {
		a := newAxis(c.values, c.scale, 0.05)
		texts := make([]string, 0, 10)
		for _, tick := range a.ticks(4, c.whole) {
			texts = append(texts, tick.text)
			if share := a.at(tick.value); share < -1e-9 || share > 1+1e-9 {
				t.Errorf("%s: %s lies at %v", c.name, tick.text, share)
			}
		}
		if got := strings.Join(texts, " "); got != c.want || a.log != c.log {
			t.Errorf("%s: %q log %v, want %q", c.name, got, a.log, c.want)
		}
	}
}

func TestColumnsKeepWhatIsSeen(t *testing.T) {
	run := []vec{{1, 5}, {1.2, 9}, {1.4, 1}, {1.6, 5}, {1.8, 6}, {2.5, 3}}
	want := []vec{{1, 5}, {1.2, 9}, {1.4, 1}, {1.8, 6}, {2.5, 3}}
	if diff := cmp.Diff(want, columns(run), cmp.AllowUnexported(vec{})); diff != "" {
		t.Error(diff)
	}
}

func TestPlotAxisOfMixedRows(t *testing.T) {
	for text, want := range map[string]string{
		`{"epoch": 1, "step": 10, "loss": 1}` + "\n" + `{"epoch": 2, "step": 20, "loss": 1}`: "epoch",
		`{"epoch": 1, "step": 10, "loss": 1}` + "\n" + `{"epoch": 1, "step": 20, "loss": 1}`: "step",
		`{"epoch": 1, "loss": 1}` + "\n" + `{"epoch": 1, "loss": 1}`:                         "epoch",
		`{"epoch": 1, "loss": 1}` + "\n" + `{"step": 5, "loss": 1}`:                          "row",
		`{"loss": 1}`: "row",
	} {
		log, _, err := Read(writeFile(t, "m.jsonl", text))
		if err != nil {
			t.Fatal(err)
		}
		p := &picture{}
		p.gather(log, log.Names)
		if p.xName != want {
			t.Errorf("%s: %s, want %s", text, p.xName, want)
		}
	}
}
