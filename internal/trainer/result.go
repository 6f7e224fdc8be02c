package trainer

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/launch"
	"github.com/trainwright/trainwright/internal/metrics"
)

// finish judges a job that has ended: what it left, runtime_result.json, and whether the gate lets the run go on.
func (w *launchWork) finish(job *jobs.Entry, status jobs.Status) error {
	out := w.out
	if status.State == jobs.StateUnknown {
		return w.lost(job, status)
	}
	tampered, err := w.tampered(job.Folder)
	if err != nil {
		return err
	}
	if tampered != nil {
		out.Findings = append(out.Findings, *tampered)
	}
	outputs, found, err := collect(w.step.Run, w.made, job.Folder)
	if err != nil {
		return err
	}
	out.Findings = append(append(out.Findings, found...), status.Findings...)
	out.Outputs = append(out.Outputs, filepath.Join(job.Folder, outputsFile), filepath.Join(job.Folder, jobs.ExitFile))
	if status.State == jobs.StateSucceeded {
		if f := jobs.ExceptionAtExitZero(job.Folder); f != nil {
			out.Findings = append(out.Findings, *f)
		}
	}
	succeeded := status.State == jobs.StateSucceeded
	missing := missingOutputs(w.step.Run, w.made.Outputs, outputs)
	out.Check("job_succeeded", succeeded, fmt.Sprintf("exit record: %s", exitText(status.Exit)))
	out.Check("outputs_there", len(missing) == 0, "every expected output was left")
	if status.Cause != nil {
		out.Findings = append(out.Findings, status.Cause.Finding)
		out.Category = status.Cause.Category
	} else if !succeeded {
		out.Findings = append(out.Findings, finding.Finding{Code: "job_" + status.State, Severity: finding.Error, What: fmt.Sprintf("job %s was %s (%s)", job.JobID, status.State, exitText(status.Exit)),
			Where: &finding.Where{Path: job.Folder}, Expected: "a job that comes to its end", Remedy: "to start it again: phase_5_execution with launch"})
	}
	if succeeded {
		for _, pattern := range missing {
			out.Findings = append(out.Findings, finding.Finding{Code: "expected_output_missing", Severity: finding.Error, What: fmt.Sprintf("job %s ended with 0 and did not leave %s", job.JobID, pattern),
				Where: &finding.Where{Path: w.step.Run.CodeSaveDir}, Expected: pattern + ", new or changed", Remedy: "see job_logs for what it wrote instead; correct required_outputs or the script"})
		}
	}
	out.Decide()
	out.Summary = fmt.Sprintf("job %s %s after %.1f s, %d files left", job.JobID, status.State, status.Seconds, len(outputs))
	result := w.result(job, status, outputs)
	if !out.Gate.Passed {
		w.failed(&result, job, status, outputs)
	}
	return out.AddFile(runtimeResult, result)
}

// failed closes the phase for a job that did not succeed.
func (w *launchWork) failed(result *contract.RuntimeResult, job *jobs.Entry, status jobs.Status, outputs []Output) {
	out := w.out
	out.Status, out.Step = contract.StateFailed, contract.StatusFailed
	if out.Category == "" {
		out.Category = jobs.CategoryCode
	}
	out.Blockers = append(out.Blockers, "job "+job.JobID+" "+status.State)
	out.Judged = inspectable(outputs)
	if out.Next == nil {
		out.Next = w.wayOut(job, status)
	}
	if result.FailureClass == nil { // the job says 0, and is no success
		class := launch.FailureClass(status.State, out.Category)
		result.FailureClass, result.FailureCategory = &class, &out.Category
	}
}

// inspectable says whether a job left something that phase 6 can look at: numbers, predictions or checkpoints.
func inspectable(outputs []Output) bool {
	return slices.ContainsFunc(outputs, func(o Output) bool {
		return o.Bytes > 0 && (strings.HasPrefix(o.Path, "outputs/") || strings.HasPrefix(o.Path, "checkpoints/"))
	})
}

// wayOut is the call that helps after a job that did not succeed.
func (w *launchWork) wayOut(job *jobs.Entry, status jobs.Status) *engine.NextCall {
	if status.State == jobs.StateTimeout {
		return w.longer()
	}
	if status.State == jobs.StateCancelled {
		return &engine.NextCall{Tool: w.p.Tool(), Arguments: map[string]any{"run_id": w.step.Run.ID, "launch": map[string]any{"channel": contract.ChannelLocalDirect}}}
	}
	return &engine.NextCall{Tool: "job_logs", Arguments: map[string]any{"job_id": job.JobID, "stream": "both", "tail": 60}}
}

