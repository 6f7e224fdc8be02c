package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// RunPhase runs one phase of a skill, when everything before it has passed. A phase that has passed already and is
// given nothing new answers what it answered before.
func (e *Engine) RunPhase(ctx context.Context, caller Caller, skill *Skill, name string, call contract.Call, section map[string]any) (Envelope, error) {
	run, notes, err := e.Open(ctx, skill, call)
	if err != nil {
		return Envelope{}, err
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
	if state.passed(at) && len(section) == 0 {
		return e.settled(ctx, run, at, state, append(notes, e.checkProjections(run, state)...))
	}
	after, found, err := e.execute(ctx, run, at, &Step{Run: run, Caller: caller, Section: section, Wait: wait(call), Now: e.Now})
	if err != nil {
		return Envelope{}, err
	}
	return e.settled(ctx, run, at, after, merge(notes, found))
}

// Walk runs every phase that has not passed yet, up to the one where the intent ends, and stops at the first gate that
// does not pass or at a job that outlasts the wait.
func (e *Engine) Walk(ctx context.Context, caller Caller, skill *Skill, call contract.Call) (Envelope, error) {
	run, notes, err := e.Open(ctx, skill, call)
	if err != nil {
		return Envelope{}, err
	}
	deadline := e.Now().Add(wait(call))
	for {
		state, err := run.standing(ctx)
		if err != nil {
			return Envelope{}, err
		}
		at := state.firstOpen()
		if at > state.last {
			return e.settled(ctx, run, state.last, state, append(notes, e.checkProjections(run, state)...))
		}
		caller.Progress(Progress{Phase: state.phases[at].Phase, Message: "phase " + state.phases[at].Phase, Done: float64(at), Total: float64(state.last + 1)})
		step := &Step{Run: run, Caller: caller, Walking: true, Wait: max(0, deadline.Sub(e.Now())), Now: e.Now}
		after, found, err := e.execute(ctx, run, at, step)
		if err != nil {
			return Envelope{}, err
		}
		notes = merge(notes, state.findings)
		if !after.passed(at) {
			return e.settled(ctx, run, at, after, merge(notes, found))
		}
	}
}

// DefaultWait and MaxWait bound how long a call may wait for a job, in seconds (settled.md).
const (
	DefaultWait = 20
	MaxWait     = 600
)

func wait(call contract.Call) time.Duration {
	seconds := DefaultWait
	if call.WaitSeconds != nil {
		seconds = min(max(*call.WaitSeconds, 0), MaxWait)
	}
	return time.Duration(seconds) * time.Second
}

// execute runs a phase and commits what it made. It gives the state after that and what the answer should tell beside the
// record.
func (e *Engine) execute(ctx context.Context, run *Run, at int, step *Step) (standing, []finding.Finding, error) {
	phase := run.Skill.Phases[at]
	step.inputs = map[string]string{}
	out, err := phase.Run(ctx, step)
	if err != nil {
		return standing{}, nil, fmt.Errorf("phase %s of %s: %w", phase.Name(), run.ID, err)
	}
	if !out.Running() {
		if err := e.commit(ctx, run, phase.Name(), step, &out); err != nil {
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
// artifacts for its own.
func (e *Engine) commit(ctx context.Context, run *Run, name string, step *Step, out *Outcome) error {
	unlock, err := rundir.Lock(ctx, run.File(".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	for path, sha := range step.inputs {
		if now, _, err := rundir.HashFile(step.absolute(path)); err != nil || now != sha {
			return finding.Refuse(finding.Finding{Code: "run_changed_meanwhile", Severity: finding.Error,
				What: path + " changed while the phase was at work", Where: &finding.Where{Path: step.absolute(path)},
				Expected: "the file as the phase read it", Remedy: "make the same call again"})
		}
	}
	notes, err := run.Dir.WriteArtifacts(out.Files)
	if err != nil {
		return err
	}
	notes = slices.DeleteFunc(notes, func(n finding.Finding) bool { return n.Severity == finding.Note })
	record, err := e.record(run, name, step, out, notes)
	if err != nil {
		return err
	}
	if err := run.Dir.CommitRecord(record); err != nil {
		return err
	}
	if err := run.Dir.AppendEvent(rundir.Event{Time: record.FinishedAt, Phase: name, Event: record.Status, By: "trainwright"}); err != nil {
		return err
	}
	return e.project(ctx, run)
}

func (e *Engine) record(run *Run, name string, step *Step, out *Outcome, notes []finding.Finding) (rundir.Record, error) {
	out.Findings = append(out.Findings, notes...)
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
	raw, err := json.Marshal(answer{Step: out.Step, Category: out.Category, Summary: out.Summary, Needs: out.Needs, Next: out.Next})
	if err != nil {
		return rundir.Record{}, err
	}
	record := rundir.Record{Phase: name, Status: status, Attempt: run.Attempt, FinishedAt: e.Now().UTC(), Inputs: maps.Clone(step.inputs),
		Outputs: map[string]string{}, Gate: out.Gate, Blockers: out.Blockers, Assumptions: out.Assumptions, Recall: out.Recall,
		Findings: out.Findings, Answer: raw}
	for file := range out.Files {
		record.Outputs[file] = ""
	}
	for _, file := range out.Outputs {
		record.Outputs[run.Rel(file)] = ""
	}
	for file := range record.Outputs {
		sha, _, err := rundir.HashFile(step.absolute(file))
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
