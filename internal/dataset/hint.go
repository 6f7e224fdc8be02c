package dataset

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

var (
	hintSeed     = regexp.MustCompile(`(?i)\b(?:random[_ ]?state|random_seed|seed)\b\s*(?:[=:]|is|of)?\s*(-?\d+)`)
	hintBy       = regexp.MustCompile("(?i)\\b(?:by|on|over)\\s+(?:the\\s+)?(?:column\\s+|label\\s+|class\\s+)?[\"'`]?([\\p{L}_][\\p{L}\\p{N}_.-]*)[\"'`]?")
	hintNamed    = regexp.MustCompile(`(?i)\b(train|val|test)\s*(?:[=:]|of|size|_size)?\s*[=:]?\s*(\d+(?:\.\d+)?|\.\d+)\s*(%?)`)
	hintNumbered = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?|\.\d+)\s*(%?)\s*(?:for\s+|of\s+|as\s+)?(train|val|test)\b`)
	hintRatio    = regexp.MustCompile(`(\d+(?:\.\d+)?|\.\d+)\s*%?\s*[/:,-]\s*(\d+(?:\.\d+)?|\.\d+)\s*%?(?:\s*[/:,-]\s*(\d+(?:\.\d+)?|\.\d+)\s*%?)?`)
	hintSteps    = regexp.MustCompile(`(?i)\b(history|horizon|gap)\b\s*(?:[=:]|of|is)?\s*(\d+)(?:\s*(?:time\s*)?steps?\b)?`)
	hintFolds    = regexp.MustCompile(`(?i)\b(?:\d+|k|five|ten|three)[- ]?folds?\b|\bcross[- ]?valid\w*|\bleave[- ]?\w+[- ]?out\b|\bloo(?:cv)?\b`)
	hintWord     = regexp.MustCompile(`[\p{L}][\p{L}_]*`)
)

// strategiesElsewhere are words for splits that exist but that MakeSplit does not make. Taking such a hint for a random
// split would leak, so they are refused by name.
var strategiesElsewhere = []string{"scaffold", "spatial", "spatially", "block", "blocked", "fold", "folds", "bootstrap"}

var strategyWords = map[string]string{"random": Random, "randomly": Random, "shuffle": Random, "shuffled": Random, "iid": Random,
	"time": Time, "temporal": Time, "temporally": Time, "chronological": Time, "chronologically": Time, "date": Time, "year": Time, "sequential": Time,
	"sequentially": Time, "ordered": Time, "unshuffled": Time, "last": Time, "first": Time, "latest": Time, "recent": Time, "future": Time, "past": Time,
	"window": Time, "windowed": Time, "windows": Time, "group": Group, "grouped": Group, "groups": Group, "grouping": Group,
	"similarity": Similarity, "sequence": Similarity, "sequences": Similarity, "homology": Similarity, "cluster": Similarity, "clustered": Similarity,
	"stratified": Stratified, "stratify": Stratified, "stratification": Stratified,
	"predefined": Predefined, "official": Predefined, "provided": Predefined, "given": Predefined, "existing": Predefined}

// wordsForTarget name the target without being its column's name; the caller knows which column that is.
var wordsForTarget = []string{"target", "class", "classes", "label", "labels", "outcome"}

// fillerWords carry nothing that changes a split.
var fillerWords = map[string]bool{"split": true, "splits": true, "train": true, "val": true, "test": true, "set": true, "sets": true, "and": true, "with": true,
	"the": true, "a": true, "an": true, "of": true, "for": true, "into": true, "in": true, "as": true, "use": true, "data": true, "dataset": true, "rows": true,
	"samples": true, "records": true, "percent": true, "fixed": true, "seed": true, "ratio": true, "size": true, "is": true, "to": true, "at": true, "by": true,
	"state": true, "out": true, "hold": true, "rest": true, "remaining": true, "dev": true, "part": true, "parts": true, "please": true, "using": true, "then": true, "train_test_split": true}

// ParseSplitHint reads a split as people write it: "random 70/15/15 seed 17", "stratified by species 0.7/0.15/0.15, seed 3",
// "80/20", "80% train, 20% test", "test_size=0.2", "8:1:1", or a SplitSpec as JSON. An empty hint is an empty spec.
// What was assumed comes as notes (split_assumed); a strategy that MakeSplit lacks, as the error split_strategy_unsupported;
// numbers that make no whole, as fractions_sum; a hint that says nothing usable, as split_hint_unclear. The error is non-nil only
// for JSON that can't be read.
func ParseSplitHint(hint string) (SplitSpec, []finding.Finding, error) {
	hint = strings.TrimSpace(hint)
	if hint == "" {
		return SplitSpec{}, nil, nil
	}
	if strings.HasPrefix(hint, "{") {
		return parseSplitJSON(hint)
	}
	h := &hintReader{rest: hint}
	if quoted := h.take(hintQuoted); quoted != nil {
		h.by = quoted[1]
	}
	h.rest = plainWords(h.rest)
	h.seed()
	h.steps()
	h.without()
	h.together()
	h.strategy()
	h.fractions()
	h.leftovers(hint)
	return h.spec, h.found, nil
}

func parseSplitJSON(hint string) (SplitSpec, []finding.Finding, error) {
	var spec SplitSpec
	if err := json.Unmarshal([]byte(hint), &spec); err != nil {
		return SplitSpec{}, nil, finding.Refuse(finding.Finding{Code: "split_hint_unclear", Severity: finding.Error, What: "the split hint is no valid JSON: " + err.Error(),
			Where: &finding.Where{Field: "data.split_hint"}, Expected: splitsThatWork, Remedy: "write it in words"})
	}
	return spec, spec.check(), nil
}

const noSeed = "no seed is named"

// hintReader takes a hint apart; rest is what nobody has understood yet.
type hintReader struct {
	rest    string
	spec    SplitSpec
	found   []finding.Finding
	by      string // the column that a strategy is by
	ordered bool   // nothing is to be shuffled
	cause   bool   // an error has been found, so no assumption is worth telling
}

func (h *hintReader) note(severity finding.Severity, code, what, remedy string) {
	h.found = append(h.found, finding.Finding{Code: code, Severity: severity, What: what, Where: &finding.Where{Field: "data.split_hint"}, Expected: splitsThatWork, Remedy: remedy})
	h.cause = h.cause || severity == finding.Error
}

// take removes the first match of re from the rest and returns its groups.
func (h *hintReader) take(re *regexp.Regexp) []string {
	at := re.FindStringSubmatchIndex(h.rest)
	if at == nil {
		return nil
	}
	groups := make([]string, len(at)/2)
	for i := range groups {
		if at[2*i] >= 0 {
			groups[i] = h.rest[at[2*i]:at[2*i+1]]
		}
	}
	h.rest = h.rest[:at[0]] + " ; " + h.rest[at[1]:]
	return groups
}

func (h *hintReader) seed() {
	groups := h.take(hintSeed)
	if groups == nil {
		h.note(finding.Note, "split_assumed", noSeed+"; seed 0 is used", "add \"seed <n>\" to choose one")
		return
	}
	seed, err := strconv.ParseInt(groups[1], 10, 64)
	if err != nil {
		h.note(finding.Error, "split_hint_unclear", "the seed "+groups[1]+" is too large", "use a smaller one")
	}
	h.spec.Seed = seed
}

// steps takes history, horizon and gap, in time steps.
func (h *hintReader) steps() {
	for groups := h.take(hintSteps); groups != nil; groups = h.take(hintSteps) {
		n, err := strconv.Atoi(groups[2])
		if err != nil {
			h.note(finding.Error, "split_hint_unclear", groups[1]+" "+groups[2]+" is too large", "use a smaller one")
		}
		switch strings.ToLower(groups[1]) {
		case "history":
			h.spec.History = n
		case "horizon":
			h.spec.Horizon = n
		default:
			h.spec.Gap = n
		}
	}
}

func (h *hintReader) strategy() {
	if folds := h.take(hintFolds); folds != nil {
		h.found = append(h.found, unsupported(folds[0]))
		h.cause = true
	}
	if groups := h.take(hintBy); groups != nil && h.by == "" {
		h.by = groups[1]
	}
	by := h.by
	for _, word := range hintWord.FindAllString(h.rest, -1) {
		if strategy := strategyWords[strings.ToLower(word)]; strategy != "" && (h.spec.Strategy == "" || h.spec.Strategy == Random) {
			h.spec.Strategy = strategy
		}
	}
	if strategy := strategyWords[strings.ToLower(by)]; (h.spec.Strategy == "" || h.spec.Strategy == Random) && (strategy == Time || strategy == Group || strategy == Similarity) {
		h.spec.Strategy = strategy
	}
	if h.ordered && h.spec.Strategy == "" && by == "" {
		h.spec.Strategy = Time
	}
	// The class column may be called "year", so it is taken out before the words of other strategies are looked for.
	for _, word := range hintWord.FindAllString(h.rest, -1) {
		if lower := strings.ToLower(word); slices.Contains(strategiesElsewhere, lower) && !h.cause {
			h.found = append(h.found, unsupported(lower))
			h.cause = true
		}
	}
	switch lower := strings.ToLower(by); {
	case by == "" || slices.Contains([]string{Random, "row", "rows", "chance"}, lower):
	case h.spec.Strategy == Stratified && slices.Contains(wordsForTarget, lower):
	case h.spec.Strategy == Stratified:
		h.spec.Target = by
	case h.spec.Strategy == Time && lower != "time":
		h.spec.Time = by
	case h.spec.Strategy == Similarity && lower != "similarity" && lower != "homology":
		h.spec.Sequence = by
	case h.spec.Strategy == Group && lower != "group" && lower != "groups":
		h.spec.Group = by
	case (h.spec.Strategy == "" || h.spec.Strategy == Random) && !h.cause:
		h.spec.Strategy, h.spec.Group = Group, by
		h.note(finding.Note, "split_assumed", "\"by "+by+"\" is read as: rows with the same "+by+" stay in one part", "say \"stratified by "+by+"\" if that is meant")
	}
}

func (h *hintReader) fractions() {
	values := map[string]float64{}
	percent := strings.Contains(h.rest, "%")
	if groups := h.take(hintRatio); groups != nil {
		names := Parts
		if groups[3] == "" {
			names = []string{Train, h.second()}
		}
		for i, name := range names {
			values[name], _ = strconv.ParseFloat(groups[i+1], 64)
		}
	} else {
		// The number stands before the name in "80% train", behind it in "train 0.8"; a hint keeps to one of the two.
		re, number, name := hintNamed, 2, 1
		if at := hintNumbered.FindStringIndex(h.rest); at != nil {
			if other := hintNamed.FindStringIndex(h.rest); other == nil || at[0] < other[0] {
				re, number, name = hintNumbered, 1, 3
			}
		}
		for groups := h.take(re); groups != nil; groups = h.take(re) {
			values[strings.ToLower(groups[name])], _ = strconv.ParseFloat(groups[number], 64)
		}
	}
	if len(values) > 0 {
		h.scale(values, percent)
		if h.spec.Strategy == "" && !h.cause {
			h.spec.Strategy = Random
			h.note(finding.Note, "split_assumed", "no strategy is named; rows are split at random", "say \"stratified by <column>\" for classes")
		}
	}
}

// second is the part that the smaller of two numbers means.
func (h *hintReader) second() string {
	hasVal, hasTest := regexp.MustCompile(`(?i)\bval\b`).MatchString(h.rest), regexp.MustCompile(`(?i)\btest\b`).MatchString(h.rest)
	if hasVal && !hasTest {
		return Val
	}
	if !hasTest {
		h.note(finding.Note, "split_assumed", "two numbers are read as train and test", "say train and val if that is meant")
	}
	return Test
}

// scale brings percent and ratios of ten (8:1:1) to fractions, and gives train the rest where only the others are named.
func (h *hintReader) scale(values map[string]float64, percent bool) {
	sum, whole := 0.0, true
	for _, value := range values {
		sum += value
		whole = whole && value == math.Trunc(value)
	}
	unit := 1.0
	_, trainNamed := values[Train]
	switch {
	case percent || math.Abs(sum-100) < 1e-4 || !trainNamed && sum >= 1 || len(values) == 1 && sum > 1:
		unit = 100
	case whole && sum == 10 && len(values) > 1:
		unit = 10
	}
	h.spec.Fractions = map[string]float64{}
	for part, value := range values {
		h.spec.Fractions[part] = value / unit
	}
	if !trainNamed && sum/unit < 1 {
		rest := 1 - sum/unit
		h.spec.Fractions[Train] = math.Round(rest*1e9) / 1e9
		h.note(finding.Note, "split_assumed", fmt.Sprintf("train takes the rest, %.4g", h.spec.Fractions[Train]), "name its share to be sure")
		sum = unit
	}
	if left := 1 - sum/unit; trainNamed && len(values) == 1 && left > fractionTolerance {
		other := h.second()
		h.spec.Fractions[other] = math.Round(left*1e9) / 1e9
		h.note(finding.Note, "split_assumed", fmt.Sprintf("%s takes the rest, %.4g", other, h.spec.Fractions[other]), "name its share to be sure")
		sum = unit
	}
	if math.Abs(sum/unit-1) > fractionTolerance {
		h.note(finding.Error, "fractions_sum", fmt.Sprintf("the parts sum to %.6g", sum), "correct them to sum to 1 or 100")
	}
}

// leftovers tells of words that were not understood, since one of them may change what the split should be.
func (h *hintReader) leftovers(hint string) {
	var words []string
	for _, word := range hintWord.FindAllString(h.rest, -1) {
		lower := strings.ToLower(word)
		if !fillerWords[lower] && strategyWords[lower] == "" && !slices.Contains(strategiesElsewhere, lower) {
			words = append(words, word)
		}
	}
	if h.spec.Strategy == Time { // nothing is drawn
		h.found = slices.DeleteFunc(h.found, func(f finding.Finding) bool { return strings.HasPrefix(f.What, noSeed) })
	}
	if h.cause {
		h.found = slices.DeleteFunc(h.found, func(f finding.Finding) bool { return f.Severity != finding.Error })
		return
	}
	switch {
	case h.spec.Strategy == "":
		h.found = nil
		h.note(finding.Error, "split_hint_unclear", fmt.Sprintf("the split hint %q names no strategy and no shares", shorten(hint, 120)), "write it like one of these")
	case h.spec.Strategy != Predefined && len(h.spec.Fractions) == 0:
		h.note(finding.Error, "fractions_sum", "the split hint names no shares", "add them, such as 70/15/15")
	case h.spec.Strategy == Predefined:
		h.found = slices.DeleteFunc(h.found, func(f finding.Finding) bool { return f.Code == "split_assumed" })
	}
	if len(words) > 0 && !h.cause {
		h.note(finding.Warning, "split_hint_words_ignored", "these words of the split hint were not understood: "+strings.Join(words, ", "), "check that the split is what they ask for")
	}
}
