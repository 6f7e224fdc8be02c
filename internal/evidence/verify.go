package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/redact"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Kept reads the copy of a source that quotes are looked for in. It refuses with source_not_kept when only a hash was
// taken, source_unreadable when the copy is gone, and source_altered when it is not what was captured.
func Kept(dir string, s Source) ([]byte, error) {
	where := &finding.Where{Path: s.Ref, Field: "facts.source"}
	if s.KeptAs == "" {
		return nil, finding.Refuse(finding.Finding{Code: "source_not_kept", Severity: finding.Error, Where: where,
			What:   fmt.Sprintf("source %s (%s) was hashed and its text was not kept, so that no quote of it can be checked", s.ID, s.Kind),
			Remedy: `capture the passage as {"kind": "text"} or a smaller file, or send the fact as INFERRED with a why`})
	}
	again := "capture " + s.Ref + " again with phase_0_input_acquisition"
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(s.KeptAs)))
	if err != nil {
		return nil, finding.Refuse(finding.Finding{Code: "source_unreadable", Severity: finding.Error, Where: where,
			What: fmt.Sprintf("the copy of source %s can't be read: %v", s.ID, err), Remedy: again})
	}
	if sha := rundir.HashBytes(data); s.KeptSHA256 != "" && sha != s.KeptSHA256 {
		return nil, finding.Refuse(finding.Finding{Code: "source_altered", Severity: finding.Error, Where: &finding.Where{Path: s.KeptAs},
			What: fmt.Sprintf("the copy of source %s was changed after it was captured (%s)", s.ID, sha), Expected: s.KeptSHA256, Remedy: again})
	}
	return data, nil
}

// sourceNamed is the source of that id, else the one that comes from there: by its whole name or, where one alone has it, by
// the last part of it; -1 for none.
func sourceNamed(sources []Source, name string) int {
	for _, same := range []func(Source) bool{
		func(s Source) bool { return s.ID == name },
		func(s Source) bool { return s.Ref == name },
		func(s Source) bool { return filepath.Base(s.Ref) == filepath.Base(name) },
	} {
		first := slices.IndexFunc(sources, same)
		if first >= 0 && !slices.ContainsFunc(sources[first+1:], same) {
			return first
		}
	}
	return -1
}

// VerifyFact checks a fact against its source and returns it as it may be kept: with the byte range of its quote, without
// secrets, and INFERRED instead of CONFIRMED when its value does not stand in the quote (value_not_in_quote, a warning).
// A finding that weighs as an error means that the fact is refused: fact_field_missing, fact_status_unknown, quote_missing,
// source_unknown, quote_not_in_source, and those of Kept.
func VerifyFact(dir string, sources []Source, fact Fact) (Fact, []finding.Finding) {
	fact.Status = strings.ToUpper(strings.TrimSpace(fact.Status))
	fact.Quote = redact.Text(fact.Quote)
	fact.Start, fact.End = 0, 0
	if findings := checkForm(fact); len(findings) > 0 {
		return fact, findings
	}
	if strings.TrimSpace(fact.Quote) == "" {
		if fact.Status == Confirmed {
			return fact, []finding.Finding{fact.refuse("quote_missing", "a CONFIRMED fact needs the words of its source",
				"source and quote", fact.call("<words copied from the source>"))}
		}
		return fact, nil
	}
	at := sourceNamed(sources, fact.Source)
	if at < 0 {
		return fact, []finding.Finding{fact.refuse("source_unknown", fmt.Sprintf("there is no source %q", fact.Source), known(sources), fact.call(""))}
	}
	fact.Source = sources[at].ID
	text, err := Kept(dir, sources[at])
	if err != nil {
		return fact, refusedFindings(err)
	}
	return fact.locate(sources[at], text)
}

func checkForm(fact Fact) []finding.Finding {
	switch {
	case strings.TrimSpace(fact.Field) == "":
		return []finding.Finding{fact.refuse("fact_field_missing", "the fact has no field", "a dotted path of training_request.json, as in training.optimizer", fact.call(""))}
	case !slices.Contains([]string{Confirmed, Inferred, Assumption, Missing}, fact.Status):
		return []finding.Finding{fact.refuse("fact_status_unknown", fmt.Sprintf("%q is not the status of a fact", fact.Status), "CONFIRMED, INFERRED, ASSUMPTION or MISSING", fact.call(""))}
	}
	return nil
}

