package trainer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/criteria"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
)

// KnowledgeInput is the section of phase_1_training_knowledge.
type KnowledgeInput struct {
	Accept  []string         `json:"accept,omitempty" jsonschema_description:"Ids of candidate facts to take, such as f3. Candidates without a rival are taken anyway."`
	Facts   []FactInput      `json:"facts,omitempty" jsonschema_description:"Facts found in the sources, each with a verbatim quote."`
	Resolve []engine.Resolve `json:"resolve,omitempty" jsonschema_description:"Which of two conflicting facts holds."`
	engine.EditedInput
}

// FactInput is a fact as the agent states it. A CONFIRMED one needs source and quote.
type FactInput struct {
	Field       string `json:"field" jsonschema_description:"Dotted path of the training request, such as training.optimizer; or checkpoint.role, data.target, data.id."`
	Value       any    `json:"value"`
	Status      string `json:"status,omitempty" jsonschema:"enum=CONFIRMED,enum=INFERRED,enum=ASSUMPTION,enum=MISSING" jsonschema_description:"CONFIRMED when left out."`
	Source      string `json:"source,omitempty" jsonschema_description:"Id of a captured source, such as s2."`
	Quote       string `json:"quote,omitempty" jsonschema_description:"Verbatim passage of that source."`
	VerifyLater string `json:"verify_later,omitempty" jsonschema_description:"For an ASSUMPTION: how to check it later."`
}

// knowledgeAnswers is what phase 1 keeps of the agent's contributions. What was accepted or settled on is kept by what it
// says, not by its id: ids are given anew when the candidates change.
type knowledgeAnswers struct {
	Facts []FactInput `json:"facts,omitempty"`
	Kept  []keptFact  `json:"kept,omitempty"`
}

// keptFact is a fact that a call settled on.
type keptFact struct {
	Field  string `json:"field"`
	Value  any    `json:"value"`
	Source string `json:"source"`
	Why    string `json:"why,omitempty"`
}

// knowledge is phase 1: candidates and the agent's facts become facts.json, every quote verified, one fact in force for
// each field, the checkpoint's role named.
type knowledge struct{ t *Trainer }

func (knowledge) Name() string { return contract.PhaseTrainingKnowledge }
func (knowledge) Tool() string { return "phase_1_training_knowledge" }

// Run does phase 1.
func (p knowledge) Run(ctx context.Context, step *engine.Step) (engine.Outcome, error) {
	var out engine.Outcome
	var sources []evidence.Source
	var candidates []evidence.Fact
	var view projectView
	for name, v := range map[string]any{sourcesFile: &sources, candidatesFile: &candidates, projectFile: &view} {
		if err := step.ReadJSON(name, v); err != nil {
			return out, err
		}
	}
	if _, err := step.Track(contract.FileStepHandoff); err != nil {
		return out, err
	}
	var given knowledgeAnswers
	var fresh KnowledgeInput
	if err := stored(step, p.Name(), &given); err != nil {
		return out, err
	}
	if err := brought(step, &fresh); err != nil {
		return out, err
	}
	step.Say(p.Name(), "verifying %d candidate facts", len(candidates))
	ledger := newLedger(step.Run.Workdir, sources)
	ledger.addAll(candidates)
	given = ledger.contribute(given, fresh)
	ledger.addRole(step.Run.Handoff, view)
	ledger.addDomain(step.Run, view)
	ledger.settle()
	ledger.addMetadata(step.Run.Handoff)
	ledger.documentsDisagree()
	ledger.contradictRole(step.Run.Handoff, step.Run.Roots)
	out.Findings = append(out.Findings, ledger.findings...)
	out.Findings = append(out.Findings, tellMetadata(step.Run, ledger.facts)...)
	p.gate(ctx, &out, step, ledger, view)
	recalled, err := p.t.recallFor(ctx, step, p.Name(), "principle and config", ledger.facts, sources)
	if err != nil {
		return out, err
	}
	out.Recall = recalled
	if err := out.AddFile(factsFile, ledger.facts); err != nil {
		return out, err
	}
	out.AddText(knowledgeFile, renderKnowledge(step.Run, ledger, view, out))
	out.Summary = fmt.Sprintf("%d facts, %d in force; checkpoint role %s", len(ledger.facts), len(ledger.inForce()), show(ledger.value("checkpoint.role")))
	return out, keepAnswers(&out, step, p.Name(), given)
}