// longer is the call that gives a job which ran out of wall time twice as much. Where the limit is the step's own budget there
// is none: that is the user's to raise.
func (w *launchWork) longer() *engine.NextCall {
	given := w.launchInput()
	limit, err := jobs.ParseTimeLimit(given.Resources.TimeLimit)
	if err != nil || limit <= 0 || w.step.Run.Handoff.Inputs.StepWallclockBudgetSeconds > 0 {
		return &engine.NextCall{}
	}
	limit *= 2
	resources := given.Resources
	resources.TimeLimit = fmt.Sprintf("%02d:%02d:%02d", int(limit.Hours()), int(limit.Minutes())%60, int(limit.Seconds())%60)
	return &engine.NextCall{Tool: w.p.Tool(), Arguments: map[string]any{"run_id": w.step.Run.ID, "launch": map[string]any{"resources": resources}}}
}

// lost answers for a job of which nobody can say how it ended. Nothing is claimed about it.
func (w *launchWork) lost(job *jobs.Entry, status jobs.Status) error {
	out := w.out
	if status.Cause != nil {
		out.Findings = append(out.Findings, status.Cause.Finding)
		out.Category = status.Cause.Category
	}
	// What it left is noted as its own, so that another launch can set it aside.
	if _, _, err := collect(w.step.Run, w.made, job.Folder); err != nil {
		return err
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

// missingOutputs are the expected outputs that the job did not leave: patterns of paths, or folders, below code_save_dir. For
// one elsewhere, and for a job that resumes, it is enough that it exists.
func missingOutputs(run *engine.Run, patterns []string, outputs []Output) []string {
	resumes := run.Handoff.Inputs.Checkpoint.ResumeCheckpoint != ""
	var missing []string
	for _, pattern := range patterns {
		abs := pattern
		if !filepath.IsAbs(abs) {
			abs = filepath.Join(run.CodeSaveDir, filepath.FromSlash(abs))
		}
		rel, err := filepath.Rel(run.CodeSaveDir, abs)
		if err == nil && filepath.IsLocal(rel) && !resumes {
			if !slices.ContainsFunc(outputs, func(o Output) bool {
				return leftAs(filepath.ToSlash(rel), o.Path) || inOurFolder(filepath.ToSlash(rel), o.Path)
			}) {
				missing = append(missing, pattern)
			}
			continue
		}
		if matches, err := filepath.Glob(abs); err != nil || len(matches) == 0 {
			missing = append(missing, pattern)
		}
	}
	return missing
}

// inOurFolder says whether an output is the one of that name in a folder that the run told the script to write into: a handoff
// names it as the script does when nobody tells it.
func inOurFolder(pattern, name string) bool {
	first, _, nested := strings.Cut(name, "/")
	ok, err := path.Match(path.Base(pattern), path.Base(name))
	return nested && (first == "outputs" || first == "checkpoints") && ok && err == nil
}

// leftAs says whether a path is what the pattern stands for, or lies in the folder that it stands for.
func leftAs(pattern, name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if ok, err := path.Match(pattern, name); err == nil && ok {
			return true
		}
	}
	return false
}

// result is runtime_result.json: everything in it comes from the one job.
func (w *launchWork) result(job *jobs.Entry, status jobs.Status, outputs []Output) contract.RuntimeResult {
	run := w.step.Run
	host, _ := os.Hostname()
	r := contract.RuntimeResult{Command: launch.Join(job.Request.Command), SubmissionScript: run.Rel(filepath.Join(job.Folder, jobs.ScriptFile)), Channel: job.Request.Channel, Target: host,
		JobID: job.JobID, LogPaths: []string{run.Rel(filepath.Join(job.Folder, jobs.StdoutFile)), run.Rel(filepath.Join(job.Folder, jobs.StderrFile))}, SyncedLogPaths: []string{},
		OutputFiles: []string{}, Checkpoints: outputsIn(outputs, "checkpoints"), KeyMetrics: map[string]any{},
		Environment: map[string]any{"python": job.Request.Command[0], "chosen": w.made.PythonWhy}, Snapshot: run.Rel(filepath.Join(job.Folder, "snapshot.json")), Evidence: []contract.RuntimeEvidence{}}
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
		category := jobs.CategoryUnknown
		if status.Cause != nil {
			category = status.Cause.Category
		}
		class := launch.FailureClass(status.State, category)
		r.FailureClass, r.FailureCategory = &class, &category
	}
	if slices.Contains(r.OutputFiles, "outputs/metrics.jsonl") {
		if log, _, err := metrics.ReadJSONL(filepath.Join(run.CodeSaveDir, "outputs", "metrics.jsonl")); err == nil {
			for _, key := range log.Names {
				if p, ok := log.Last(key); ok {
					r.KeyMetrics[key.String()] = p.Plain()
				}
			}
		}
	}
	return r
}
