package trainer

import (
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/checkpoint"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/metrics"
)

// unixTime is a logged time in seconds since 1970. What is no date, such as seconds since the start, is none.
func unixTime(logged float64) (time.Time, bool) {
	if logged > 1e12 && logged < 1e14 { // milliseconds
		logged /= 1000
	}
	if logged < 1e9 || logged > 1e11 {
		return time.Time{}, false
	}
	seconds, fraction := math.Modf(logged)
	return time.Unix(int64(seconds), int64(fraction*1e9)), true
}

// metricsTimes compares the times of the rows with the job's; of a run that was adopted, with the file's own.
func (w *validationWork) metricsTimes() {
	from, to, code := time.Time{}, time.Time{}, "metrics_time_outside_job"
	switch {
	case w.exit != nil:
		from, to = w.exit.StartedAt.Add(-clockSlack), w.exit.EndedAt.Add(clockSlack)
	case w.external:
		info, err := os.Stat(w.abs(w.metricsName))
		if err != nil {
			return
		}
		to, code = info.ModTime().Add(clockSlack), "artifact_backdated"
	default:
		return
	}
	var first *metrics.Point
	outside, timed := 0, 0
	for i := range w.log.Points {
		p := &w.log.Points[i]
		at, ok := unixTime(p.Time)
		if !ok || !w.own(*p) {
			continue
		}
		if timed++; at.Before(from) || at.After(to) {
			if outside++; first == nil {
				first = p
			}
		}
	}
	if outside == 0 {
		return
	}
	at, _ := unixTime(first.Time)
	if zone, ok := w.otherZone(from, to, outside, timed); ok && !w.external {
		w.found(finding.Finding{Code: "metrics_time_zone", Severity: finding.Warning, Where: &finding.Where{Path: w.abs(w.metricsName), Line: first.Line, Byte: first.Start},
			What:     fmt.Sprintf("the times of %s are those of the job shifted by %s, as a local time that is written as UTC is", w.metricsName, zone),
			Expected: fmt.Sprintf("%s to %s", clock(from), clock(to)), Remedy: "let the script log time.time(), or an ISO time with its zone"})
		return
	}
	f := finding.Finding{Code: code, Severity: finding.Error, Where: &finding.Where{Path: w.abs(w.metricsName), Line: first.Line, Byte: first.Start},
		What:     fmt.Sprintf("%d of %d timed values of %s say another time than the job's, first %s", outside, timed, w.metricsName, at.UTC().Format(time.RFC3339)),
		Expected: fmt.Sprintf("%s to %s", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339)), Remedy: "find out in the script where these rows come from; they are not of this job"}
	if w.external {
		f.What = fmt.Sprintf("%d values of %s say that they were logged after the file was last written, first %s", outside, w.metricsName, at.UTC().Format(time.RFC3339))
		f.Expected, f.Remedy = "rows that are older than their file", "the file's time was set back, or its rows were edited: ask where the run comes from"
	}
	w.found(f)
}

// otherZone is the one difference of time zones, in quarters of an hour, by which every timed row is outside of the job.
func (w *validationWork) otherZone(from, to time.Time, outside, timed int) (time.Duration, bool) {
	if outside != timed {
		return 0, false
	}
	const quarter, widest = 15 * time.Minute, 14 * time.Hour
	for zone := -widest; zone <= widest; zone += quarter {
		fits := zone != 0
		for _, p := range w.log.Points {
			if at, ok := unixTime(p.Time); ok && w.own(p) && (at.Add(-zone).Before(from) || at.Add(-zone).After(to)) {
				fits = false
				break
			}
		}
		if fits {
			return zone, true
		}
	}
	return 0, false
}

// resumedWhereItStopped makes sure that a run which resumes goes on where its checkpoint stood.
func (w *validationWork) resumedWhereItStopped() {
	from := w.step.Run.Handoff.Inputs.Checkpoint.ResumeCheckpoint
	if from == "" || w.external {
		return
	}
	unknown := func() {
		w.unchecked = append(w.unchecked, "whether the run went on where "+from+" stood: checkpoint and metrics do not tell")
	}
	if w.start == nil || w.start.Step == nil && w.start.Epoch == nil {
		unknown()
		return
	}
	for _, p := range w.log.Points {
		if !w.own(p) {
			continue
		}
		if _, timed := unixTime(p.Time); w.rewritten && !timed {
			unknown()
			return
		}
		switch {
		case w.start.Step != nil && p.Step != nil:
			if *p.Step < *w.start.Step {
				w.startedOver(from, p, fmt.Sprintf("step %d", *p.Step), fmt.Sprintf("steps from %d on", *w.start.Step))
			}
		case w.start.Epoch != nil && p.Epoch != nil:
			if *p.Epoch < *w.start.Epoch {
				w.startedOver(from, p, fmt.Sprintf("epoch %g", *p.Epoch), fmt.Sprintf("epochs from %g on", *w.start.Epoch))
			}
		default:
			unknown()
		}
		return
	}
}

