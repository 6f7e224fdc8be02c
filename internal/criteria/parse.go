package criteria

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/trainwright/trainwright/internal/finding"
)

// maxText bounds a criterion; a longer text is prose.
const maxText = 300

// understood is what a refusal shows.
const understood = `one comparison of a metric with a number: "accuracy >= 0.9", "val/rmse <= 0.5 K", "test accuracy of at least 90%", "bias == 0 ± 0.1 K"`

// operators are tried in this order, so that a longer spelling wins over one that it contains. Words stand between
// spaces. The negations are whole entries: a stray "not" makes a sentence unparsable.
var operators = []struct{ spelling, op string }{
	{">=", ">="}, {"=>", ">="}, {"≥", ">="}, {"⩾", ">="}, {"≧", ">="},
	{"<=", "<="}, {"=<", "<="}, {"≤", "<="}, {"⩽", "<="}, {"≦", "<="},
	{"==", "=="}, {">", ">"}, {"<", "<"}, {"=", "=="},
	{" greater than or equal to ", ">="}, {" less than or equal to ", "<="},
	{" at least ", ">="}, {" no less than ", ">="}, {" not less than ", ">="}, {" not below ", ">="}, {" no lower than ", ">="},
	{" at most ", "<="}, {" no more than ", "<="}, {" not more than ", "<="}, {" not above ", "<="}, {" no higher than ", "<="},
	{" greater than ", ">"}, {" more than ", ">"}, {" higher than ", ">"}, {" above ", ">"}, {" exceeds ", ">"},
	{" less than ", "<"}, {" lower than ", "<"}, {" smaller than ", "<"}, {" below ", "<"}, {" under ", "<"},
	{" equal to ", "=="}, {" equals ", "=="},
}

// splitWords name a split where they stand as a word of their own. metrics.ParseKey knows all of them.
var splitWords = map[string]bool{
	"train": true, "training": true, "val": true, "valid": true, "validation": true, "eval": true, "evaluation": true, "dev": true,
	"test": true, "testing": true, "holdout": true,
}

// longNames are the names of several words that are certainly one metric.
var longNames = map[string]bool{
	"f1 score": true, "macro f1": true, "f1 macro": true, "macro f1 score": true, "weighted f1": true, "log loss": true, "r2 score": true,
	"mean absolute error": true, "mean squared error": true, "root mean squared error": true, "top1 accuracy": true,
	"balanced accuracy": true, "macro precision": true, "macro recall": true,
}

// The patterns with classes of letters take longest to compile; they wait until they are asked for, since every start of
// the program would pay for them.
var (
	nameWord = pattern(`^\p{L}(?:[\p{L}\p{N}_@./^:-]*[\p{L}\p{N}])?$`) // \p{N} has the ² of R²
	onSplit  = pattern(`(?i)^(.+?)\s+on\s+(?:the\s+)?(\p{L}+)(?:\s+(?:set|split|data))?$`)
)

// pattern is compiled when it is first asked for.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

var (
	fillers     = regexp.MustCompile(`(?i)\s+(?:(?:is|are|of|must|should|has|to|be|stay|stays|remain|remains|reach|reaches)\s+)+$`)
	leaders     = regexp.MustCompile(`(?i)^(?:(?:achieve|achieves|reach)\s+)?(?:an?\s+|the\s+)?`)
	numberStart = regexp.MustCompile(`^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?`)
	brokenTail  = regexp.MustCompile(`^(?:[eE][+-]?$|[xX_])`) // 5e, 0x1f, 1_000
	percentSign = regexp.MustCompile(`(?i)^(?:%|percent|per cent)$`)
)

// Parse reads one criterion. What it can't read for certain is a *finding.Refused with code criterion_unparsable (a
// warning: the run is not at fault), which says how far it was understood.
func Parse(text string) (Criterion, error) {
	c := Criterion{Text: text}
	if len(text) > maxText {
		return c, unparsable(text[:60]+"…", "it is longer than one comparison")
	}
	plain := normalise(text)
	if plain == "" {
		return c, unparsable(text, "it is empty")
	}
	left, right, ok := c.cutOperator(plain)
	if !ok {
		return c, unparsable(text, "it has no comparison (>=, <=, >, <, ==, at least, below, …)")
	}
	if !c.metric(left) {
		return c, unparsable(text, strconv.Quote(strings.TrimSpace(left))+" is not one metric name")
	}
	if why := c.number(right); why != "" {
		return c, unparsable(text, why)
	}
	return c, nil
}

