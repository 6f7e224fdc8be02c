package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/trainer"
)

func rerunCommand(s *settings, t terminal) *cobra.Command {
	var asJSON bool
	var limit time.Duration
	c := &cobra.Command{
		Use: "rerun RUN", Short: "Start a run's newest job again, exactly", Args: cobra.ExactArgs(1),
		Long: "Starts the newest job of RUN again as a new job: the same command on the same snapshot of the code, whatever the tree looks\n" +
			"like now, and waits for its end. The snapshot and the inputs are verified first. What the earlier job left is set aside into\n" +
			"its folder, and the new outputs are compared with it.\n\n" +
			"Exit code: 0 the job succeeded, 1 it did not, 2 it can't be repeated, 3 it runs on (interrupted, or --wait is over).",
		Example: "  trainwright rerun r-20261130-7f3a\n  trainwright rerun --wait 10m --json r-20261130-7f3a",
		RunE: func(c *cobra.Command, args []string) error {
			log, err := s.logger(t, zerolog.WarnLevel)
			if err != nil {
				return err
			}
			opened, err := s.open().trainer()
			if err != nil {
				return refused(t, err)
			}
			ctx, stop := interruptible(c.Context())
			defer stop()
			watch := &watcher{out: t.err, log: log, shown: map[string]string{}}
			got, err := opened.Rerun(ctx, watch, args[0], limit)
			if err != nil && (ctx.Err() == nil || got.Job.JobID == "") {
				return refused(t, err)
			}
			if asJSON {
				err = printJSON(t.out, got)
			} else {
				watch.out = t.out
				repeated(watch, got)
				err = nil
			}
			return errors.Join(err, ended(got.Job.State))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the repetition as JSON")
	c.Flags().DurationVar(&limit, "wait", 30*24*time.Hour, "wait this long at most; the job goes on")
	return c
}

// repeated prints what a rerun came to.
func repeated(watch *watcher, got trainer.Repetition) {
	line := fmt.Sprintf("job %s, which repeats %s: %s after %.1f s", got.Job.JobID, got.Repeats, got.Job.State, got.Job.Seconds)
	if got.Job.Cause != nil {
		line += "; " + got.Job.Cause.String()
	}
	watch.say("%s", line)
	if len(got.Same)+len(got.Differ)+len(got.Missing) > 0 {
		watch.say("outputs: %d the same, %d differ, %d missing", len(got.Same), len(got.Differ), len(got.Missing))
	}
	for _, name := range got.Differ {
		watch.say("  differs  %s", name)
	}
	for _, name := range got.Missing {
		watch.say("  missing  %s", name)
	}
	for _, f := range got.Findings {
		if f.Severity != finding.Note {
			watch.say("%s: %s", f.Severity, f)
		}
	}
	watch.say("folder %s", got.Job.Folder)
}

// ended turns the state of a job into the exit code.
func ended(state string) error {
	switch {
	case state == jobs.StateSucceeded:
		return nil
	case jobs.Terminal(state):
		return exit(exitFailed)
	}
	return exit(exitPartial)
}
