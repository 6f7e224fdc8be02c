package metrics

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode"

	"github.com/trainwright/trainwright/internal/finding"
)

var textRowShape = `lines such as "epoch=3 val_loss=0.31", "Epoch 3/10 - val loss: 0.31" or {'eval_loss': 0.31, 'epoch': 3.0}`

// textLog reads the text log of a training. What a progress bar wrote over counts as a terminal leaves it: one row for
// each epoch of a bar. A bar that names no epoch is itself the course of the training, so every update of it that shows
// a metric is a row, and its count the step; a bar that starts over goes on counting.
type textLog struct {
	log  *Log
	keys keyCache
	// epoch is what a line of its own said ("Epoch 3/10"); lines below that place nothing belong to it.
	epoch      *float64
	firstEpoch float64 // 0 or 1: what the log counts from
	bars       map[string]*bar
	held       *heldRow
	late       bool // a row was taken after a later one
	rows       int  // with points, held ones included
}

// bar is a progress bar without an epoch.
type bar struct{ base, last int64 }

// heldRow is the row of a bar that may still be written over.
type heldRow struct {
	identity string
	keras    bool
	shape    string
	points   []Point
}

// maxBars bounds how many different bars are told apart.
const maxBars = 1000

func readText(path string, limit int) (*Log, []finding.Finding, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	digest := sha256.New()
	reader := newSegmentReader(io.TeeReader(file, digest))
	t := &textLog{log: newLog(path, ShapeKeyValue, limit), keys: keyCache{}, firstEpoch: 1, bars: map[string]*bar{}}
	rows := rowFile{path: path, severity: finding.Warning, rowShape: textRowShape, form: "a text log"}
	lost, lines := lineReport{file: rows}, 0
	for {
		current, err := reader.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read %s after byte %d: %w", path, reader.offset, err)
		}
		switch {
		case lines == 0 && bytes.IndexByte(current.text[:min(len(current.text), 512)], 0) >= 0:
			if _, err := io.Copy(io.Discard, reader.source); err != nil {
				return nil, nil, fmt.Errorf("read %s: %w", path, err)
			}
			lost.findings = append(lost.findings, rows.notText())
			lines++
			continue
		case current.tooLong:
			lost.add("line_too_long", current, 0, fmt.Sprintf("line %d has more than %d bytes and is left out", current.number, MaxLine))
		case len(bytes.TrimSpace(current.text)) > 0:
			before := t.rows
			t.segment(current, plain(current.text))
			lines++
			if end := reader.offset; t.rows > before && current.end == end && wordByte(current.text[len(current.text)-1]) {
				lost.findings = append(lost.findings, rows.unterminated(current)) // nothing ended the segment, so it is the file's last
			}
		}
		if current.terminated && t.held != nil && t.held.keras {
			t.release()
		}
	}
	t.release()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	if lines == 0 {
		lost.findings = append(lost.findings, rows.empty(info.Size()))
	}
	if t.late {
		sort.SliceStable(t.log.Points, func(i, j int) bool { return t.log.Points[i].Start < t.log.Points[j].Start })
	}
	t.log.Shape = t.log.mostly(ShapeKeyValue)
	size := max(reader.offset, info.Size())
	return t.log, t.log.finish(rowsRead{sha256: "sha256:" + hex.EncodeToString(digest.Sum(nil)), bytes: size, findings: lost.all()}), nil
}

// mostly is the shape of most rows.
func (l *Log) mostly(otherwise string) string {
	best := otherwise
	for _, shape := range []string{ShapeJSONL, ShapeKeras, ShapeHuggingFace, ShapeTqdm, ShapeKeyValue} {
		if l.Shapes[shape] > l.Shapes[best] {
			best = shape
		}
	}
	return best
}

