package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/tools"
)

// listing is what jobs and runs have in common.
type listing struct {
	limit  int
	cursor string
	asJSON bool
}

func (l *listing) flags(c *cobra.Command) {
	c.Flags().IntVar(&l.limit, "limit", 50, "rows at most, 1 to 200")
	c.Flags().StringVar(&l.cursor, "cursor", "", "go on after the page that ended with this cursor")
	c.Flags().BoolVar(&l.asJSON, "json", false, "print the result as JSON")
}

func (l *listing) arguments(filter, value string) map[string]any {
	out := map[string]any{"limit": l.limit}
	if l.cursor != "" {
		out["cursor"] = l.cursor
	}
	if value != "" {
		out[filter] = value
	}
	return out
}

func jobsCommand(s *settings, t terminal) *cobra.Command {
	var ask listing
	var state string
	c := &cobra.Command{
		Use: "jobs", Short: "List the jobs of this workspace", Args: cobra.NoArgs,
		Long:    "Lists the jobs of this workspace, newest first: id, state, seconds, run, command and what went wrong.",
		Example: "  trainwright jobs --state running\n  trainwright jobs --json",
		RunE: func(c *cobra.Command, _ []string) error {
			var list tools.JobListOutput
			if err := s.ask(c.Context(), t, "job_list", ask.arguments("state", state), &list); err != nil {
				return err
			}
			if ask.asJSON {
				return printJSON(t.out, list)
			}
			rows := [][]string{{"JOB", "STATE", "SECONDS", "CREATED", "RUN", "COMMAND"}}
			for _, j := range list.Jobs {
				said := j.Command
				if j.Cause != "" {
					said += "  (" + j.Cause + ")"
				}
				rows = append(rows, []string{j.JobID, j.State, fmt.Sprintf("%.1f", j.Seconds), j.CreatedAt, j.RunID, said})
			}
			return t.page(rows, list.Findings, list.Total, "jobs", list.NextCursor)
		},
	}
	ask.flags(c)
	c.Flags().StringVar(&state, "state", "", "only jobs in this state: queued, running, succeeded, failed, cancelled, timeout or unknown")
	return c
}

func runsCommand(s *settings, t terminal) *cobra.Command {
	var ask listing
	var status string
	c := &cobra.Command{
		Use: "runs", Short: "List the runs of this workspace", Args: cobra.NoArgs,
		Long:    "Lists the training runs of this workspace, newest first: id, status, the phase each stands at, and its goal.",
		Example: "  trainwright runs --status blocked\n  trainwright runs --json",
		RunE: func(c *cobra.Command, _ []string) error {
			var list engine.RunList
			if err := s.ask(c.Context(), t, "run_list", ask.arguments("status", status), &list); err != nil {
				return err
			}
			if ask.asJSON {
				return printJSON(t.out, list)
			}
			rows := [][]string{{"RUN", "STATUS", "PHASE", "CREATED", "GOAL"}}
			for _, r := range list.Runs {
				rows = append(rows, []string{r.RunID, r.Status, r.Phase, r.CreatedAt, r.StepGoal})
			}
			return t.page(rows, list.Findings, list.Total, "runs", list.NextCursor)
		},
	}
	ask.flags(c)
	c.Flags().StringVar(&status, "status", "", "only runs whose step has this status: success, partial, failed or blocked")
	return c
}

// ask calls a tool in this process and reads its structured answer into out. Input that can't be used is told as findings
// on stderr.
func (s *settings) ask(ctx context.Context, t terminal, name string, arguments map[string]any, out any) error {
	log, err := s.logger(t, zerolog.WarnLevel)
	if err != nil {
		return err
	}
	tool, ok := tools.Find(tools.All(s.open().deps()), name)
	if !ok {
		return fmt.Errorf("this build has no tool %s", name)
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		return fmt.Errorf("encode the call: %w", err)
	}
	result, err := tool.Call(ctx, logged{log: log}, raw)
	if err != nil {
		return unusable(err)
	}
	encoded, err := json.Marshal(result.Structured)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	if err := json.Unmarshal(encoded, out); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// unusable turns a refusal into the error of a command line that can't be used.
func unusable(err error) error {
	var r *finding.Refused
	if errors.As(err, &r) {
		return usageError{err}
	}
	return err
}

// page prints a table, what was noticed, and the way to the next page.
func (t terminal) page(rows [][]string, findings []finding.Finding, total int, what, cursor string) error {
	for _, f := range findings {
		fmt.Fprintln(t.err, "trainwright:", f)
	}
	if len(rows) == 1 && total == 0 {
		_, err := fmt.Fprintf(t.out, "no %s in this workspace\n", what)
		return err
	}
	if err := table(t.out, rows); err != nil {
		return err
	}
	if cursor == "" {
		return nil
	}
	_, err := fmt.Fprintf(t.out, "%d of %d %s; more with --cursor %s\n", len(rows)-1, total, what, cursor)
	return err
}

// table aligns the columns. A cell stays on its line.
func table(out io.Writer, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = strings.Join(strings.Fields(cell), " ")
			if row[i] == "" {
				row[i] = "-"
			}
		}
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}
