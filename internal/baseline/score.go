package baseline

import (
	"context"
	"fmt"
	"slices"

	"github.com/trainwright/trainwright/internal/finding"
)

// Bounds of a test part and of the targets kept for a median.
const (
	maxTest    = 500_000
	maxTargets = 4_000_000
)

// Score computes the baselines that fit the kind, in a fixed order: the constant ones, persistence and climatology where
// there is a time, the nearest neighbour, ridge regression. The same files give the same scores.
//
// Findings are notes: baseline_metric_not_computed, baseline_rows_skipped, baseline_sampled, baseline_left_out (one that
// can't be computed here, and why), baseline_time_unread (a warning), and those of metrics.Recompute. Refused
// (*finding.Refused): baseline_kind_unknown, baseline_target_missing, baseline_part_missing, baseline_horizon_invalid,
// column_unknown, baseline_no_rows, target_not_numeric, and what dataset refuses of a file.
func Score(ctx context.Context, spec Spec) ([]Result, []finding.Finding, error) {
	if err := spec.check(); err != nil {
		return nil, nil, err
	}
	names, found := spec.wanted()
	if len(names) == 0 {
		return nil, found, nil
	}
	w := &work{spec: spec, found: found, classes: map[string]int{}}
	for _, step := range []func(context.Context) error{w.open, w.lookAtTrain, w.lookBetween, w.lookAtTest, w.fitModels, w.predict} {
		if err := step(ctx); err != nil {
			return nil, nil, err
		}
	}
	scores, err := w.judge(names)
	return scores, w.found, err
}

// columns are the positions of the named columns in one file; -1 for none.
type columns struct{ target, time, group int }

// work is one computation.
type work struct {
	spec            Spec
	found           []finding.Finding
	train, test     part
	inTrain, inTest columns
	features        []*feature
	encoder         *encoder
	series          *series // nil without a time

	rows       int // train rows with a target
	testRows   int // test rows with a target
	skipped    [2]int
	classes    map[string]int
	labels     []string // the most frequent first
	sum        float64
	targets    []float64
	targetStep int // every so many targets are kept

	near       *neighbours
	nearTarget []any
	linear     *ridge
	linearStep int
	testStep   int

	ids       map[string]string // id → target of the test rows that are judged
	order     []int             // their numbers
	nearest   []any
	regressed []any
}

// open resolves the columns.
func (w *work) open(ctx context.Context) (err error) {
	if w.train, err = openPart(ctx, w.spec.Train); err != nil {
		return err
	}
	if w.test, err = openPart(ctx, w.spec.Test); err != nil {
		return err
	}
	for _, of := range []struct {
		p  part
		to *columns
	}{{w.train, &w.inTrain}, {w.test, &w.inTest}} {
		if err := w.locate(of.p, of.to); err != nil {
			return err
		}
	}
	named := w.spec.Features
	if len(named) == 0 {
		for _, name := range w.train.order {
			if !slices.Contains([]string{w.spec.ID, w.spec.Target, w.spec.Time, w.spec.Group}, name) && slices.Contains(w.test.order, name) {
				named = append(named, name)
			}
		}
	}
	for _, name := range named {
		a, err := w.train.column(name, "features")
		if err != nil {
			return err
		}
		b, err := w.test.column(name, "features")
		if err != nil {
			return err
		}
		w.features = append(w.features, newFeature(name, a, b))
	}
	return nil
}

// locate finds the named columns in a file.
func (w *work) locate(p part, to *columns) (err error) {
	for _, c := range []struct {
		name, field string
		to          *int
	}{{w.spec.Target, "target", &to.target}, {w.spec.Time, "time", &to.time}, {w.spec.Group, "group", &to.group}} {
		*c.to = -1
		if c.name == "" {
			continue
		}
		if *c.to, err = p.column(c.name, c.field); err != nil {
			return err
		}
	}
	return nil
}

// numeric says whether the target is a number.
func (w *work) numeric() bool { return w.spec.Kind != Classification }

// target reads a row's target; ok is false where it has none that can be used.
func (w *work) target(fields [][]byte, at int) (text string, value float64, ok bool) {
	text = trimmed(fields[at])
	if missing(text) {
		return "", 0, false
	}
	if !w.numeric() {
		return text, 0, true
	}
	value, ok = number(text)
	return text, value, ok
}

