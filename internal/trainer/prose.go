package trainer

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
)

// prosePatterns are the ways in which documents state the parameters of a training; the first group that matched is the number.
var prosePatterns = sync.OnceValue(func() map[string]*regexp.Regexp {
	out := map[string]*regexp.Regexp{}
	for field, pattern := range map[string]string{
		"training.epochs_or_steps":     `(?i)(\d[\d,]*)\s+(?:training\s+)?epochs\b|\bepochs?\s*(?:[:=]|is|of)\s*(\d+)|--epochs[ =](\d+)|(\d+)\s*(?:个\s*)?(?:轮|epoch)`,
		"training.batch_size":          `(?i)\bbatch[ _-]?size\s*(?:[:=]|is|of)?\s*(\d+)\b|--batch[_-]size[ =](\d+)|批大小\s*(?:为|是|[:=：])?\s*(\d+)`,
		"training.extra.learning_rate": `(?i)\b(?:learning[ _-]?rate|lr)\s*(?:[:=]|is|of)?\s*(\d*\.?\d+(?:e-?\d+)?)\b|学习率\s*(?:为|是|[:=：])?\s*(\d*\.?\d+(?:e-?\d+)?)`,
		"training.extra.seed":          `(?i)\bseed\s*(?:[:=]|is|of)?\s*(\d+)\b|随机种子\s*(?:为|是|[:=：])?\s*(\d+)`,
	} {
		out[field] = regexp.MustCompile(pattern)
	}
	return out
})

// proseBytes is how much of a document is looked at.
const proseBytes = 256 << 10

// documentsDisagree tells of documents that state another value than the fact in force, where that is not the user's word: of two places
// of a project that contradict each other, a person knows which one counts.
func (l *ledger) documentsDisagree() {
	fields := make([]string, 0, len(prosePatterns()))
	for field := range prosePatterns() {
		fields = append(fields, field)
	}
	slices.Sort(fields)
	for _, s := range l.sources {
		if !isDocument(s) {
			continue
		}
		kept, err := evidence.Kept(l.dir, s)
		if err != nil {
			continue
		}
		text := string(kept[:min(len(kept), proseBytes)])
		for _, field := range fields {
			l.documentDisagrees(s, text, field)
		}
	}
}

func isDocument(s evidence.Source) bool {
	switch strings.ToLower(filepath.Ext(s.Ref)) {
	case ".md", ".rst", ".txt", ".pdf":
		return s.Kind == evidence.KindFile
	}
	return s.Kind == evidence.KindURL || s.Kind == evidence.KindFile && strings.HasPrefix(strings.ToLower(filepath.Base(s.Ref)), "readme")
}

func (l *ledger) documentDisagrees(s evidence.Source, text, field string) {
	fact := holding(l.facts, field)
	if fact == nil || fact.By == byUser {
		return
	}
	have, err := strconv.ParseFloat(fmt.Sprint(fact.Value), 64)
	if err != nil {
		return
	}
	at, said, stated := -1, "", 0.0
	for _, m := range prosePatterns()[field].FindAllStringSubmatchIndex(text, -1) {
		for g := 2; g < len(m); g += 2 {
			if m[g] < 0 {
				continue
			}
			value, err := strconv.ParseFloat(strings.ReplaceAll(text[m[g]:m[g+1]], ",", ""), 64)
			switch {
			case err != nil:
			case value == have:
				return // it says that too
			case at < 0:
				at, said, stated = m[g], strings.TrimSpace(text[m[0]:m[1]]), value
			}
		}
	}
	if at < 0 {
		return
	}
	line := 1 + strings.Count(text[:at], "\n")
	l.findings = append(l.findings, finding.Finding{Code: "documents_disagree", Severity: finding.Warning,
		What:     fmt.Sprintf("%s:%d says %q; in force is %s = %s (%s, %s)", s.Ref, line, said, field, show(fact.Value), fact.ID, fact.Why),
		Where:    &finding.Where{Path: s.Ref, Line: line, Byte: int64(at), Field: field},
		Expected: "one value", Remedy: fmt.Sprintf(`if the document is right: phase_1_training_knowledge {"facts": [{"field": %q, "value": %g, "source": %q, "quote": %q}], "resolve": [{"field": %q, "keep": "new"}]}`, field, stated, s.ID, said, field)})
}
