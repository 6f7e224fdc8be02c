package engine

import (
	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
)

// Envelope is the structured answer of every skill tool (formats.md, "Tool output"): what an orchestrator reads in
// execution_result, and beside it what an agent needs for its next call.
type Envelope struct {
	ExecutionResult contract.ExecutionResult `json:"execution_result"`
	Run             RunView                  `json:"run"`
	Needs           []Need                   `json:"needs"`
	Findings        []finding.Finding        `json:"findings"`
	Resources       []string                 `json:"resources"`
}

// RunView says where the run stands. Phase is the phase that this answer is about; PhaseStatus has one entry for each
// phase of the skill, keyed by its full name.
type RunView struct {
	RunID       string            `json:"run_id"`
	Attempt     int               `json:"attempt"`
	Phase       string            `json:"phase"`
	PhaseStatus map[string]string `json:"phase_status"`
	NextCall    *NextCall         `json:"next_call,omitempty"`
	Job         *JobHandle        `json:"job,omitempty"`
}

// NextCall is the very call to make next: a tool and its arguments, ready to be sent. Where an argument has to come from
// the agent's judgement, Needs says which.
type NextCall struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// JobHandle names the job that a partial answer waits for. Ended says that the job is over and only waits to be taken up
// by the next call.
type JobHandle struct {
	JobID string `json:"job_id"`
	State string `json:"state"`
	Ended bool   `json:"ended,omitempty"`
}

// Need is one thing that a gate waits for: the field (a dotted path of the training request), why, the places where it
// might be found, and the ids of candidate facts that would settle it.
type Need struct {
	Field       string   `json:"field"`
	Why         string   `json:"why"`
	WhereToLook []string `json:"where_to_look"`
	Candidates  []string `json:"candidates"`
}
