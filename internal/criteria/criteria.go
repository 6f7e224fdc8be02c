// Package criteria reads completion criteria such as "val/rmse <= 0.5 K" and judges values against them. The grammar is
// small on purpose: a sentence that is not certainly one comparison is refused, with what would be understood, instead
// of being read as something its author did not say.
//
//	criterion = [the] metric [is|of|must be|…] operator number [% | unit] ["±" number [% | unit]] [.]
//	metric    = [split ("/" | " " | " set ")] name [on [the] split [set]]
//	operator  = >= > <= < == and their other spellings and words ("at least", "below")
package criteria

import (
	"fmt"
	"math"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Criterion is one comparison. Split and Name are as written (val_loss stays one word: the caller's metrics.ParseKey
// settles names); Split is set where it was a word of its own. Value is in Unit; of a percentage it is the fraction
// (90 % is 0.9, Percent true, Unit ""). Tolerance, of == alone, is how far off a value may be, on the scale of Value.
type Criterion struct {
	Text    string  `json:"text"` // as given
	Key     string  `json:"key"`  // [split/]name
	Split   string  `json:"split,omitempty"`
	Name    string  `json:"name"`
	Op      string  `json:"op"` // >=, >, <=, < or ==
	Value   float64 `json:"value"`
	Unit    string  `json:"unit,omitempty"`
	Percent bool    `json:"percent,omitempty"`

	Tolerance float64 `json:"tolerance,omitempty"`
}

// String writes the criterion in the one form that every reader understands.
func (c Criterion) String() string {
	scale, unit := 1.0, ""
	switch {
	case c.Percent:
		scale, unit = 100, "%"
	case c.Unit != "":
		unit = " " + c.Unit
	}
	text := fmt.Sprintf("%s %s %s%s", c.Key, c.Op, shortest(c.Value*scale), unit)
	if c.Tolerance > 0 {
		text += fmt.Sprintf(" ± %s%s", shortest(c.Tolerance*scale), unit)
	}
	return text
}

// shortest prints without the last bits that a multiplication by 100 leaves.
func shortest(value float64) string { return fmt.Sprintf("%.12g", value) }

// tolerance is the relative difference below which two numbers are equal: what a value that passed through float32 has
// lost (0.9 becomes 0.89999998), and hardly more.
const tolerance = 1e-7

// Judge says whether a value with its unit ("" when the log names none) meets the criterion. A NaN or an infinity never
// does. The finding, when there is one, says what stands against the verdict: criterion_unit_mismatch and
// criterion_value_nonfinite (errors, met is false), criterion_unit_unstated (warning: the value has no unit to check).
func Judge(c Criterion, value float64, unit string) (met bool, f *finding.Finding) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return false, &finding.Finding{
			Code: "criterion_value_nonfinite", Severity: finding.Error, What: fmt.Sprintf("%s is %v, which meets nothing", c.Key, value),
			Expected: c.String(), Remedy: "find out where training diverged",
		}
	}
	wanted, given := canonicalUnit(c.Unit), canonicalUnit(unit)
	switch {
	case given == "%" && (c.Percent || wanted == ""):
		if !c.Percent && math.Abs(c.Value) > 1 {
			return false, scaleFinding(c, value, unit, "the value is a percentage and the criterion has no %")
		}
		value /= 100
	case c.Percent && given != "":
		return false, mismatch(c, value, unit)
	case wanted != "" && given != "" && wanted != given:
		return false, mismatch(c, value, unit)
	case wanted == "" && given == "" && fraction(c, value):
		return false, scaleFinding(c, value, unit, "one is a fraction and the other looks like a percentage")
	case wanted != "" && given == "":
		f = &finding.Finding{
			Code: "criterion_unit_unstated", Severity: finding.Warning,
			What:   fmt.Sprintf("%s is logged without a unit, taken as %s", c.Key, c.Unit),
			Remedy: `log it with "unit"`,
		}
	}
	return compare(c.Op, value, c.Value, c.Tolerance), f
}

func compare(op string, value, bound, allowed float64) bool {
	equal := math.Abs(value-bound) <= allowed+tolerance*math.Max(math.Abs(value), math.Abs(bound))
	switch op {
	case ">=":
		return value > bound || equal
	case ">":
		return value > bound && !equal
	case "<=":
		return value < bound || equal
	case "<":
		return value < bound && !equal
	case "==":
		return equal
	}
	return false
}

// fractionNames are words in names whose values lie between 0 and 1 and are at times written in percent.
var fractionNames = map[string]bool{
	"acc": true, "acc1": true, "acc5": true, "accuracy": true, "top1": true, "top5": true, "f1": true, "precision": true, "recall": true,
	"auc": true, "auroc": true, "iou": true, "miou": true, "dice": true,
}

// fraction says whether value and bound of such a metric can't be on the same scale.
func fraction(c Criterion, value float64) bool {
	high, low := math.Max(value, c.Value), math.Min(value, c.Value)
	if high <= 1+tolerance || low > 1+tolerance || low < 0 || !c.Percent && low == 0 {
		return false
	}
	words := strings.FieldsFunc(strings.ToLower(c.Name), func(r rune) bool { return strings.ContainsRune("_-./@: ", r) })
	for _, word := range words {
		if fractionNames[word] {
			return true
		}
	}
	return c.Percent && value > 1
}

func mismatch(c Criterion, value float64, unit string) *finding.Finding {
	return &finding.Finding{
		Code: "criterion_unit_mismatch", Severity: finding.Error,
		What:     fmt.Sprintf("%s is %s %s, the criterion asks for %s; units are not converted", c.Key, shortest(value), unit, c),
		Expected: "both in one unit", Remedy: "log the metric in the criterion's unit, or state the criterion in the log's",
	}
}

func scaleFinding(c Criterion, value float64, unit, why string) *finding.Finding {
	f := mismatch(c, value, unit)
	f.What = fmt.Sprintf("%s is %s%s, the criterion asks for %s: %s", c.Key, shortest(value), unit, c, why)
	f.Expected = "both as fractions, or both with %"
	return f
}
