package metrics

import (
	"fmt"
	"math"
	"sort"

	"github.com/trainwright/trainwright/internal/finding"
)

// Bounds on what a Log keeps. A longer log is thinned evenly, the longest series first; Health, Last and every first
// non-finite value still rest on all rows.
const (
	MaxPoints = 200_000
	MaxKeys   = 2_000
	// keepNonFinite is how many non-finite points of a series thinning may not take: they are what must be seen.
	keepNonFinite = 20
)

// Log is a metrics file. Points are in file order, Names in order of first appearance; Dropped counts the points that
// were read and not kept.
type Log struct {
	Path    string  `json:"path"`
	SHA256  string  `json:"sha256"`
	Bytes   int64   `json:"bytes"`
	Points  []Point `json:"points"`
	Dropped int     `json:"dropped,omitempty"`
	Names   []Key   `json:"names"`
	// Shape says what the file was read as, Shapes how many rows of each shape gave points (a text log may mix them).
	Shape  string         `json:"shape"`
	Shapes map[string]int `json:"shapes,omitempty"`

	limit   int
	cut     int // points of names beyond MaxKeys
	tallies map[Key]*tally
	order   []Key // of tallies
}

var metricsRowShape = `{"step": 120, "epoch": 3, "split": "val", "name": "loss", "value": 0.31} or {"epoch": 3, "val/loss": 0.31}`

// ReadJSONL reads a metrics file in long rows (formats.md) or wide ones ({"epoch": 1, "train_loss": 0.3}), mixed as they
// come; values nested in objects are named by path. All rows of all keys are read, whichever call wrote them.
//
// Findings: file_empty, not_text (errors: nothing can be read); line_truncated, metrics_line_malformed, line_too_long,
// metrics_keys_cut, metrics_thinned, metrics_no_points. An error is a *finding.Refused (file_missing, file_unreadable,
// not_a_file) or of the disk.
func ReadJSONL(path string) (*Log, []finding.Finding, error) { return readJSONL(path, MaxPoints) }

func readJSONL(path string, limit int) (*Log, []finding.Finding, error) {
	log := newLog(path, ShapeJSONL, limit)
	keys := keyCache{}
	file := rowFile{path: path, malformed: "metrics_line_malformed", severity: finding.Warning, rowShape: metricsRowShape, form: "JSON lines"}
	read, err := file.each(func(at line, row []field) *rowProblem {
		points, empty, problem := rowPoints(at, row, keys)
		log.row(ShapeJSONL, points, empty)
		return problem
	})
	if err != nil {
		return nil, nil, err
	}
	return log, log.finish(read), nil
}

func newLog(path, shape string, limit int) *Log {
	return &Log{Path: path, Shape: shape, Shapes: map[string]int{}, limit: limit, tallies: map[Key]*tally{}}
}

// row takes the points of one row, and the names that it left empty.
func (l *Log) row(shape string, points []Point, empty []Key) {
	for _, key := range empty {
		if t := l.tally(key); t != nil {
			t.nulls++
		}
	}
	for _, point := range points {
		if !l.add(point) {
			l.cut++
		}
	}
	if len(points) > 0 {
		l.Shapes[shape]++
	}
}

// finish closes the log and gives what there is to say about the reading.
func (l *Log) finish(read rowsRead) []finding.Finding {
	l.SHA256, l.Bytes = read.sha256, read.bytes
	l.close()
	if finding.Has(read.findings, finding.Error) {
		return read.findings
	}
	return append(read.findings, l.limits(l.cut)...)
}

// limits reports what the bounds took, and a file without a single value.
func (l *Log) limits(cut int) []finding.Finding {
	var found []finding.Finding
	where := &finding.Where{Path: l.Path}
	if cut > 0 {
		found = append(found, finding.Finding{
			Code: "metrics_keys_cut", Severity: finding.Warning, Where: where,
			What:   fmt.Sprintf("%d values of further metric names are left out", cut),
			Remedy: fmt.Sprintf("log at most %d names in one file", MaxKeys),
		})
	}
	if l.Dropped > cut {
		found = append(found, finding.Finding{
			Code: "metrics_thinned", Severity: finding.Note, Where: where,
			What: fmt.Sprintf("%d of %d points are kept; the longest series are thinned evenly", len(l.Points), len(l.Points)+l.Dropped),
		})
	}
	if len(l.Points) == 0 {
		found = append(found, finding.Finding{
			Code: "metrics_no_points", Severity: finding.Warning, Where: where,
			What: "no row holds a metric", Expected: l.rowShape(), Remedy: "name the metrics file, or fix its writer",
		})
	}
	return found
}

