package trainer

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/criteria"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/metrics"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Statement is something that somebody says of a run: in words, or as a metric with its value. A lone string is the words.
type Statement struct {
	Statement string   `json:"statement,omitempty" lone:"true" jsonschema_description:"In words: test accuracy reached 93%; val/rmse <= 0.5 K."`
	Metric    string   `json:"metric,omitempty" jsonschema_description:"Or the metric, with value."`
	Statistic string   `json:"statistic,omitempty" jsonschema:"enum=best,enum=last,enum=min,enum=max" jsonschema_description:"Which value of the logged series; left out: the one that the report gives."`
	Split     string   `json:"split,omitempty"`
	Value     *float64 `json:"value,omitempty"`
	Tolerance *float64 `json:"tolerance,omitempty" jsonschema_description:"How far off it may be; left out: half of its last digit."`
	Unit      string   `json:"unit,omitempty"`
}

// What becomes of a statement.
const (
	Holds       = "holds"
	DoesNotHold = "does_not_hold"
	Unchecked   = "can_not_be_checked"
)

// Verification is what the files say to a statement. Found is the value that was derived anew just now, from the bytes in
// From; Level how strong that is; Why what the verdict rests on, or why there is none.
type Verification struct {
	Statement string           `json:"statement"`
	ReadAs    string           `json:"read_as,omitempty"`
	Verdict   string           `json:"verdict"`
	Found     *float64         `json:"found,omitempty"`
	Unit      string           `json:"unit,omitempty"`
	Level     string           `json:"level,omitempty"`
	Why       string           `json:"why"`
	From      []evidence.Range `json:"from,omitempty"`
}

// Verifications answers all statements of a call, in their order.
type Verifications struct {
	RunID    string            `json:"run_id"`
	Claims   []Verification    `json:"claims"`
	Findings []finding.Finding `json:"findings"`
	NextCall *engine.NextCall  `json:"next_call,omitempty"`
}

// mostStatements bounds one call.
const mostStatements = 50

// VerifyClaims holds statements about a run against its files. Only a run that was validated has claims whose files are known
// to be its own; of any other nothing can be checked. Nothing is written.
func (t *Trainer) VerifyClaims(ctx context.Context, runID string, statements []Statement) (Verifications, error) {
	answer := Verifications{RunID: runID, Claims: []Verification{}, Findings: []finding.Finding{}}
	if len(statements) == 0 || len(statements) > mostStatements {
		return answer, finding.Refuse(finding.Finding{Code: "claims_number", Severity: finding.Error, What: fmt.Sprintf("%d claims are given", len(statements)), Where: &finding.Where{Field: "claims"},
			Expected: fmt.Sprintf("1 to %d", mostStatements), Remedy: `send {"claims": [{"statement": "test accuracy is 0.93"}]}`})
	}
	status, err := t.Engine.RunStatus(ctx, runID)
	if err != nil {
		return answer, err
	}
	run, err := t.Engine.Look(runID)
	if err != nil {
		return answer, err
	}
	v := &verifier{ctx: ctx, run: run, computed: map[string]derived{}, logs: map[string]*metrics.Log{}}
	if why := v.load(status); why != "" {
		answer.NextCall = status.Run.NextCall
		for _, s := range statements {
			answer.Claims = append(answer.Claims, Verification{Statement: s.words(), Verdict: Unchecked, Why: why})
		}
		return answer, nil
	}
	for _, s := range statements {
		answer.Claims = append(answer.Claims, v.verify(s))
	}
	return answer, nil
}

func (s Statement) words() string {
	if s.Statement != "" {
		return s.Statement
	}
	text := strings.TrimSpace(s.Statistic + " " + metrics.Key{Split: s.Split, Name: s.Metric}.String())
	if s.Value != nil {
		text += " == " + strings.TrimSpace(fmt.Sprintf("%g %s", *s.Value, s.Unit))
	}
	return text
}

// verifier derives numbers of one run anew.
type verifier struct {
	ctx      context.Context
	run      *engine.Run
	claims   []evidence.Claim
	manifest contract.DataManifest
	computed map[string]derived      // by claim id
	logs     map[string]*metrics.Log // by path as a claim names it
}

// derived is a number that was computed anew, or why it could not be.
type derived struct {
	value float64
	why   string
}

