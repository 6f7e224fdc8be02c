package trainer

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
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

// Statement is something that somebody says of a run: in words, or as a metric with its value.
type Statement struct {
	Statement string   `json:"statement,omitempty" jsonschema_description:"In words: test accuracy reached 93%; val/rmse <= 0.5 K."`
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
	v := &verifier{ctx: ctx, run: run}
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
	met := v.agrees(c, s, value, &out)
	if out.Verdict = DoesNotHold; met {
		out.Verdict = Holds
	}
	return out
}

// read gives the comparison that a statement makes, or why there is none.
func (s Statement) read() (c criteria.Criterion, statistic, why string) {
	switch {
	case s.Statement != "":
		c, said, err := criteria.ParseStatement(s.Statement)
		if err != nil {
			return c, "", refusalOf(err)[0].What + `; say it as "test accuracy is 0.93" or as metric and value`
		}
		if s.Statistic != "" {
			said = s.Statistic
		}
		return c, said, ""
	case s.Metric == "" || s.Value == nil:
		return c, "", "neither a statement nor a metric with its value is given"
	}
	key := metrics.ParseKey(s.Metric)
	if s.Split != "" {
		key.Split = metrics.ParseKey(s.Split + "/x").Split
	}
	c = criteria.Criterion{Key: key.String(), Split: key.Split, Name: key.Name, Op: "==", Value: *s.Value, Unit: s.Unit}
	if s.Unit == "%" || s.Unit == "percent" {
		c.Value, c.Unit, c.Percent = *s.Value/100, "", true
	}
	if s.Tolerance != nil {
		c.Tolerance = *s.Tolerance
	}
	return c, s.Statistic, ""
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
	path, why := v.file(claim.From[0])
	if why != "" {
		return 0, why
	}
	out.Level, out.Unit, out.From = claim.Level, claim.Unit, claim.From
	if claim.Level == evidence.Recomputed {
		return v.recompute(claim, path)
	}
	return v.logged(claim, path, statistic, out)
}

// known names the metrics that the run has values of.
func (v *verifier) known() string {
	var names []string
	for _, c := range v.claims {
		if name := (metrics.Key{Split: c.Split, Name: c.Metric}).String(); len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	const shown = 12
	if more := len(names) - shown; more > 0 {
		names = append(names[:shown:shown], fmt.Sprintf("%d more", more))
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}

// file is where the bytes of a claim are. They must still be the ones that were validated.
func (v *verifier) file(from evidence.Range) (path, why string) {
	path = filepath.FromSlash(from.Path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(v.run.CodeSaveDir, path)
	}
	sha, _, err := rundir.HashFile(path)
	if err != nil {
		return "", fmt.Sprintf("%s, which it rests on, can't be read: %v", from.Path, err)
	}
	if from.SHA256 != "" && sha != from.SHA256 {
		return "", from.Path + " changed after the run was validated"
	}
	return path, ""
}

func (v *verifier) recompute(claim *evidence.Claim, path string) (value float64, why string) {
	predictions, _, err := metrics.ReadPredictions(path, v.manifest.Schema.ID)
	if err != nil {
		return 0, refusalOf(err)[0].What
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
func (v *verifier) logged(claim *evidence.Claim, path, statistic string, out *Verification) (value float64, why string) {
	log, _, err := metrics.Read(path)
	if err != nil {
		return 0, refusalOf(err)[0].What
	}
	key := metrics.Key{Split: claim.Split, Name: claim.Metric}
	var point metrics.Point
	found := false
	for _, p := range log.Series(key) {
		take := statistic == "last" ||
			statistic == "" && p.Start == claim.From[0].Start ||
			!found || statistic == "min" && p.Value < point.Value || statistic == "max" && p.Value > point.Value
		if p.NonFinite == "" && take {
			point, found = p, true
		}
	}
	if statistic == "best" {
		point, found = log.Best(key)
	}
	if !found {
		return 0, "the log has no finite value of " + key.String()
	}
	out.Unit = point.Unit
	out.From = []evidence.Range{{Path: claim.From[0].Path, Start: point.Start, End: point.End, SHA256: log.SHA256}}
	return point.Value, ""
}

// agrees compares. An equality without a tolerance of its own is met by what rounds to the number as it was said.
func (v *verifier) agrees(c criteria.Criterion, s Statement, value float64, out *Verification) bool {
	said := c.Value
	if c.Op == "==" && c.Tolerance == 0 {
		c.Tolerance = halfDigit(c)
	}
	met, f := criteria.Judge(c, value, out.Unit)
	out.Why = fmt.Sprintf("%s is %.6g%s (%s)", c.Key, value, suffix(" ", out.Unit), out.Level)
	if f != nil {
		out.Why += "; " + f.What
	}
	if !met && c.Op == "==" {
		out.Why += fmt.Sprintf(", off by %.3g", math.Abs(value-said))
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
