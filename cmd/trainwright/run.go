package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/tools"
)

// turn is how long one call of the trainer waits for a job, in seconds. Progress comes while it waits.
const turn = 60

func runCommand(s *settings, t terminal) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "run HANDOFF", Short: "Carry out a whole step in the terminal", Args: cobra.ExactArgs(1),
		Long: "Reads a step_handoff from the file HANDOFF (YAML or JSON, \"-\" for stdin) and calls the trainer until the step has an\n" +
			"end, with a line for each phase and the progress of the job: one line that is drawn anew where stderr is a terminal,\n" +
			"else a line for each message. Run it again with the same handoff to go on where it was.\n\n" +
			"Exit code: 0 success, 1 failed, 2 the input can't be used, 3 partial (also when interrupted: a job goes on), 4 blocked.",
		Example: "  trainwright run handoff.yaml\n  trainwright run --json - < handoff.json > result.json",
		RunE: func(c *cobra.Command, args []string) error {
			log, err := s.logger(t, zerolog.WarnLevel)
			if err != nil {
				return err
			}
			handoff, err := readHandoff(t, args[0])
			if err != nil {
				return refused(t, err)
			}
			tool, ok := tools.Find(tools.All(s.open().deps()), "trainer")
			if !ok {
				return errors.New("this build has no trainer")
			}
			return carryOut(c.Context(), t, log, tool, handoff, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the trainer's last answer as JSON; progress goes to stderr")
	return c
}

// carryOut does the step and tells of it until its end, or until an interrupt.
func carryOut(ctx context.Context, t terminal, log zerolog.Logger, tool tools.Tool, handoff contract.StepHandoff, asJSON bool) error {
	watch := &watcher{out: t.out, log: log, shown: map[string]string{}, bar: barFor(t.err)}
	if asJSON {
		watch.out = t.err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	still := watch.tick()
	answer, err := walk(ctx, tool, watch, handoff)
	still()
	interrupted := ctx.Err() != nil && (err != nil || running(answer))
	switch {
	case interrupted:
		watch.interrupted(answer)
	case err != nil:
		return refused(t, err)
	case !asJSON:
		watch.final(answer)
	}
	if asJSON && answer.Run.RunID != "" {
		if err := printJSON(t.out, answer); err != nil {
			return err
		}
	}
	if interrupted {
		return exit(exitPartial)
	}
	return verdict(answer.ExecutionResult.Status)
}

func readHandoff(t terminal, name string) (contract.StepHandoff, error) {
	var text []byte
	var err error
	if name == "-" {
		text, err = io.ReadAll(t.in)
	} else {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return contract.StepHandoff{}, finding.Refuse(finding.Finding{Code: "handoff_unreadable", Severity: finding.Error, What: err.Error(),
			Where: &finding.Where{Path: name}, Expected: "a YAML or JSON file with a step_handoff", Remedy: "give the path of the file, or - for stdin"})
	}
	handoff, _, err := contract.DecodeHandoff(text)
	return handoff, err
}

// verdict turns the status of a step into the exit code.
func verdict(status string) error {
	switch status {
	case contract.StatusSuccess:
		return nil
	case contract.StatusPartial:
		return exit(exitPartial)
	case contract.StatusBlocked:
		return exit(exitBlocked)
	}
	return exit(exitFailed)
}

// walk calls the trainer until its answer has no job under way any more, or the caller gives up, in which case the last
// answer is what there is.
func walk(ctx context.Context, tool tools.Tool, watch *watcher, handoff contract.StepHandoff) (engine.Envelope, error) {
	answer, err := callTrainer(ctx, tool, watch, map[string]any{"step_handoff": handoff, "wait_seconds": turn})
	if err != nil {
		return answer, err
	}
	for watch.phases(answer); running(answer); watch.phases(answer) {
		if ctx.Err() != nil {
			return answer, nil
		}
		next, err := callTrainer(ctx, tool, watch, map[string]any{"run_id": answer.Run.RunID, "wait_seconds": turn})
		if err != nil && ctx.Err() == nil {
			return answer, err
		}
		if err == nil {
			answer = next
		}
	}
	return answer, nil
}

// running says that a job is under way and the step has no end yet.
func running(e engine.Envelope) bool {
	if e.ExecutionResult.Status != contract.StatusPartial {
		return false
	}
	for _, status := range e.Run.PhaseStatus {
		if status == contract.StateRunning {
			return true
		}
	}
	return false
}

func callTrainer(ctx context.Context, tool tools.Tool, watch *watcher, arguments map[string]any) (engine.Envelope, error) {
	var envelope engine.Envelope
	raw, err := json.Marshal(arguments)
	if err != nil {
		return envelope, fmt.Errorf("encode the call: %w", err)
	}
	result, err := tool.Call(ctx, watch, raw)
	if err != nil {
		return envelope, err
	}
	encoded, err := json.Marshal(result.Structured)
	if err != nil {
		return envelope, fmt.Errorf("encode the answer: %w", err)
	}
	if err := json.Unmarshal(encoded, &envelope); err != nil {
		return envelope, fmt.Errorf("read the answer: %w", err)
	}
	return envelope, nil
}

// watcher shows a person how a step goes: the phase that begins, its progress as it comes, and at the end of a call the
// phases whose status changed. With a bar the progress is drawn there and leaves no line.
type watcher struct {
	engine.Unasked // a person at the terminal has `trainwright approve`

	out io.Writer
	log zerolog.Logger
	bar *bar

	mu          sync.Mutex
	shown       map[string]string
	phase, last string
}

var _ engine.Caller = (*watcher)(nil)

// Progress prints a phase when it begins, and a message once.
func (w *watcher) Progress(p engine.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begins := p.Phase != w.phase
	repeated := !begins && p.Message == w.last
	w.phase, w.last = p.Phase, p.Message
	if begins && p.Phase != "" {
		w.line(p.Phase)
	}
	switch {
	case w.bar != nil:
		w.told(w.bar.show(p))
	case !repeated && p.Message != "" && p.Message != "phase "+p.Phase:
		w.line("  " + p.Message)
	}
}

// tick keeps the time of the bar going until still is called, which takes the bar away.
func (w *watcher) tick() (still func()) {
	if w.bar == nil {
		return func() {}
	}
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		every := time.NewTicker(500 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-ended:
				return
			case <-every.C:
				w.mu.Lock()
				w.told(w.bar.draw())
				w.mu.Unlock()
			}
		}
	}()
	return func() {
		close(ended)
		<-gone
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told(w.bar.clear())
		w.bar = nil // what is told from here on are lines
	}
}

