package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// answer is the part of a phase's record that belongs to the engine: what the envelope repeats when the phase is not
// run again.
type answer struct {
	Step     string    `json:"step,omitempty"`
	Category string    `json:"category,omitempty"`
	Summary  string    `json:"summary"`
	Judged   bool      `json:"judged,omitempty"`
	Needs    []Need    `json:"needs,omitempty"`
	Next     *NextCall `json:"next_call,omitempty"`
}

// standing is a run as its records tell it: each phase with its status, and what is noticed on the way.
type standing struct {
	phases   []rundir.PhaseState
	answers  []answer
	job      *JobHandle
	jobPhase string
	last     int
	findings []finding.Finding
	amended  bool // nothing was committed: the handoff says more now
}

// standing reads where the run is. Nothing is written.
func (r *Run) standing(ctx context.Context) (standing, error) {
	names := make([]string, len(r.Skill.Phases))
	for i, p := range r.Skill.Phases {
		names[i] = p.Name()
	}
	var s standing
	var err error
	if s.phases, s.findings, err = r.Dir.State(names); err != nil {
		return s, fmt.Errorf("read state of %s: %w", r.ID, err)
	}
	s.answers = make([]answer, len(names))
	last := r.Skill.Last(r.Handoff)
	perAttempt := false // from the phase on that a new attempt runs anew
	for i, phase := range s.phases {
		if phase.Phase == last {
			s.last = i
		}
		live, isLive := r.Skill.Phases[i].(Live)
		perAttempt = perAttempt || phase.Phase == r.Skill.Attempted
		if perAttempt && phase.Record != nil && phase.Record.Attempt < r.Attempt && phase.Status != contract.StatePending {
			phase.Status, s.phases[i].Status = contract.StatePending, contract.StatePending
		}
		if phase.Record != nil && len(phase.Record.Answer) > 0 {
			if err := json.Unmarshal(phase.Record.Answer, &s.answers[i]); err != nil {
				return s, fmt.Errorf("read answer of %s: %w", phase.Phase, err)
			}
		}
		if isLive {
			open := phase.Status == contract.StatePending || phase.Status == contract.StateBlocked
			if job := live.Job(ctx, r); job != nil && (open || !job.Ended) {
				s.job, s.jobPhase = job, phase.Phase
				if !job.Ended {
					s.phases[i].Status = contract.StateRunning
				}
				s.answers[i] = answer{Summary: fmt.Sprintf("job %s is %s", job.JobID, job.State)}
				if job.Ended {
					s.answers[i].Next = &NextCall{Tool: r.Skill.Walker, Arguments: map[string]any{"run_id": r.ID}}
				}
			}
		}
	}
	return s, nil
}

// passed says that a phase's gate let the run through and nothing has changed since.
func (s standing) passed(i int) bool {
	p := s.phases[i]
	switch p.Status {
	case contract.StateSuccess, contract.StatePartial, contract.StateSkipped:
		return p.Record != nil && p.Record.Gate.Passed
	}
	return false
}

// judged says that the phase failed and left something that the next phase looks at.
func (s standing) judged(i int) bool {
	p := s.phases[i]
	return p.Status == contract.StateFailed && p.Record != nil && s.answers[i].Judged
}

// failed is the phase before i that failed and was judged all the same, or -1.
func (s standing) failed(i int) int {
	return slices.IndexFunc(s.phases[:i], func(p rundir.PhaseState) bool { return p.Status == contract.StateFailed })
}

// tells is the phase that a status of the run is about: the first open one, or the last that has something to say.
func (s standing) tells() int {
	at := min(s.firstOpen(), s.last)
	if s.job != nil {
		return slices.IndexFunc(s.phases, func(p rundir.PhaseState) bool { return p.Phase == s.jobPhase })
	}
	if s.phases[at].Status == contract.StatePending && at > 0 {
		// A pending phase has nothing to say yet: the answer is the last passed phase's, whose next call leads on.
		at--
	}
	return at
}

// told is what the state itself has to say. A phase that is stale while an earlier one is open runs again when its turn
// comes: nothing is to be done about that.
func (s standing) told() []finding.Finding {
	stale := slices.IndexFunc(s.phases, func(p rundir.PhaseState) bool { return len(p.Stale) > 0 })
	if stale <= s.firstOpen() {
		return s.findings
	}
	out := slices.Clone(s.findings)
	for i, f := range out {
		if f.Code == "phase_stale" {
			out[i].Severity, out[i].Remedy = finding.Note, "nothing to do: it runs again when its turn comes"
		}
	}
	return out
}

// warnings are what the passed phases found and did not stop at.
func (s standing) warnings() []finding.Finding {
	var out []finding.Finding
	for i, p := range s.phases {
		if s.passed(i) {
			out = append(out, slices.DeleteFunc(slices.Clone(p.Record.Findings), func(f finding.Finding) bool { return f.Severity == finding.Note })...)
		}
	}
	return out
}

// firstOpen is the first phase that is still to be run, or the number of phases.
func (s standing) firstOpen() int {
	for i := range s.phases {
		if !s.passed(i) && !s.judged(i) {
			return i
		}
	}
	return len(s.phases)
}

// status is each phase's state. Phases beyond the intent are skipped; while the intent is not known they are pending.
func (s standing) status(handoff contract.StepHandoff) map[string]string {
	out := make(map[string]string, len(s.phases))
	intent := handoff.Inputs.Runtime.ExecutionIntent
	for i, p := range s.phases {
		out[p.Phase] = p.Status
		if i > s.last && p.Status == contract.StatePending && intent != "" && intent != contract.IntentUnknown {
			out[p.Phase] = contract.StateSkipped
		}
	}
	return out
}
