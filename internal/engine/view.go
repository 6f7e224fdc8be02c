package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// envelope answers for the phase at index at. A phase's own gate is in phase_status; the result is partial until the
// last phase of the intent is done (settled.md).
func (e *Engine) envelope(ctx context.Context, run *Run, at int, state standing, notes []finding.Finding) Envelope {
	phase, reply := state.phases[at], state.answers[at]
	findings := finding.Merge(notes, state.told())
	if phase.Record != nil && phase.Status != contract.StatePending {
		findings = finding.Merge(findings, phase.Record.Findings)
	}
	if at == state.last && state.passed(at) || phase.Status == contract.StateBlocked { // what is wrong before it may be why
		findings = finding.Merge(findings, state.warnings())
	}
	summary, category := reply.Summary, reply.Category
	if bad := state.failed(at); bad >= 0 {
		// What the failed phase left was looked at: the answer is about both.
		findings = finding.Merge(state.phases[bad].Record.Findings, findings)
		summary = state.answers[bad].Summary + "; " + reply.Summary
		category = state.answers[bad].Category
	}
	answer := Envelope{Needs: reply.Needs, Findings: findings, Run: RunView{RunID: run.ID, Attempt: run.Attempt, Phase: phase.Phase,
		PhaseStatus: state.status(run.Handoff), Job: state.job}}
	result := &answer.ExecutionResult
	result.Skill = run.Skill.Name
	result.Status = stepStatus(state, at)
	result.Artifacts = run.existing()
	if run.numbered {
		attempt := run.Attempt
		result.Attempt, result.Events = &attempt, run.attemptEvents()
		if category != "" {
			result.FailureCategory = &category
		}
	}
	answer.Run.NextCall = e.next(run, state, at)
	observe(&result.Observation, run, state, answer)
	result.Observation.Summary = summary
	answer.Resources = run.resources()
	if run.Skill.Close != nil {
		result.Observation.Summary = run.Skill.Close(run, answer)
	}
	if answer.Needs == nil {
		answer.Needs = []Need{}
	}
	return answer
}

// stepStatus is the status of the step as an orchestrator reads it.
func stepStatus(state standing, at int) string {
	phase := state.phases[at]
	switch {
	case phase.Status == contract.StateRunning || phase.Status == contract.StatePending:
		return contract.StatusPartial
	case phase.Status == contract.StateFailed || state.failed(at) >= 0:
		return contract.StatusFailed
	case !state.passed(at) && state.answers[at].Step != "":
		return state.answers[at].Step
	case !state.passed(at):
		return contract.StatusBlocked
	case at < state.last:
		return contract.StatusPartial
	case state.answers[at].Step != "":
		return state.answers[at].Step
	}
	for _, earlier := range state.phases[:at+1] {
		if earlier.Status == contract.StatePartial {
			return contract.StatusPartial // a gap that is not fatal, such as data that is not there yet
		}
	}
	return contract.StatusSuccess
}

// next is the call that goes on from here: the phase's own, the same phase again while its gate waits, the next phase,
// or none when the step is over.
func (e *Engine) next(run *Run, state standing, at int) *NextCall {
	if bad := state.failed(at); bad >= 0 {
		at = bad // the way out of the failure is the failed phase's to tell
	} else if open := state.firstOpen(); state.judged(at) && open <= state.last {
		return run.onward(open)
	}
	if own := state.answers[at].Next; own != nil && own.Tool == "" {
		return nil
	} else if own != nil {
		return own
	}
	if state.phases[at].Status == contract.StateRunning {
		return &NextCall{Tool: run.Skill.Walker, Arguments: map[string]any{"run_id": run.ID, "wait_seconds": 300}}
	}
	open := state.firstOpen()
	if open > state.last || state.phases[open].Status == contract.StateFailed {
		return nil
	}
	if open == at { // its gate waits
		return &NextCall{Tool: run.Skill.Phases[at].Tool(), Arguments: map[string]any{"run_id": run.ID}}
	}
	return run.onward(open)
}

// onward is the call that goes on with the phase at index open: the walker where the run was walked before, so that an agent
// that has answered a gate's question does not have to call every phase after it.
func (r *Run) onward(open int) *NextCall {
	tool := r.Skill.Phases[open].Tool()
	if r.walked() {
		tool = r.Skill.Walker
	}
	return &NextCall{Tool: tool, Arguments: map[string]any{"run_id": r.ID}}
}

// observe fills what the observation derives from the state: passed phases, missing fields, the risks that any phase
// noted, the recommendation.
func observe(o *contract.Observation, run *Run, state standing, answer Envelope) {
	o.Completed, o.Missing, o.Risks = []string{}, []string{}, []string{}
	for i, p := range state.phases {
		if state.passed(i) {
			o.Completed = append(o.Completed, p.Phase)
		}
	}
	for _, n := range answer.Needs {
		o.Missing = append(o.Missing, n.Field)
	}
	risk := func(findings []finding.Finding) {
		for _, f := range findings {
			if line := f.Code + ": " + f.What; f.Severity != finding.Note && !slices.Contains(o.Risks, line) {
				o.Risks = append(o.Risks, line)
			}
		}
	}
	for _, p := range state.phases {
		if p.Record != nil && p.Status != contract.StatePending {
			risk(p.Record.Findings)
		}
	}
	risk(state.findings)
	switch next := answer.Run.NextCall; {
	case next == nil && len(answer.Needs) > 0:
		o.NextRecommendation = "repair what is missing, then call " + run.Skill.Walker + " with the run_id"
	case next == nil:
		o.NextRecommendation = "return to the orchestrator"
	case len(answer.Needs) > 0:
		o.NextRecommendation = fmt.Sprintf("supply what is missing, then call %s", next.Tool)
	default:
		o.NextRecommendation = "call " + next.Tool
	}
}

