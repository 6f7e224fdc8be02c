package metrics

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// classOf writes a label in one way: numbers without trailing zeros, truth values in lower case, other text trimmed.
func classOf(value any) string {
	switch v := value.(type) {
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		text := strings.TrimSpace(v)
		if number, ok := numeric(text); ok {
			return strconv.FormatFloat(number, 'g', -1, 64)
		}
		if lower := strings.ToLower(text); lower == "true" || lower == "false" {
			return lower
		}
		return text
	}
	return ""
}

// classSet is the classes that the targets have.
type classSet map[string]bool

func classesOf(samples []sample) classSet {
	set := classSet{}
	for _, s := range samples {
		set[classOf(s.target)] = true
	}
	return set
}

// within says whether all classes are among the given ones.
func (c classSet) within(labels ...string) bool {
	for class := range c {
		found := false
		for _, label := range labels {
			found = found || class == label
		}
		if !found {
			return false
		}
	}
	return true
}

// indexed says whether the classes are the indices of a list of n scores.
func (c classSet) indexed(n int) bool {
	for class := range c {
		index, err := strconv.Atoi(class)
		if err != nil || index < 0 || index >= n {
			return false
		}
	}
	return true
}

// predicted is the class that a prediction means. problem is "" or the code of what is wrong with it. Nothing is guessed:
// a fraction is not thresholded, and a list of scores needs targets that are class indices.
func (c classSet) predicted(value any) (class, problem string) {
	switch v := value.(type) {
	case bool:
		if c.within("0", "1") {
			return map[bool]string{true: "1", false: "0"}[v], ""
		}
		return classOf(v), ""
	case float64:
		return c.number(v)
	case string:
		if nonFiniteWord(strings.TrimSpace(v)) != "" && !c[classOf(v)] {
			return "", "prediction_nonfinite"
		}
		if number, ok := numeric(v); ok {
			return c.number(number)
		}
		return classOf(v), ""
	case []float64:
		best, ok := argmax(v)
		switch {
		case !ok:
			return "", "prediction_nonfinite"
		case len(v) < 2 || !c.indexed(len(v)):
			return "", "prediction_not_class"
		}
		return strconv.Itoa(best), ""
	case map[string]float64:
		labels, scores := labelledScores(v)
		best, ok := argmax(scores)
		if !ok {
			return "", "prediction_nonfinite"
		}
		return classOf(labels[best]), ""
	}
	return "", "prediction_not_class"
}

func (c classSet) number(v float64) (class, problem string) {
	class = classOf(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "", "prediction_nonfinite"
	case c.within("true", "false") && (class == "1" || class == "0"):
		return strconv.FormatBool(class == "1"), ""
	case v != math.Trunc(v) && !c[class]:
		return "", "prediction_not_class"
	}
	return class, ""
}

// argmax is the first index of the largest score; false when one is NaN.
func argmax(scores []float64) (int, bool) {
	best := 0
	for i, score := range scores {
		if math.IsNaN(score) {
			return 0, false
		}
		if score > scores[best] {
			best = i
		}
	}
	return best, true
}

func labelledScores(scores map[string]float64) (labels []string, values []float64) {
	for label := range scores {
		labels = append(labels, label)
	}
	sort.Strings(labels)
	for _, label := range labels {
		values = append(values, scores[label])
	}
	return labels, values
}

// counts are the true positives, predictions and targets of one class.
type counts struct{ hit, predicted, target float64 }

// classTable is what was predicted for whom: class indices into labels, which are in order, so that sums do not differ in
// their last bit from call to call.
type classTable struct {
	labels            []string
	predicted, target []int32
}

// classification computes accuracy, balanced_accuracy, and precision, recall and f1 in their averages.
func classification(metric, path string, samples []sample, result *Result) (statistic, []finding.Finding, error) {
	classes := classesOf(samples)
	troubles := map[string]*problem{"prediction_nonfinite": {}, "prediction_not_class": {}}
	var predicted, target []string
	for _, s := range samples {
		class, code := classes.predicted(s.row.Prediction)
		if code != "" {
			troubles[code].add(s.example(), s.where(path))
			continue
		}
		result.N++
		predicted, target = append(predicted, class), append(target, classOf(s.target))
	}
	found := notFiniteFinding(*troubles["prediction_nonfinite"])
	if p := troubles["prediction_not_class"]; p.count > 0 {
		found = append(found, p.finding("prediction_not_class", "%d predictions are not a class of the data: %s",
			"the label as it stands in the data, scores by label, or a list of scores where targets are class indices",
			"write the predicted class; a probability is not thresholded here"))
	}
	if result.N == 0 {
		return nil, nil, finding.Refuse(found...)
	}
	table := newClassTable(predicted, target)
	if metric == "accuracy" {
		result.Value, _ = table.accuracy(nil)
		return table.accuracy, found, nil
	}
	if metric == "balanced_accuracy" {
		result.Value, _ = table.balanced(nil)
		return table.balanced, found, nil
	}
	value, more, err := averaged(metric, path, table, classes, result)
	return value, append(found, more...), err
}

func newClassTable(predicted, target []string) *classTable {
	t := &classTable{labels: slices.Concat(predicted, target)}
	slices.Sort(t.labels)
	t.labels = slices.Compact(t.labels)
	index := map[string]int32{}
	for i, label := range t.labels {
		index[label] = int32(i)
	}
	for i := range predicted {
		t.predicted, t.target = append(t.predicted, index[predicted[i]]), append(t.target, index[target[i]])
	}
	return t
}

func (t *classTable) accuracy(weights []int32) (float64, bool) {
	hits := 0.0
	for i, class := range t.predicted {
		if class == t.target[i] {
			hits += weightOf(weights, i)
		}
	}
	return hits / float64(len(t.predicted)), true
}

