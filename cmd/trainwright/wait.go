package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/trainer"
)

// unknownFor is how long a job of which nothing is known may stay so before it is given up: a network file system shows an
// exit record up to 60 s late.
const unknownFor = 90 * time.Second

func waitCommand(s *settings, t terminal) *cobra.Command {
	var asJSON bool
	var most time.Duration
	c := &cobra.Command{
		Use: "wait JOB|RUN", Short: "Wait until a job or a run ends", Args: cobra.ExactArgs(1),
		Long: "Waits until the job has ended, or until no job of the run is under way, and prints where it stands. It changes\n" +
			"nothing: a run whose job has ended goes on with the call that is printed.\n\n" +
			"Exit code of a job: 0 succeeded, 1 failed, 5 cancelled, 6 ended by its wall time, 7 nothing has been known of it for\n" +
			"90 seconds (its machine or supervisor is gone). Of a run: 0 success, 1 failed, 3 partial, 4 blocked, as with\n" +
			"trainwright run. Of both: 2 there is no such job or run, 3 --timeout is over or the wait was interrupted.",
		Example: "  trainwright wait j-20261130-1 && echo done\n  trainwright wait r-20261130-7f3a --timeout 2h",
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := interruptible(c.Context())
			defer stop()
			if most > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, most)
				defer cancel()
			}
			work, err := s.open().trainer()
			if err != nil {
				return unusable(err)
			}
			err = waitFor(ctx, t, work, args[0], asJSON)
			if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				fmt.Fprintf(t.err, "trainwright: %s has not ended; it goes on\n", args[0])
				return exit(exitPartial)
			}
			return unusable(err)
		},
	}
	c.Flags().DurationVar(&most, "timeout", 0, "wait no longer than this, such as 90s or 2h (default: without end)")
	c.Flags().BoolVar(&asJSON, "json", false, "print the job's status or the run's answer as JSON")
	return c
}

// waitFor waits for what the id names. A job is looked for first.
func waitFor(ctx context.Context, t terminal, work *trainer.Trainer, id string, asJSON bool) error {
	folder, err := findJob(work, id)
	if err == nil {
		job := &waiting{runtime: work.Runtime, folder: folder, patience: unknownFor}
		if err := job.wait(ctx); err != nil {
			return err
		}
		if asJSON {
			err = printJSON(t.out, job.last)
		} else {
			_, err = fmt.Fprintln(t.out, jobLine(job.last))
		}
		return errors.Join(err, jobVerdict(job.last.State))
	}
	answer, runErr := waitForRun(ctx, work, id)
	if refusedAs(runErr, "run_unknown") || refusedAs(runErr, "run_id_malformed") {
		return err // it tells the jobs there are
	}
	if runErr != nil {
		return runErr
	}
	if asJSON {
		err = printJSON(t.out, answer)
	} else {
		err = printRun(t, answer)
	}
	return errors.Join(err, verdict(answer.ExecutionResult.Status))
}

func refusedAs(err error, code string) bool {
	var r *finding.Refused
	return errors.As(err, &r) && len(r.Findings) > 0 && r.Findings[0].Code == code
}

// waitForRun waits until no job of the run is under way.
func waitForRun(ctx context.Context, work *trainer.Trainer, id string) (engine.Envelope, error) {
	for {
		answer, err := work.Engine.RunStatus(ctx, id)
		if err != nil || answer.Run.Job == nil {
			return answer, err
		}
		folder, err := findJob(work, answer.Run.Job.JobID)
		if err != nil {
			return answer, err
		}
		before := answer.Run.Job.JobID
		job := &waiting{runtime: work.Runtime, folder: folder, patience: unknownFor}
		if err := job.wait(ctx); err != nil {
			return answer, err
		}
		if answer, err = work.Engine.RunStatus(ctx, id); err != nil || answer.Run.Job == nil || answer.Run.Job.JobID == before {
			return answer, err
		}
	}
}

// waiting is a wait for one job.
type waiting struct {
	runtime interface {
		Status(ctx context.Context, folders []string) ([]jobs.Status, error)
	}
	folder   string
	patience time.Duration

	last    jobs.Status
	unknown time.Time // since when nothing is known of it
}

// over tells whether the job has ended, or nothing has been known of it for longer than patience.
func (w *waiting) over(ctx context.Context) (bool, error) {
	statuses, err := w.runtime.Status(ctx, []string{w.folder})
	if err != nil {
		return false, err
	}
	if len(statuses) != 1 {
		return false, fmt.Errorf("%d answers for one job", len(statuses))
	}
	w.last = statuses[0]
	if w.last.State != jobs.StateUnknown {
		w.unknown = time.Time{}
		return jobs.Terminal(w.last.State), nil
	}
	if w.unknown.IsZero() {
		w.unknown = time.Now()
	}
	return time.Since(w.unknown) >= w.patience, nil
}

// wait looks at the job more and more rarely, at least every two seconds.
func (w *waiting) wait(ctx context.Context) error {
	const rarely = 2 * time.Second
	for every := 50 * time.Millisecond; ; every = min(rarely, every*3/2) {
		if over, err := w.over(ctx); over || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}

// jobLine tells the state of a job in a line.
func jobLine(s jobs.Status) string {
	line := fmt.Sprintf("%s %s after %.1f s", s.JobID, s.State, s.Seconds)
	if s.Cause != nil {
		line += ": " + s.Cause.What
		if s.Cause.Remedy != "" {
			line += "; " + s.Cause.Remedy
		}
	}
	return line
}

// printRun tells where a run stands and how it goes on.
func printRun(t terminal, e engine.Envelope) error {
	if _, err := fmt.Fprintf(t.out, "%s %s: %s\n", e.Run.RunID, e.ExecutionResult.Status, e.ExecutionResult.Observation.Summary); err != nil {
		return err
	}
	if e.Run.NextCall == nil || e.ExecutionResult.Status == contract.StatusSuccess {
		return nil
	}
	arguments, err := json.Marshal(e.Run.NextCall.Arguments)
	if err != nil {
		return fmt.Errorf("encode the next call: %w", err)
	}
	_, err = fmt.Fprintf(t.out, "go on with: trainwright call %s '%s'\n", e.Run.NextCall.Tool, arguments)
	return err
}

// The exit codes of a job that wait adds.
const (
	exitCancelled = 5
	exitTimeout   = 6
	exitUnknown   = 7
)

// jobVerdict turns the state of a job that is waited for no longer into the exit code.
func jobVerdict(state string) error {
	switch state {
	case jobs.StateSucceeded:
		return nil
	case jobs.StateCancelled:
		return exit(exitCancelled)
	case jobs.StateTimeout:
		return exit(exitTimeout)
	case jobs.StateUnknown:
		return exit(exitUnknown)
	}
	return exit(exitFailed)
}
