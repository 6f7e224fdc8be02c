package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// The attempt that is under way works in the trainer_workdir itself. When the next one begins, what the one before it came
// to is kept in attempts/<n>/: its answer, and copies of the files that the phases which an attempt runs anew made.
const (
	attemptsFolder = "attempts"
	attemptFile    = "attempt.json"
	answerFile     = "answer.json"
	attemptBegun   = "attempt_begun" // the event
)

// begun says when an attempt began.
type begun struct {
	Attempt int       `json:"attempt"`
	BegunAt time.Time `json:"begun_at"`
}

func attemptName(n int, file string) string { return path.Join(attemptsFolder, strconv.Itoa(n), file) }

// attempts are the numbers of the attempts that have a folder, ascending.
func (r *Run) attempts() []int {
	entries, _ := os.ReadDir(r.File(attemptsFolder)) // none: the first attempt is the only one
	var out []int
	for _, entry := range entries {
		if n, err := strconv.Atoi(entry.Name()); err == nil && n > 0 && entry.IsDir() {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// countAttempts sets the attempt that is under way, as the run's files tell it, and whether any caller has ever numbered one.
func (r *Run) countAttempts() {
	r.Attempt, r.numbered = max(1, r.Handoff.Inputs.Attempt), r.Handoff.Inputs.Attempt > 0
	for _, phase := range r.Skill.Phases {
		// A record that can't be read is told by the run's standing.
		if record, err := r.Dir.Record(phase.Name()); err == nil && record != nil {
			r.Attempt = max(r.Attempt, record.Attempt)
		}
	}
	if known := r.attempts(); len(known) > 0 {
		r.Attempt, r.numbered = max(r.Attempt, known[len(known)-1]), true
	}
}

// enter makes the run that of the attempt that a handoff names: the one under way, a newer one that begins now, or one that
// is over, whose stored answer is then in run.stored. A newer one does not begin while the job of the last has not been
// judged: the run stays where it is, and a finding says so.
func (e *Engine) enter(ctx context.Context, run *Run, n int) ([]finding.Finding, error) {
	if n <= 0 || n == run.Attempt && run.numbered {
		return nil, nil
	}
	unlock, err := rundir.Lock(ctx, run.File(".lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	run.countAttempts() // another call may have begun one meanwhile
	switch {
	case n == run.Attempt && run.numbered:
		return nil, nil
	case n < run.Attempt:
		return nil, run.recall(n)
	case n == run.Attempt:
		return nil, e.begin(run, n)
	}
	state, err := run.standing(ctx)
	if err != nil {
		return nil, err
	}
	if state.job != nil {
		return []finding.Finding{{Code: "attempt_under_way", Severity: finding.Error, What: fmt.Sprintf("attempt %d has not begun: job %s of attempt %d is %s and not judged yet", n, state.job.JobID, run.Attempt, state.job.State),
			Where: &finding.Where{Field: "step_handoff.inputs.attempt"}, Expected: "one attempt after the other",
			Remedy: fmt.Sprintf("go on with it until it is over: %s {\"run_id\": %q}, or end it first: job_cancel {\"job_id\": %q}; then send attempt %d again", run.Skill.Walker, run.ID, state.job.JobID, n)}}, nil
	}
	if err := e.keep(ctx, run, state); err != nil {
		return nil, err
	}
	return nil, e.begin(run, n)
}

// begin records that an attempt is under way.
func (e *Engine) begin(run *Run, n int) error {
	now := e.Now().UTC()
	if err := rundir.WriteJSON(run.File(attemptName(n, attemptFile)), begun{Attempt: n, BegunAt: now}); err != nil {
		return err
	}
	again := n == run.Attempt
	run.Attempt, run.numbered = n, true
	if again {
		return nil
	}
	return run.Dir.AppendEvent(rundir.Event{Time: now, Event: attemptBegun, By: "agent", Detail: map[string]any{"attempt": n}})
}

// keep stores what the attempt under way came to, its answer last.
func (e *Engine) keep(ctx context.Context, run *Run, state standing) error {
	answer := e.envelope(ctx, run, state.tells(), state, nil)
	copies, err := run.copyAttempt()
	if err != nil {
		return err
	}
	for key, file := range answer.ExecutionResult.Artifacts {
		if to := copies[run.Rel(file)]; to != "" {
			answer.ExecutionResult.Artifacts[key] = run.File(to)
		}
	}
	for i, uri := range answer.Resources {
		if to := copies[strings.TrimPrefix(uri, "run://"+run.ID+"/")]; to != "" {
			answer.Resources[i] = "run://" + run.ID + "/" + to
		}
	}
	result := struct {
		ExecutionResult contract.ExecutionResult `json:"execution_result"`
	}{answer.ExecutionResult}
	if err := rundir.WriteJSON(run.File(attemptName(run.Attempt, resultFile)), result); err != nil {
		return err
	}
	return rundir.WriteJSON(run.File(attemptName(run.Attempt, answerFile)), answer)
}

// copyAttempt copies what the phases that an attempt runs anew made into the attempt's folder, beside their records. It
// maps the names of the files to those of their copies.
func (r *Run) copyAttempt() (map[string]string, error) {
	copies := map[string]string{}
	anew := false
	for _, phase := range r.Skill.Phases {
		anew = anew || phase.Name() == r.Skill.Attempted
		record, err := r.Dir.Record(phase.Name())
		if !anew || err != nil || record == nil || record.Attempt != r.Attempt {
			continue // what can't be read is not this attempt's to keep; the run's standing tells of it
		}
		names := []string{path.Join("phases", phase.Name()+".json")}
		for name := range record.Outputs {
			if filepath.IsLocal(name) && !strings.HasPrefix(name, "jobs/") { // a job's folder belongs to no other attempt
				names = append(names, name)
			}
		}
		for _, name := range names {
			data, err := os.ReadFile(r.File(name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			to := attemptName(r.Attempt, name)
			if err := rundir.WriteFile(r.File(to), data); err != nil {
				return nil, err
			}
			copies[name] = to
		}
	}
	return copies, nil
}

// recall reads the stored answer of an attempt that is over.
func (r *Run) recall(n int) error {
	var stored Envelope
	err := rundir.ReadJSON(r.File(attemptName(n, answerFile)), &stored)
	if errors.Is(err, fs.ErrNotExist) {
		return finding.Refuse(finding.Finding{Code: "attempt_unknown", Severity: finding.Error, What: fmt.Sprintf("run %s is at attempt %d, and nothing is kept of an attempt %d", r.ID, r.Attempt, n),
			Where: &finding.Where{Field: "step_handoff.inputs.attempt"}, Expected: fmt.Sprintf("attempt %d to go on, or %d to begin anew", r.Attempt, r.Attempt+1), Remedy: "send the handoff with one of these"})
	}
	if err != nil {
		return err
	}
	stored.Findings = append(stored.Findings, finding.Finding{Code: "attempt_repeated", Severity: finding.Note,
		What: fmt.Sprintf("attempt %d is over: this is its stored answer; the run is at attempt %d", n, r.Attempt), Where: &finding.Where{Path: r.File(attemptName(n, answerFile))},
		Remedy: fmt.Sprintf("%s {\"run_id\": %q} goes on with attempt %d", r.Skill.Walker, r.ID, r.Attempt)})
	stored.Run.NextCall = nil
	r.stored = &stored
	return nil
}

// maxEvents is how many events of an attempt a result tells: the newest; all of them are in events.jsonl.
const maxEvents = 20

// attemptEvents are the events of the attempt that is under way, as a result carries them.
func (r *Run) attemptEvents() []map[string]any {
	events, _, err := r.Dir.Events()
	if err != nil {
		return []map[string]any{} // the events are no part of the evidence; a file that can't be read holds the run up nowhere
	}
	out := []map[string]any{}
	for _, event := range events {
		if event.Event == walkBegun {
			continue // how it was called, not what happened
		}
		if n, ok := event.Detail["attempt"].(float64); ok && event.Event == attemptBegun && int(n) == r.Attempt {
			out = out[:0] // what stands before it is of the attempts before; clocks are set back, lines are not
		}
		entry := map[string]any{"time": event.Time.Format(time.RFC3339), "event": event.Event, "by": event.By}
		if event.Phase != "" {
			entry["phase"] = event.Phase
		}
		if id, ok := event.Detail["job_id"]; ok {
			entry["job_id"] = id
		}
		out = append(out, entry)
	}
	return out[max(0, len(out)-maxEvents):]
}