// normalise folds full-width forms and white space, and takes one final full stop off.
func normalise(text string) string {
	folded := strings.Map(func(r rune) rune {
		switch {
		case r >= '！' && r <= '～': // U+FF01–U+FF5E mirror ASCII
			return r - 0xFEE0
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	folded = strings.Join(strings.Fields(folded), " ")
	for _, stop := range []string{".", "。", ";"} {
		if cut, ok := strings.CutSuffix(folded, stop); ok {
			return strings.TrimSpace(cut)
		}
	}
	return folded
}

// cutOperator splits at the operator. Two comparisons are not one criterion, and are caught as a bad name or number.
func (c *Criterion) cutOperator(plain string) (left, right string, ok bool) {
	lower := strings.ToLower(plain)
	if len(lower) != len(plain) { // a letter whose lower case has another length: offsets would not fit
		lower = plain
	}
	for _, operator := range operators {
		if i := strings.Index(lower, operator.spelling); i >= 0 {
			c.Op = operator.op
			return plain[:i], plain[i+len(operator.spelling):], true
		}
	}
	return "", "", false
}

// metric reads the name and, where it is a word of its own, the split.
func (c *Criterion) metric(left string) bool {
	left = leaders.ReplaceAllString(strings.TrimSpace(left), "")
	left = strings.TrimSpace(fillers.ReplaceAllString(" "+left+" ", " "))
	if m := onSplit().FindStringSubmatch(left); m != nil && splitWords[strings.ToLower(m[2])] {
		left, c.Split = m[1], strings.ToLower(m[2])
	} else if split, rest, ok := cutSplit(left); ok {
		left, c.Split = rest, split
	}
	if strings.Contains(left, " ") {
		if !longNames[strings.ToLower(left)] {
			return false
		}
		left = strings.ReplaceAll(strings.ToLower(left), " ", "_")
	}
	if !nameWord().MatchString(left) || notMetrics[strings.ToLower(left)] || splitWords[strings.ToLower(left)] {
		return false
	}
	c.Name, c.Key = left, left
	if c.Split != "" {
		c.Key = c.Split + "/" + left
	}
	return true
}

// notMetrics are words that can stand where a name does and name nothing.
var notMetrics = map[string]bool{"it": true, "this": true, "that": true, "value": true, "result": true, "not": true, "is": true, "the": true}

// cutSplit takes a leading split word: "test/x", "test x", "test set x".
func cutSplit(left string) (split, rest string, ok bool) {
	i := strings.IndexAny(left, "/ ")
	if i < 0 || !splitWords[strings.ToLower(left[:i])] {
		return "", "", false
	}
	rest = strings.TrimSpace(left[i+1:])
	if left[i] == ' ' {
		rest = strings.TrimPrefix(rest, "set ")
	}
	return strings.ToLower(left[:i]), rest, rest != ""
}

// number reads the bound, its unit and, of an equality, its tolerance; it returns why it could not.
func (c *Criterion) number(right string) string {
	right, off, has := cutTolerance(right)
	bound, why := quantity(right)
	if why != "" {
		return why
	}
	c.Value, c.Unit, c.Percent = bound.value, bound.unit, bound.percent
	if !has {
		return ""
	}
	if c.Op != "==" {
		return "a tolerance goes with ==, not with " + c.Op
	}
	return c.tolerance(off)
}

// tolerance reads how far off a value may be: in the bound's unit, or in percent of a bound that is no percentage itself.
func (c *Criterion) tolerance(text string) string {
	t, why := quantity(text)
	switch {
	case why != "":
		return "the tolerance: " + why
	case t.value < 0:
		return "the tolerance is negative"
	case t.percent && !c.Percent:
		c.Tolerance = t.value * math.Abs(c.Value)
		return ""
	case c.Percent && t.unit == "" && !t.percent: // 90% ± 1
		t.value /= 100
	case t.unit != "" && c.Unit == "" && !c.Percent: // 0.5 ± 0.1 K
		c.Unit = t.unit
	case t.unit != "" && canonicalUnit(t.unit) != canonicalUnit(c.Unit):
		return "the tolerance has another unit than the number"
	}
	c.Tolerance = t.value
	return ""
}

// cutTolerance splits at the sign that stands between a number and its tolerance.
func cutTolerance(right string) (bound, tolerance string, has bool) {
	for _, sign := range []string{"±", "+/-", "+-", " plus or minus "} {
		if bound, tolerance, has = strings.Cut(right, sign); has {
			return bound, tolerance, true
		}
	}
	return right, "", false
}

// measured is a number with its unit; of a percentage the value is the fraction.
type measured struct {
	value   float64
	unit    string
	percent bool
}

// quantity reads a number and its unit; it returns why it could not.
func quantity(text string) (m measured, why string) {
	text = strings.TrimSpace(text)
	digits := numberStart.FindString(text)
	if digits == "" {
		return m, "no number follows the comparison"
	}
	rest := strings.TrimSpace(text[len(digits):])
	exact := digits
	switch {
	case rest == "":
	case percentSign.MatchString(rest):
		m.percent = true
		exact = percentText(digits) // dividing would leave 0.57000000000000006 for 57 %
	case strings.HasPrefix(rest, ",") || strings.HasPrefix(rest, "."):
		return m, "the number is not plain (write 1000 for 1,000 and 0.9 for 0,9)"
	case brokenTail.MatchString(text[len(digits):]):
		return m, strconv.Quote(text) + " is not a number"
	case !isUnit(rest):
		return m, strconv.Quote(rest) + " after the number is not a unit"
	default:
		m.unit = rest
	}
	value, err := strconv.ParseFloat(exact, 64)
	if err != nil || math.IsInf(value, 0) {
		return m, strconv.Quote(digits) + " is out of range"
	}
	m.value = value
	return m, ""
}

// percentText moves the exponent by two, in text.
func percentText(digits string) string {
	mantissa, exponent := digits, 0
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		n, err := strconv.Atoi(digits[i+1:])
		if err != nil {
			return digits // ParseFloat reports the range
		}
		mantissa, exponent = digits[:i], n
	}
	return mantissa + "e" + strconv.Itoa(exponent-2)
}

func unparsable(text, why string) error {
	return finding.Refuse(finding.Finding{
		Code: "criterion_unparsable", Severity: finding.Warning,
		What:     "the criterion " + strconv.Quote(text) + " can't be judged: " + why,
		Expected: understood,
		Remedy:   "state it as one comparison, several comparisons as several criteria; leave out what no number can show",
	})
}
