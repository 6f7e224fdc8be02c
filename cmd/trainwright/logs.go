package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/trainer"
)

// lookAgain is how often a log that is followed is looked at.
const lookAgain = 200 * time.Millisecond

// logFlags are the flags of logs.
type logFlags struct {
	follow, stderr, asJSON bool
	grep                   string
	tail, rank             int
}

func logsCommand(s *settings, t terminal) *cobra.Command {
	var flags logFlags
	c := &cobra.Command{
		Use: "logs JOB", Short: "Print a job's log, and follow it until the job ends", Args: cobra.ExactArgs(1),
		Long: "Prints what the job wrote to stdout, line by line as a terminal would show it and with secrets masked: the last 100\n" +
			"lines, or with --grep every line that matches. With -f it goes on until the job ends; the end is told on stderr.\n" +
			"A progress bar shows when its line ends.\n\n" +
			"Exit code: 0 the log was printed, however the job ended (trainwright wait tells that); 2 the input can't be used;\n" +
			"3 interrupted while following, the job goes on; 1 anything else.",
		Example: "  trainwright logs j-20261130-1 -f\n  trainwright logs j-20261130-1 --stderr --tail -1\n  trainwright logs j-20261130-1 --grep '(?i)nan|loss'",
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := interruptible(c.Context())
			defer stop()
			if flags.grep != "" && !c.Flags().Changed("tail") {
				flags.tail = -1
			}
			work, err := s.open().trainer()
			if err != nil {
				return unusable(err)
			}
			folder, err := findJob(work, args[0])
			if err != nil {
				return unusable(err)
			}
			return printLog(ctx, t, &waiting{runtime: work.Runtime, folder: folder, patience: unknownFor}, flags)
		},
	}
	c.Flags().BoolVarP(&flags.follow, "follow", "f", false, "go on until the job ends")
	c.Flags().BoolVar(&flags.stderr, "stderr", false, "what the job wrote to stderr")
	c.Flags().IntVar(&flags.rank, "rank", -1, "the log of this rank of a distributed job")
	c.Flags().StringVar(&flags.grep, "grep", "", "only lines that match this RE2 expression")
	c.Flags().IntVar(&flags.tail, "tail", 100, "begin so many lines before the end; -1 is the whole log")
	c.Flags().BoolVar(&flags.asJSON, "json", false, `print each line as {"stream": …, "line": …}`)
	return c
}

// findJob is the folder of a job of the workspace.
func findJob(work *trainer.Trainer, id string) (string, error) {
	roots, err := work.JobRoots()
	if err != nil {
		return "", err
	}
	return jobs.Find(roots, id)
}

// printLog prints the log of the job that is waited for.
func printLog(ctx context.Context, t terminal, job *waiting, flags logFlags) error {
	expression, err := regexp.Compile(flags.grep)
	if err != nil {
		return usageError{fmt.Errorf("--grep: %w; RE2 has no look-around and no back-references", err)}
	}
	stream := jobs.StreamStdout
	request := jobs.LogRequest{Head: 1}
	switch {
	case flags.rank >= 0 && flags.stderr:
		return usageError{errors.New("--rank and --stderr exclude each other: a rank has one log")}
	case flags.rank >= 0:
		request.Rank = &flags.rank
	case flags.stderr:
		stream = jobs.StreamStderr
	}
	if request.Rank != nil {
		slices, err := jobs.ReadLog(job.folder, request)
		if err != nil {
			return unusable(err)
		}
		stream = slices[0].Stream
	}
	log := jobs.Following{Path: jobs.LogPath(job.folder, stream), Every: lookAgain}
	if flags.tail >= 0 {
		if log.From, err = jobs.TailStart(log.Path, flags.tail); err != nil {
			return err
		}
	}
	if flags.follow {
		log.Over = job.over
	}
	encoder := json.NewEncoder(t.out)
	encoder.SetEscapeHTML(false)
	err = log.Follow(ctx, func(line string) error {
		if !expression.MatchString(line) {
			return nil
		}
		if flags.asJSON {
			return encoder.Encode(map[string]string{"stream": stream, "line": line})
		}
		_, err := fmt.Fprintln(t.out, line)
		return err
	})
	if ctx.Err() != nil && flags.follow {
		fmt.Fprintln(t.err, "trainwright: interrupted; the job goes on")
		return exit(exitPartial)
	}
	if err == nil && flags.follow {
		fmt.Fprintln(t.err, "trainwright:", jobLine(job.last))
	}
	return err
}
