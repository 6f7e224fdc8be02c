package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// RunPhase runs one phase of a skill on the call's section, when everything before it has passed. A phase that has passed already and is
// given nothing new answers what it answered before.
func (e *Engine) RunPhase(ctx context.Context, caller Caller, skill *Skill, name string, call contract.Call) (Envelope, error) {
	section := withoutSettlements(call)
	edited, section, err := editedOf(section)
	if err != nil {
		return Envelope{}, err
	}
	run, notes, err := e.Open(ctx, skill, call)
	if err != nil {
		return Envelope{}, err
	}
	if run.stored != nil {
		return *run.stored, nil
	}
	if edited != "" {
		more, given, err := e.settleEdits(ctx, run, name, edited)
		if err != nil {
			return Envelope{}, err
		}
		notes, section = append(notes, more...), joined(section, given)
	}
	state, err := run.standing(ctx)
	if err != nil {
		return Envelope{}, err
	}
	at := slices.IndexFunc(skill.Phases, func(p Phase) bool { return p.Name() == name })
	if open := state.firstOpen(); open < at {
		return e.outOfOrder(run, state, at, open, notes), nil
	}
	if at > state.last {
		return e.beyondIntent(run, state, at, notes), nil
	}
	if state.passed(at) && len(section) == 0 && edited != takeOver {
		return e.settled(ctx, run, at, state, append(notes, e.checkProjections(run, state)...))
	}
	after, found, err := e.execute(ctx, run, at, &Step{Run: run, Caller: caller, Section: section, Wait: wait(call), Now: e.Now})
	if err != nil {
		return Envelope{}, err
	}
	return e.settled(ctx, run, at, after, finding.Merge(notes, found))
}

// Walk runs every phase that has not passed yet, up to the one where the intent ends, and stops at the first gate that
// does not pass or at a job that outlasts the wait.
func (e *Engine) Walk(ctx context.Context, caller Caller, skill *Skill, call contract.Call) (Envelope, error) {
	if err := e.settlesHandoffs(skill, call); err != nil {
		return Envelope{}, err
	}
	run, notes, err := e.Open(ctx, skill, call)
	if err != nil {
		return Envelope{}, err
	}
	if run.stored != nil {
		return *run.stored, nil
	}
	if err := e.noteWalk(ctx, run); err != nil {
		return Envelope{}, err
	}
	deadline := e.Now().Add(wait(call))
	for first := true; ; first = false {
		state, err := run.standing(ctx)
		if err != nil {
			return Envelope{}, err
		}
		if first {
			notes = finding.Merge(notes, changes(state.findings))
		}
		at := state.firstOpen()
		if at > state.last {
			return e.settled(ctx, run, state.last, state, append(notes, e.checkProjections(run, state)...))
		}
		caller.Progress(Progress{Phase: state.phases[at].Phase, Message: "phase " + state.phases[at].Phase, Done: float64(at), Total: float64(state.last + 1)})
		step := &Step{Run: run, Caller: caller, Wait: max(0, deadline.Sub(e.Now())), Now: e.Now, asks: true}
		after, found, err := e.execute(ctx, run, at, step)
		if err != nil {
			return Envelope{}, err
		}
		if after.amended {
			notes = finding.Merge(notes, found)
			continue
		}
		if !after.passed(at) && !after.judged(at) {
			return e.settled(ctx, run, at, after, finding.Merge(notes, found))
		}
	}
}

// walkBegun is the event of a run that the walker has been called for.
const walkBegun = "walk_begun"

