package metrics

import (
	"math"
	"slices"

	"github.com/trainwright/trainwright/internal/finding"
)

// rocAUC is the area under the ROC curve of class 1 against 0: the chance that a sample of class 1 scores above one of class
// 0, ties counting half (Mann-Whitney). Only the order of scores matters, so logits do as well as probabilities: one score
// of class 1, or those of both classes. Predictions that are all 0 or 1 are classes and no scores: an area from them would
// be another number than the one meant.
func rocAUC(metric, path string, samples []sample, result *Result) (statistic, []finding.Finding, error) {
	classes := classesOf(samples)
	if !classes.within("0", "1") || len(classes) != 2 {
		return nil, nil, notScores(metric, path, "the classes of the data are not 0 and 1, both present")
	}
	type scored struct {
		score    float64
		positive bool
		at       int
	}
	var bad problem
	var all []scored
	hard := true
	for _, s := range samples {
		p, ok := scoreOfOne(s.row.Prediction)
		switch {
		case !ok:
			return nil, nil, notScores(metric, path, "a prediction is no score: "+s.example())
		case math.IsNaN(p):
			bad.add(s.example(), s.where(path))
			continue
		}
		hard = hard && (p == 0 || p == 1)
		all = append(all, scored{score: p, positive: classOf(s.target) == "1", at: len(all)})
	}
	found := notFiniteFinding(bad)
	if len(all) == 0 {
		return nil, nil, finding.Refuse(found...)
	}
	if hard {
		return nil, nil, notScores(metric, path, "the predictions are classes, not scores")
	}
	slices.SortStableFunc(all, func(a, b scored) int {
		switch {
		case a.score < b.score:
			return -1
		case a.score > b.score:
			return 1
		}
		return 0
	})
	value := func(weights []int32) (float64, bool) {
		below, area, positives := 0.0, 0.0, 0.0 // weight of class 0 so far
		for i := 0; i < len(all); {
			j, up, down := i, 0.0, 0.0
			for ; j < len(all) && all[j].score == all[i].score; j++ {
				if w := weightOf(weights, all[j].at); all[j].positive {
					up += w
				} else {
					down += w
				}
			}
			area += up * (below + down/2)
			positives, below, i = positives+up, below+down, j
		}
		return area / (positives * below), positives > 0 && below > 0
	}
	result.N = len(all)
	var ok bool
	if result.Value, ok = value(nil); !ok {
		return nil, nil, undefined(metric, path, "only one class is left")
	}
	return value, found, nil
}

// scoreOfOne is how much a prediction is for class 1.
func scoreOfOne(value any) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v, true
	case []float64:
		if len(v) == 1 {
			return v[0], true
		}
		if len(v) == 2 {
			return v[1] - v[0], true
		}
	case map[string]float64:
		zero, hasZero := v["0"]
		one, hasOne := v["1"]
		return one - zero, hasZero && hasOne && len(v) == 2
	}
	return 0, false
}

// notScores refuses an area that these predictions can't give. It says nothing against them.
func notScores(metric, path, why string) error {
	return finding.Refuse(finding.Finding{
		Code: "metric_not_recomputable", Severity: finding.Warning, What: metric + " can't be recomputed from these predictions: " + why,
		Where: &finding.Where{Path: path}, Expected: "classes 0 and 1, and the score of class 1 as prediction",
		Remedy: "its claims stay at the level logged, or write scores",
	})
}
