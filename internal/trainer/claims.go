package trainer

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/criteria"
	"github.com/trainwright/trainwright/internal/dataset"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/metrics"
	"github.com/trainwright/trainwright/internal/rundir"
)

// bestEpoch is the checkpoint whose numbers count: its epoch or step where summary.json names them.
type bestEpoch struct {
	Epoch *float64
	Step  *int64
	From  string
}

// String names the place in the training.
func (b bestEpoch) String() string {
	var parts []string
	if b.Epoch != nil {
		parts = append(parts, fmt.Sprintf("epoch %g", *b.Epoch))
	}
	if b.Step != nil {
		parts = append(parts, fmt.Sprintf("step %d", *b.Step))
	}
	return strings.Join(parts, " ")
}

// summaryFile is what the script says of the training as a whole (formats.md). from is the output that it was read from.
type summaryFile struct {
	Status string   `json:"status"`
	Error  any      `json:"error"`
	Epochs *float64 `json:"epochs"`
	Steps  *float64 `json:"steps"`
	Best   struct {
		Metric string   `json:"metric"`
		Value  *float64 `json:"value"`
		Epoch  *float64 `json:"epoch"`
		Step   *int64   `json:"step"`
	} `json:"best"`
	from string
}

// findBest reads which checkpoint the script took for the best.
func (w *validationWork) findBest() {
	name := w.outputNamed("summary.json")
	if name == "" {
		return
	}
	data, err := readAtMost(w.abs(name), maxSummary)
	if err != nil {
		w.out.Findings = append(w.out.Findings, finding.Finding{Code: "summary_malformed", Severity: finding.Warning, What: fmt.Sprintf("%s: %v", name, err), Where: &finding.Where{Path: w.abs(name)},
			Expected: "a summary of some lines", Remedy: "without it the last values of the log are reported"})
		return
	}
	var summary summaryFile
	if err := json.Unmarshal(data, &summary); err != nil {
		w.out.Findings = append(w.out.Findings, finding.Finding{Code: "summary_malformed", Severity: finding.Warning, What: fmt.Sprintf("%s: %v", name, err), Where: &finding.Where{Path: w.abs(name)},
			Expected: `{"status": "completed", "best": {"epoch": 3}}`, Remedy: "without it the last values of the log are reported"})
		return
	}
	summary.from = name
	w.summary = summary
	saysZero := w.exit == nil || w.exit.Code != nil && *w.exit.Code == 0
	if summary.Status != "" && !endedWell.MatchString(summary.Status) && saysZero {
		severity := finding.Warning // a word that nobody agreed on says little
		if endedBadly.MatchString(summary.Status) || text(summary.Error) != "" {
			severity = finding.Error
		}
		w.out.Findings = append(w.out.Findings, finding.Finding{Code: "summary_contradicts", Severity: severity,
			What:  fmt.Sprintf("the job ended with exit status 0, but its summary.json says status %q%s", summary.Status, suffix(": ", text(summary.Error))),
			Where: &finding.Where{Path: w.abs(name)}, Expected: "status completed", Remedy: "find out in the log how the training ended"})
	}
	if summary.Best.Epoch != nil || summary.Best.Step != nil {
		w.best = bestEpoch{Epoch: summary.Best.Epoch, Step: summary.Best.Step, From: name}
	}
}

// maxSummary bounds summary.json, in bytes.
const maxSummary = 1 << 20

// readAtMost reads a file that has at most that many bytes.
func readAtMost(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("it has %d bytes, more than %d", info.Size(), limit)
	}
	return os.ReadFile(path)
}

// The words for how a training ended; formats.md has "completed".
var (
	endedWell  = regexp.MustCompile(`(?i)^\s*(?:complet\w*|success\w*|succeeded|finished|done|ok|converged|(?:stopped[ _-]?)?early(?:[ _-]?stop\w*)?)\s*$`)
	endedBadly = regexp.MustCompile(`(?i)fail|error|crash|diverg|interrupt|abort|kill|nan|incomplete|partial|running`)
)