// noteWalk records, once, that the run is walked.
func (e *Engine) noteWalk(ctx context.Context, run *Run) error {
	if run.walked() {
		return nil
	}
	unlock, err := rundir.Lock(ctx, run.File(".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	return run.Dir.AppendEvent(rundir.Event{Time: e.Now(), Event: walkBegun, By: "agent"})
}

// walked says whether the walker was called for this run. Events that can't be read say nothing.
func (r *Run) walked() bool {
	events, _, err := r.Dir.Events()
	return err == nil && slices.ContainsFunc(events, func(e rundir.Event) bool { return e.Event == walkBegun })
}

// changes turns what a walk finds changed at its start into notes of what it does about it: the phases run again in this
// very call. What stays wrong shows again in the state after it.
func changes(findings []finding.Finding) []finding.Finding {
	var out []finding.Finding
	for _, f := range findings {
		if f.Code != "artifact_edited_by_hand" {
			f.Severity, f.Remedy = finding.Note, "nothing to do: the phases that rest on it ran again in this call"
		}
		out = append(out, f)
	}
	return out
}

// wait is how long a call may wait for a job.
func wait(call contract.Call) time.Duration {
	seconds := contract.DefaultWaitSeconds
	if call.WaitSeconds != nil {
		seconds = min(max(*call.WaitSeconds, 0), contract.MaxWaitSeconds)
	}
	return time.Duration(seconds) * time.Second
}

// maxTries bounds how often a phase is run anew because its inputs changed under it.
const maxTries = 5

// execute runs a phase and commits what it made. It gives the state after that and what the answer should tell beside the
// record.
func (e *Engine) execute(ctx context.Context, run *Run, at int, step *Step) (standing, []finding.Finding, error) {
	phase := run.Skill.Phases[at]
	var out Outcome
	for again, tries := true, 0; again; tries++ {
		if tries == maxTries {
			return standing{}, nil, finding.Refuse(finding.Finding{Code: "run_changed_meanwhile", Severity: finding.Error, What: fmt.Sprintf("what %s reads changed each time it ran", phase.Name()),
				Where: &finding.Where{Path: run.Workdir}, Expected: "files that rest while a phase reads them", Remedy: "find out who writes them, then make the same call again"})
		}
		step.inputs = map[string]string{}
		var err error
		if out, err = phase.Run(ctx, step); err != nil {
			return standing{}, nil, fmt.Errorf("phase %s of %s: %w", phase.Name(), run.ID, err)
		}
		if out.Running() {
			break
		}
		if step.asks && !out.Gate.Passed {
			if taken, err := e.choose(ctx, run, step, &out); err != nil || len(taken) > 0 {
				return standing{amended: true}, taken, err
			}
		}
		// Another server may have run the phase meanwhile: what it read is looked at anew, for as long as the caller waits.
		if again, err = e.commit(ctx, run, phase.Name(), step, &out); err != nil {
			return standing{}, nil, err
		}
	}
	state, err := run.standing(ctx)
	if err != nil || !out.Running() {
		return state, nil, err
	}
	state.job, state.jobPhase, state.phases[at].Status = out.Job, phase.Name(), contract.StateRunning
	state.answers[at] = answer{Summary: out.Summary, Next: out.Next}
	return state, out.Findings, nil
}

// settled is the envelope, with the projections brought up to date.
func (e *Engine) settled(ctx context.Context, run *Run, at int, state standing, notes []finding.Finding) (Envelope, error) {
	answer := e.envelope(ctx, run, at, state, notes)
	return answer, e.settle(ctx, run, &answer)
}

// commit writes the phase's artifacts and then its record, under the lock, after a look whether anything the phase read
// has changed meanwhile. The record is last: a crash before it leaves the phase open, and running it again takes the
// artifacts for its own. changed says that an input is not what the phase read: nothing is written then.
func (e *Engine) commit(ctx context.Context, run *Run, name string, step *Step, out *Outcome) (changed bool, err error) {
	unlock, err := rundir.Lock(ctx, run.File(".lock"))
	if err != nil {
		return false, err
	}
	defer unlock()
	for path, sha := range step.inputs {
		now, _, err := rundir.HashFile(run.Dir.Abs(path))
		if absent := errors.Is(err, fs.ErrNotExist); absent != (sha == "") || !absent && (err != nil || now != sha) {
			return true, nil
		}
	}
	if err := addHandNotes(run, out.Files); err != nil {
		return false, err
	}
	notes, err := run.Dir.WriteArtifacts(out.Files)
	if err != nil {
		return false, err
	}
	// What was edited by hand is told by the run's state for as long as it is so, not by the record.
	notes = slices.DeleteFunc(notes, func(n finding.Finding) bool {
		return n.Severity == finding.Note || n.Code == "artifact_edited_by_hand" && n.Severity != finding.Error
	})
	record, err := e.record(run, name, step, out, notes)
	if err != nil {
		return false, err
	}
	if err := run.Dir.CommitRecord(record); err != nil {
		return false, err
	}
	if err := run.Dir.AppendEvent(rundir.Event{Time: record.FinishedAt, Phase: name, Event: record.Status, By: "trainwright"}); err != nil {
		return false, err
	}
	return false, e.project(ctx, run)
}

func (e *Engine) record(run *Run, name string, step *Step, out *Outcome, notes []finding.Finding) (rundir.Record, error) {
	out.Findings = append(out.Findings, notes...)
	if i := slices.IndexFunc(out.Findings, func(f finding.Finding) bool { return f.Severity == finding.Error }); out.Summary == "" && i >= 0 {
		out.Summary = out.Findings[i].What
	}
	if finding.Has(notes, finding.Error) {
		out.Gate.Passed = false
	}
	status := out.Status
	if status == "" || (status == contract.StateSuccess && !out.Gate.Passed) {
		status = contract.StateBlocked
		if out.Gate.Passed {
			status = contract.StateSuccess
		}
	}
	raw, err := json.Marshal(answer{Step: out.Step, Category: out.Category, Judged: out.Judged, Summary: out.Summary, Needs: out.Needs, Next: out.Next})
	if err != nil {
		return rundir.Record{}, err
	}
	record := rundir.Record{Phase: name, Status: status, Attempt: run.Attempt, FinishedAt: e.Now().UTC(), Inputs: maps.Clone(step.inputs),
		Outputs: map[string]string{}, Gate: out.Gate, Blockers: out.Blockers, Assumptions: out.Assumptions, Recall: out.Recall,
		Findings: out.Findings, Answer: raw}
	maps.DeleteFunc(record.Inputs, func(path, sha string) bool { return sha == "" || out.Files[path] != nil })
	for file := range out.Files {
		record.Outputs[file] = ""
	}
	for _, file := range out.Outputs {
		record.Outputs[run.Rel(file)] = ""
	}
	for file := range record.Outputs {
		if text, ours := out.Files[file]; ours && strings.HasSuffix(file, ".md") {
			record.Outputs[file] = rundir.HashBytes(text) // what was rendered, also where an edit was kept
			continue
		}
		sha, _, err := rundir.HashFile(run.Dir.Abs(file))
		if err != nil {
			return record, fmt.Errorf("hash output %s: %w", file, err)
		}
		record.Outputs[file] = sha
	}
	return record, nil
}

// outOfOrder answers a phase that was called before its time.
func (e *Engine) outOfOrder(run *Run, state standing, at, open int, notes []finding.Finding) Envelope {
	wanted, first := run.Skill.Phases[at], run.Skill.Phases[open]
	notes = append(notes, finding.Finding{Code: "phase_skipped", Severity: finding.Error,
		What:     fmt.Sprintf("%s was called, but %s is %s", wanted.Name(), first.Name(), state.phases[open].Status),
		Where:    &finding.Where{Field: wanted.Tool()},
		Expected: "the phases in order", Remedy: fmt.Sprintf("call %s first, or %s to walk on from there", first.Tool(), run.Skill.Walker)})
	answer := e.envelope(context.Background(), run, at, state, notes)
	answer.ExecutionResult.Status = contract.StatusBlocked
	answer.Run.NextCall = &NextCall{Tool: first.Tool(), Arguments: map[string]any{"run_id": run.ID}}
	answer.ExecutionResult.Observation.Summary = fmt.Sprintf("%s can't run yet: %s is %s.", wanted.Name(), first.Name(), state.phases[open].Status)
	answer.ExecutionResult.Observation.NextRecommendation = "call " + first.Tool()
	return answer
}

// beyondIntent answers a phase that the step's intent does not reach.
func (e *Engine) beyondIntent(run *Run, state standing, at int, notes []finding.Finding) Envelope {
	wanted := run.Skill.Phases[at]
	intent := run.Handoff.Inputs.Runtime.ExecutionIntent
	notes = append(notes, finding.Finding{Code: "beyond_intent", Severity: finding.Error,
		What:     fmt.Sprintf("execution_intent %q ends after %s", intent, state.phases[state.last].Phase),
		Where:    &finding.Where{Field: "step_handoff.inputs.runtime.execution_intent"},
		Expected: "an intent that reaches " + wanted.Name(), Remedy: "ask the user whether the job may run; then send a handoff with execution_intent run_local"})
	answer := e.envelope(context.Background(), run, state.last, state, notes)
	answer.ExecutionResult.Status = contract.StatusBlocked
	return answer
}
