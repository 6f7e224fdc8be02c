package metrics

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// The scales of a plot's vertical axes.
const (
	ScaleAuto   = "" // logarithmic where all values are positive and the largest is more than 30 times the smallest
	ScaleLinear = "linear"
	ScaleLog    = "log" // linear where a value is not positive
)

// PlotOptions says how a plot looks. The zero value is a plot of 900 by 480 pixels.
type PlotOptions struct {
	Width, Height int // in pixels, at least 320 by 200 and at most 2400 each
	Title         string
	Scale         string
	// Best is the point to mark as that of the best checkpoint. Without it the best value of the first validation series is
	// marked; where there is none, nothing is.
	Best *Point
}

// Bounds of one picture: more lines can't be told apart.
const (
	maxPlotted = 7
	maxPanels  = 3
)

// plotted is one line of a panel.
type plotted struct {
	key    Key
	points []*Point
	x      []float64
	color  color.RGBA
}

// panel is one pair of axes. Measures that go down and those that go up have panels of their own.
type panel struct {
	lines []plotted
	y     axis
	box   image.Rectangle
}

// picture is a plot being drawn.
type picture struct {
	img    *image.RGBA
	opts   PlotOptions
	x      axis
	xName  string // epoch, step or row
	panels []*panel
	more   int // series that are left out
	best   *Point
}

// Plot draws series over epochs (or steps) as a PNG: every value as it was logged, nothing smoothed, NaN and infinities as
// crosses at the top, the best one marked. nil keys are the series named loss in every split, else the first measure that
// the log has. It refuses, with a *finding.Refused, when there is nothing to draw (metrics_nothing_to_plot).
func Plot(log *Log, keys []Key, opts PlotOptions) ([]byte, error) {
	if opts.Width == 0 {
		opts.Width = 900
	}
	if opts.Height == 0 {
		opts.Height = 480
	}
	opts.Width, opts.Height = min(max(opts.Width, 320), 2400), min(max(opts.Height, 200), 2400)
	p := &picture{opts: opts, best: opts.Best}
	if len(keys) == 0 {
		keys = lossKeys(log)
	}
	p.gather(log, keys)
	if len(p.panels) == 0 {
		names := make([]string, 0, 10)
		for _, key := range log.Names[:min(10, len(log.Names))] {
			names = append(names, key.String())
		}
		return nil, finding.Refuse(finding.Finding{
			Code: "metrics_nothing_to_plot", Severity: finding.Warning, What: fmt.Sprintf("%s has no values of %v", log.Path, keys),
			Where: &finding.Where{Path: log.Path}, Expected: "a series of the log: " + strings.Join(names, ", "), Remedy: "name one of them",
		})
	}
	p.layout()
	p.draw()
	var out bytes.Buffer
	if err := png.Encode(&out, p.img); err != nil {
		return nil, fmt.Errorf("encode plot: %w", err)
	}
	return out.Bytes(), nil
}

// lossKeys are the series to draw when none is named.
func lossKeys(l *Log) []Key {
	var keys []Key
	for _, key := range l.Names {
		if key.Name == "loss" {
			keys = append(keys, key)
		}
	}
	for _, key := range l.Names {
		if first := len(keys) == 0; first && direction(key) != "" || !first && key.Name == keys[0].Name && keys[0].Name != "loss" && key != keys[0] {
			keys = append(keys, key)
		}
	}
	return keys
}

// Best returns the best finite value of a series by its measure's better side, the first of equal ones; false for a name
// that has none.
func (l *Log) Best(k Key) (Point, bool) {
	mode := direction(k)
	var best *Point
	for i := range l.Points {
		p := &l.Points[i]
		if p.Key() != k || p.NonFinite != "" || mode == "" {
			continue
		}
		if best == nil || mode == "min" && p.Value < best.Value || mode == "max" && p.Value > best.Value {
			best = p
		}
	}
	if best == nil {
		return Point{}, false
	}
	return *best, true
}

// palette is that of M. Okabe and K. Ito (2008), which people with any colour vision can tell apart.
var palette = [maxPlotted]color.RGBA{
	{0x00, 0x72, 0xB2, 0xFF}, {0xD5, 0x5E, 0x00, 0xFF}, {0x00, 0x9E, 0x73, 0xFF}, {0xCC, 0x79, 0xA7, 0xFF},
	{0xE6, 0x9F, 0x00, 0xFF}, {0x56, 0xB4, 0xE9, 0xFF}, {0x40, 0x40, 0x40, 0xFF},
}

// gather takes the series and sorts them into panels.
func (p *picture) gather(log *Log, keys []Key) {
	of := map[Key][]*Point{}
	for i := range log.Points {
		point := &log.Points[i]
		of[point.Key()] = append(of[point.Key()], point)
	}
	p.xName = xAxisOf(of, keys)
	panels := map[string]*panel{}
	taken := 0
	for _, key := range keys {
		points := of[key]
		if len(points) == 0 {
			continue
		}
		side := direction(key)
		if panels[side] == nil && len(p.panels) < maxPanels {
			panels[side] = &panel{}
			p.panels = append(p.panels, panels[side])
		}
		if panels[side] == nil || taken >= maxPlotted {
			p.more++
			continue
		}
		line := plotted{key: key, points: points, color: palette[taken]}
		for i, point := range points {
			line.x = append(line.x, xOf(point, p.xName, i))
		}
		panels[side].lines = append(panels[side].lines, line)
		taken++
		if best, ok := log.Best(key); ok && p.best == nil && key.Split == "val" && len(points) > 1 {
			p.best = &best
		}
	}
}

// xAxisOf is epoch where every point has one and no series has two values for one, else step, else the row.
func xAxisOf(of map[Key][]*Point, keys []Key) string {
	epochs, steps := true, true
	for _, key := range keys {
		seen := map[float64]bool{}
		for _, point := range of[key] {
			steps = steps && point.Step != nil
			epochs = epochs && point.Epoch != nil && !seen[*point.Epoch]
			if point.Epoch != nil {
				seen[*point.Epoch] = true
			}
		}
	}
	switch {
	case epochs:
		return "epoch"
	case steps:
		return "step"
	}
	for _, key := range keys {
		for _, point := range of[key] {
			if point.Epoch == nil {
				return "row"
			}
		}
	}
	return "epoch"
}

func xOf(point *Point, name string, row int) float64 {
	switch {
	case name == "epoch" && point.Epoch != nil:
		return *point.Epoch
	case name == "step" && point.Step != nil:
		return float64(*point.Step)
	case name == "row":
		return float64(row + 1)
	}
	return math.NaN() // only a best point from elsewhere
}

// layout finds the range of every axis and the boxes of the panels.
func (p *picture) layout() {
	p.img = image.NewRGBA(image.Rect(0, 0, p.opts.Width, p.opts.Height))
	var xs []float64
	for _, one := range p.panels {
		var ys []float64
		for _, line := range one.lines {
			xs = append(xs, line.x...)
			for _, point := range line.points {
				if point.NonFinite == "" {
					ys = append(ys, point.Value)
				}
			}
		}
		one.y = newAxis(ys, p.opts.Scale, 0.05)
	}
	p.x = newAxis(xs, ScaleLinear, 0.02)
	const left, right, bottom, gap = 72, 20, 44, 34
	top := 34
	if p.opts.Title != "" {
		top += 24
	}
	height := (p.opts.Height - top - bottom - gap*(len(p.panels)-1)) / len(p.panels)
	for i, one := range p.panels {
		y := top + i*(height+gap)
		one.box = image.Rect(left, y, p.opts.Width-right, y+height)
	}
}
