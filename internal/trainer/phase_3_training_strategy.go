package trainer

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/criteria"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
)

// StrategyInput is the section of phase_3_training_strategy.
type StrategyInput struct {
	Propose  bool     `json:"propose,omitempty" jsonschema_description:"Fill every open field as ASSUMPTION with its reason."`
	Strategy Strategy `json:"strategy,omitzero" jsonschema_description:"Values to set. What the handoff or the script's defaults say need not be repeated."`
	engine.EditedInput
}

// strategyPhase is phase 3: every field of the strategy with where it comes from, checked against facts and data.
type strategyPhase struct{ t *Trainer }

func (strategyPhase) Name() string { return contract.PhaseTrainingStrategy }
func (strategyPhase) Tool() string { return "phase_3_training_strategy" }

// Plan is training_plan.json as later phases read it: the strategy's leaves by dotted path are written as the nested
// tree of formats.md, beside what was worked out from them.
type Plan struct {
	Leaves         map[string]Leaf
	Role           Leaf
	Success        Leaf
	RunnerContract []runnerEntry
	Estimates      []string
	Smoke          []string
	Tier           Tier
}

// MarshalJSON writes the nested form.
func (p Plan) MarshalJSON() ([]byte, error) {
	tree := nested(p.Leaves)
	tree["success"], tree["checkpoint_role"], tree["runner_contract"], tree["estimates"], tree["smoke"], tree["tier"] = p.Success, p.Role, p.RunnerContract, p.Estimates, p.Smoke, p.Tier
	return json.Marshal(tree)
}

// UnmarshalJSON reads the nested form back.
func (p *Plan) UnmarshalJSON(data []byte) error {
	var rest struct {
		Success Leaf          `json:"success"`
		Role    Leaf          `json:"checkpoint_role"`
		Runner  []runnerEntry `json:"runner_contract"`
		Est     []string      `json:"estimates"`
		Smoke   []string      `json:"smoke"`
		Tier    Tier          `json:"tier"`
	}
	if err := json.Unmarshal(data, &rest); err != nil {
		return err
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		return err
	}
	p.Success, p.Role, p.RunnerContract, p.Estimates, p.Smoke, p.Tier = rest.Success, rest.Role, rest.Runner, rest.Est, rest.Smoke, rest.Tier
	p.Leaves = map[string]Leaf{}
	for _, spec := range leaves {
		var leaf Leaf
		if node := dig(tree, spec.path); node != nil {
			raw, err := json.Marshal(node)
			if err != nil {
				return err
			}
			if err := json.Unmarshal(raw, &leaf); err != nil {
				return fmt.Errorf("%s: %w", spec.path, err)
			}
			p.Leaves[spec.path] = leaf
		}
	}
	return nil
}

// Run does phase 3.
func (p strategyPhase) Run(ctx context.Context, step *engine.Step) (engine.Outcome, error) {
	var out engine.Outcome
	var facts []evidence.Fact
	var view projectView
	var manifest contract.DataManifest
	var sources []evidence.Source
	for name, v := range map[string]any{factsFile: &facts, projectFile: &view, dataManifestFile: &manifest, sourcesFile: &sources} {
		if err := step.ReadJSON(name, v); err != nil {
			return out, err
		}
	}
	if _, err := step.Track(contract.FileStepHandoff); err != nil {
		return out, err
	}
	var given StrategyInput
	if err := stored(step, p.Name(), &given); err != nil {
		return out, err
	}
	if err := brought(step, &given); err != nil {
		return out, err
	}
	step.Say(p.Name(), "settling the strategy")
	s := &settler{facts: facts, view: view, chosen: map[string]any{}, target: manifest.Schema.Target, task: step.Run.Handoff.Inputs.Model.TaskType, criteria: step.Run.Handoff.CompletionCriteria}
	s.propose = given.Propose || step.Run.Handoff.Inputs.ExecutionFlags.AutonomousMode
	if err := flattenStrategy(given.Strategy, s.chosen); err != nil {
		return out, err
	}
	s.settle()
	out.Findings = append(out.Findings, s.findings...)
	plan := Plan{Leaves: s.leaves, RunnerContract: runner(view, facts, contract.RunnerContract), Tier: tierOf(given.Strategy.Tier), Smoke: smokeSteps(step.Run.Handoff, view, Plan{Leaves: s.leaves})}
	plan.Role = roleLeaf(facts)
	plan.Success = successLeaf(step.Run.Handoff, given.Strategy.Success)
	plan.Estimates = estimates(plan, manifest, step.Run.Handoff, step.Run.Roots)
	p.check(&out, plan, view)
	out.Findings = append(out.Findings, checkStrategy(plan, manifest, step.Run.Handoff)...)
	p.gate(&out, step, s, len(s.chosen) > 0)
	recalled, err := p.t.recallFor(ctx, step, p.Name(), "planning", facts, sources)
	if err != nil {
		return out, err
	}
	out.Recall = recalled
	if err := out.AddFile(planFile, plan); err != nil {
		return out, err
	}
	out.AddText(planText, renderPlan(step.Run, plan, view, out))
	out.Summary = fmt.Sprintf("strategy settled: %s, epochs %s, batch %s", show(plan.Leaves["optimizer.name"].Value), show(plan.Leaves["epochs"].Value), show(plan.Leaves["batch.micro"].Value))
	if finding.Has(out.Findings, finding.Error) {
		return out, nil
	}
	return out, keepAnswers(&out, step, p.Name(), given)
}

