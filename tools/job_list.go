package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

// JobListInput narrows the list of jobs.
type JobListInput struct {
	State  string `json:"state,omitempty" jsonschema:"enum=queued,enum=running,enum=succeeded,enum=failed,enum=cancelled,enum=timeout,enum=unknown" jsonschema_description:"Only jobs in this state."`
	Limit  int    `json:"limit,omitempty" jsonschema_description:"Rows at most, 1 to 200; 50 when left out."`
	Cursor string `json:"cursor,omitempty" jsonschema_description:"next_cursor of the page before."`
}

// JobRow is one job of a list. Cause is the sentence of a failure; job_status has the evidence. Seconds is how long the
// command has run, or ran.
type JobRow struct {
	JobID     string  `json:"job_id"`
	RunID     string  `json:"run_id,omitempty"`
	State     string  `json:"state"`
	CreatedAt string  `json:"created_at"`
	Seconds   float64 `json:"seconds"`
	Command   string  `json:"command"`
	Cause     string  `json:"cause,omitempty"`
}

// JobListOutput is a page of jobs, newest first. Total counts the jobs of every state; NextCursor is empty on the last page.
type JobListOutput struct {
	Jobs       []JobRow          `json:"jobs"`
	Total      int               `json:"total"`
	NextCursor string            `json:"next_cursor,omitempty"`
	Findings   []finding.Finding `json:"findings"`
	NextCall   *engine.NextCall  `json:"next_call,omitempty"`
}

var jobStates = []string{jobs.StateQueued, jobs.StateRunning, jobs.StateSucceeded, jobs.StateFailed, jobs.StateCancelled, jobs.StateTimeout, jobs.StateUnknown}

const (
	defaultRows = 50
	mostRows    = 200
)

// jobList is the tool job_list.
func jobList(deps Deps) Tool {
	return typedTool("job_list",
		"Lists the jobs of this workspace, newest first, with their states. Use it to find a job again after a break.",
		Annotations{ReadOnly: true, Idempotent: true},
		func(ctx context.Context, _ engine.Caller, in JobListInput) (JobListOutput, error) {
			if in.State != "" && !slices.Contains(jobStates, in.State) {
				return JobListOutput{}, finding.Refuse(finding.Finding{Code: "state_unknown", Severity: finding.Error, What: fmt.Sprintf("a job has no state %q", in.State),
					Where: &finding.Where{Field: "state"}, Expected: "one of " + strings.Join(jobStates, ", "), Remedy: "send one of these, or leave state out"})
			}
			t, err := deps.Trainer()
			if err != nil {
				return JobListOutput{}, err
			}
			roots, err := t.JobRoots()
			if err != nil {
				return JobListOutput{}, err
			}
			return listJobs(ctx, t.Runtime, roots, in)
		},
		more[JobListOutput]{toolset: SetRuntime, rest: "call job_list with a smaller limit, then with cursor = next_cursor",
			text: func(l JobListOutput) string { return fmt.Sprintf("%d of %d jobs", len(l.Jobs), l.Total) }})
}

// listJobs gives a page. A page without a state asks for the states of its own jobs only.
func listJobs(ctx context.Context, runtime jobs.Runtime, roots []string, in JobListInput) (JobListOutput, error) {
	entries, findings := jobs.List(roots)
	out := JobListOutput{Jobs: []JobRow{}, Total: len(entries), Findings: append([]finding.Finding{}, findings...)}
	if in.Cursor != "" {
		at := slices.IndexFunc(entries, func(e jobs.Entry) bool { return e.JobID == in.Cursor })
		if at < 0 {
			return out, finding.Refuse(finding.Finding{Code: "cursor_unknown", Severity: finding.Error, What: fmt.Sprintf("there is no job %q to go on after", in.Cursor),
				Where: &finding.Where{Field: "cursor"}, Expected: "next_cursor of the page before", Remedy: "leave cursor out to begin anew"})
		}
		entries = entries[at+1:]
	}
	limit := in.Limit
	if limit <= 0 {
		limit = defaultRows
	}
	limit = min(limit, mostRows)
	if in.State == "" && len(entries) > limit {
		entries, out.NextCursor = entries[:limit], entries[limit-1].JobID
	}
	folders := make([]string, len(entries))
	for i, e := range entries {
		folders[i] = e.Folder
	}
	statuses, err := runtime.Status(ctx, folders)
	if err != nil {
		return out, err
	}
	for i, s := range statuses {
		if in.State != "" && s.State != in.State {
			continue
		}
		if len(out.Jobs) == limit {
			out.NextCursor = out.Jobs[limit-1].JobID
			break
		}
		out.Jobs = append(out.Jobs, jobRow(entries[i], s))
	}
	if out.NextCursor != "" {
		out.NextCall = &engine.NextCall{Tool: "job_list", Arguments: map[string]any{"cursor": out.NextCursor, "limit": limit}}
		if in.State != "" {
			out.NextCall.Arguments["state"] = in.State
		}
	}
	return out, nil
}

// jobRow shortens the status of a job to what a list shows.
func jobRow(e jobs.Entry, s jobs.Status) JobRow {
	const commandMost = 100 // characters
	row := JobRow{JobID: e.JobID, RunID: e.RunID, State: s.State, CreatedAt: e.Request.CreatedAt.UTC().Format(time.RFC3339), Seconds: s.Seconds,
		Command: strings.Join(s.Command, " ")}
	if runes := []rune(row.Command); len(runes) > commandMost {
		row.Command = string(runes[:commandMost-1]) + "…"
	}
	if s.Cause != nil {
		row.Cause = s.Cause.What
	}
	return row
}