// tally returns the running account of a series, or nil when there are too many series.
func (l *Log) tally(key Key) *tally {
	t, ok := l.tallies[key]
	if !ok {
		if len(l.tallies) >= MaxKeys {
			return nil
		}
		t = &tally{stride: 1}
		l.tallies[key] = t
		l.order = append(l.order, key)
	}
	return t
}

// add accounts for a point and keeps it unless the series is thinned; false when there are too many series.
func (l *Log) add(point Point) bool {
	t := l.tally(point.Key())
	if t == nil {
		l.Dropped++
		return false
	}
	if t.count == 0 {
		l.Names = append(l.Names, point.Key())
	}
	skip := t.count%t.stride != 0
	t.observe(point)
	if skip && (point.NonFinite == "" || t.nonFinite > keepNonFinite) {
		l.Dropped++
		return true
	}
	t.kept++
	l.Points = append(l.Points, point)
	if len(l.Points) >= l.limit {
		l.thin()
	}
	return true
}

// thin halves the series with the most points: from now on it keeps every second one of those it kept so far.
func (l *Log) thin() {
	var longest Key
	most := -1
	for _, key := range l.order {
		if t := l.tallies[key]; t.kept > most {
			longest, most = key, t.kept
		}
	}
	t := l.tallies[longest]
	t.stride *= 2
	kept, index, nonFinite := l.Points[:0], 0, 0
	t.kept = 0
	for _, point := range l.Points {
		if point.Key() == longest {
			index++
			if point.NonFinite != "" {
				nonFinite++
			}
			if index%2 == 0 && (point.NonFinite == "" || nonFinite > keepNonFinite) {
				l.Dropped++
				continue
			}
			t.kept++
		}
		kept = append(kept, point)
	}
	clear(l.Points[len(kept):])
	l.Points = kept
}

// close puts the last point of every thinned series back, since it is the one that is asked for.
func (l *Log) close() {
	if l.Dropped == 0 {
		return
	}
	last := map[Key]int64{}
	for _, point := range l.Points {
		last[point.Key()] = point.Start
	}
	for _, key := range l.Names {
		if t := l.tallies[key]; t.last.Start != last[key] {
			l.Points = append(l.Points, t.last)
			l.Dropped--
		}
	}
	sort.SliceStable(l.Points, func(i, j int) bool { return l.Points[i].Start < l.Points[j].Start })
}

// Series returns the points of one series in file order.
func (l *Log) Series(k Key) []Point {
	var series []Point
	for _, point := range l.Points {
		if point.Key() == k {
			series = append(series, point)
		}
	}
	return series
}

// Resolve finds the series that a name means. With a split it is that series. A bare name is test, else val, and never
// train; a series logged without any split counts only where no series of the log has one, and its Split stays "", so
// that the caller can say that the split is unknown.
func (l *Log) Resolve(k Key) (Key, bool) {
	has := map[string]Key{}
	anySplit := false
	for _, key := range l.Names {
		has[key.String()] = key
		anySplit = anySplit || key.Split != ""
	}
	if k.Split != "" {
		key, ok := has[k.String()]
		return key, ok
	}
	for _, split := range []string{"test", "val"} {
		if key, ok := has[Key{Split: split, Name: k.Name}.String()]; ok {
			return key, true
		}
	}
	if key, ok := has[k.Name]; ok && (key.Split != "" && key.Split != "train" || !anySplit) {
		return key, true
	}
	return Key{}, false
}

// At returns the series' value at a step, else at an epoch: the value that belongs to a checkpoint. Several rows for
// one step or epoch are a resumed or per-step log; the last one counts.
func (l *Log) At(k Key, step *int64, epoch *float64) (Point, bool) {
	var atStep, atEpoch *Point
	for i := range l.Points {
		point := &l.Points[i]
		if point.Key() != k {
			continue
		}
		if step != nil && point.Step != nil && *point.Step == *step {
			atStep = point
		}
		if epoch != nil && point.Epoch != nil && math.Abs(*point.Epoch-*epoch) < 1e-9 {
			atEpoch = point
		}
	}
	switch {
	case atStep != nil:
		return *atStep, true
	case atEpoch != nil:
		return *atEpoch, true
	}
	return Point{}, false
}

// Last returns the series' last point in the file, finite or not.
func (l *Log) Last(k Key) (Point, bool) {
	for i := len(l.Points) - 1; i >= 0; i-- {
		if l.Points[i].Key() == k {
			return l.Points[i], true
		}
	}
	return Point{}, false
}