// lookAtTrain gathers what the constant baselines and the encoding need.
func (w *work) lookAtTrain(ctx context.Context) error {
	if w.spec.Time != "" && w.numeric() {
		w.series = newSeries()
	}
	w.targetStep = 1
	err := w.train.each(ctx, func(_ int, fields [][]byte) error {
		text, value, ok := w.target(fields, w.inTrain.target)
		if !ok {
			w.skipped[0]++
			return nil
		}
		if w.numeric() {
			w.sum += value
			w.keepTarget(value)
		} else if w.classes[label(text)]++; len(w.classes) > maxCounted {
			return finding.Refuse(finding.Finding{Code: "baseline_too_many_classes", Severity: finding.Error, What: fmt.Sprintf("the target has more than %d classes", maxCounted),
				Where: &finding.Where{Path: w.train.path, Field: w.spec.Target}, Expected: "a target with few classes", Remedy: "call it a regression, or name another target"})
		}
		for _, f := range w.features {
			f.see(trimmed(fields[f.train]))
		}
		w.observe(fields, w.inTrain, value, ofTrain)
		w.rows++
		return nil
	})
	if err != nil {
		return err
	}
	if w.rows == 0 {
		return w.noRows(w.train)
	}
	w.labels = sorted(w.classes)
	w.encoder = fit(w.features)
	return nil
}

// keepTarget keeps targets for the median: when there are too many, every other one is dropped and fewer are taken.
func (w *work) keepTarget(value float64) {
	if w.rows%w.targetStep != 0 {
		return
	}
	if len(w.targets) == maxTargets {
		for i := range maxTargets / 2 {
			w.targets[i] = w.targets[2*i]
		}
		w.targets = w.targets[:maxTargets/2]
		w.targetStep *= 2
	}
	w.targets = append(w.targets, value)
}

// lookBetween notes what is known of the time between the two parts, for a forecast.
func (w *work) lookBetween(ctx context.Context) error {
	if w.series == nil {
		return nil
	}
	for _, path := range w.spec.Between {
		p, err := openPart(ctx, path)
		if err != nil {
			return err
		}
		var at columns
		if err := w.locate(p, &at); err != nil {
			return err
		}
		err = p.each(ctx, func(_ int, fields [][]byte) error {
			if _, value, ok := w.target(fields, at.target); ok {
				w.observe(fields, at, value, ofBetween)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *work) observe(fields [][]byte, at columns, value float64, test int) {
	if w.series == nil {
		return
	}
	group := ""
	if at.group >= 0 {
		group = trimmed(fields[at.group])
	}
	w.series.add(group, trimmed(fields[at.time]), value, test)
}

func (w *work) noRows(p part) error {
	f := finding.Finding{Code: "baseline_no_rows", Severity: finding.Error, What: "no row has a target", Where: &finding.Where{Path: p.path, Field: w.spec.Target},
		Expected: "rows with a value of " + w.spec.Target, Remedy: "name the target's column, or repair the file"}
	if w.numeric() && w.skipped[0]+w.skipped[1] > 0 {
		f.Code, f.What, f.Expected, f.Remedy = "target_not_numeric", "no target is a number", "numbers for a "+w.spec.Kind, "call it a classification, or name another target"
	}
	return finding.Refuse(f)
}

// lookAtTest counts the rows and puts them in order of time.
func (w *work) lookAtTest(ctx context.Context) error {
	err := w.test.each(ctx, func(_ int, fields [][]byte) error {
		_, value, ok := w.target(fields, w.inTest.target)
		if !ok {
			w.skipped[1]++
			return nil
		}
		w.observe(fields, w.inTest, value, w.testRows)
		w.testRows++
		return nil
	})
	if err != nil {
		return err
	}
	if w.testRows == 0 {
		return w.noRows(w.test)
	}
	w.testStep = stride(w.testRows, maxTest)
	if w.skipped[0]+w.skipped[1] > 0 {
		w.note("baseline_rows_skipped", fmt.Sprintf("%d train rows and %d test rows without a usable target are left out", w.skipped[0], w.skipped[1]), "")
	}
	if w.testStep > 1 {
		w.note("baseline_sampled", fmt.Sprintf("the test part has %d rows; every %dth is predicted", w.testRows, w.testStep), "")
	}
	return nil
}

func (w *work) note(code, what, remedy string) {
	w.found = append(w.found, finding.Finding{Code: code, Severity: finding.Note, What: what, Remedy: remedy})
}

// leftOut tells why a baseline is not among the scores.
func (w *work) leftOut(name, why string) { w.note("baseline_left_out", name+" is left out: "+why, "") }
