package jobs

import (
	"fmt"
	"path/filepath"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Ended is the status of a job with an exit record; done is false without one. A verdict that can't be stored (a full disk)
// is still an answer.
func Ended(folder string, request Request) (status Status, done bool, err error) {
	verdict, exit, err := Conclude(folder, request)
	if verdict == nil {
		return Status{}, false, err
	}
	status = Concluded(folder, request, *exit, *verdict)
	if err != nil {
		status.Findings = append(status.Findings, finding.Finding{Code: "verdict_not_stored", Severity: finding.Warning, What: err.Error(),
			Where: &finding.Where{Path: filepath.Join(folder, VerdictFile)}, Remedy: "free space on this disk; the verdict is derived again"})
	}
	return status, true, nil
}

// NotStarted is the status of a job that no supervisor has taken.
func NotStarted(folder string, request Request) Status {
	status := NewStatus(folder, request)
	status.Evidence = []Evidence{{From: RequestFile, Says: "no supervisor has taken the job", At: request.CreatedAt}}
	return status
}

// Unreadable is the status of a folder whose records can't be read.
func Unreadable(folder string, request Request, err error) Status {
	status := NewStatus(folder, request)
	status.State = StateUnknown
	status.Cause = &Cause{Category: CategoryPlatform, Finding: finding.Finding{Code: "job_unreadable", Severity: finding.Error,
		What: err.Error(), Where: &finding.Where{Path: folder}, Expected: "a job's folder with readable records", Remedy: "look at the file it names; nothing was changed"}}
	return status
}

// AlreadyFinished is the note to the cancellation of a job that has ended.
func AlreadyFinished(folder string, request Request) finding.Finding {
	return finding.Finding{Code: "already_finished", Severity: finding.Note,
		What:  fmt.Sprintf("job %s had ended before it was cancelled", request.JobID),
		Where: &finding.Where{Path: filepath.Join(folder, ExitFile)}, Remedy: "nothing is left to do"}
}

// CancelPending is the warning of a cancellation whose end was not seen in time.
func CancelPending(folder string, request Request) finding.Finding {
	return finding.Finding{Code: "cancel_pending", Severity: finding.Warning,
		What:  fmt.Sprintf("job %s was told to end and has not yet", request.JobID),
		Where: &finding.Where{Path: filepath.Join(folder, CancelFile)}, Remedy: "ask for its status again; the request stands"}
}

// AskForEnd leaves the request where the supervisor looks; the first one stays.
func AskForEnd(folder string, request CancelRequest) error {
	if there, err := ReadCancel(folder); err != nil || there != nil {
		return err
	}
	if err := rundir.WriteJSON(filepath.Join(folder, CancelFile), request); err != nil {
		return fmt.Errorf("ask for the end of the job: %w", err)
	}
	return nil
}