// logged is the value of a series that counts: at the best checkpoint where the log has one there, else the last.
// What a resumed job found in the log already is not its own.
func (w *validationWork) logged(key metrics.Key) (metrics.Point, string, bool) {
	if w.best.From != "" {
		if p, ok := w.log.At(key, w.best.Step, w.best.Epoch); ok && w.own(p) {
			return p, "at the best checkpoint", true
		}
	}
	p, ok := w.log.Last(key)
	return p, "last", ok && w.own(p)
}

// recompute makes the claims: one for each logged series, and one for each metric that predictions allow to compute anew.
func (w *validationWork) recompute() {
	w.claims = []evidence.Claim{}
	if w.log != nil {
		for _, key := range w.log.Names {
			p, where, ok := w.logged(key)
			if !ok || p.NonFinite != "" {
				continue
			}
			w.claim(evidence.Claim{Metric: key.Name, Split: key.Split, Value: p.Value, Unit: p.Unit, Level: evidence.Logged, Note: where,
				From: []evidence.Range{{Path: w.metricsName, Start: p.Start, End: p.End, SHA256: w.log.SHA256}}})
		}
	}
	for _, o := range w.outputs {
		if base := path.Base(o.Path); strings.HasPrefix(base, "predictions-") && strings.HasSuffix(base, ".jsonl") {
			w.fromPredictions(o.Path)
		}
	}
	w.listLoggedOnly()
}

// listLoggedOnly names the numbers that rest on the script's word alone.
func (w *validationWork) listLoggedOnly() {
	for _, c := range w.claims {
		again := slices.ContainsFunc(w.claims, func(d evidence.Claim) bool {
			return d.Split == c.Split && d.Metric == c.Metric && d.Level == evidence.Recomputed
		})
		if c.Level == evidence.Logged && !again && !slices.ContainsFunc(w.unchecked, func(u string) bool {
			return strings.HasPrefix(u, metrics.Key{Split: c.Split, Name: c.Metric}.String()+":")
		}) {
			w.unchecked = append(w.unchecked, fmt.Sprintf("%s: logged only, no predictions to compute it from", metrics.Key{Split: c.Split, Name: c.Metric}))
		}
	}
}

// externalNote marks a number of a run that was started elsewhere: what it was computed from is not known to be of that run.
const externalNote = "external: started elsewhere"

func (w *validationWork) claim(c evidence.Claim) {
	c.ID = fmt.Sprintf("c%d", len(w.claims)+1)
	if w.external {
		c.Note = strings.TrimPrefix(c.Note+"; "+externalNote, "; ")
	}
	w.claims = append(w.claims, c)
}

