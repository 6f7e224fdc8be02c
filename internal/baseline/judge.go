package baseline

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/metrics"
)

// candidate is a baseline with its predictions: values of the judged rows in order, or constant.
type candidate struct {
	name, why string
	values    []any
	constant  any
	only      string // the one metric that its predictions are for
	not       string // a metric that its predictions can't give
}

// judge computes the metrics of every baseline.
func (w *work) judge(names []string) ([]Result, error) {
	scores := []Result{}
	told := map[string]bool{}
	for _, c := range w.candidates() {
		predictions := w.predictions(c)
		for _, name := range names {
			if c.only != "" && c.only != name || c.not == name {
				continue
			}
			result, found, err := metrics.Recompute(name, predictions, w.ids)
			var refused *finding.Refused
			if errors.As(err, &refused) {
				w.leftOut(c.name+" in "+name, refused.Findings[0].What)
				continue
			}
			if err != nil {
				return nil, err
			}
			if !result.Whole {
				w.leftOut(c.name+" in "+name, firstError(found))
				continue
			}
			for _, f := range found {
				if !told[f.Code+name] {
					told[f.Code+name] = true
					w.found = append(w.found, f)
				}
			}
			scores = append(scores, Result{Name: c.name, Metric: result.Metric, Value: result.Value, N: result.N, Why: c.why})
		}
	}
	return scores, nil
}

func firstError(found []finding.Finding) string {
	for _, f := range found {
		if f.Severity == finding.Error {
			return f.What
		}
	}
	return "not every row could be judged"
}

func (w *work) predictions(c candidate) *metrics.Predictions {
	rows := make([]metrics.Prediction, len(w.order))
	for i, number := range w.order {
		rows[i] = metrics.Prediction{ID: strconv.Itoa(number), Prediction: c.constant}
		if c.values != nil {
			rows[i].Prediction = c.values[i]
		}
	}
	return &metrics.Predictions{Path: w.test.path, Rows: rows}
}

// candidates are the baselines in their order.
func (w *work) candidates() []candidate {
	var list []candidate
	if w.numeric() {
		mean := w.sum / float64(w.rows)
		slices.Sort(w.targets)
		median := w.targets[(len(w.targets)-1)/2]/2 + w.targets[len(w.targets)/2]/2
		list = append(list,
			candidate{name: Mean, constant: mean, why: fmt.Sprintf("predicts %.6g, the mean of %d train rows", mean, w.rows)},
			candidate{name: Median, constant: median, why: fmt.Sprintf("predicts %.6g, the median of %d train rows", median, len(w.targets))})
		list = append(list, w.inTime(mean)...)
	} else {
		shares := map[string]float64{}
		for _, name := range w.labels {
			shares[name] = float64(w.classes[name]) / float64(w.rows)
		}
		first := w.labels[0]
		list = append(list,
			candidate{name: MajorityClass, constant: first, not: "logloss", why: fmt.Sprintf("predicts %.60q, %.1f%% of %d train rows", first, 100*shares[first], w.rows)},
			candidate{name: MajorityClass, constant: shares, only: "logloss", why: fmt.Sprintf("gives every row the class shares of %d train rows", w.rows)})
	}
	if w.nearest != nil {
		why := fmt.Sprintf("the closest train row by standardised features (%s)", w.encoder.says())
		if len(w.near.index) < w.rows {
			why += fmt.Sprintf("; of %d train rows, evenly taken from %d", len(w.near.index), w.rows)
		}
		list = append(list, candidate{name: NearestNeighbour, values: w.nearest, not: "logloss", why: why})
	}
	if w.regressed != nil {
		why := fmt.Sprintf("least squares with penalty %g on standardised features (%s)", lambda, w.encoder.says())
		if !w.numeric() {
			why += ", one output for each class"
		}
		if w.linearStep > 1 {
			why += fmt.Sprintf("; every %dth of %d train rows", w.linearStep, w.rows)
		}
		list = append(list, candidate{name: Ridge, values: w.regressed, not: "logloss", why: why})
	}
	return list
}

// inTime are persistence and climatology.
func (w *work) inTime(mean float64) []candidate {
	both := Persistence + " and " + Climatology
	switch s := w.series; {
	case s == nil:
		if w.spec.Kind == Forecast {
			w.leftOut(both, "no time column is named")
		}
		return nil
	case s.tooLong:
		w.leftOut(both, fmt.Sprintf("more than %d rows", maxSeries))
		return nil
	case s.unread > 0:
		w.found = append(w.found, finding.Finding{Code: "baseline_time_unread", Severity: finding.Warning,
			What:  fmt.Sprintf("%d times can't be read, such as %.40q; %s are left out", s.unread, s.example, both),
			Where: &finding.Where{Path: w.train.path, Field: w.spec.Time}, Expected: "ISO 8601 dates, or numbers", Remedy: "name the column that holds the time"})
		return nil
	}
	w.series.sort()
	horizon := max(w.spec.Horizon, 1)
	values, lacking := w.series.persistence(w.testRows, horizon, mean)
	within := ""
	if w.spec.Group != "" {
		within = " of its " + w.spec.Group
	}
	list := []candidate{{name: Persistence, values: w.judged(values),
		why: withLacking(fmt.Sprintf("repeats the target%s %d %s before", within, horizon, plural(horizon, "time")), lacking)}}
	by := w.series.seasonOf()
	if by == (season{}) {
		why := "the train part is too short for a season, or too coarse"
		if !w.series.calendar {
			why = "the times are numbers without a calendar"
		}
		w.leftOut(Climatology, why)
		return list
	}
	values, lacking = w.series.climatology(by, w.testRows, mean)
	return append(list, candidate{name: Climatology, values: w.judged(values),
		why: withLacking(fmt.Sprintf("the mean of the train rows%s of the same %s", within, by), lacking)})
}

// judged picks the values of the rows that are judged.
func (w *work) judged(values []any) []any {
	if w.testStep == 1 {
		return values
	}
	picked := make([]any, len(w.order))
	for i, number := range w.order {
		picked[i] = values[number]
	}
	return picked
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
