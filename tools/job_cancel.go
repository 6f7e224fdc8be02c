package tools

import (
	"context"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

// JobCancelInput names the job to end.
type JobCancelInput struct {
	JobID string `json:"job_id" jsonschema:"required" jsonschema_description:"The job to end, with everything it started."`
}

// jobCancel is the tool job_cancel.
func jobCancel(deps Deps) Tool {
	return typedTool("job_cancel",
		"Ends a job and everything it started: a warning signal first, so that it can save, then the end. Its logs and outputs stay. A finished job is left as it is.",
		Annotations{Destructive: true, Idempotent: true, OpenWorld: true},
		func(ctx context.Context, _ engine.Caller, in JobCancelInput) (JobStatusOutput, error) {
			out := JobStatusOutput{Findings: []finding.Finding{}}
			t, err := deps.Trainer()
			if err != nil {
				return out, err
			}
			folder, err := jobFolder(t, in.JobID)
			if err != nil {
				return out, err
			}
			status, err := t.Runtime.Cancel(ctx, folder)
			if err != nil {
				return out, err
			}
			out.Jobs = []jobs.Status{status}
			out.NextCall = goOn(out.Jobs)
			return out, nil
		},
		more[JobStatusOutput]{toolset: SetRuntime, rest: "job_status and job_logs have the rest", text: func(o JobStatusOutput) string {
			return jobLines(o.Jobs)
		}})
}