// fromPredictions computes every metric that the log or a criterion names for the split, from the predictions and the
// targets of the data itself, by sample id.
func (w *validationWork) fromPredictions(name string) {
	preds, found, err := metrics.ReadPredictions(w.abs(name), w.manifest.Schema.ID)
	if err != nil {
		w.out.Findings = append(w.out.Findings, refusalOf(err)...)
		return
	}
	w.out.Findings = append(w.out.Findings, found...)
	targets, err := w.targets(preds.Split)
	if err != nil {
		w.out.Findings = append(w.out.Findings, refusalOf(err)...)
		return
	}
	if id := w.manifest.Schema.ID; strings.HasPrefix(id, "row-") && len(preds.Rows) > 0 && !strings.HasPrefix(preds.Rows[0].ID, "row-") {
		w.out.Findings = append(w.out.Findings, finding.Finding{Code: "id_column_unstated", Severity: finding.Error, What: fmt.Sprintf("%s names rows such as %q, but no id column is known: rows are numbered row-0, row-1, …", name, preds.Rows[0].ID),
			Where: &finding.Where{Path: w.abs(name), Line: preds.Rows[0].Line}, Expected: "the id column of the data", Remedy: "phase_2_data_and_split with data.id, or domain_metadata.id in the handoff"})
		return
	}
	if targets == nil {
		w.unchecked = append(w.unchecked, name+": there is no data part of that name to compare with")
		return
	}
	for _, metric := range w.metricsOf(preds.Split) {
		result, found, err := metrics.Recompute(metric, preds, targets)
		w.out.Findings = finding.Merge(w.out.Findings, found)
		if err != nil {
			w.out.Findings = finding.Merge(w.out.Findings, refusalOf(err))
			w.unchecked = append(w.unchecked, fmt.Sprintf("%s/%s: it could not be computed from %s", preds.Split, metric, name))
			continue
		}
		if !result.Whole || math.IsNaN(result.Value) {
			w.unchecked = append(w.unchecked, fmt.Sprintf("%s/%s: %s does not cover the %s part", preds.Split, metric, name, preds.Split))
			continue
		}
		claim := evidence.Claim{Metric: metric, Split: preds.Split, Value: result.Value, Unit: w.unitOf(metric), Level: evidence.Recomputed, N: result.N,
			From: []evidence.Range{{Path: name, Start: result.From.Start, End: result.From.End, SHA256: preds.SHA256}}}
		if result.Resamples > 0 {
			claim.Interval = result.Interval[:]
		}
		w.claim(claim)
		w.tooGood(metric, result, preds, name)
		w.compare(metrics.Key{Split: preds.Split, Name: metric}, result.Value, name)
	}
}

// tooGood tells of a model without any error: of a regression whose predictions are the targets, of a classifier that is
// always right.
func (w *validationWork) tooGood(metric string, result metrics.Result, preds *metrics.Predictions, name string) {
	const few = 5
	if _, _, known := metrics.MetricKind(metric); known && (metric == "accuracy" || metric == "f1" || metric == "auc") && result.Value == 1 && result.N >= 30 && !hasCode(w.out.Findings, "no_error_at_all") {
		w.found(finding.Finding{Code: "no_error_at_all", Severity: finding.Warning, What: fmt.Sprintf("%s/%s is exactly 1 over %d samples", preds.Split, metric, result.N), Where: &finding.Where{Path: w.abs(name)},
			Expected: "some errors, as measured data has them", Remedy: "look for a feature that gives the target away, for rows of this part in the training, and at how the predictions are made; say in the report what you found"})
		return
	}
	if metric != "mae" && metric != "rmse" && metric != "mse" || result.Value != 0 || result.N < few || hasCode(w.out.Findings, "predictions_are_targets") {
		return
	}
	w.found(finding.Finding{Code: "predictions_are_targets", Severity: finding.Warning, What: fmt.Sprintf("all %d predictions of %s are exactly the targets", result.N, name), Where: &finding.Where{Path: w.abs(name)},
		Expected: "errors, as every measured quantity has them", Remedy: "check that the script writes what the model says, and that no column holds the target"})
}

// unitOf is the unit of an error that is measured as the target is.
func (w *validationWork) unitOf(metric string) string {
	if metric == "rmse" || metric == "mae" {
		return w.manifest.Schema.Target.Unit
	}
	return ""
}

// targets are the server's own targets of a part, by sample id.
func (w *validationWork) targets(split string) (map[string]string, error) {
	return targetsOf(context.Background(), w.step.Run.Dir, w.manifest, split)
}

// targetsOf reads the targets of a part from the data that the manifest names; nil where there is no such part.
func targetsOf(ctx context.Context, dir rundir.Dir, manifest contract.DataManifest, split string) (map[string]string, error) {
	for _, f := range manifest.Files {
		if f.Part == split {
			id := manifest.Schema.ID
			if strings.HasPrefix(id, "row-") {
				id = ""
			}
			return dataset.Targets(ctx, dir.Abs(f.Path), id, manifest.Schema.Target.Name)
		}
	}
	return nil, nil
}

