package metrics

import (
	"fmt"

	"github.com/trainwright/trainwright/internal/finding"
)

// event counts something and remembers where it was first seen.
type event struct {
	count int
	first Point
	from  float64 // the step or epoch before it
}

func (e *event) see(point Point, from float64) {
	if e.count == 0 {
		e.first, e.from = point, from
	}
	e.count++
}

// tally is the running account of one series over all its rows, kept or not.
type tally struct {
	count, kept, stride int
	nulls, nonFinite    int
	firstNonFinite      Point
	last                Point
	byEpoch             bool // the series has epochs and no steps
	placed              bool // prior is set
	prior, lowest       float64
	priorEpoch          *float64
	spacing             float64 // the first forward distance
	evenly              int     // how often it came again
	repeated            event
	backward            event
	restarts            event // back to the start or before it
	gaps                event
	// A step that is counted anew in every epoch goes back each time the epoch goes on; newEpochs counts how often the
	// epoch went on, withinEpoch how often the step went back with it.
	newEpochs   int
	withinEpoch event
	flat        stretch
}

// stretch is the longest run of one printed value.
type stretch struct {
	text        string
	length      int
	from        Point
	longest     int
	longestFrom Point
}

func (s *stretch) see(p Point) {
	if s.length == 0 || p.Text != s.text {
		s.text, s.length, s.from = p.Text, 0, p
	}
	s.length++
	if s.length > s.longest {
		s.longest, s.longestFrom = s.length, s.from
	}
}

func (t *tally) observe(point Point) {
	t.count++
	t.last = point
	if point.NonFinite != "" {
		if t.nonFinite == 0 {
			t.firstNonFinite = point
		}
		t.nonFinite++
	} else {
		t.flat.see(point)
	}
	var at float64
	switch {
	case point.Step != nil:
		at = float64(*point.Step)
		if t.byEpoch {
			t.byEpoch, t.placed = false, false
		}
	case point.Epoch != nil && (!t.placed || t.byEpoch):
		at, t.byEpoch = *point.Epoch, true
	default:
		return
	}
	if t.placed {
		t.distance(point, at-t.prior)
		t.lowest = min(t.lowest, at)
	} else {
		t.lowest = at
	}
	t.placed, t.prior, t.priorEpoch = true, at, point.Epoch
}

// distance judges how far the series went from the row before.
func (t *tally) distance(point Point, distance float64) {
	nextEpoch := !t.byEpoch && point.Epoch != nil && t.priorEpoch != nil && *point.Epoch > *t.priorEpoch
	if nextEpoch {
		t.newEpochs++
	}
	tolerance := t.spacing / 2
	if t.byEpoch && t.spacing < 1 {
		tolerance += 0.011 // epochs as fractions are printed with two decimals
	}
	switch {
	case distance == 0:
		t.repeated.see(point, t.prior)
	case distance < 0 && nextEpoch:
		t.withinEpoch.see(point, t.prior)
	case distance < 0 && t.prior+distance <= t.lowest && t.prior > t.lowest:
		t.restarts.see(point, t.prior)
	case distance < 0:
		t.backward.see(point, t.prior)
	case t.spacing == 0:
		t.spacing = distance
	case distance > t.spacing+tolerance:
		t.gaps.see(point, t.prior)
	default:
		t.evenly++
	}
}

// Health tells what is wrong with a log as a log, each with its place and a remedy. A value is never smoothed over: one
// NaN is reported with its line, whatever came after it.
//
// Rows: metric_nonfinite (error), steps_repeated, steps_backward, steps_restarted (back to the start or before it, as a
// resume that began at zero does), steps_gap, values_filtered (no value where other series of the file have one, as when
// NaN was left out), series_ends_early, series_empty (a name that never had a value), metric_split_unknown.
// Curves of measures that have a better side: series_diverged, series_plateau, series_flat (one printed value over and
// over), series_copied (a stretch of earlier values at other steps), series_identical (two splits with the same values).
func Health(l *Log) []finding.Finding {
	tallies, order := l.tallies, l.order
	if tallies == nil { // a Log that was not read from a file
		made := &Log{tallies: map[Key]*tally{}, limit: len(l.Points) + 1}
		for _, point := range l.Points {
			made.add(point)
		}
		tallies, order = made.tallies, made.order
	}
	curves := curvesOf(l)
	var found []finding.Finding
	for _, key := range order {
		found = append(found, tallies[key].health(l.Path, key, curves.filtered(key))...)
		found = append(found, curves.health(l.Path, key, tallies[key])...)
	}
	found = append(found, curves.identical(l.Path)...)
	return append(found, splitUnknown(l)...)
}

