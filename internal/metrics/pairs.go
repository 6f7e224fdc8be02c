package metrics

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pair is one name and number of a text line. certain says that = or ": " stood between them; a name before a blank or
// a bare colon counts only where it is known to be a metric's.
type pair struct {
	name   string
	value  field
	unit   string
	at     int // of the separator
	sure   bool
	marked string // the split that a word before it on the line names
}

// linePlace is where in training a line says it is.
type linePlace struct {
	epoch           *float64
	step, stepTotal *int64
}

var (
	epochPlace = regexp.MustCompile(`(?i)(?:^|[^a-z0-9_/])epoch[\s:=#\[(]{1,4}(\d{1,9}(?:\.\d{1,9})?)(?:\s*/\s*\d+)?`)
	stepPlace  = regexp.MustCompile(`(?i)(?:^|[^a-z0-9_/])(?:global[_ ]step|step|iteration|iter|batch)[\s:=#\[(]{1,4}(\d{1,15})(?:\s*/\s*(\d{1,15}))?(?:[^\d.%a-z]|\.?$)`)
	perStep    = regexp.MustCompile(`(?i)per (step|iteration|iter|batch)`)
	splitMark  = regexp.MustCompile(`(?i)(?:^|[\s\[(|,])(train|training|valid|val|validation|test|testing|eval|evaluation)(?:\s+set|\s+epoch)?\s*(?:[\]:|)]|\s[:|]|$)`)
	trainEpoch = regexp.MustCompile(`(?i)(?:^|\s)(train|training|valid|val|validation|test|eval)\s+epoch\b`)
)

// placeOf reads epoch and step from a line: epoch=3, Epoch 3/10, Epoch [3/10], Step [100/600], iter: 20.
func placeOf(text string) linePlace {
	var place linePlace
	if !hasAny(text, "poch", "POCH", "tep", "TEP", "ter", "TER", "atch", "ATCH") {
		return place
	}
	if found := epochPlace.FindStringSubmatch(text); found != nil {
		if epoch, err := strconv.ParseFloat(found[1], 64); err == nil {
			place.epoch = &epoch
		}
	}
	if perStep.MatchString(text) {
		return place
	}
	if found := stepPlace.FindStringSubmatch(text); found != nil {
		if step, err := strconv.ParseInt(found[1], 10, 64); err == nil {
			place.step = &step
		}
		if total, err := strconv.ParseInt(found[2], 10, 64); err == nil && total > 0 {
			place.stepTotal = &total
		}
	}
	return place
}

// isPlaceName says whether a pair's name places the line and is no metric.
func isPlaceName(name string) bool {
	lower := strings.ToLower(name)
	return bookkeeping[lower] != "" || lower == "batch" || lower == "v_num"
}

// measures says whether a name is certain to be a metric's, so that a line which holds it is a row.
func measures(key Key) bool {
	_, mode, _ := MetricKind(key.Name)
	return mode != "" || strings.HasSuffix(key.Name, "loss") || strings.HasPrefix(key.Name, "loss") || strings.HasSuffix(key.Name, "accuracy")
}

