package trainer

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/launch"
	"github.com/trainwright/trainwright/internal/rundir"
)

// The two reasons for which the same job may be started again without a change to it (contracts.md, "Runtime channels").
const (
	causeOutOfMemory = "out_of_memory"
	causeRejected    = contract.FailureSlurmUnavailable
)

// anotherTry says whether a job that ended for this cause may be started again, and with what: at most twice after the
// scheduler rejects its resources, at most once after the host's memory ran out, with twice as much. peakMB is what the job
// held, tries how often it was started again already. Nothing else is lowered or raised, the number of GPUs least of all.
func anotherTry(cause string, had jobs.Resources, peakMB int64, tries int) (jobs.Resources, bool) {
	switch cause {
	case causeOutOfMemory:
		had.MemoryMB = 2 * max(had.MemoryMB, peakMB)
		return had, tries < 1 && had.MemoryMB > 0
	case causeRejected:
		return had, tries < 2
	}
	return had, false
}

// retried marks the request of a job that repeats one which failed.
const retried = "trainwright, again after "

// retry starts the failed job once more where the rules allow it and the user lets the agent act on its own
// (execution_flags.autonomous_mode). It returns nil where it does not; what would be tried is then the next call.
func (w *launchWork) retry(ctx context.Context, job *jobs.Entry, status jobs.Status) (*jobs.Entry, error) {
	if status.State != jobs.StateFailed || status.Cause == nil {
		return nil, nil
	}
	resources, allowed := anotherTry(status.Cause.Code, job.Request.Resources, peakMB(status.Exit), w.tries(job, status.Cause.Code))
	if !allowed {
		return nil, nil
	}
	given := w.launchInput()
	given.Resources = resources
	if !w.step.Run.Handoff.Inputs.ExecutionFlags.AutonomousMode {
		w.out.Next = &engine.NextCall{Tool: w.p.Tool(), Arguments: map[string]any{"run_id": w.step.Run.ID, "launch": map[string]any{"resources": resources}}}
		return nil, nil
	}
	unlock, err := rundir.Lock(ctx, filepath.Join(w.step.Run.CodeSaveDir, launchLock))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if newest := newestJob(w.step.Run, w.marker); newest.JobID != job.JobID {
		return newest, nil // another server, which waits for the same job, was faster
	}
	again := *w
	again.spent = w.spent + int(status.Seconds+0.5)
	again.given.Launch, again.out, again.because = &given, &engine.Outcome{}, status.Cause.Code
	release, ok, err := again.authorised(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if !ok {
		w.out.Findings = append(w.out.Findings, again.out.Findings...)
		return nil, nil
	}
	if ok, err := again.preflight(ctx); err != nil || !ok {
		w.out.Findings = append(w.out.Findings, finding.Finding{Code: "retry_impossible", Severity: finding.Warning,
			What: fmt.Sprintf("job %s may be started once more with %d MiB of memory, and preflight says no: %s", job.JobID, resources.MemoryMB, launch.FirstError(again.out.Findings)), Where: &finding.Where{Path: job.Folder}})
		return nil, err
	}
	if ok, err := again.noneUnderWay(ctx); err != nil || !ok {
		return nil, err
	}
	if ok, err := again.clearOutputs(); err != nil || !ok {
		return nil, err
	}
	w.step.Say(w.p.Name(), "job %s ended with %s: starting it again with %d MiB of memory", job.JobID, status.Cause.Code, resources.MemoryMB)
	next, err := again.create(ctx)
	if err != nil || next == nil {
		return nil, err
	}
	w.given, w.because, w.spent = again.given, again.because, again.spent
	w.out.Findings = append(w.out.Findings, finding.Finding{Code: "job_retried", Severity: finding.Warning, What: fmt.Sprintf("job %s ended with %s (%s); job %s repeats it with %d MiB of memory", job.JobID, status.Cause.Code, status.Cause.What, next.JobID, resources.MemoryMB),
		Where: &finding.Where{Path: job.Folder}, Remedy: fmt.Sprintf("job_logs {\"job_id\": %q} shows the first one's end", job.JobID)})
	return next, nil
}

// tries is how often a job of this launch and attempt was started again already after one that ended for the cause, whoever
// asked for it.
func (w *launchWork) tries(job *jobs.Entry, cause string) int {
	n := 0
	for _, e := range jobsOf(w.step.Run) {
		if e.Request.Marker != w.marker || e.Request.Attempt != w.step.Run.Attempt || jobNumber(e.JobID) >= jobNumber(job.JobID) {
			continue
		}
		verdict, err := jobs.ReadVerdict(e.Folder)
		if err == nil && verdict != nil && verdict.Cause != nil && verdict.Cause.Code == cause {
			n++
		}
	}
	return n
}

// submitter is who starts the job, as its request tells it.
func (w *launchWork) submitter() string {
	if w.because != "" {
		return retried + w.because
	}
	return "trainwright"
}

// peakMB is the peak of a job's memory in MiB, rounded up; 0 where nobody measured it.
func peakMB(exit *jobs.Exit) int64 {
	if exit == nil {
		return 0
	}
	return mebibytes(exit.PeakRSSBytes)
}
