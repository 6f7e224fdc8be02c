package metrics

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

var (
	inkColor   = color.RGBA{0x22, 0x22, 0x22, 0xFF}
	softColor  = color.RGBA{0x66, 0x66, 0x66, 0xFF}
	gridColor  = color.RGBA{0xE4, 0xE4, 0xE4, 0xFF}
	frameColor = color.RGBA{0xA8, 0xA8, 0xA8, 0xFF}
	alarmColor = color.RGBA{0xC0, 0x00, 0x20, 0xFF}
)

// parsedFont is parsed when the first picture is drawn, since most calls draw none.
var parsedFont = sync.OnceValue(func() *opentype.Font {
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil
	}
	return parsed
})

// face is the font at a size in pixels; a bitmap font should the other one fail. A face is not safe for concurrent use, so
// every picture makes its own.
func face(size float64) font.Face {
	if parsed := parsedFont(); parsed != nil {
		if made, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull}); err == nil {
			return made
		}
	}
	return basicfont.Face7x13
}

// draw paints the whole picture.
func (p *picture) draw() {
	draw.Draw(p.img, p.img.Bounds(), image.White, image.Point{}, draw.Src)
	small, large := face(12), face(15)
	if p.opts.Title != "" {
		p.text(large, inkColor, p.panels[0].box.Min.X, 24, p.fit(large, p.opts.Title, p.opts.Width-p.panels[0].box.Min.X-20))
	}
	for i, one := range p.panels {
		p.axes(small, one, i == len(p.panels)-1)
	}
	last := p.panels[len(p.panels)-1].box
	p.text(small, softColor, (last.Min.X+last.Max.X)/2-p.width(small, p.xName)/2, last.Max.Y+36, p.xName)
	p.markBestLine()
	for _, one := range p.panels {
		for _, line := range one.lines {
			p.line(one, line)
		}
	}
	for i, one := range p.panels {
		p.legend(small, one, i == len(p.panels)-1)
	}
	p.markBest(small)
}

// axes draws grid, frame and numbers of a panel; the lowest has the numbers of the horizontal axis that all share.
func (p *picture) axes(f font.Face, one *panel, lowest bool) {
	box := one.box
	for _, t := range one.y.ticks(max(3, box.Dy()/45), false) {
		y := p.y(one, t.value)
		p.fill(image.Rect(box.Min.X, int(y), box.Max.X, int(y)+1), gridColor)
		p.text(f, softColor, box.Min.X-8-p.width(f, t.text), int(y)+4, t.text)
	}
	for _, t := range p.x.ticks(max(3, box.Dx()/90), p.xName != "epoch" || p.x.high-p.x.low > 4) {
		x := int(p.xAt(one, t.value))
		p.fill(image.Rect(x, box.Min.Y, x+1, box.Max.Y), gridColor)
		if lowest {
			p.text(f, softColor, x-p.width(f, t.text)/2, box.Max.Y+17, t.text)
		}
	}
	for _, edge := range []image.Rectangle{
		image.Rect(box.Min.X, box.Min.Y, box.Min.X+1, box.Max.Y), image.Rect(box.Min.X, box.Max.Y, box.Max.X, box.Max.Y+1),
	} {
		p.fill(edge, frameColor)
	}
	name := one.lines[0].key.Name
	for _, line := range one.lines {
		if line.key.Name != name {
			name = "value"
		}
	}
	p.text(f, softColor, 8, box.Min.Y-10, p.fit(f, name, box.Min.X-16))
}

// legend names the lines of a panel above it, and what else the picture shows.
func (p *picture) legend(f font.Face, one *panel, last bool) {
	x, y := one.box.Min.X, one.box.Min.Y-10
	scale, broken := "", false
	if one.y.log {
		scale = "log scale"
	}
	for _, line := range one.lines {
		for _, point := range line.points {
			broken = broken || point.NonFinite != ""
		}
		name := p.fit(f, line.key.String(), 260)
		if x+24+p.width(f, name) > one.box.Max.X-90 {
			p.text(f, softColor, x, y, "…")
			break
		}
		p.stroke([]vec{{float64(x), float64(y - 4)}, {float64(x + 18), float64(y - 4)}}, 2.5, line.color)
		p.text(f, inkColor, x+24, y, name)
		x += 24 + p.width(f, name) + 20
	}
	if broken {
		p.cross(vec{float64(x + 5), float64(y - 4)})
		p.text(f, alarmColor, x+14, y, "not finite")
		x += 14 + p.width(f, "not finite") + 20
	}
	if last && p.more > 0 {
		p.text(f, softColor, x, y, fmt.Sprintf("and %d more series", p.more))
	}
	p.text(f, softColor, one.box.Max.X-p.width(f, scale), y, scale)
}

