package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/trainer"
)

// JobStatusInput asks for jobs.
type JobStatusInput struct {
	JobIDs []string `json:"job_ids" jsonschema:"required" jsonschema_description:"The jobs, as run.job.job_id of an answer names them."`
}

// JobStatusOutput tells where jobs stand, in the order they were asked for. A job that is not known is left out and is a
// finding.
type JobStatusOutput struct {
	Jobs     []jobs.Status     `json:"jobs"`
	Findings []finding.Finding `json:"findings"`
	NextCall *engine.NextCall  `json:"next_call,omitempty"`
}

// jobStatus is the tool job_status.
func jobStatus(deps Deps) Tool {
	return typedTool("job_status",
		"Tells where jobs stand, each with the evidence for it: running, succeeded, failed with its cause, cancelled, timeout or unknown. Jobs outlive the session.",
		Annotations{ReadOnly: true, Idempotent: true},
		func(ctx context.Context, _ engine.Caller, in JobStatusInput) (JobStatusOutput, error) {
			out := JobStatusOutput{Jobs: []jobs.Status{}, Findings: []finding.Finding{}}
			if len(in.JobIDs) == 0 {
				return out, missing("job_ids", `a list such as ["j-…"]`, "run_status names a run's job in run.job.job_id")
			}
			t, err := deps.Trainer()
			if err != nil {
				return out, err
			}
			folders, unknown, err := jobFolders(t, in.JobIDs)
			if err != nil {
				return out, err
			}
			if len(folders) == 0 {
				return out, finding.Refuse(unknown...)
			}
			statuses, err := t.Runtime.Status(ctx, folders)
			if err != nil {
				return out, err
			}
			out.Jobs, out.Findings = statuses, append(out.Findings, unknown...)
			out.NextCall = goOn(statuses)
			return out, nil
		},
		more[JobStatusOutput]{toolset: SetRuntime, rest: "ask for fewer job_ids in one call; job_logs has the logs", text: func(o JobStatusOutput) string {
			return jobLines(o.Jobs)
		}})
}

// jobFolders finds the folders of jobs. Ids that are not known come back as findings.
func jobFolders(t *trainer.Trainer, ids []string) (folders []string, unknown []finding.Finding, err error) {
	roots, err := t.JobRoots()
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		folder, err := jobs.Find(roots, id)
		var refused *finding.Refused
		if errors.As(err, &refused) {
			unknown = append(unknown, refused.Findings...)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		folders = append(folders, folder)
	}
	return folders, unknown, nil
}

// jobFolder finds the folder of one job.
func jobFolder(t *trainer.Trainer, id string) (string, error) {
	if id == "" {
		return "", missing("job_id", "the id of a job", "run_status names a run's job in run.job.job_id")
	}
	folders, unknown, err := jobFolders(t, []string{id})
	if err != nil {
		return "", err
	}
	if len(folders) == 0 {
		return "", finding.Refuse(unknown...)
	}
	return folders[0], nil
}

// goOn is the call that leads on where all jobs belong to one run.
func goOn(statuses []jobs.Status) *engine.NextCall {
	run, over := "", true
	for _, s := range statuses {
		if s.RunID == "" || (run != "" && s.RunID != run) {
			return nil
		}
		run, over = s.RunID, over && jobs.Terminal(s.State)
	}
	if run == "" {
		return nil
	}
	arguments := map[string]any{"run_id": run}
	if !over {
		arguments["wait_seconds"] = 300
	}
	return &engine.NextCall{Tool: "trainer", Arguments: arguments}
}

func jobLines(statuses []jobs.Status) string {
	lines := make([]string, len(statuses))
	for i, s := range statuses {
		lines[i] = fmt.Sprintf("%s %s after %.1f s", s.JobID, s.State, s.Seconds)
		if s.Cause != nil {
			lines[i] += ": " + s.Cause.What
		}
	}
	return strings.Join(lines, "\n")
}