var (
	tqdmBar   = regexp.MustCompile(`\d+%\|[^|]*\|\s*(\d{1,15})/(\d{1,15})\s*\[`)
	kerasBar  = regexp.MustCompile(`^\s*(\d+)/(\d+)\s+(?:\[[=>.\s]*\]|[━\s]+|-)\s*(?:-\s*)?(?:\d|ETA|0s)`)
	kerasHead = regexp.MustCompile(`^\s*Epoch\s+(\d+)\s*/\s*\d+\s*$`)
)

// segment takes what one line, or one state of it, holds.
func (t *textLog) segment(at line, text string) {
	base := Point{Line: at.number, Start: at.start, End: at.end}
	if strings.Contains(text, "Epoch") {
		if found := kerasHead.FindStringSubmatch(text); found != nil {
			t.heading(found[1])
			return
		}
	}
	if open := strings.Index(text, "{"); open >= 0 && t.object(base, at, text, open) {
		return
	}
	if strings.Contains(text, "%|") {
		if found := tqdmBar.FindStringSubmatchIndex(text); found != nil {
			t.tqdm(base, text, found)
			return
		}
	}
	if first := strings.TrimLeft(text, " "); first != "" && first[0] >= '0' && first[0] <= '9' && strings.Contains(first, "/") {
		if found := kerasBar.FindStringSubmatch(first); found != nil {
			t.keras(base, text, found[1] == found[2])
			return
		}
	}
	t.plainLine(base, text)
}

// heading takes an epoch that stands on a line of its own.
func (t *textLog) heading(text string) {
	if epoch, err := strconv.ParseFloat(text, 64); err == nil {
		t.setEpoch(epoch)
	}
}

func (t *textLog) setEpoch(epoch float64) {
	t.epoch = &epoch
	if epoch == 0 {
		t.firstEpoch = 0
	}
}

// object takes a JSON object or a Python dict that stands in the text.
func (t *textLog) object(base Point, at line, text string, open int) bool {
	if row, bad := parseObject([]byte(text[open:]), nil); bad == nil {
		points, _, problem := rowPoints(at, row, t.keys)
		if problem != nil || !anyMeasures(points) {
			return true
		}
		t.take(ShapeJSONL, points)
		return true
	}
	pairs, ok := dictPairs(text[open:])
	if !ok {
		return false
	}
	place := placeOf(text[:open])
	for _, p := range pairs {
		switch bookkeeping[strings.ToLower(p.name)] {
		case "epoch":
			if value, nonFinite, _, ok := p.value.number(); ok && nonFinite == "" {
				place.epoch = &value
			}
		case "step":
			if n, ok := p.value.whole(); ok {
				place.step = &n
			}
		}
	}
	t.emit(ShapeHuggingFace, base, place, pairs, false)
	return true
}

// tqdm takes a progress bar; found is where its pattern matched.
func (t *textLog) tqdm(base Point, text string, found []int) {
	description := strings.TrimSpace(text[:found[0]])
	pairs := append(t.keys.pairsOf(text[:found[0]]), t.keys.pairsOf(text[found[1]:])...)
	if mark := splitMark.FindStringSubmatch(description + " "); mark != nil {
		for i := range pairs {
			pairs[i].marked = mark[1]
		}
	}
	if len(pairs) == 0 {
		return
	}
	n, _ := strconv.ParseInt(text[found[2]:found[3]], 10, 64) // the pattern has at most 15 digits
	total := text[found[4]:found[5]]
	place := placeOf(description)
	if place.epoch == nil {
		place.epoch = t.epoch
	}
	if place.epoch != nil {
		t.hold(base, place, pairs, ShapeTqdm, fmt.Sprint(letters(description), *place.epoch, "/", total))
		return
	}
	identity := letters(description) + "/" + total
	b := t.bars[identity]
	if b == nil {
		if len(t.bars) >= maxBars {
			return
		}
		b = &bar{last: -1}
		t.bars[identity] = b
	}
	switch {
	case n == b.last || n == 0: // drawn again, or not begun
		return
	case n < b.last:
		b.base += b.last
	}
	b.last = n
	step := b.base + n
	place.step = &step
	t.emit(ShapeTqdm, base, place, pairs, true)
}