// hasAny is the cheap look at a text before an expression is tried on it: most lines of a log hold nothing.
func hasAny(text string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// pairsOf finds the names with numbers in a line of text, in their order. Most lines of a log have none, so that the
// costlier search for words that name a split comes last.
func (c keyCache) pairsOf(text string) []pair {
	var pairs []pair
	for i := 0; i < len(text); i++ {
		sure := false
		switch text[i] {
		case '=':
			sure = true
		case ':':
			sure = i+1 < len(text) && text[i+1] == ' '
		case ' ':
		default:
			continue
		}
		value, unit, end := valueAt(text, i+1)
		if end == 0 {
			continue
		}
		name := nameBefore(text[:i])
		if name == "" || !sure && !measures(c.key("", name)) || splitAliases[strings.ToLower(name)] != "" {
			continue
		}
		pairs = append(pairs, pair{name: name, value: value, unit: unit, at: i, sure: sure})
		i = end - 1
	}
	if len(pairs) > 0 {
		markSplits(text, pairs)
	}
	return pairs
}

// markSplits gives every pair the last word before it that says of which split the numbers are: [val], Train:, Test set:.
func markSplits(text string, pairs []pair) {
	if !hasAny(text, "rain", "RAIN", "al", "AL", "est", "EST") {
		return
	}
	marks := splitMark.FindAllStringSubmatchIndex(text, -1)
	if more := trainEpoch.FindStringSubmatchIndex(text); more != nil {
		marks = append([][]int{more}, marks...)
	}
	for i := range pairs {
		for _, mark := range marks {
			if mark[2] < pairs[i].at-len(pairs[i].name) && mark[1] <= pairs[i].at {
				pairs[i].marked = text[mark[2]:mark[3]]
			}
		}
	}
}

// nameBefore is the name that ends a text: its last word, with a word before it that belongs to it (val loss, learning
// rate, best loss).
func nameBefore(text string) string {
	text = strings.TrimRight(text, " ")
	name := lastWord(text)
	if name == "" {
		return ""
	}
	before, blank := strings.CutSuffix(text[:len(text)-len(name)], " ")
	name = strings.TrimLeft(name, "-./0123456789")
	if !strings.ContainsFunc(name, unicode.IsLetter) || !blank {
		return name
	}
	word := strings.ToLower(lastWord(before))
	if name != "" && (splitAliases[word] != "" || word == "best" || word == "final" || word == "learning" && strings.EqualFold(name, "rate")) {
		if splitAliases[word] != "" {
			if further := strings.ToLower(lastWord(strings.TrimSuffix(before[:len(before)-len(word)], " "))); further == "best" || further == "final" {
				word = further + "_" + word
			}
		}
		return word + "_" + name
	}
	return name
}

// lastWord is the run of characters at the end of a text of which names are made.
func lastWord(text string) string {
	i := len(text)
	for i > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:i])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_/-.@^", r) {
			break
		}
		i -= size
	}
	return strings.Trim(text[i:], "./-")
}

// valueAt reads a number (or nan, inf) at a position, with blanks before it. end is 0 where there is none, or where the
// word goes on (3ms, 12:30, 9862/10000).
func valueAt(text string, at int) (value field, unit string, end int) {
	for limit := at + 8; at < len(text) && text[at] == ' ' && at < limit; at++ {
	}
	size := numberPrefix(text[at:])
	if size == 0 {
		return field{}, "", 0
	}
	word := text[at : at+size]
	f := field{kind: kindNumber, raw: []byte(word), at: at, loose: true}
	if nonFiniteWord(word) != "" {
		f.kind = kindNonFinite
	}
	end = at + size
	if end < len(text) && text[end] == '%' {
		unit = "%"
		end++
	}
	if end < len(text) && !strings.ContainsRune(" ,;|)]}>'\"", rune(text[end])) &&
		(text[end] != '.' && text[end] != ':' || end+1 < len(text) && text[end+1] != ' ') {
		return field{}, "", 0
	}
	return f, unit, end
}

// numberPrefix is the length of the number, or of the word for one that is not finite, at the start of a text; 0 for none.
func numberPrefix(text string) int {
	i := 0
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		i++
	}
	sign := i
	for i < len(text) && (text[i]|0x20 >= 'a' && text[i]|0x20 <= 'z') {
		i++
	}
	if i > sign {
		if nonFiniteWord(text[:i]) != "" {
			return i
		}
		return 0
	}
	digits := func() int {
		from := i
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		return i - from
	}
	whole, fraction := digits(), 0
	if i+1 < len(text) && text[i] == '.' && text[i+1] >= '0' && text[i+1] <= '9' {
		i++
		fraction = digits()
	}
	if whole+fraction == 0 {
		return 0
	}
	mantissa := i
	if i < len(text) && text[i]|0x20 == 'e' {
		i++
		if i < len(text) && (text[i] == '-' || text[i] == '+') {
			i++
		}
		if digits() == 0 {
			i = mantissa
		}
	}
	return i
}

// printedNumber says whether text is a number as printers and spreadsheets write it: .5, 1., +1 and 007 too.
func printedNumber(text string) bool {
	return text != "" && (numberPrefix(text) == len(text) || numberPrefix(text) == len(text)-1 && text[len(text)-1] == '.') && nonFiniteWord(text) == ""
}