func flattenStrategy(strategy Strategy, into map[string]any) error {
	data, err := json.Marshal(strategy)
	if err != nil {
		return err
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		return err
	}
	delete(tree, "success")
	delete(tree, "tier")
	flatten("", tree, into)
	return nil
}

func roleLeaf(facts []evidence.Fact) Leaf {
	if f := holding(facts, "checkpoint.role"); f != nil {
		return Leaf{Value: f.Value, Status: f.Status, Fact: f.ID, Why: f.Why}
	}
	return Leaf{Status: evidence.Missing}
}

func successLeaf(h contract.StepHandoff, chosen []string) Leaf {
	switch {
	case len(h.CompletionCriteria) > 0:
		return Leaf{Value: h.CompletionCriteria, Status: evidence.Confirmed, Why: "completion_criteria of the handoff"}
	case len(chosen) > 0:
		return Leaf{Value: chosen, Status: evidence.Assumption, Why: "chosen by the agent"}
	}
	return Leaf{Status: evidence.Missing, Why: "no completion criterion is given: the step can end in partial at best"}
}

// criteriaOf are the criteria of the plan as texts.
func (p Plan) criteriaOf() []string {
	switch v := p.Success.Value.(type) {
	case []string:
		return v
	case []any:
		var out []string
		for _, x := range v {
			out = append(out, text(x))
		}
		return out
	}
	return nil
}

// check holds the strategy against the checkpoint's role, and reads the criteria.
func (p strategyPhase) check(out *engine.Outcome, plan Plan, view projectView) {
	add := func(code string, severity finding.Severity, field, what, expected, remedy string) {
		out.Findings = append(out.Findings, finding.Finding{Code: code, Severity: severity, What: what, Where: &finding.Where{Field: field}, Expected: expected, Remedy: remedy})
	}
	role := text(plan.Role.Value)
	if argument := checkpointRoles[role]; argument != "" && view.script() != nil && view.argument(argument) == nil {
		add("checkpoint_role_unsupported", finding.Error, "checkpoint.role", fmt.Sprintf("the role is %s, but %s has no argument that takes the checkpoint", role, view.Entry),
			"an argument such as --resume or --init-checkpoint", "let the coder add it, or change the role with the user")
	}
	for _, trap := range view.Traps {
		if trap.Kind == "silent_resume" && role == contract.RoleTrainFromScratch {
			out.Findings = append(out.Findings, finding.Finding{Code: "silent_resume", Severity: finding.Warning, What: trap.What, Where: &finding.Where{Path: trap.Place.Path, Line: trap.Place.Line},
				Expected: "a start from scratch", Remedy: "the checkpoint folder must be empty at the start; phase 5 checks it"})
		}
	}
	for i, criterion := range plan.criteriaOf() {
		if _, err := criteria.Parse(criterion); err != nil {
			for _, f := range refusalOf(err) {
				f.Severity = finding.Warning
				f.Where = &finding.Where{Field: fmt.Sprintf("completion_criteria[%d]", i)}
				out.Findings = append(out.Findings, f)
			}
		}
	}
}

// checkpointRoles are the argument roles that a checkpoint role needs.
var checkpointRoles = map[string]string{contract.RoleResumeTraining: "checkpoint.resume_checkpoint", contract.RoleInitFromCheckpoint: "checkpoint.init_checkpoint",
	contract.RoleFinetune: "checkpoint.finetune_checkpoint"}

// trainRows are the rows of all training files; 0 where one of them was not counted.
func trainRows(manifest contract.DataManifest) (rows int64) {
	for _, f := range manifest.Files {
		switch {
		case f.Part != "train":
		case f.Rows == nil:
			return 0
		default:
			rows += *f.Rows
		}
	}
	return rows
}