// interrupted is all that is said after an interrupt: how to go on.
func (w *watcher) interrupted(e engine.Envelope) {
	if e.Run.RunID == "" {
		w.say("interrupted; a job that was started goes on. Go on later with the same command")
		return
	}
	w.say("interrupted; the job goes on. Go on later with the same command, or look with: trainwright call run_status '{\"run_id\": %q}'", e.Run.RunID)
}

// phases prints the phases whose status is new.
func (w *watcher) phases(e engine.Envelope) {
	for _, phase := range contract.Phases {
		status := e.Run.PhaseStatus[phase]
		if status == "" || status == contract.StatePending || w.shown[phase] == status {
			continue
		}
		w.shown[phase] = status
		w.say("%-24s %s", phase, status)
	}
}

// final prints the end: status, summary, what is missing, where the files are.
func (w *watcher) final(e engine.Envelope) {
	r := e.ExecutionResult
	w.say("\n%s: %s", r.Status, r.Observation.Summary)
	for _, need := range e.Needs {
		w.say("needs %s: %s", need.Field, need.Why)
	}
	for _, f := range e.Findings {
		if f.Severity != finding.Note {
			w.say("%s: %s", f.Severity, f)
		}
	}
	w.say("run %s in %s", e.Run.RunID, r.Artifacts["trainer_workdir"])
	if report := r.Artifacts["validation_report"]; report != "" {
		w.say("report %s", report)
	}
}

func (w *watcher) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line(fmt.Sprintf(format, args...))
}

// line prints a line where the bar was, and the bar below it again. The caller holds the lock.
func (w *watcher) line(text string) {
	if w.bar != nil {
		w.told(w.bar.clear())
		defer func() { w.told(w.bar.draw()) }()
	}
	_, err := fmt.Fprintln(w.out, text)
	w.told(err)
}

func (w *watcher) told(err error) {
	if err != nil {
		w.log.Warn().Err(err).Msg("the terminal can't be written")
	}
}