// load reads what the validation left; it says why nothing can be checked.
func (v *verifier) load(status engine.Envelope) (why string) {
	switch state := status.Run.PhaseStatus[contract.PhaseValidation]; state {
	case contract.StateSuccess, contract.StatePartial, contract.StateFailed:
	default:
		return "the run is not validated: " + contract.PhaseValidation + " is " + state
	}
	for name, into := range map[string]any{claimsFile: &v.claims, dataManifestFile: &v.manifest} {
		if err := rundir.ReadJSON(v.run.File(name), into); err != nil {
			return err.Error()
		}
	}
	return ""
}

func (v *verifier) verify(s Statement) Verification {
	out := Verification{Statement: s.words(), Verdict: Unchecked}
	c, statistic, why := s.read()
	if why != "" {
		out.Why = why
		return out
	}
	out.ReadAs = strings.TrimSpace(statistic + " " + c.String())
	key := metrics.ParseKey(c.Key)
	value, why := v.derive(key, statistic, &out)
	if why != "" {
		out.Why = why
		return out
	}
	out.Found = &value
	met := agrees(c, value, &out)
	if out.Verdict = DoesNotHold; met {
		out.Verdict = Holds
	}
	return out
}

// read gives the comparison that a statement makes, or why there is none.
func (s Statement) read() (c criteria.Criterion, statistic, why string) {
	var err error
	switch {
	case s.Statement != "":
		if c, statistic, err = criteria.ParseStatement(s.Statement); err != nil {
			return c, "", refusalOf(err)[0].What + `; say it as "test accuracy is 0.93" or as metric and value`
		}
	case s.Metric == "" || s.Value == nil:
		return c, "", "neither a statement nor a metric with its value is given"
	default:
		key := metrics.ParseKey(s.Metric)
		if s.Split != "" {
			key.Split = metrics.ParseKey(s.Split + "/x").Split
		}
		if c, err = criteria.Parse(strings.TrimSpace(fmt.Sprintf("%s == %v %s", key, *s.Value, s.Unit))); err != nil {
			return c, "", refusalOf(err)[0].What
		}
	}
	if s.Statistic != "" {
		statistic = s.Statistic
	}
	if s.Tolerance != nil {
		if c, err = criteria.Parse(fmt.Sprintf("%s ± %v", c, *s.Tolerance)); err != nil {
			return c, "", refusalOf(err)[0].What
		}
	}
	return c, statistic, ""
}

// derive finds the value anew: from the predictions where there are some, else from the log. A statistic asks for the log.
func (v *verifier) derive(key metrics.Key, statistic string, out *Verification) (value float64, why string) {
	levels := []string{evidence.Recomputed, evidence.Logged}
	if statistic != "" {
		levels = levels[1:]
	}
	claim := strongest(v.claims, key, levels...)
	if claim == nil {
		return 0, "the run's files have no value of " + key.String() + "; known: " + v.known()
	}
	out.Level, out.Unit, out.From = claim.Level, claim.Unit, claim.From
	if claim.Level == evidence.Recomputed {
		value, why = v.recompute(claim)
	} else {
		value, why = v.logged(claim, statistic, out)
	}
	if why != "" {
		out.Level, out.Unit, out.From = "", "", nil
	}
	return value, why
}

