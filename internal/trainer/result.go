package trainer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/metrics"
)

// finish judges a job that has ended: what it left, runtime_result.json, and whether the gate lets the run go on.
func (w *launchWork) finish(ctx context.Context, job *jobs.Entry, status jobs.Status) error {
	out := w.out
	if status.State == jobs.StateUnknown {
		return w.lost(job, status)
	}
	outputs, found, err := collect(w.step.Run, w.made, job.Folder)
	if err != nil {
		return err
	}
	out.Findings = append(append(out.Findings, found...), status.Findings...)
	result := w.result(job, status, outputs)
	if err := out.AddFile(runtimeResult, result); err != nil {
		return err
	}
	succeeded := status.State == jobs.StateSucceeded
	missing := missingOutputs(w.step.Run, w.made.Outputs)
	out.Check("job_succeeded", succeeded, fmt.Sprintf("exit record: %s", exitText(status.Exit)))
	out.Check("outputs_there", len(missing) == 0, "every expected output was left")
	if status.Cause != nil {
		out.Findings = append(out.Findings, status.Cause.Finding)
		out.Category = status.Cause.Category
	}
	out.Decide()
	out.Summary = fmt.Sprintf("job %s %s after %.1f s, %d files left", job.JobID, status.State, status.Seconds, len(outputs))
	if out.Gate.Passed {
		return nil
	}
	out.Status, out.Step = contract.StateFailed, contract.StatusFailed
	if out.Category == "" {
		out.Category = jobs.CategoryCode
	}
	out.Blockers = append(out.Blockers, "job "+job.JobID+" "+status.State)
	out.Next = &engine.NextCall{Tool: "job_logs", Arguments: map[string]any{"job_id": job.JobID, "stream": "both", "tail": 60}}
	return nil
}

// lost answers for a job of which nobody can say how it ended. Nothing is claimed about it.
func (w *launchWork) lost(job *jobs.Entry, status jobs.Status) error {
	out := w.out
	if status.Cause != nil {
		out.Findings = append(out.Findings, status.Cause.Finding)
		out.Category = status.Cause.Category
	}
	if err := out.AddFile(runtimeResult, w.result(job, status, nil)); err != nil {
		return err
	}
	out.Check("job_succeeded", false, "how the job ended is unknown")
	out.Decide()
	out.Status, out.Step = contract.StateFailed, contract.StatusFailed
	out.Blockers = append(out.Blockers, "job "+job.JobID+": its end is unknown")
	out.Summary = fmt.Sprintf("how job %s ended is unknown", job.JobID)
	out.Next = &engine.NextCall{Tool: w.p.Tool(), Arguments: map[string]any{"run_id": w.step.Run.ID, "launch": map[string]any{"channel": contract.ChannelLocalDirect}}}
	return nil
}

func exitText(exit *jobs.Exit) string {
	switch {
	case exit == nil:
		return "no exit record"
	case exit.Code != nil:
		return fmt.Sprintf("exit status %d (%s)", *exit.Code, exit.Reason)
	case exit.Signal != nil:
		return fmt.Sprintf("signal %s (%s)", *exit.Signal, exit.Reason)
	}
	return exit.Reason
}

func missingOutputs(run *engine.Run, patterns []string) []string {
	var missing []string
	for _, pattern := range patterns {
		path := pattern
		if !filepath.IsAbs(path) {
			path = filepath.Join(run.CodeSaveDir, filepath.FromSlash(path))
		}
		if matches, err := filepath.Glob(path); err != nil || len(matches) == 0 {
			missing = append(missing, pattern)
		}
	}
	return missing
}

// result is runtime_result.json: everything in it comes from the one job.
func (w *launchWork) result(job *jobs.Entry, status jobs.Status, outputs []Output) contract.RuntimeResult {
	run := w.step.Run
	host, _ := os.Hostname()
	r := contract.RuntimeResult{Command: shellJoin(job.Request.Command), SubmissionScript: run.Rel(filepath.Join(job.Folder, jobs.ScriptFile)), Channel: job.Request.Channel, Target: host,
		JobID: job.JobID, LogPaths: []string{run.Rel(filepath.Join(job.Folder, jobs.StdoutFile)), run.Rel(filepath.Join(job.Folder, jobs.StderrFile))}, SyncedLogPaths: []string{},
		OutputFiles: []string{}, Checkpoints: outputsIn(outputs, "checkpoints"), KeyMetrics: map[string]any{},
		Environment: map[string]any{"python": job.Request.Command[0], "chosen": w.made.PythonWhy}, Snapshot: run.Rel(filepath.Join(job.Folder, inventoryFile)), Evidence: []contract.RuntimeEvidence{}}
	for _, o := range outputs {
		r.OutputFiles = append(r.OutputFiles, o.Path)
	}
	for _, e := range status.Evidence {
		r.Evidence = append(r.Evidence, contract.RuntimeEvidence{From: e.From, Says: e.Says, At: e.At.UTC().Format(time.RFC3339)})
	}
	if exit := status.Exit; exit != nil {
		r.ExitCode, r.WallSeconds, r.PeakRSSBytes = exit.Code, &exit.Seconds, &exit.PeakRSSBytes
		if exit.Signal != nil {
			r.Signal = *exit.Signal
		}
		r.StartedAt, r.EndedAt = exit.StartedAt.UTC().Format(time.RFC3339Nano), exit.EndedAt.UTC().Format(time.RFC3339Nano)
	}
	if status.State != jobs.StateSucceeded {
		class, category := contract.FailureBusinessScript, jobs.CategoryUnknown
		if status.Cause != nil {
			category = status.Cause.Category
		}
		if category == jobs.CategoryEnvironment || category == jobs.CategoryDependency {
			class = contract.FailureEnvironmentNotReady
		}
		if status.State == jobs.StateUnknown {
			class = contract.FailureLogsNotReady
		}
		r.FailureClass, r.FailureCategory = &class, &category
	}
	if slices.Contains(r.OutputFiles, "outputs/metrics.jsonl") {
		if log, _, err := metrics.ReadJSONL(filepath.Join(run.CodeSaveDir, "outputs", "metrics.jsonl")); err == nil {
			for _, key := range log.Names {
				if p, ok := log.Last(key); ok {
					r.KeyMetrics[key.String()] = metricValue(p)
				}
			}
		}
	}
	return r
}

// metricValue is the value of a point as JSON can hold it.
func metricValue(p metrics.Point) any {
	if p.NonFinite != "" {
		return strings.ToLower(p.NonFinite)
	}
	return p.Value
}