// gate 3: nothing that reaches the script is open, and what reaches it unconfirmed was asked for.
func (p strategyPhase) gate(out *engine.Outcome, step *engine.Step, s *settler, explicit bool) {
	out.Check("nothing_open", len(s.open) == 0, "every value that the script demands is known")
	for _, spec := range s.open {
		out.Needs = append(out.Needs, engine.Need{Field: spec.field, Why: "gate of phase 3: " + s.leaves[spec.path].Why, WhereToLook: placesToLook(s.view), Candidates: []string{}})
	}
	allowed := s.propose || explicit
	out.Check("values_confirmed", len(s.unsure) == 0 || allowed, "every value that reaches the script is CONFIRMED, or assumptions were asked for")
	for _, spec := range s.unsure {
		leaf := s.leaves[spec.path]
		if leaf.Status == evidence.Assumption {
			out.Assumptions = append(out.Assumptions, fmt.Sprintf("ASSUMPTION: %s = %s (%s)", spec.path, show(leaf.Value), leaf.Why))
		}
		if !allowed {
			out.Needs = append(out.Needs, engine.Need{Field: spec.field, Why: fmt.Sprintf("gate of phase 3: %s reaches the script as %s", spec.path, leaf.Status), WhereToLook: placesToLook(s.view), Candidates: []string{leaf.Fact}})
		}
	}
	if s.view.script() == nil { // none of them reaches a script: they are of the plan alone
		for _, spec := range leaves {
			if leaf := s.leaves[spec.path]; leaf.Status == evidence.Assumption {
				out.Assumptions = append(out.Assumptions, fmt.Sprintf("ASSUMPTION: %s = %s (%s)", spec.path, show(leaf.Value), leaf.Why))
			}
		}
	}
	role := s.facts != nil && holding(s.facts, "checkpoint.role") != nil
	out.Check("checkpoint_semantics", role && !hasCode(out.Findings, "checkpoint_role_unsupported"), "the checkpoint's role agrees with what the script can do")
	out.Decide()
	for _, n := range out.Needs {
		out.Blockers = append(out.Blockers, n.Field)
	}
	if !out.Gate.Passed && len(out.Needs) > 0 {
		out.Next = &engine.NextCall{Tool: p.Tool(), Arguments: map[string]any{"run_id": step.Run.ID, "propose": true}}
		if s.propose && len(s.open) > 0 { // nothing could be proposed for these
			chosen := map[string]any{}
			for _, spec := range s.open {
				put(chosen, spec.path, "<"+spec.path+">")
			}
			out.Next.Arguments["strategy"] = chosen
		}
	}
	if out.Gate.Passed && openIntent(step.Run.Handoff) {
		out.Step = contract.StatusPartial
		out.Needs = append(out.Needs, engine.Need{Field: "runtime.execution_intent", Why: "the plan is ready; whether code is generated or the job runs was not said", WhereToLook: []string{"ask the user"}, Candidates: []string{}})
		intent := contract.IntentRunLocal
		if planAlone().MatchString(words(step.Run.Handoff)) {
			intent = contract.IntentPlanOnly // the user's words, for the agent to confirm
		}
		amendment := map[string]any{"inputs": map[string]any{"runtime": map[string]any{"execution_intent": intent}}}
		if len(step.Run.Handoff.CompletionCriteria) == 0 {
			// The one call that says how to go on can say as well when the training is good enough.
			suggested := criteria.Suggest(words(step.Run.Handoff))
			out.Needs = append(out.Needs, engine.Need{Field: "completion_criteria", Why: "no criterion says when the training is good enough; without one it ends as partial", WhereToLook: append(placesToLook(s.view), "ask the user"), Candidates: suggested})
			if len(suggested) > 0 {
				amendment["completion_criteria"] = suggested
			}
		}
		out.Next = &engine.NextCall{Tool: step.Run.Skill.Walker, Arguments: map[string]any{"run_id": step.Run.ID, "step_handoff": amendment}}
	}
}

// planAlone are the words of a user who wants a plan and no training.
var planAlone = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\bplan only\b|\bonly (?:make |want |write )?(?:me )?(?:a |the )?plan\b|\b(?:do not|don't|without) (?:train|run)|只(?:要|做|需)?(?:一个)?(?:训练)?计划|不要(?:训练|运行)`)
})

func openIntent(h contract.StepHandoff) bool {
	intent := h.Inputs.Runtime.ExecutionIntent
	return intent == "" || intent == contract.IntentUnknown
}

func hasCode(findings []finding.Finding, code string) bool {
	return slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Code == code })
}