// known names the metrics that the run has values of.
func (v *verifier) known() string {
	var names []string
	for _, c := range v.claims {
		if name := (metrics.Key{Split: c.Split, Name: c.Metric}).String(); len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	if names == nil {
		return "none"
	}
	return finding.Few(names, 12)
}

// changed says why the bytes of a claim prove nothing any more; "" when they are those that were validated.
func changed(from evidence.Range, sha string) (why string) {
	if from.SHA256 != "" && sha != from.SHA256 {
		return from.Path + " changed after the run was validated"
	}
	return ""
}

// recompute computes a metric anew, once for all statements about it.
func (v *verifier) recompute(claim *evidence.Claim) (value float64, why string) {
	if known, ok := v.computed[claim.ID]; ok {
		return known.value, known.why
	}
	value, why = v.compute(claim)
	v.computed[claim.ID] = derived{value, why}
	return value, why
}

func (v *verifier) compute(claim *evidence.Claim) (value float64, why string) {
	predictions, _, err := metrics.ReadPredictions(under(v.run.CodeSaveDir, claim.From[0].Path), v.manifest.Schema.ID)
	if err != nil {
		return 0, refusalOf(err)[0].What
	}
	if why := changed(claim.From[0], predictions.SHA256); why != "" {
		return 0, why
	}
	targets, err := targetsOf(v.ctx, v.run.Dir, v.manifest, claim.Split)
	if err != nil || targets == nil {
		return 0, "the targets of the " + claim.Split + " part can't be read"
	}
	result, _, err := metrics.Recompute(claim.Metric, predictions, targets)
	switch {
	case err != nil:
		return 0, refusalOf(err)[0].What
	case !result.Whole || math.IsNaN(result.Value):
		return 0, "the predictions do not cover the " + claim.Split + " part"
	}
	return result.Value, ""
}

// logged reads the series and takes the value that the statistic means, or the one that the validation took.
func (v *verifier) logged(claim *evidence.Claim, statistic string, out *Verification) (value float64, why string) {
	from := claim.From[0]
	log := v.logs[from.Path]
	if log == nil {
		var err error
		if log, _, err = metrics.Read(under(v.run.CodeSaveDir, from.Path)); err != nil {
			return 0, refusalOf(err)[0].What
		}
		v.logs[from.Path] = log
	}
	if why := changed(from, log.SHA256); why != "" {
		return 0, why
	}
	point, why := pick(log, metrics.Key{Split: claim.Split, Name: claim.Metric}, statistic, from.Start)
	if why != "" {
		return 0, why
	}
	out.Unit = point.Unit
	out.From = []evidence.Range{{Path: from.Path, Start: point.Start, End: point.End, SHA256: log.SHA256}}
	return point.Value, ""
}

// pick is the value of a series that a statistic means: without one, the value in the row at start. A log that is too long to
// be kept whole has no extreme that could be sworn to.
func pick(log *metrics.Log, key metrics.Key, statistic string, start int64) (point metrics.Point, why string) {
	found := false
	if log.Dropped > 0 && statistic != "" && statistic != "last" {
		return point, "the log has too many values to look through all of them for the " + statistic + " one"
	}
	switch statistic {
	case "last":
		point, found = log.Last(key)
	case "best":
		point, found = log.Best(key)
	default:
		for _, p := range log.Series(key) {
			switch {
			case p.NonFinite != "":
			case statistic == "":
				if p.Start == start {
					point, found = p, true
				}
			case !found || statistic == "min" && p.Value < point.Value || statistic == "max" && p.Value > point.Value:
				point, found = p, true
			}
		}
	}
	switch {
	case !found:
		return point, "the log has no such value of " + key.String()
	case point.NonFinite != "":
		return point, "the " + statistic + " value of " + key.String() + " is " + point.NonFinite
	}
	return point, ""
}

// agrees compares. An equality without a tolerance of its own is met by what rounds to the number as it was said.
func agrees(c criteria.Criterion, value float64, out *Verification) bool {
	if c.Op == "==" && c.Tolerance == 0 {
		c.Tolerance = halfDigit(c)
	}
	met, f := criteria.Judge(c, value, out.Unit)
	out.Why = fmt.Sprintf("%s is %.6g%s (%s)", c.Key, value, suffix(" ", out.Unit), out.Level)
	if f != nil {
		out.Why += "; " + f.What
	}
	if !met && c.Op == "==" {
		out.Why += fmt.Sprintf(", off by %.3g", math.Abs(value-c.Value))
	}
	return met
}

// halfDigit is half of the last digit of the number as it is written shortest. A lone integer is how people write 1.0, and 100 %
// says that nothing is wrong: neither is taken for a rounded number.
func halfDigit(c criteria.Criterion) float64 {
	scale := 1.0
	if c.Value == math.Trunc(c.Value) {
		return 1e-3 * math.Max(math.Abs(c.Value), 1e-3)
	}
	if c.Percent {
		scale = 100
	}
	text := strconv.FormatFloat(math.Round(c.Value*scale*1e9)/1e9, 'f', -1, 64)
	decimals := 0
	if i := strings.IndexByte(text, '.'); i >= 0 {
		decimals = len(text) - i - 1
	}
	return 0.5000001 * math.Pow(10, -float64(decimals)) / scale
}
