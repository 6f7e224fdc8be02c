package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Phase is one phase of a skill. Run is called without a lock, may be called again after a crash at any point, and
// reads the run only through the Step, so that the engine knows what the result rests on.
type Phase interface {
	// Name is the full name in records and phase_status, such as "2_data_and_split".
	Name() string
	// Tool is the tool that runs this phase alone.
	Tool() string
	// Run does the phase's work. An error is for what the phase could not judge at all (a disk fault); a gate that
	// does not pass is an Outcome.
	Run(ctx context.Context, step *Step) (Outcome, error)
}

// Live is what a phase implements whose work goes on outside the call. Job returns nil when nothing is under way.
type Live interface {
	Job(ctx context.Context, run *Run) *JobHandle
}

// Skill is a named sequence of phases with its tools and files.
type Skill struct {
	// Name is the execution_skill of a step_handoff, Walker the tool that walks all phases.
	Name, Walker string
	Phases       []Phase
	// Resolves is the tool that settles conflicts of facts, where there is one. Such a skill's walker takes resolve as well, for
	// what a handoff changes of the run's.
	Resolves string
	// Attempted names the phase from which a new attempt runs anew; what was learned before it stays. Empty: no phase does.
	Attempted string
	// Last names the phase at which a step of this intent ends.
	Last func(contract.StepHandoff) string
	// Canonical lists the artifacts an orchestrator may read, relative to the trainer_workdir.
	Canonical []string
	// Artifacts gives the artifact keys of an execution_result with absolute paths; only files that exist are kept.
	Artifacts func(*Run) map[string]string
	// Close words the summary of a step that ended (its status and the run are known by then).
	Close func(*Run, Envelope) string
}

// Outcome is what a phase made and whether its gate passed.
type Outcome struct {
	// Status is one of the contract's phase states. Empty means: success when the gate passed, else blocked.
	Status string
	// Step is the status of the whole step, set by the phase that ends it; empty means success.
	Step string
	// Category is the failure category of contracts.md, where Step is not success.
	Category string
	Gate     rundir.Gate
	// Files are artifacts to be committed, by name relative to the run.
	Files map[string][]byte
	// Outputs are files that the phase itself wrote already, relative to the run or absolute.
	Outputs []string
	Needs   []Need
	// Choices are needs that the user may be asked for, where the caller lets its questions through.
	Choices     []Choice
	Findings    []finding.Finding
	Blockers    []string
	Assumptions []string
	Recall      *rundir.RecallUse
	Summary     string
	// Judged says of a failed phase that it left something to inspect: the next phase is entered all the same, and the step
	// stays failed.
	Judged bool
	// Next overrides the next call that the engine would work out. One without a tool means that there is none: what is
	// missing can't be supplied by a call.
	Next *NextCall
	// Job is set while a job of this phase is under way; nothing is committed then.
	Job *JobHandle
}

// Running says that the phase waits for a job: no record is committed.
func (o Outcome) Running() bool { return o.Job != nil }

// AddFile renders v as stable JSON under name.
func (o *Outcome) AddFile(name string, v any) error {
	data, err := rundir.MarshalStable(v)
	if err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	o.AddText(name, data)
	return nil
}

// AddText adds an artifact whose bytes are ready.
func (o *Outcome) AddText(name string, data []byte) {
	if o.Files == nil {
		o.Files = map[string][]byte{}
	}
	o.Files[name] = data
}

// Check adds one check to the gate.
func (o *Outcome) Check(name string, ok bool, why string) {
	o.Gate.Checks = append(o.Gate.Checks, rundir.Check{Name: name, OK: ok, Why: why})
}

// Decide closes the gate: it passed when every check did and no finding is an error.
func (o *Outcome) Decide() {
	o.Gate.Passed = !finding.Has(o.Findings, finding.Error)
	for _, c := range o.Gate.Checks {
		o.Gate.Passed = o.Gate.Passed && c.OK
	}
}

// Step is one execution of a phase: the run, the caller, and what this call brought. It notes every file that is read
// through it, with its hash, as an input of the record.
type Step struct {
	Run    *Run
	Caller Caller
	// Section holds the call's own arguments for this phase; nil when there are none.
	Section map[string]any
	// Wait bounds how long the phase may wait for a job.
	Wait   time.Duration
	Now    func() time.Time
	inputs map[string]string
	asks   bool // the user may be asked for what the gate waits for
}

// ReadJSON reads a file of the run and notes it as an input. A missing file is an error that wraps fs.ErrNotExist.
func (s *Step) ReadJSON(name string, v any) error {
	data, err := os.ReadFile(s.Run.File(name))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	s.inputs[name] = rundir.HashBytes(data)
	return nil
}

// Track notes a file outside or inside the run as an input and returns its hash.
func (s *Step) Track(path string) (string, error) {
	sha, _, err := rundir.HashFile(s.Run.Dir.Abs(path))
	if err != nil {
		return "", err
	}
	s.inputs[path] = sha
	return sha, nil
}

// TrackOwn notes a file that the phase itself writes again, such as what the agent contributed so far: when another call
// changes it meanwhile, or makes it, the phase is run anew on what is there then. It is no input of the record.
func (s *Step) TrackOwn(name string) error {
	sha, _, err := rundir.HashFile(s.Run.File(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.inputs[name] = sha
	return nil
}

// TrackAs notes an input whose hash is known already.
func (s *Step) TrackAs(path, sha string) { s.inputs[path] = sha }

// Say tells the caller what the phase is doing.
func (s *Step) Say(phase, format string, args ...any) {
	s.Caller.Progress(Progress{Phase: phase, Message: fmt.Sprintf(format, args...)})
}

// Inputs are the files read so far, by path, with their hashes.
func (s *Step) Inputs() map[string]string { return maps.Clone(s.inputs) }
