package trainer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/baseline"
	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
)

// scored is what one trivial model reaches in a metric of a split, beside what the model does.
type scored struct {
	split string
	baseline.Result
}

// compareBaselines scores trivial models on the same split and puts the best of them beside each recomputed number. It says
// plainly when the model does not beat one.
func (w *validationWork) compareBaselines(ctx context.Context) {
	for _, split := range []string{"test", "val"} {
		var names []string
		for _, c := range w.claims {
			if c.Split == split && c.Level == evidence.Recomputed {
				names = append(names, c.Metric)
			}
		}
		if len(names) == 0 {
			continue
		}
		spec, ok := w.baselineSpec(split, names)
		if !ok {
			w.unchecked = append(w.unchecked, "training quality beyond the criteria: there is no training part to fit a baseline on")
			return
		}
		results, found, err := baseline.Score(ctx, spec)
		if err != nil {
			found = append(found, softened(refusalOf(err))...)
			w.unchecked = append(w.unchecked, "training quality beyond the criteria: no baseline could be computed")
		}
		w.out.Findings = finding.Merge(w.out.Findings, found)
		for _, r := range results {
			w.baselines = append(w.baselines, scored{split, r})
		}
		w.attachBaselines(split)
		return // the baselines of one held-out part say what there is to say
	}
	w.unchecked = append(w.unchecked, "training quality beyond the criteria: without a recomputed number no baseline was computed")
}

// softened makes warnings of what only means that a comparison is missing.
func softened(findings []finding.Finding) []finding.Finding {
	out := slices.Clone(findings)
	for i := range out {
		out[i].Severity = finding.Warning
	}
	return out
}

// baselineSpec describes the split for the trivial models. What is predicted decides their kind: a class where the target is
// text or the task says so, else a number; one that has a time is forecast, unless the task says that it is not.
func (w *validationWork) baselineSpec(split string, names []string) (baseline.Spec, bool) {
	spec := baseline.Spec{Target: w.manifest.Schema.Target.Name, Features: w.manifest.Schema.Features, Metrics: names, Kind: baseline.Regression}
	if id := w.manifest.Schema.ID; !strings.HasPrefix(id, "row-") {
		spec.ID = id
	}
	target := w.manifest.Schema.Target.Type
	if (target != "number" && target != "integer") || w.step.Run.Handoff.Inputs.Model.TaskType == "classification" {
		spec.Kind = baseline.Classification
	}
	if at := w.manifest.Schema.Time; at != "" && spec.Kind == baseline.Regression && w.step.Run.Handoff.Inputs.Model.TaskType != "regression" {
		spec.Kind, spec.Time, spec.Group, spec.Horizon = baseline.Forecast, at, w.manifest.Schema.Group, w.horizon()
	}
	for _, f := range w.manifest.Files {
		switch f.Part {
		case "train":
			spec.Train = w.step.Run.Dir.Abs(f.Path)
		case split:
			spec.Test = w.step.Run.Dir.Abs(f.Path)
		case "val": // before the test part
			spec.Between = append(spec.Between, w.step.Run.Dir.Abs(f.Path))
		}
	}
	return spec, spec.Train != "" && spec.Test != "" && spec.Target != ""
}

// horizon is how many steps ahead a forecast looks: as the handoff's forecast_horizon says, else one.
func (w *validationWork) horizon() int {
	n, ok := asFloat(w.manifest.DomainMetadata["forecast_horizon"])
	if !ok || n < 1 || n != math.Trunc(n) || n > 1e6 {
		return 1
	}
	return int(n)
}

// attachBaselines puts the best trivial model beside each recomputed number of the split.
func (w *validationWork) attachBaselines(split string) {
	for i := range w.claims {
		c := &w.claims[i]
		if c.Split != split || c.Level != evidence.Recomputed {
			continue
		}
		var best *baseline.Result
		for j := range w.baselines {
			b := &w.baselines[j]
			if b.split == split && (b.Metric == c.Metric || strings.HasPrefix(b.Metric, c.Metric+"_")) && (best == nil || baseline.Better(c.Metric, b.Value, best.Value)) {
				best = &b.Result
			}
		}
		if best == nil {
			continue
		}
		c.Baseline = map[string]any{"name": best.Name, "value": best.Value}
		w.againstBaseline(c, *best)
	}
}

// againstBaseline says plainly when the model does not beat a trivial one: in the summary and the report, and where it is worse
// as a finding. An equal score speaks against the effort, not against the run.
func (w *validationWork) againstBaseline(c *evidence.Claim, best baseline.Result) {
	metric := c.Split + "/" + c.Metric
	switch {
	case baseline.Better(c.Metric, c.Value, best.Value):
	case math.Abs(c.Value-best.Value) <= 1e-9*math.Abs(best.Value):
		w.notBetter = append(w.notBetter, fmt.Sprintf("%s is no better than that of the trivial model %q (both %.6g)", metric, best.Name, c.Value))
	default:
		w.notBetter = append(w.notBetter, fmt.Sprintf("%s is worse than that of the trivial model %q (%.6g against %.6g)", metric, best.Name, c.Value, best.Value))
		w.found(finding.Finding{Code: "baseline_not_beaten", Severity: finding.Warning,
			What:  fmt.Sprintf("%s is %.6g; the trivial model %q reaches %.6g on the same part", metric, c.Value, best.Name, best.Value),
			Where: &finding.Where{Path: w.step.Run.File(contract.FileValidationReport)}, Expected: "a model that beats what needs no training", Remedy: "report it; train longer or otherwise, or use the trivial model"})
	}
}

// renderBaselines is the report's table of trivial models.
func (w *validationWork) renderBaselines(m *markdown) {
	if len(w.baselines) == 0 {
		return
	}
	m.heading(2, "Baselines")
	m.line("Trivial models on the same parts, fitted on the training part alone.\n")
	var rows [][]string
	for _, b := range w.baselines {
		rows = append(rows, []string{b.Name, b.split + "/" + b.Metric, fmt.Sprintf("%.6g", b.Value), fmt.Sprint(b.N), b.Why})
	}
	for _, said := range w.notBetter {
		m.line("**The model's %s.**\n", said)
	}
	m.table("", []string{"baseline", "metric", "value", "n", "how"}, rows)
}