func (w *validationWork) startedOver(from string, p metrics.Point, at, expected string) {
	w.found(finding.Finding{Code: "resume_restarted", Severity: finding.Error, What: fmt.Sprintf("the run resumes from %s, and its first value is of %s", from, at),
		Where: &finding.Where{Path: w.abs(w.metricsName), Line: p.Line, Byte: p.Start}, Expected: expected, Remedy: "the script trained from the beginning: let it load the checkpoint (see its resume argument), and run again"})
}

// resumeStart reads the checkpoint that the run goes on from, nil where there is none or it can't be read.
func (w *validationWork) resumeStart() *checkpoint.Info {
	from := w.step.Run.Handoff.Inputs.Checkpoint.ResumeCheckpoint
	if from == "" || w.external {
		return nil
	}
	abs, err := w.step.Run.Roots.Readable(from)
	if err != nil {
		return nil
	}
	info, _, err := checkpoint.Inspect(abs)
	if err != nil {
		return nil
	}
	return &info
}

// own says whether this job wrote a row. A job that resumes finds rows of an earlier one in its file: they are older than
// it, or stand before the end that the file had, or at steps before its checkpoint where the file was written anew.
func (w *validationWork) own(p metrics.Point) bool {
	if w.step.Run.Handoff.Inputs.Checkpoint.ResumeCheckpoint == "" || w.external {
		return true
	}
	if at, ok := unixTime(p.Time); ok && w.exit != nil {
		return !at.Before(w.exit.StartedAt.Add(-clockSlack)) && p.Start >= w.oldBytes
	}
	if w.oldBytes == 0 && w.rewritten && w.start != nil && w.start.Step != nil && p.Step != nil {
		return *p.Step > *w.start.Step
	}
	return p.Start >= w.oldBytes
}

// extent is how far a quantity of the log goes: its first, last and the largest distance between two neighbours.
type extent struct{ first, last, spacing float64 }

