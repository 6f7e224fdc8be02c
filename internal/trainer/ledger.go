package trainer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
)

// ledger is the state of phase 1: all facts, in the order handoff, configuration, script, agent, server.
type ledger struct {
	dir      string
	sources  []evidence.Source
	facts    []evidence.Fact
	findings []finding.Finding
	keep     map[string]string // field → fact id that a call settled on
}

func newLedger(dir string, sources []evidence.Source) *ledger {
	return &ledger{dir: dir, sources: sources, keep: map[string]string{}}
}

// addAll verifies candidates. One whose quote is not in its source is left out: it was edited or is not ours.
func (l *ledger) addAll(facts []evidence.Fact) {
	for _, f := range facts {
		l.add(f)
	}
}

func (l *ledger) add(fact evidence.Fact) bool {
	checked, found := evidence.VerifyFact(l.dir, l.sources, fact)
	l.findings = append(l.findings, found...)
	if finding.Has(found, finding.Error) {
		return false
	}
	l.facts = append(l.facts, checked)
	return true
}

// contribute takes the agent's facts, acceptances and resolutions, old ones first, and returns what was good: a fact that
// was refused is not kept, so that it does not come back.
func (l *ledger) contribute(old knowledgeAnswers, fresh KnowledgeInput) knowledgeAnswers {
	var good knowledgeAnswers
	for _, in := range append(slices.Clone(old.Facts), fresh.Facts...) {
		if slices.ContainsFunc(good.Facts, func(f FactInput) bool { return jsonText(f) == jsonText(in) }) {
			continue
		}
		fact := evidence.Fact{ID: l.nextID(), Field: canonicalField(in.Field), Value: in.Value, Status: in.Status, Source: in.Source, Quote: in.Quote, By: byAgent, VerifyLater: in.VerifyLater}
		if fact.Status == "" {
			fact.Status = evidence.Confirmed
		}
		if l.add(fact) {
			good.Facts = append(good.Facts, in)
		}
	}
	for _, kept := range old.Kept {
		i := slices.IndexFunc(l.facts, func(f evidence.Fact) bool {
			return f.Field == kept.Field && sameValue(f.Value, kept.Value) && f.Source == kept.Source
		})
		if i >= 0 { // else what it was settled on is said nowhere any more
			l.keep[kept.Field] = l.facts[i].ID
			good.Kept = append(good.Kept, kept)
		}
	}
	settle := func(id, field, why, where string) {
		f := l.byID(id)
		if f == nil || field != "" && f.Field != canonicalField(field) {
			l.unknown(id, where)
			return
		}
		l.keep[f.Field] = id
		good.Kept = append(slices.DeleteFunc(good.Kept, func(k keptFact) bool { return k.Field == f.Field }), keptFact{Field: f.Field, Value: f.Value, Source: f.Source, Why: why})
	}
	for _, id := range fresh.Accept {
		settle(id, "", "", "accept")
	}
	for _, r := range fresh.Resolve {
		if r.OfHandoff() {
			continue // the engine has settled it
		}
		if r.Keep == keepNew {
			r.Keep = l.newest(canonicalField(r.Field))
		}
		settle(r.Keep, r.Field, r.Why, "resolve")
	}
	return good
}

// keepNew stands for the agent's newest fact of a field, whose id a call that brings it can't know.
const keepNew = "new"

// newest is the id of the last fact of a field that the agent has stated, or "".
func (l *ledger) newest(field string) string {
	for i := len(l.facts) - 1; i >= 0; i-- {
		if f := l.facts[i]; f.By == byAgent && f.Field == field {
			return f.ID
		}
	}
	return ""
}

// canonicalField lets a fact be named the way people name it.
func canonicalField(field string) string {
	switch field {
	case "training.epochs", "training.steps", "training.max_epochs":
		return "training.epochs_or_steps"
	case "training.learning_rate", "training.lr":
		return "training.extra.learning_rate"
	case "training.seed":
		return "training.extra.seed"
	}
	return field
}

func (l *ledger) unknown(id, where string) {
	l.findings = append(l.findings, finding.Finding{Code: "fact_unknown", Severity: finding.Error, What: fmt.Sprintf("there is no fact %q of that field", id),
		Where: &finding.Where{Field: where}, Expected: "an id from candidates.json or facts.json", Remedy: "read run://…/candidates.json for the ids"})
}

func (l *ledger) nextID() string { return evidence.NextFactID(l.facts) }

func (l *ledger) byID(id string) *evidence.Fact {
	for i := range l.facts {
		if l.facts[i].ID == id {
			return &l.facts[i]
		}
	}
	return nil
}