func (t *tally) health(path string, key Key, filtered *finding.Finding) []finding.Finding {
	name := clip(key.String())
	if t.count == 0 {
		return []finding.Finding{{
			Code: "series_empty", Severity: finding.Warning, Where: &finding.Where{Path: path, Field: name},
			What:   fmt.Sprintf("%s is null in all %d rows that name it", name, t.nulls),
			Remedy: "find out why the script never computed it",
		}}
	}
	var found []finding.Finding
	if t.nonFinite > 0 {
		p := t.firstNonFinite
		found = append(found, finding.Finding{
			Code: "metric_nonfinite", Severity: finding.Error, Where: pointPlace(path, p),
			What:     fmt.Sprintf("%s is %s at %s (%d of %d values are not finite)", name, p.NonFinite, placeText(p), t.nonFinite, t.count),
			Expected: "finite values",
			Remedy:   "the run is not sound from there on: lower the learning rate, clip gradients or check the data, and train again",
		})
	}
	found = append(found, t.order(path, name)...)
	if filtered != nil {
		return append(found, *filtered)
	}
	if t.gaps.count > 0 && t.withinEpoch.count == 0 && t.evenly >= 2 && t.gaps.count*4 <= t.evenly+1 {
		found = append(found, finding.Finding{
			Code: "steps_gap", Severity: finding.Warning, Where: pointPlace(path, t.gaps.first),
			What: fmt.Sprintf("%s jumps from %s %g to %s; other rows are %g apart (%d gaps)",
				name, t.noun(), t.gaps.from, placeText(t.gaps.first), t.spacing, t.gaps.count),
			Remedy: "rows are missing, or values such as NaN were left out: see the job's log around that point, and log every value",
		})
	}
	return found
}

func (t *tally) noun() string {
	if t.byEpoch {
		return "epoch"
	}
	return "step"
}

// startedOver is the event restarts, with the steps that went back to the start although epochs went on, unless every
// epoch counts its steps anew.
func (t *tally) startedOver() event {
	e := t.restarts
	if within := t.withinEpoch; within.count > 0 && 2*within.count < t.newEpochs {
		if e.count == 0 || within.first.Start < e.first.Start {
			e.first, e.from = within.first, within.from
		}
		e.count += within.count
	}
	return e
}

// order tells of steps that start over, go back or come twice.
func (t *tally) order(path, name string) []finding.Finding {
	var found []finding.Finding
	if e := t.startedOver(); e.count > 0 {
		found = append(found, finding.Finding{
			Code: "steps_restarted", Severity: finding.Warning, Where: pointPlace(path, e.first),
			What: fmt.Sprintf("%s starts over: from %s %g to %s (%d times)", name, t.noun(), e.from, placeText(e.first), e.count),
			Remedy: "a resume must go on counting where the checkpoint stood; else it trained from the beginning, or two runs share the file: " +
				"check what the resumed job loaded, and judge the rows of one run",
		})
	}
	if e := t.backward; e.count > 0 {
		found = append(found, finding.Finding{
			Code: "steps_backward", Severity: finding.Warning, Where: pointPlace(path, e.first),
			What: fmt.Sprintf("%s goes back from %s %g to %s (%d times)", name, t.noun(), e.from, placeText(e.first), e.count),
			Remedy: "the run restarted or resumed from an older checkpoint, or two runs share the file: " +
				"say which, and judge the rows of one run",
		})
	}
	if e := t.repeated; e.count > 0 {
		severity := finding.Warning
		if t.byEpoch { // several rows an epoch are also what a log per batch without steps looks like
			severity = finding.Note
		}
		found = append(found, finding.Finding{
			Code: "steps_repeated", Severity: severity, Where: pointPlace(path, e.first),
			What:   fmt.Sprintf("%s has more than one value at %s (%d repeats)", name, placeText(e.first), e.count),
			Remedy: "the last one counts; check whether two processes or runs write the same file",
		})
	}
	return found
}

// splitUnknown reports names without a split where other series have one: such a value is most often the training one.
func splitUnknown(l *Log) []finding.Finding {
	var names []string
	anySplit := false
	for _, key := range l.Names {
		if _, mode, _ := MetricKind(key.Name); key.Split == "" && mode != "" {
			names = append(names, clip(key.Name))
		}
		anySplit = anySplit || key.Split != ""
	}
	if len(names) == 0 {
		return nil
	}
	what, severity := "no row says of which split these are: ", finding.Warning
	if anySplit {
		severity = finding.Note // such a name never resolves to this series
		what = "logged without a split beside series that have one, so most likely of the training part: "
	}
	return []finding.Finding{{
		Code: "metric_split_unknown", Severity: severity, Where: &finding.Where{Path: l.Path},
		What: what + finding.Few(names, 5), Expected: `"split": "val" in the row, or names such as val/loss`,
	}}
}

func pointPlace(path string, p Point) *finding.Where {
	return &finding.Where{Path: path, Line: p.Line, Byte: p.Start}
}

// placeText says where in training a point is.
func placeText(p Point) string {
	switch {
	case p.Step != nil:
		return fmt.Sprintf("step %d, line %d", *p.Step, p.Line)
	case p.Epoch != nil:
		return fmt.Sprintf("epoch %g, line %d", *p.Epoch, p.Line)
	}
	return fmt.Sprintf("line %d", p.Line)
}
