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