func (t *classTable) count(weights []int32) []counts {
	all := make([]counts, len(t.labels))
	for i, class := range t.predicted {
		w := weightOf(weights, i)
		all[class].predicted += w
		all[t.target[i]].target += w
		if class == t.target[i] {
			all[class].hit += w
		}
	}
	return all
}

// balanced is the mean recall of the classes that have samples.
func (t *classTable) balanced(weights []int32) (float64, bool) {
	sum, n := 0.0, 0.0
	for _, c := range t.count(weights) {
		if c.target > 0 {
			sum += c.hit / c.target
			n++
		}
	}
	return sum / n, n > 0
}

// averaged computes precision, recall or f1. A bare name is the binary metric of class 1 (scikit-learn's default) where
// the classes are 0 and 1 or false and true, else the macro average, with a note.
func averaged(metric, path string, table *classTable, classes classSet, result *Result) (statistic, []finding.Finding, error) {
	name, average, _ := strings.Cut(metric, "_")
	positive := ""
	switch {
	case classes.within("0", "1"):
		positive = "1"
	case classes.within("false", "true"):
		positive = "true"
	}
	var found []finding.Finding
	if average == "" {
		average = "macro"
		if positive != "" {
			average = "binary"
		}
		found = append(found, finding.Finding{
			Code: "metric_average_assumed", Severity: finding.Note, Where: &finding.Where{Path: path},
			What: fmt.Sprintf("%s does not say how classes are averaged; computed as %s_%s", name, name, average), Remedy: "name the average",
		})
	}
	result.Metric = name + "_" + average
	if average == "binary" && positive == "" {
		return nil, nil, undefined(metric, path, "the classes are not 0 and 1, nor false and true")
	}
	value := table.average(name, average, positive)
	result.Value, _ = value(nil)
	return value, found, nil
}

// average is precision, recall or f1 of the positive class, or over the classes that occur among targets or predictions.
func (t *classTable) average(name, average, positive string) statistic {
	return func(weights []int32) (float64, bool) {
		all := t.count(weights)
		if average == "binary" {
			at, ok := slices.BinarySearch(t.labels, positive)
			if !ok {
				return 0, true
			}
			return all[at].score(name), true
		}
		sum, total := 0.0, 0.0
		for _, c := range all {
			weight := 1.0
			switch {
			case average == "weighted":
				weight = c.target
			case c.predicted+c.target == 0: // a class that this draw lacks
				continue
			}
			sum += weight * c.score(name)
			total += weight
		}
		return sum / total, total > 0
	}
}

// score is precision, recall or f1 of one class; 0 where its denominator is.
func (c counts) score(name string) float64 {
	over := func(a, b float64) float64 {
		if b == 0 {
			return 0
		}
		return a / b
	}
	switch name {
	case "precision":
		return over(c.hit, c.predicted)
	case "recall":
		return over(c.hit, c.target)
	}
	return over(2*c.hit, c.predicted+c.target)
}

// logLoss needs probabilities of every class: a list by class index, scores by label, or one probability of class 1
// where the classes are 0 and 1. Scores that are no probabilities (logits) are not turned into some.
func logLoss(_, path string, samples []sample, result *Result) (statistic, []finding.Finding, error) {
	// epsilon clips a probability of 0, as scikit-learn does for float64.
	const epsilon = 2.220446049250313e-16
	classes := classesOf(samples)
	var bad problem
	var losses []float64
	for _, s := range samples {
		p, ok := classes.probability(s.row.Prediction, classOf(s.target))
		if !ok {
			bad.add(s.example(), s.where(path))
			continue
		}
		losses = append(losses, -math.Log(math.Min(math.Max(p, epsilon), 1-epsilon)))
	}
	found := notProbabilities(bad)
	if result.N = len(losses); result.N == 0 {
		return nil, nil, finding.Refuse(found...)
	}
	value := func(weights []int32) (float64, bool) {
		sum := 0.0
		for i, loss := range losses {
			sum += weightOf(weights, i) * loss
		}
		return sum / float64(len(losses)), true
	}
	result.Value, _ = value(nil)
	return value, found, nil
}

func notProbabilities(bad problem) []finding.Finding {
	if bad.count == 0 {
		return nil
	}
	return []finding.Finding{bad.finding("scores_not_probabilities", "%d predictions are not class probabilities: %s",
		"numbers from 0 to 1 with sum 1: a list by class index, an object by label, or the probability of class 1 of 0 and 1",
		"write the probabilities (softmax or sigmoid applied)")}
}

// probability is what a prediction gives to a class.
func (c classSet) probability(value any, class string) (float64, bool) {
	switch v := value.(type) {
	case float64:
		if !c.within("0", "1") || !(v >= 0 && v <= 1) {
			return 0, false
		}
		if class == "1" {
			return v, true
		}
		return 1 - v, true
	case []float64:
		if !c.indexed(len(v)) || !distribution(v) {
			return 0, false
		}
		index, _ := strconv.Atoi(class) // indexed checked it
		return v[index], true
	case map[string]float64:
		labels, scores := labelledScores(v)
		if !distribution(scores) {
			return 0, false
		}
		for i, label := range labels {
			if classOf(label) == class {
				return scores[i], true
			}
		}
	}
	return 0, false
}

// distribution says whether scores are probabilities that sum to 1, up to what three printed decimals leave, 0.01 at most.
func distribution(scores []float64) bool {
	sum := 0.0
	for _, p := range scores {
		if !(p >= 0 && p <= 1) {
			return false
		}
		sum += p
	}
	return math.Abs(sum-1) <= math.Min(0.01, 0.5e-3*float64(len(scores)))+1e-9
}
