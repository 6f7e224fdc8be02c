package trainer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
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
	if f := w.crashedAtZero(job, status); f != nil {
		out.Findings = append(out.Findings, *f)
	}
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
	} else if !succeeded {
		out.Findings = append(out.Findings, finding.Finding{Code: "job_" + status.State, Severity: finding.Error, What: fmt.Sprintf("job %s was %s (%s)", job.JobID, status.State, exitText(status.Exit)),
			Where: &finding.Where{Path: job.Folder}, Expected: "a job that comes to its end", Remedy: "to start it again: phase_5_execution with launch"})
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
	if status.State == jobs.StateCancelled || status.State == jobs.StateTimeout {
		out.Next = &engine.NextCall{Tool: w.p.Tool(), Arguments: map[string]any{"run_id": w.step.Run.ID, "launch": map[string]any{"channel": contract.ChannelLocalDirect}}}
	}
	return nil
}

// tailRead is how much of the end of stderr is looked at for a crash, in bytes.
const tailRead = 64 << 10

// crashedAtZero notices a job that ended with a Python traceback and says 0 all the same.
func (w *launchWork) crashedAtZero(job *jobs.Entry, status jobs.Status) *finding.Finding {
	if status.State != jobs.StateSucceeded {
		return nil
	}
	path := filepath.Join(job.Folder, jobs.StderrFile)
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	start := max(0, info.Size()-tailRead)
	tail := make([]byte, info.Size()-start)
	if n, err := file.ReadAt(tail, start); err != nil && n == 0 {
		return nil
	}
	at := bytes.LastIndex(tail, []byte("Traceback (most recent call last):"))
	if at < 0 {
		return nil
	}
	last := lastLine(string(tail))
	f := &finding.Finding{Code: "exit_zero_after_exception", Severity: finding.Error, What: "the job says exit status 0, but its stderr ends with an exception: " + last,
		Where: &finding.Where{Path: path, Byte: start + int64(at)}, Expected: "an exit status other than 0 after an exception", Remedy: "let the exception end the script, or handle it without a traceback; then phase_5_execution with launch"}
	lines := strings.Split(strings.TrimRight(string(tail[at:]), "\n"), "\n")
	for i := 1; i < len(lines)-1; i++ {
		if lines[i] != "" && !strings.HasPrefix(lines[i], " ") {
			// The script went on after it: it may have been handled.
			f.Severity, f.What = finding.Warning, "the job's stderr holds a traceback: "+lines[i]
			break
		}
	}
	return f
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
