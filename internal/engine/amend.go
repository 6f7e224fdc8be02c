package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Resolve settles a conflict: what holds for a field, and why.
type Resolve struct {
	Field string `json:"field"`
	Keep  string `json:"keep" jsonschema_description:"Id of the fact that holds, or new for the one in this call; of a field of the handoff: sent or stored."`
	Why   string `json:"why,omitempty"`
}

// OfHandoff says whether it is about a field of the handoff and not about facts.
func (r Resolve) OfHandoff() bool {
	return r.Keep == contract.KeepSent || r.Keep == contract.KeepStored
}

// resolveArgument is the argument of a skill tool that brings settlements.
const resolveArgument = "resolve"

// settlements are the resolutions of a call that are about its handoff.
func settlements(call contract.Call) []Resolve {
	var all struct {
		Resolve []Resolve `json:"resolve"`
	}
	if call.Section[resolveArgument] == nil {
		return nil
	}
	if _, err := contract.Decode(map[string]any{resolveArgument: call.Section[resolveArgument]}, &all); err != nil {
		return nil // the tool that takes the argument refuses it
	}
	return slices.DeleteFunc(all.Resolve, func(r Resolve) bool { return !r.OfHandoff() })
}

// withoutSettlements is the call's section as the phase is to see it: what settled the handoff is none of its business.
func withoutSettlements(call contract.Call) map[string]any {
	settled := len(settlements(call))
	all, _ := call.Section[resolveArgument].([]any)
	if settled == 0 || settled < len(all) {
		return call.Section
	}
	section := maps.Clone(call.Section)
	delete(section, resolveArgument)
	return section
}

// settlesHandoffs refuses settlements that a walk can't pass on: those of facts belong to the phase that has them.
func (e *Engine) settlesHandoffs(skill *Skill, call contract.Call) error {
	section := withoutSettlements(call)
	if section[resolveArgument] == nil {
		return nil
	}
	return finding.Refuse(finding.Finding{Code: "resolve_not_of_handoff", Severity: finding.Error, What: skill.Walker + " settles fields of the handoff, not facts",
		Where: &finding.Where{Field: resolveArgument}, Expected: `keep "sent" or "stored"`, Remedy: "send the conflict of facts to " + skill.Resolves})
}

// merge works out what a handoff makes of the stored one, and refuses what it would change without a settlement, and what
// would move the run.
func (e *Engine) merge(run *Run, sent contract.StepHandoff, settled []Resolve) (merged contract.StepHandoff, added []string, err error) {
	keep := map[string]string{}
	for _, r := range settled {
		field := strings.TrimPrefix(strings.TrimSpace(r.Field), "step_handoff.")
		keep[field], keep["inputs."+field] = r.Keep, r.Keep
	}
	sent.Inputs.Attempt = 0 // entered apart; the stored handoff keeps the number that it came with
	merged, added, conflicts, err := contract.Amend(run.Handoff, sent, keep)
	if err != nil {
		return merged, nil, err
	}
	if len(conflicts) > 0 {
		return merged, nil, differs(run, conflicts)
	}
	return merged, added, e.staysPut(run, merged)
}

// staysPut refuses an amendment that names another folder than the one the run lives in.
func (e *Engine) staysPut(run *Run, merged contract.StepHandoff) error {
	was, now := run.Handoff.Inputs.Runtime, merged.Inputs.Runtime
	if was.CodeSaveDir == now.CodeSaveDir && was.TrainerWorkdir == now.TrainerWorkdir && was.Workdir == now.Workdir {
		return nil
	}
	place, err := e.placeRun(run.ID, merged)
	if err != nil {
		return err
	}
	refused := finding.Refuse()
	for _, at := range []struct{ field, is, sent string }{
		{"trainer_workdir", run.Workdir, place.workdir}, {"code_save_dir", run.CodeSaveDir, place.codeSaveDir},
	} {
		if at.is != at.sent {
			refused.Findings = append(refused.Findings, finding.Finding{Code: "run_placed", Severity: finding.Error,
				What:  fmt.Sprintf("the %s of run %s is %s since its first call; this would make it %s", at.field, run.ID, e.Roots.Rel(at.is), e.Roots.Rel(at.sent)),
				Where: &finding.Where{Field: "step_handoff.inputs.runtime." + at.field}, Expected: "a run stays where it is",
				Remedy: "leave it out to go on here, or send the whole handoff without run_id to start a run there"})
		}
	}
	if len(refused.Findings) > 0 {
		return refused
	}
	return nil
}

// amend merges a handoff, which is free of secrets, into the stored one.
func (e *Engine) amend(ctx context.Context, run *Run, sent contract.StepHandoff, settled []Resolve, by string, how map[string]any) ([]finding.Finding, error) {
	unlock, err := rundir.Lock(ctx, run.File(".lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Under the lock the stored handoff is read again: another call may have amended it since the run was opened.
	stored, err := e.load(run.Entry)
	if err != nil {
		return nil, err
	}
	*run = *stored
	merged, added, err := e.merge(run, sent, settled)
	if err != nil || len(added) == 0 {
		return nil, err
	}
	run.Handoff = merged
	if err := writeHandoff(run.Dir, merged); err != nil {
		return nil, err
	}
	detail := map[string]any{"added": added}
	if len(settled) > 0 {
		detail["settled"] = settled
	}
	maps.Copy(detail, how)
	err = run.Dir.AppendEvent(rundir.Event{Time: e.Now(), Event: "handoff_amended", By: by, Detail: detail})
	return []finding.Finding{{Code: "handoff_amended", Severity: finding.Note,
		What: "taken into the run: " + strings.Join(added, ", "), Remedy: "phases that used the handoff run again"}}, err
}

// differs refuses a handoff that says something else than the run, naming each field and the way to settle it.
func differs(run *Run, conflicts []contract.Conflict) error {
	refused := finding.Refuse()
	for _, c := range conflicts {
		refused.Findings = append(refused.Findings, finding.Finding{Code: "handoff_differs", Severity: finding.Error,
			What:     fmt.Sprintf("%s of the run is %s, the handoff sent beside the run_id says %s", c.Field, short(c.Stored), short(c.Sent)),
			Where:    &finding.Where{Field: "step_handoff." + c.Field},
			Expected: "the run's own value, or a field that the run leaves open",
			Remedy:   "leave the field out to go on with the run's value; " + settle(run, c.Field) + "or send the whole handoff without run_id to start another run"})
	}
	return refused
}

// settle words the call that takes what was sent, where the skill has one.
func settle(run *Run, field string) string {
	if run.Skill.Resolves == "" {
		return ""
	}
	return fmt.Sprintf(`if the user has changed it, send the same call to %s with "resolve": [{"field": %q, "keep": %q, "why": "…"}]; `, run.Skill.Walker, field, contract.KeepSent)
}

// short is a value as a message shows it.
func short(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	if len(data) > 80 {
		return string(data[:77]) + "…"
	}
	return string(data)
}