// settle decides for each field which fact is in force: what a call settled on, else the weightiest; the others stay as
// recorded conflicts where they say something else.
func (l *ledger) settle() {
	byField := map[string][]int{}
	for i, f := range l.facts {
		byField[f.Field] = append(byField[f.Field], i)
	}
	for field, at := range byField {
		best := at[0]
		for _, i := range at {
			if weight(l.facts[i]) > weight(l.facts[best]) {
				best = i
			}
		}
		if id := l.keep[field]; id != "" {
			for _, i := range at {
				switch {
				case l.facts[i].ID != id || i == best:
				case l.facts[best].By != byUser || l.facts[i].By == byUser:
					best = i
				case !sameValue(l.facts[i].Value, l.facts[best].Value):
					l.findings = append(l.findings, handoffHolds(l.facts[best], l.facts[i]))
				}
			}
		}
		l.facts[best].InForce = true
		for _, i := range at {
			if i == best || sameMeaning(l.facts[i].Value, l.facts[best].Value) {
				continue
			}
			l.facts[best].Conflicts = append(l.facts[best].Conflicts, l.facts[i].ID)
			l.facts[i].Conflicts = append(l.facts[i].Conflicts, l.facts[best].ID)
			if l.facts[best].By != byUser && l.keep[field] == "" {
				l.findings = append(l.findings, conflict(l.facts[best], l.facts[i]))
			}
		}
	}
	slices.SortStableFunc(l.findings, func(a, b finding.Finding) int {
		if a.Code != "fact_conflict" || b.Code != "fact_conflict" {
			return 0
		}
		if a.What < b.What {
			return -1
		}
		return 1
	})
}

// handoffHolds tells that what was settled on does not take the place of what the user's handoff says.
func handoffHolds(user, other evidence.Fact) finding.Finding {
	return finding.Finding{Code: "handoff_holds", Severity: finding.Warning,
		What:  fmt.Sprintf("%s stays %s (%s, by the user's handoff); %s (%s) is not taken", user.Field, show(user.Value), user.ID, show(other.Value), other.ID),
		Where: &finding.Where{Field: user.Field}, Expected: show(user.Value),
		Remedy: "when the user has changed it: send trainer the run_id, the field in step_handoff, and \"resolve\": [{\"field\": …, \"keep\": \"sent\"}]"}
}

// whence is where a fact comes from, in a word or two.
func whence(f evidence.Fact) string {
	switch {
	case f.Why != "":
		return f.Why
	case f.Source != "":
		return "by the " + f.By + ", " + f.Source
	}
	return "by the " + f.By
}

func conflict(kept, other evidence.Fact) finding.Finding {
	return finding.Finding{Code: "fact_conflict", Severity: finding.Warning,
		What:   fmt.Sprintf("%s: %s says %s (%s), %s says %s (%s)", kept.Field, kept.ID, show(kept.Value), whence(kept), other.ID, show(other.Value), whence(other)),
		Where:  &finding.Where{Field: kept.Field},
		Remedy: fmt.Sprintf("%s is used; to take the other: {\"resolve\": [{\"field\": %q, \"keep\": %q}]}", kept.ID, kept.Field, other.ID)}
}

// weight orders who is believed: the user, the agent's confirmed facts, the server's readings in the order they were
// found (configuration before script defaults), then everything that is not confirmed.
func weight(f evidence.Fact) int {
	w := map[string]int{byUser: 40, byAgent: 30, byServer: 20}[f.By]
	if f.Status != evidence.Confirmed {
		w -= 15
	}
	return w
}

// sameMeaning takes two spellings of one word for one value: AdamW is adamw.
func sameMeaning(a, b any) bool {
	x, isText := a.(string)
	y, bothAre := b.(string)
	return isText && bothAre && strings.EqualFold(x, y) || sameValue(a, b)
}

func sameValue(a, b any) bool { return jsonText(a) == jsonText(b) }

// inForce are the facts that hold, in order.
func (l *ledger) inForce() []evidence.Fact {
	return slices.DeleteFunc(slices.Clone(l.facts), func(f evidence.Fact) bool { return !f.InForce })
}

// value of the field's fact in force, else nil.
func (l *ledger) value(field string) any {
	if f := holding(l.facts, field); f != nil && f.Status != evidence.Missing {
		return f.Value
	}
	return nil
}

// holding is the fact in force of a field, or nil.
func holding(facts []evidence.Fact, field string) *evidence.Fact {
	for i := range facts {
		if facts[i].InForce && facts[i].Field == field {
			return &facts[i]
		}
	}
	return nil
}

func (l *ledger) candidatesFor(field string) []string {
	ids := []string{}
	for _, f := range l.facts {
		if f.Field == field {
			ids = append(ids, f.ID)
		}
	}
	return ids
}
