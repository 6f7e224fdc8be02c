package criteria

import (
	"regexp"
	"slices"
	"strings"
)

// mostSuggested bounds what Suggest answers: a text that states more is no statement of one goal.
const mostSuggested = 5

// measures are the names that certainly mean a metric in prose. "loss" and "error" alone mean many things there.
const measures = `(?:(?:test|validation|val)\s+(?:set\s+)?)?(?:accuracy|balanced accuracy|macro f1|f1 score|f1|auroc|auc|precision|recall|rmse|mae|mape|mse|r2 score|r2|perplexity|log loss)`

const bounds = `at least|no less than|not less than|not below|at most|no more than|not more than|not above|greater than|more than|higher than|above|exceeds|less than|lower than|below|under|>=|<=|≥|≤|>|<`

const amount = `[0-9]+(?:\.[0-9]+)?\s?(?:%|percent\b)?`

// These patterns wait until they are asked for, as those of Parse do.
var (
	suggestAfter  = pattern(`(?i)\b(` + measures + `)\b[\x60*]*\s*(?:(?:is|are|of|must|should|has|to|be|stay|reach)\s+)*(` + bounds + `)\s*(` + amount + `)`)
	suggestBefore = pattern(`(?i)(?:^|[\s(,;:])(` + bounds + `)\s*(` + amount + `)\s+(?:of\s+)?(` + measures + `)\b`)
)

// Suggest finds what a text in plain words could mean as criteria, such as "accuracy >= 0.9" in "at least 0.9 accuracy on
// unseen samples", in the text's order. It is a reading between the lines: to be offered, never to be taken unasked.
func Suggest(text string) []string {
	type found struct {
		at   int
		text string
	}
	var all []found
	read := func(expression *regexp.Regexp, name, bound, number int) {
		for _, m := range expression.FindAllStringSubmatchIndex(text, -1) {
			part := func(group int) string { return text[m[2*group]:m[2*group+1]] }
			c, err := Parse(part(name) + " " + part(bound) + " " + part(number))
			if err != nil {
				continue
			}
			said := strings.ToLower(c.Key) + " " + c.Op + " " + strings.Join(strings.Fields(part(number)), "")
			all = append(all, found{m[0], strings.Replace(said, "percent", "%", 1)})
		}
	}
	read(suggestAfter(), 1, 2, 3)
	read(suggestBefore(), 3, 1, 2)
	slices.SortStableFunc(all, func(a, b found) int { return a.at - b.at })
	out := []string{}
	for _, f := range all {
		if !slices.Contains(out, f.text) && len(out) < mostSuggested {
			out = append(out, f.text)
		}
	}
	return out
}