// letters is what of a bar's description stays the same while its numbers change.
func letters(description string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, description)
}

// keras takes a progress bar of Keras. The mean of a part of an epoch is not a value of that epoch: only a full bar counts,
// and where validation follows, the bar that shows both.
func (t *textLog) keras(base Point, text string, full bool) {
	pairs := t.keys.pairsOf(text)
	kept := pairs[:0]
	for _, p := range pairs {
		if p.sure {
			kept = append(kept, p)
		}
	}
	if full && len(kept) > 0 {
		t.hold(base, linePlace{epoch: t.epoch}, kept, ShapeKeras, "keras")
	}
}

// plainLine takes names with values from a line of text.
func (t *textLog) plainLine(base Point, text string) {
	const longestHeading = 80
	pairs := t.keys.pairsOf(text)
	if len(pairs) == 0 && len(text) > longestHeading {
		return
	}
	place := placeOf(text)
	if place.epoch != nil && *place.epoch == 0 {
		t.firstEpoch = 0
	}
	metrics := pairs[:0]
	for _, p := range pairs {
		if !isPlaceName(p.name) {
			metrics = append(metrics, p)
		}
	}
	if len(metrics) == 0 {
		if place.epoch != nil && place.step == nil && len(text) <= longestHeading {
			t.setEpoch(*place.epoch)
		}
		return
	}
	if place.epoch != nil && place.step != nil && place.stepTotal != nil { // 100/600 counts within the epoch
		step := int64(*place.epoch-t.firstEpoch)**place.stepTotal + *place.step
		place.step = &step
	}
	t.emit(ShapeKeyValue, base, place, metrics, place.epoch != nil || place.step != nil)
}

// emit takes the points of a row. Unless the line itself places the row, one of its names must be known as a metric's:
// a log is full of settings that look the same.
func (t *textLog) emit(shape string, base Point, place linePlace, pairs []pair, placed bool) {
	if points := t.points(base, place, pairs); len(points) > 0 && (placed || anyMeasures(points)) {
		t.take(shape, points)
	}
}

func anyMeasures(points []Point) bool {
	for _, p := range points {
		if measures(p.Key()) {
			return true
		}
	}
	return false
}

func (t *textLog) points(base Point, place linePlace, pairs []pair) []Point {
	base.Epoch, base.Step = place.epoch, place.step
	if place.epoch == nil && place.step == nil {
		base.Epoch = t.epoch
	}
	var points []Point
	for _, p := range pairs {
		key := t.keys.key("", p.name)
		if p.marked != "" && key.Split == "" {
			key = t.keys.key(p.marked, p.name)
		}
		if key.Name == "" || isPlaceName(key.Name) || isPlaceName(p.name) || !p.sure && !measures(key) {
			continue
		}
		value, nonFinite, text, ok := p.value.number()
		if !ok {
			continue
		}
		point := base
		point.Split, point.Name, point.Unit = key.Split, key.Name, p.unit
		point.Value, point.NonFinite, point.Text = value, nonFinite, text
		if nonFinite == "" {
			point.Digits = printedDecimals(text)
		}
		points = append(points, point)
	}
	return points
}

// hold keeps a bar's row until another bar, or for Keras another line, shows that nothing writes over it any more.
func (t *textLog) hold(base Point, place linePlace, pairs []pair, shape, identity string) {
	points := t.points(base, place, pairs)
	if len(points) == 0 {
		return
	}
	t.rows++
	if t.held != nil && t.held.identity != identity {
		t.release()
	}
	t.held = &heldRow{identity: identity, keras: shape == ShapeKeras, shape: shape, points: points}
}

func (t *textLog) release() {
	if held := t.held; held != nil {
		t.held = nil
		t.take(held.shape, held.points)
	}
}

func (t *textLog) take(shape string, points []Point) {
	t.rows++
	if n := len(t.log.Points); n > 0 && points[0].Start < t.log.Points[n-1].Start {
		t.late = true
	}
	t.log.row(shape, points, nil)
}