// gate 1: how the model is instantiated, the checkpoint's role, minimal data format and target, a runnable objective and
// a validation clue.
func (p knowledge) gate(ctx context.Context, out *engine.Outcome, step *engine.Step, l *ledger, view projectView) {
	h := step.Run.Handoff
	need := func(ok bool, check, field, why string, where ...string) {
		out.Check(check, ok, why)
		if !ok {
			out.Needs = append(out.Needs, engine.Need{Field: field, Why: "gate of phase 1: " + why, WhereToLook: where, Candidates: l.candidatesFor(field)})
			out.Blockers = append(out.Blockers, field)
		}
	}
	instantiation := "model.training_entrypoint"
	if view.script() == nil && view.Root != "" {
		instantiation = "model.instantiation"
	}
	unwritten := view.Root == "" && !runs(h) && l.value("model.instantiation") == nil // phase 0 has let a step without code pass
	if unwritten {
		out.Assumptions = append(out.Assumptions, "MISSING: model.instantiation (the plan says what must be written)")
	}
	need(unwritten || view.script() != nil || l.value("model.instantiation") != nil, "model_instantiation", instantiation, "how the model or runner is instantiated, or accepted as MISSING by a step that ends with a plan", placesToLook(view)...)
	need(l.value("checkpoint.role") != nil, "checkpoint_role", "checkpoint.role", "from scratch, continue or fine-tune", "ask the user")
	hasData := l.value("data.train_source") != nil || l.value("data.source") != nil
	need(hasData, "data_source", "data.train_source", "where the training data is", placesToLook(view)...)
	need(l.value("data.target") != nil || view.argument("data.target") == nil && l.value("data.source") != nil, "data_target", "data.target", "the column to predict", append(placesToLook(view), "the header of the data file")...)
	objective := h.StepGoal != "" || h.TaskContext.UserGoal != ""
	need(objective, "objective", "task.objective", "a runnable objective", "ask the user")
	clue := len(h.CompletionCriteria) > 0 || view.argument("data.val_source") != nil || view.argument("split.fractions") != nil || view.argument("output.metrics") != nil || h.Inputs.Data.SplitHint != ""
	need(clue, "validation_clue", "completion_criteria", "how success is told", "ask the user")
	out.Choices = l.choices(ctx, step.Run, view, out.Needs)
	target := ""
	for i, n := range out.Needs {
		switch n.Field {
		case "completion_criteria":
			out.Needs[i].Candidates = criteria.Suggest(words(h))
		case "data.target":
			for _, choice := range out.Choices {
				if choice.Field == n.Field { // the header of the file could be read
					target = namedColumn(words(h), choice.Candidates)
					out.Needs[i].WhereToLook = choice.Candidates[:min(40, len(choice.Candidates))]
				}
			}
		}
	}
	out.Decide()
	switch {
	case len(out.Needs) == 0:
	case slices.ContainsFunc(out.Needs, func(n engine.Need) bool { return n.Field == "completion_criteria" || n.Field == "task.objective" }):
		out.Next = p.handoffCall(step.Run, out.Needs, target)
	default:
		out.Next = factCall(step.Run, p.Tool(), out.Needs)
	}
}

// handoffCall supplies what stands in the handoff and nowhere else; with it what may stand there as well.
func (p knowledge) handoffCall(run *engine.Run, needs []engine.Need, target string) *engine.NextCall {
	handoff := map[string]any{}
	for _, n := range needs {
		switch n.Field {
		case "completion_criteria":
			handoff["completion_criteria"] = []string{"<metric and bound, such as test/rmse below 0.5>"}
			if len(n.Candidates) > 0 {
				handoff["completion_criteria"] = n.Candidates
			}
		case "task.objective":
			handoff["step_goal"] = "<what the step must reach>"
		case "data.target":
			if target == "" {
				target = "<column>"
			}
			handoff["inputs"] = map[string]any{"data": map[string]any{"domain_metadata": map[string]any{"target": target}}}
		}
	}
	return &engine.NextCall{Tool: run.Skill.Walker, Arguments: map[string]any{"run_id": run.ID, "step_handoff": handoff}}
}

// namedColumn is the one of these columns whose name stands as a word in the user's words, or "" where none or several do.
func namedColumn(said string, columns []string) string {
	named := ""
	for _, word := range strings.FieldsFunc(said, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' }) {
		if slices.Contains(columns, word) && word != named {
			if named != "" {
				return ""
			}
			named = word
		}
	}
	return named
}

func placesToLook(view projectView) []string {
	places := slices.Clone(view.Docs)
	if view.Entry != "" {
		places = append(places, view.Entry)
	}
	if len(places) == 0 {
		places = []string{"ask the user"}
	}
	return places
}

// factCall is the call that supplies the facts a gate waits for: accepted candidates where there are some, else facts to
// fill in.
func factCall(run *engine.Run, tool string, needs []engine.Need) *engine.NextCall {
	arguments := map[string]any{"run_id": run.ID}
	var accept []string
	var facts []map[string]any
	for _, n := range needs {
		if len(n.Candidates) > 0 {
			accept = append(accept, n.Candidates[0])
			continue
		}
		facts = append(facts, map[string]any{"field": n.Field, "value": "<value>", "status": evidence.Confirmed, "source": "<s…>", "quote": "<verbatim passage>"})
	}
	if accept != nil {
		arguments["accept"] = accept
	}
	if facts != nil {
		arguments["facts"] = facts
	}
	return &engine.NextCall{Tool: tool, Arguments: arguments}
}

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
			if i == best || sameValue(l.facts[i].Value, l.facts[best].Value) {
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

func conflict(kept, other evidence.Fact) finding.Finding {
	return finding.Finding{Code: "fact_conflict", Severity: finding.Warning,
		What:   fmt.Sprintf("%s: %s says %s (%s), %s says %s (%s)", kept.Field, kept.ID, show(kept.Value), kept.Why, other.ID, show(other.Value), other.Why),
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