// extentOf takes a number from each value that has it; false where no value has.
func (w *validationWork) extentOf(number func(metrics.Point) (float64, bool)) (extent, bool) {
	var all []float64
	for _, p := range w.log.Points {
		if n, ok := number(p); ok && w.own(p) {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return extent{}, false
	}
	slices.Sort(all)
	all = slices.Compact(all)
	e := extent{first: all[0], last: all[len(all)-1]}
	for i := range all[1:] {
		e.spacing = max(e.spacing, all[i+1]-all[i])
	}
	return e, true
}

func epochOf(p metrics.Point) (float64, bool) {
	if p.Epoch == nil {
		return 0, false
	}
	return *p.Epoch, true
}

func stepOf(p metrics.Point) (float64, bool) {
	if p.Step == nil {
		return 0, false
	}
	return float64(*p.Step), true
}

// fallsShort says whether the log ends before a number of epochs. Epochs are counted from 0 or from 1.
func (e extent) fallsShort(epochs float64) bool {
	fromOne := e.first >= 1 && e.last == math.Trunc(e.last)
	return e.last < epochs-1 || fromOne && e.last < epochs
}

// epochsOfThePlan compares how long the run trained with the plan. A script that stops early by a rule of its own is
// honest, and its report says so all the same.
func (w *validationWork) epochsOfThePlan() {
	leaf := w.plan.Leaves["epochs"]
	planned, ok := asFloat(leaf.Value)
	noun, number := "epochs", epochOf
	if strings.Contains(leaf.Argument, "step") || strings.Contains(leaf.Argument, "iter") {
		noun, number = "steps", stepOf
	}
	e, logged := w.extentOf(number)
	if !ok || !logged || w.external {
		return
	}
	short := e.fallsShort(planned)
	if noun == "steps" {
		short = planned-e.last > math.Max(1, e.spacing)
	}
	place := &finding.Where{Path: w.abs(w.metricsName)}
	switch {
	case short:
		w.found(finding.Finding{Code: "epochs_short_of_plan", Severity: finding.Warning, What: fmt.Sprintf("the plan says %g %s, the log ends at %g", planned, noun, e.last), Where: place,
			Expected: fmt.Sprintf("%g %s", planned, noun), Remedy: "if the script stops early by a rule, say so; else rows are missing or it trained less than it was told"})
	case e.last > planned+1e-9:
		w.found(finding.Finding{Code: "epochs_beyond_plan", Severity: finding.Warning, What: fmt.Sprintf("the plan says %g %s, the log goes on to %g", planned, noun, e.last), Where: place,
			Expected: fmt.Sprintf("%g %s", planned, noun), Remedy: "the script does not heed the number, or the rows are of another run"})
	}
}

// summaryOfTheLog compares what summary.json says with the metrics.
func (w *validationWork) summaryOfTheLog() {
	s := w.summary
	if s.from == "" {
		return
	}
	severity := finding.Error
	contradicts := func(what, expected string) {
		w.found(finding.Finding{Code: "summary_contradicts", Severity: severity, What: s.from + " says " + what, Where: &finding.Where{Path: w.abs(s.from)}, Expected: expected,
			Remedy: "one of the two is not of this training: correct the script and run again"})
	}
	if w.stopsEarly() {
		severity = finding.Warning // it may count the epochs that it was allowed
	}
	if e, ok := w.extentOf(epochOf); ok && s.Epochs != nil && e.fallsShort(*s.Epochs) {
		contradicts(fmt.Sprintf("%g epochs, and %s ends at epoch %g", *s.Epochs, w.metricsName, e.last), fmt.Sprintf("values of %g epochs", *s.Epochs))
	}
	if e, ok := w.extentOf(stepOf); ok && s.Steps != nil && (e.last > *s.Steps && w.start == nil || *s.Steps-e.last > math.Max(1, math.Max(e.spacing, e.first))) {
		contradicts(fmt.Sprintf("%g steps, and %s ends at step %g", *s.Steps, w.metricsName, e.last), fmt.Sprintf("values up to step %g", *s.Steps))
	}
	severity = finding.Error
	if s.Best.Metric == "" || s.Best.Value == nil {
		return
	}
	if p, ok := w.log.At(metrics.ParseKey(s.Best.Metric), s.Best.Step, s.Best.Epoch); ok && !repeats(p, *s.Best.Value) {
		contradicts(fmt.Sprintf("the best %s is %.6g, and %s says %s there (line %d)", s.Best.Metric, *s.Best.Value, w.metricsName, pointText(p), p.Line), pointText(p))
	}
}

// repeats says whether a summary repeats a logged value, either of them rounded or in percent.
func repeats(logged metrics.Point, said float64) bool {
	for _, scale := range []float64{1, 100, 0.01} {
		if said := said * scale; metrics.Agrees(logged, said) || metrics.Agrees(metrics.Printed(said), logged.Value) {
			return true
		}
	}
	return false
}

// early are the words by which a script shows that it may stop before its last epoch.
var early = regexp.MustCompile(`(?i)early.?stop|patience`)

// stopsEarly says whether the script that ran has a rule for stopping early.
func (w *validationWork) stopsEarly() bool {
	file, err := os.Open(w.made.Entrypoint)
	if err != nil {
		return false
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 1<<20))
	return err == nil && early.Match(text)
}

// Bounds of a checkpoint's age: a job as short as quickJob loses little, and one that saved regularly may be late by
// lateBy of its own intervals.
const (
	quickJob = 10 * time.Minute
	lateBy   = 3
)

// checkpointAge finds a job that stopped saving long before its end: what it computed since then is lost. One that keeps its
// best checkpoint alone may honestly end long after it.
func (w *validationWork) checkpointAge() {
	if w.exit == nil || len(w.checkpoints) == 0 || w.exit.EndedAt.Sub(w.exit.StartedAt) < quickJob {
		return
	}
	times := []time.Time{w.exit.StartedAt}
	for _, c := range w.checkpoints {
		times = append(times, c.ModTime)
	}
	slices.SortFunc(times, time.Time.Compare)
	usual := time.Duration(0)
	for i := range times[1:] {
		usual = max(usual, times[i+1].Sub(times[i]))
	}
	newest := times[len(times)-1]
	age := w.exit.EndedAt.Sub(newest)
	latest := slices.MaxFunc(w.checkpoints, func(a, b checkpoint.Info) int { return a.ModTime.Compare(b.ModTime) })
	if age <= lateBy*usual || w.isBest(latest) { // the best one alone is kept
		return
	}
	w.found(finding.Finding{Code: "checkpoint_stale", Severity: finding.Warning, What: fmt.Sprintf("the newest checkpoint was written %s before the job ended", age.Round(time.Second)),
		Where: &finding.Where{Path: latest.Path}, Expected: fmt.Sprintf("one every %s, as before", usual.Round(time.Second)), Remedy: "see the job's log around " + newest.UTC().Format(time.RFC3339) + ": did saving fail?"})
}
