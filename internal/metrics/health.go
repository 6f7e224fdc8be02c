package metrics

import (
	"fmt"
	"strings"

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
	prior               float64
	spacing             float64 // the first forward distance
	evenly              int     // how often it came again
	repeated            event
	backward            event
	gaps                event
}

func (t *tally) observe(point Point) {
	t.count++
	t.last = point
	if point.NonFinite != "" {
		if t.nonFinite == 0 {
			t.firstNonFinite = point
		}
		t.nonFinite++
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
	}
	t.placed, t.prior = true, at
}

// distance judges how far the series went from the row before.
func (t *tally) distance(point Point, distance float64) {
	switch {
	case distance == 0:
		t.repeated.see(point, t.prior)
	case distance < 0:
		t.backward.see(point, t.prior)
	case t.spacing == 0:
		t.spacing = distance
	case distance > t.spacing*(1+1e-9):
		t.gaps.see(point, t.prior)
	default:
		t.evenly++
	}
}

// Health tells what is wrong with a log as a log: metric_nonfinite (error), steps_repeated, steps_backward, steps_gap,
// series_empty (a name that never had a value) and metric_split_unknown. A value is never smoothed over: one NaN is
// reported with its line, whatever came after it.
func Health(l *Log) []finding.Finding {
	tallies, order := l.tallies, l.order
	if tallies == nil { // a Log that was not read from a file
		made := &Log{tallies: map[Key]*tally{}, limit: len(l.Points) + 1}
		for _, point := range l.Points {
			made.add(point)
		}
		tallies, order = made.tallies, made.order
	}
	var found []finding.Finding
	for _, key := range order {
		found = append(found, tallies[key].health(l.Path, key)...)
	}
	return append(found, splitUnknown(l)...)
}

func (t *tally) health(path string, key Key) []finding.Finding {
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
	noun, severity := "step", finding.Warning
	if t.byEpoch {
		noun = "epoch"
	}
	if t.backward.count > 0 {
		found = append(found, finding.Finding{
			Code: "steps_backward", Severity: finding.Warning, Where: pointPlace(path, t.backward.first),
			What: fmt.Sprintf("%s goes back from %s %g to %s (%d times)", name, noun, t.backward.from, placeText(t.backward.first), t.backward.count),
			Remedy: "the run restarted or resumed from an older checkpoint, or two runs share the file: " +
				"say which, and judge the rows of one run",
		})
	}
	if t.repeated.count > 0 {
		if t.byEpoch { // several rows an epoch are also what a log per batch without steps looks like
			severity = finding.Note
		}
		found = append(found, finding.Finding{
			Code: "steps_repeated", Severity: severity, Where: pointPlace(path, t.repeated.first),
			What:   fmt.Sprintf("%s has more than one value at %s (%d repeats)", name, placeText(t.repeated.first), t.repeated.count),
			Remedy: "the last one counts; check whether two processes or runs write the same file",
		})
	}
	if t.gaps.count > 0 && t.evenly >= 2 && t.gaps.count*4 <= t.evenly+1 {
		found = append(found, finding.Finding{
			Code: "steps_gap", Severity: finding.Warning, Where: pointPlace(path, t.gaps.first),
			What: fmt.Sprintf("%s jumps from %s %g to %s; other rows are %g apart (%d gaps)",
				name, noun, t.gaps.from, placeText(t.gaps.first), t.spacing, t.gaps.count),
			Remedy: "rows are missing: see the job's log around that point",
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
	const most = 5
	list := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		list += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return []finding.Finding{{
		Code: "metric_split_unknown", Severity: severity, Where: &finding.Where{Path: l.Path},
		What: what + list, Expected: `"split": "val" in the row, or names such as val/loss`,
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