// vec is a place on the picture, in pixels.
type vec struct{ x, y float64 }

func (p *picture) xAt(one *panel, v float64) float64 {
	return float64(one.box.Min.X) + p.x.at(v)*float64(one.box.Dx())
}

func (p *picture) y(one *panel, v float64) float64 {
	return float64(one.box.Max.Y) - one.y.at(v)*float64(one.box.Dy())
}

// line draws a series: its finite values joined, a gap where one is not, a cross at the top for each of those. A value that
// stands alone is a dot.
func (p *picture) line(one *panel, l plotted) {
	var run []vec
	end := func() {
		if len(run) == 1 {
			p.disc(run[0], 4, l.color)
		} else if len(run) > 1 {
			width := 2.0
			if len(l.points) > one.box.Dx() { // so dense that a full line would hide the others
				width = 1
			}
			p.stroke(columns(run), width, l.color)
		}
		run = run[:0]
	}
	for i, point := range l.points {
		x := p.xAt(one, l.x[i])
		if point.NonFinite != "" {
			end()
			p.cross(vec{x, float64(one.box.Min.Y + 6)})
			continue
		}
		if i > 0 && l.x[i] < l.x[i-1] { // the run started over: no line leads back
			end()
		}
		run = append(run, vec{x, p.y(one, point.Value)})
	}
	end()
	if len(l.points) <= 40 {
		for i, point := range l.points {
			if point.NonFinite == "" {
				p.disc(vec{p.xAt(one, l.x[i]), p.y(one, point.Value)}, 2.5, l.color)
			}
		}
	}
}

// columns keeps of every pixel column the first, lowest, highest and last place, in their order: the same picture from
// far fewer points.
func columns(run []vec) []vec {
	kept := make([]vec, 0, min(len(run), 10_000))
	for i := 0; i < len(run); {
		j, low, high := i, i, i
		for ; j < len(run) && int(run[j].x) == int(run[i].x); j++ {
			if run[j].y < run[low].y {
				low = j
			}
			if run[j].y > run[high].y {
				high = j
			}
		}
		previous := -1
		for _, k := range []int{i, min(low, high), max(low, high), j - 1} {
			if k != previous {
				kept = append(kept, run[k])
			}
			previous = k
		}
		i = j
	}
	return kept
}

// markBestLine draws the upright line behind the curves.
func (p *picture) markBestLine() {
	x := p.bestX()
	if math.IsNaN(x) {
		return
	}
	for _, one := range p.panels {
		at := int(p.xAt(one, x))
		for y := one.box.Min.Y; y < one.box.Max.Y; y += 7 {
			p.fill(image.Rect(at, y, at+1, min(y+4, one.box.Max.Y)), softColor)
		}
	}
}

func (p *picture) bestX() float64 {
	if p.best == nil {
		return math.NaN()
	}
	x := math.NaN()
	if p.xName == "row" {
		for _, one := range p.panels {
			for _, line := range one.lines {
				for i, point := range line.points {
					if line.key == p.best.Key() && point.Start == p.best.Start {
						x = line.x[i]
					}
				}
			}
		}
	} else {
		x = xOf(p.best, p.xName, 0)
	}
	if share := p.x.at(x); !(share >= 0 && share <= 1) {
		return math.NaN()
	}
	return x
}

// markBest draws the best value and says what it is.
func (p *picture) markBest(f font.Face) {
	x := p.bestX()
	if math.IsNaN(x) {
		return
	}
	for _, one := range p.panels {
		for _, line := range one.lines {
			if line.key != p.best.Key() || p.best.NonFinite != "" {
				continue
			}
			at := vec{p.xAt(one, x), p.y(one, p.best.Value)}
			p.disc(at, 6, color.RGBA{0xFF, 0xFF, 0xFF, 0xFF})
			p.disc(at, 4.5, line.color)
			p.label(f, one, at, fmt.Sprintf("best %s %.4g at %s %g", p.fit(f, line.key.String(), 160), p.best.Value, p.xName, x))
		}
	}
}

// label writes beside the upright line through a place, at the height nearest to it where no curve is in the way.
func (p *picture) label(f font.Face, one *panel, at vec, text string) {
	box, width := one.box, p.width(f, text)
	x := int(at.x) + 10
	if x+width > box.Max.X {
		x = int(at.x) - 10 - width
	}
	y := int(at.y) - 10
	nearest := math.Inf(1)
	for candidate := box.Min.Y + 16; candidate < box.Max.Y-6; candidate += 6 {
		distance := math.Abs(float64(candidate) - at.y)
		if distance < nearest && !p.crossed(one, image.Rect(x-4, candidate-16, x+width+4, candidate+8)) {
			nearest, y = distance, candidate
		}
	}
	y = min(max(y, box.Min.Y+16), box.Max.Y-6)
	p.fill(image.Rect(x-3, y-12, x+width+3, y+4), color.RGBA{0xFF, 0xFF, 0xFF, 0xFF})
	p.text(f, inkColor, x, y, text)
}