// existing keeps the skill's artifact keys whose files are there.
func (r *Run) existing() map[string]string {
	out := map[string]string{}
	for key, path := range r.Skill.Artifacts(r) {
		if _, err := os.Stat(path); err == nil {
			out[key] = path
		}
	}
	return out
}

// resources links what a person or an agent would read next: the texts, pictures and results among the canonical artifacts.
// The rest is in execution_result.artifacts and in the listing of resources.
func (r *Run) resources() []string {
	out := []string{}
	for _, name := range r.Skill.Canonical {
		if ext := filepath.Ext(name); ext != ".md" && ext != ".png" && !slices.Contains(linked, name) {
			continue
		}
		if _, err := os.Stat(filepath.Join(r.Workdir, name)); err == nil {
			out = append(out, "run://"+r.ID+"/"+name)
		}
	}
	return out
}

// linked are the results among the data files.
var linked = []string{resultFile, "runtime_result.json", "claims.json"}

// RunStatus tells where a run stands, without changing anything.
func (e *Engine) RunStatus(ctx context.Context, id string) (Envelope, error) {
	run, err := e.Look(id)
	if err != nil {
		return Envelope{}, err
	}
	state, err := run.standing(ctx)
	if err != nil {
		return Envelope{}, err
	}
	return e.envelope(ctx, run, state.tells(), state, nil), nil
}

// ListRequest narrows a list of runs. Status is a step status or empty; Limit is at most 200, 50 when zero; Cursor is
// the run_id that the last page ended with.
type ListRequest struct {
	Status string `json:"status,omitempty" jsonschema:"enum=success,enum=partial,enum=failed,enum=blocked" jsonschema_description:"Only runs whose step has this status."`
	Limit  int    `json:"limit,omitempty" jsonschema_description:"Rows at most, 1 to 200; 50 when left out."`
	Cursor string `json:"cursor,omitempty" jsonschema_description:"next_cursor of the page before."`
}

// RunRow is one run of a list.
type RunRow struct {
	RunID     string    `json:"run_id"`
	StepGoal  string    `json:"step_goal"`
	Status    string    `json:"status"`
	Phase     string    `json:"phase"`
	CreatedAt string    `json:"created_at"`
	Workdir   string    `json:"trainer_workdir"`
	NextCall  *NextCall `json:"next_call,omitempty"`
}

// RunList is a page of runs, newest first. NextCursor is empty on the last page.
type RunList struct {
	Runs       []RunRow          `json:"runs"`
	Total      int               `json:"total"`
	NextCursor string            `json:"next_cursor,omitempty"`
	Findings   []finding.Finding `json:"findings"`
}

// ListRuns lists the runs of the workspace. A run that can't be read is a finding, not an error.
func (e *Engine) ListRuns(ctx context.Context, ask ListRequest) (RunList, error) {
	entries, findings, err := e.index().List()
	if err != nil {
		return RunList{}, err
	}
	limit := ask.Limit
	if limit <= 0 {
		limit = 50
	}
	limit = min(limit, 200)
	list := RunList{Runs: []RunRow{}, Total: len(entries), Findings: finding.Merge(nil, findings)}
	if ask.Cursor != "" {
		if at := slices.IndexFunc(entries, func(x rundir.IndexEntry) bool { return x.RunID == ask.Cursor }); at >= 0 {
			entries = entries[at+1:]
		}
	}
	for i, entry := range entries {
		if len(list.Runs) == limit {
			list.NextCursor = entries[i-1].RunID
			break
		}
		status, err := e.RunStatus(ctx, entry.RunID)
		if err != nil {
			list.Findings = append(list.Findings, finding.Finding{Code: "run_unreadable", Severity: finding.Warning,
				What: fmt.Sprintf("%s: %v", entry.RunID, err), Remedy: "run_status shows more"})
			continue
		}
		if ask.Status != "" && ask.Status != status.ExecutionResult.Status {
			continue
		}
		list.Runs = append(list.Runs, RunRow{RunID: entry.RunID, StepGoal: entry.StepGoal, Status: status.ExecutionResult.Status, Phase: status.Run.Phase,
			CreatedAt: entry.CreatedAt.UTC().Format("2006-01-02T15:04:05Z"), Workdir: e.Roots.Rel(e.place(entry.TrainerWorkdir)), NextCall: status.Run.NextCall})
	}
	return list, nil
}

// Workdirs are the trainer_workdirs of every run that the index knows, newest first.
func (e *Engine) Workdirs() ([]string, error) {
	entries, _, err := e.index().List()
	dirs := make([]string, 0, len(entries))
	for _, entry := range entries {
		dirs = append(dirs, e.place(entry.TrainerWorkdir))
	}
	return dirs, err
}