// locate looks for the quote in the source's text and for the value in the quote.
func (f Fact) locate(s Source, text []byte) (Fact, []finding.Finding) {
	start, end, nearest, ok := FindQuote(text, f.Quote)
	if !ok {
		refused := f.refuse("quote_not_in_source", fmt.Sprintf("the quote %s is not in source %s (%s)", shown(f.Quote), s.ID, s.Ref),
			"words that stand in the source", f.call("<words copied from the source>"))
		refused.Where.Path = s.Ref
		if nearest.Text != "" {
			refused.Where.Line, refused.Where.Byte = nearest.Line, int64(nearest.Start)
			refused.Expected = "the nearest passage is " + shown(nearest.Text)
			refused.Remedy = f.call(nearest.Text)
		}
		return f, []finding.Finding{refused}
	}
	f.Start, f.End = start, end
	if f.Status != Confirmed {
		return f, nil
	}
	if cut := cutWord(text, start, end); cut != "" {
		f.Status = Inferred
		return f, []finding.Finding{{Code: "quote_cuts_word", Severity: finding.Warning, What: fmt.Sprintf("%s: the quote %s cuts %s in two: the fact is kept as INFERRED", f.Field, shown(f.Quote), shown(cut)),
			Where: &finding.Where{Path: s.Ref, Line: 1 + bytes.Count(text[:start], []byte("\n")), Byte: int64(start), Field: "facts." + f.Field}, Expected: "whole words and numbers", Remedy: "quote the whole word, or correct the value"}}
	}
	if ValueInQuote(f.Value, string(text[start:end])) {
		return f, nil
	}
	f.Status = Inferred
	weaker := f.refuse("value_not_in_quote", fmt.Sprintf("the value %s does not stand in its quote %s: the fact is kept as INFERRED", compact(f.Value), shown(f.Quote)),
		"a quote that states the value itself", "")
	weaker.Severity = finding.Warning
	weaker.Where.Path, weaker.Where.Line, weaker.Where.Byte = s.Ref, 1+bytes.Count(text[:start], []byte("\n")), int64(start)
	weaker.Remedy = "quote the words that state the value, or correct the value; keep INFERRED when it is read between the lines"
	return f, []finding.Finding{weaker}
}

// cutWord is the word or number of the source that a quote begins or ends inside, "" where it has none. Scripts without spaces between
// words have no such ends.
func cutWord(text []byte, start, end int) string {
	part := func(c byte) bool {
		return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
	}
	word := func(at int) string {
		from, to := at, at
		for from > 0 && part(text[from-1]) {
			from--
		}
		for to < len(text) && part(text[to]) {
			to++
		}
		return string(text[from:to])
	}
	switch {
	case start > 0 && start < len(text) && part(text[start-1]) && part(text[start]):
		return word(start)
	case end > 0 && end < len(text) && part(text[end-1]) && part(text[end]):
		return word(end)
	case end > 0 && end+1 < len(text) && text[end] == '.' && text[end-1] >= '0' && text[end-1] <= '9' && text[end+1] >= '0' && text[end+1] <= '9':
		return word(end-1) + "." + word(end+1) // 0 of 0.5
	}
	return ""
}

func (f Fact) refuse(code, what, expected, remedy string) finding.Finding {
	if f.Field != "" {
		what = f.Field + ": " + what
	}
	return finding.Finding{Code: code, Severity: finding.Error, What: what, Where: &finding.Where{Field: "facts." + f.Field}, Expected: expected, Remedy: remedy}
}

// call is the argument that would be accepted, for the agent to copy.
func (f Fact) call(quote string) string {
	if quote == "" {
		quote = f.Quote
	}
	fact := struct {
		Field  string `json:"field"`
		Value  any    `json:"value"`
		Status string `json:"status"`
		Source string `json:"source"`
		Quote  string `json:"quote"`
	}{f.Field, f.Value, Confirmed, f.Source, quote}
	if fact.Field == "" {
		fact.Field = "training.optimizer"
	}
	return fmt.Sprintf(`send phase_1_training_knowledge {"run_id": "…", "facts": [%s]}, or the fact as INFERRED with a why`, compact(fact))
}

func compact(v any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Sprintf("%v", v)
	}
	return strings.TrimSpace(b.String())
}

// shown is a passage as it stands in a sentence.
func shown(text string) string {
	const most = 200
	runes := []rune(text)
	if len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return compact(text)
}

func known(sources []Source) string {
	if len(sources) == 0 {
		return "a source that was captured; there is none yet"
	}
	var list []string
	for _, s := range sources {
		list = append(list, fmt.Sprintf("%s (%s)", s.ID, s.Ref))
	}
	return "one of " + finding.Few(list, 5)
}

func refusedFindings(err error) []finding.Finding {
	if refused, ok := err.(*finding.Refused); ok {
		return refused.Findings
	}
	return []finding.Finding{{Code: "source_unreadable", Severity: finding.Error, What: err.Error()}}
}