// metricsOf are the metrics to compute for a split: those that are logged for it, and those that a criterion names.
func (w *validationWork) metricsOf(split string) []string {
	var names []string
	add := func(name string) {
		if _, _, known := metrics.MetricKind(name); known && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if w.log != nil {
		for _, key := range w.log.Names {
			if key.Split == split {
				add(key.Name)
			}
		}
	}
	for _, text := range w.criteriaTexts() {
		if c, err := criteria.Parse(text); err == nil {
			if key := metrics.ParseKey(c.Key); key.Split == split || key.Split == "" {
				add(key.Name)
			}
		}
	}
	return names
}

// compare holds a recomputed value against the log. Where the best checkpoint is known its value must agree, else any
// value of the series may.
func (w *validationWork) compare(key metrics.Key, value float64, from string) {
	if w.log == nil {
		return
	}
	series := w.log.Series(key)
	if len(series) == 0 {
		return
	}
	point, where, _ := w.logged(key)
	agrees := metrics.Agrees(point, value)
	if w.best.From == "" {
		agrees = slices.ContainsFunc(series, func(p metrics.Point) bool { return metrics.Agrees(p, value) })
	}
	w.out.Check("log_agrees_"+key.String(), agrees, fmt.Sprintf("logged %s (%s), recomputed %.6g", point.Text, where, value))
	if !agrees {
		w.out.Findings = append(w.out.Findings, finding.Finding{Code: "metric_contradicted", Severity: finding.Error,
			What:     fmt.Sprintf("the log says %s = %s, the predictions give %.6g", key, point.Text, value),
			Where:    &finding.Where{Path: w.abs(w.metricsName), Line: point.Line, Byte: point.Start},
			Expected: fmt.Sprintf("%.6g (from %s)", value, from), Remedy: "the script computes or logs this metric wrongly, or its predictions are not of that checkpoint; correct it and run again"})
	}
}

func (w *validationWork) criteriaTexts() []string {
	texts := slices.Clone(w.plan.criteriaOf())
	for _, check := range w.given.Checks {
		if !slices.Contains(texts, check) {
			texts = append(texts, check)
		}
	}
	return texts
}

// judge holds each criterion against the best evidence there is: a recomputed value, else a logged one.
func (w *validationWork) judge() {
	for _, text := range w.criteriaTexts() {
		j := judged{Text: text}
		c, err := criteria.Parse(text)
		if err != nil {
			j.Problem = "can't be parsed"
			for _, f := range refusalOf(err) {
				f.Severity = finding.Warning
				w.out.Findings = finding.Merge(w.out.Findings, []finding.Finding{f})
			}
			w.criteria = append(w.criteria, j)
			continue
		}
		j.Parsed = true
		j.Claim = w.evidenceFor(metrics.ParseKey(c.Key))
		if j.Claim == nil {
			j.Problem = "no value of " + c.Key + " was found"
			w.out.Findings = append(w.out.Findings, finding.Finding{Code: "criterion_without_value", Severity: finding.Warning, What: fmt.Sprintf("%q: neither the log nor predictions have %s", text, c.Key),
				Where: &finding.Where{Field: "completion_criteria"}, Expected: "a metric of outputs/metrics.jsonl, of what the job prints (key=value), or of outputs/predictions-<split>.jsonl; it left: " + w.known(), Remedy: "name the metric as the log does, or let the script log it there; other files, such as a results.json, are not evidence"})
		} else {
			met, f := criteria.Judge(c, j.Claim.Value, j.Claim.Unit)
			j.Met = met
			if f != nil {
				w.out.Findings = append(w.out.Findings, *f)
			}
			if f != nil && !met {
				j.Problem = f.What
			}
		}
		w.criteria = append(w.criteria, j)
	}
}

func (w *validationWork) known() string {
	if w.log == nil {
		return "nothing"
	}
	var names []string
	for _, k := range w.log.Names {
		names = append(names, k.String())
	}
	return strings.Join(names, ", ")
}

// evidenceFor is the claim that a criterion is judged by.
func (w *validationWork) evidenceFor(key metrics.Key) *evidence.Claim {
	return strongest(w.claims, key, evidence.Recomputed, evidence.Logged)
}

// strongest is the claim about a metric at the first of these levels that has one. A bare name means test, else val, never
// train (settled.md).
func strongest(claims []evidence.Claim, key metrics.Key, levels ...string) *evidence.Claim {
	splits := []string{key.Split}
	if key.Split == "" {
		splits = []string{"test", "val"}
	}
	for _, split := range splits {
		for _, level := range levels {
			for i := range claims {
				if c := &claims[i]; c.Split == split && c.Metric == key.Name && c.Level == level {
					return c
				}
			}
		}
	}
	return nil
}

// verdict decides the step. Evidence that contradicts itself fails it; a criterion that is not met, missing or unreadable
// leaves it partial (settled.md).
func (w *validationWork) verdict() {
	out := w.out
	met, open, loggedOnly := 0, 0, 0
	for _, j := range w.criteria {
		switch {
		case j.Met:
			met++
			if j.Claim.Level == evidence.Logged {
				loggedOnly++
			}
		case !j.Parsed || j.Claim == nil:
			open++
		}
	}
	broken := finding.Has(out.Findings, finding.Error)
	out.Decide()
	out.Status = contract.StateSuccess
	switch {
	case broken || !out.Gate.Passed:
		out.Gate.Passed = false
		out.Status, out.Step, out.Category = contract.StateFailed, contract.StatusFailed, jobs.CategoryScientific
		out.Blockers = append(out.Blockers, "the evidence of the run does not hold")
	case w.jobFailed:
		out.Step = contract.StatusFailed // the engine tells the cause, which is phase 5's
	case len(w.criteria) == 0:
		out.Step = contract.StatusPartial
		out.Needs = append(out.Needs, engine.Need{Field: "completion_criteria", Why: "no criterion says when the training is good enough", WhereToLook: []string{"ask the user"}, Candidates: []string{}})
		out.Next = w.askCriteria()
	case met < len(w.criteria):
		out.Step, out.Category = contract.StatusPartial, jobs.CategoryScientific
		if open > 0 {
			out.Needs = append(out.Needs, engine.Need{Field: "completion_criteria", Why: "a criterion can't be judged", WhereToLook: []string{reportFile}, Candidates: []string{}})
			if len(w.given.Checks) == 0 {
				out.Next = w.askCriteria()
			}
		}
	case w.external:
		out.Step = contract.StatusPartial
	}
	if loggedOnly > 0 {
		out.Findings = append(out.Findings, finding.Finding{Code: "criterion_logged_only", Severity: finding.Warning, What: fmt.Sprintf("%d criteria are met only by what the script logged", loggedOnly),
			Expected: "predictions by sample id to compute the metric anew", Remedy: "let the script leave outputs/predictions-<split>.jsonl"})
	}
	out.Summary = fmt.Sprintf("%d of %d criteria met%s%s", met, len(w.criteria), suffix("; ", strings.Join(w.notBetter, "; ")), map[bool]string{true: "; the evidence is external"}[w.external])
	if out.Status == contract.StateFailed {
		out.Summary = "the evidence of the run does not hold"
	}
}

func (w *validationWork) askCriteria() *engine.NextCall {
	return &engine.NextCall{Tool: "phase_6_validation", Arguments: map[string]any{"run_id": w.step.Run.ID, "checks": []any{"<criterion, such as test/rmse below 0.5>"}}}
}

// rel shows a path the way the report names files.
func (w *validationWork) rel(abs string) string {
	if r, err := filepath.Rel(w.base, abs); err == nil && filepath.IsLocal(r) {
		return filepath.ToSlash(r)
	}
	return abs
}