// crossed says whether a curve of the panel runs through a box.
func (p *picture) crossed(one *panel, box image.Rectangle) bool {
	for _, line := range one.lines {
		before := vec{math.NaN(), math.NaN()}
		for i, point := range line.points {
			if point.NonFinite != "" {
				continue
			}
			place := vec{p.xAt(one, line.x[i]), p.y(one, point.Value)}
			from, to := math.Max(math.Min(before.x, place.x), float64(box.Min.X)), math.Min(math.Max(before.x, place.x), float64(box.Max.X))
			if len(line.points) == 1 {
				before, from, to = place, place.x, place.x
			}
			if from <= to && to >= float64(box.Min.X) && from <= float64(box.Max.X) &&
				math.Max(before.y, place.y) >= float64(box.Min.Y) && math.Min(before.y, place.y) <= float64(box.Max.Y) {
				return true
			}
			before = place
		}
	}
	return false
}

func (p *picture) fill(r image.Rectangle, c color.RGBA) {
	draw.Draw(p.img, r, image.NewUniform(c), image.Point{}, draw.Src)
}

func (p *picture) text(f font.Face, c color.RGBA, x, y int, text string) {
	drawer := font.Drawer{Dst: p.img, Src: image.NewUniform(c), Face: f, Dot: fixed.P(x, y)}
	drawer.DrawString(text)
}

func (p *picture) width(f font.Face, text string) int { return font.MeasureString(f, text).Ceil() }

// fit shortens a text to a width.
func (p *picture) fit(f font.Face, text string, width int) string {
	runes := []rune(clip(text))
	for len(runes) > 1 && p.width(f, string(runes)) > width {
		runes = append(runes[:len(runes)-2], '…')
	}
	return string(runes)
}

// stroke draws a line through places, with round joins. All parts turn the same way, so that the rasterizer joins and does
// not cancel them.
func (p *picture) stroke(places []vec, width float64, c color.RGBA) {
	var parts [][]vec
	for i := 1; i < len(places); i++ {
		a, b := places[i-1], places[i]
		length := math.Hypot(b.x-a.x, b.y-a.y)
		if length == 0 {
			continue
		}
		nx, ny := -(b.y-a.y)/length*width/2, (b.x-a.x)/length*width/2
		parts = append(parts, []vec{{a.x - nx, a.y - ny}, {b.x - nx, b.y - ny}, {b.x + nx, b.y + ny}, {a.x + nx, a.y + ny}})
	}
	if width >= 2 {
		for _, at := range places {
			parts = append(parts, circle(at, width/2))
		}
	}
	p.paint(parts, c)
}

func (p *picture) disc(at vec, radius float64, c color.RGBA) { p.paint([][]vec{circle(at, radius)}, c) }

// paint fills polygons with one colour. Only the part of the picture that they touch is worked on.
func (p *picture) paint(polygons [][]vec, c color.RGBA) {
	var box image.Rectangle
	for _, polygon := range polygons {
		for _, place := range polygon {
			x, y := int(math.Floor(place.x)), int(math.Floor(place.y))
			box = box.Union(image.Rect(x, y, x+2, y+2))
		}
	}
	if box = box.Intersect(p.img.Bounds()); box.Empty() {
		return
	}
	r := vector.NewRasterizer(box.Dx(), box.Dy())
	for _, polygon := range polygons {
		for i, place := range polygon {
			x, y := float32(place.x-float64(box.Min.X)), float32(place.y-float64(box.Min.Y))
			if i == 0 {
				r.MoveTo(x, y)
			} else {
				r.LineTo(x, y)
			}
		}
		r.ClosePath()
	}
	r.Draw(p.img, box, image.NewUniform(c), image.Point{})
}

func (p *picture) cross(at vec) {
	const arm = 4
	p.stroke([]vec{{at.x - arm, at.y - arm}, {at.x + arm, at.y + arm}}, 2, alarmColor)
	p.stroke([]vec{{at.x - arm, at.y + arm}, {at.x + arm, at.y - arm}}, 2, alarmColor)
}

// circle is a polygon of 16 corners, in the turning sense of stroke's rectangles.
func circle(at vec, radius float64) []vec {
	const corners = 16
	places := make([]vec, corners)
	for i := range places {
		angle := 2 * math.Pi * float64(i) / corners
		places[i] = vec{at.x + radius*math.Cos(angle), at.y + radius*math.Sin(angle)}
	}
	return places
}
