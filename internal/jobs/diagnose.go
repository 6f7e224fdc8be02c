package jobs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/trainwright/trainwright/internal/diagnose"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/snapshot"
)

// Cause is why a job did not succeed: a finding with its category, the line of the log and the user's own line.
type Cause = diagnose.Cause

// The categories of a cause (contracts.md, failure_category).
const (
	CategoryTransient   = diagnose.CategoryTransient
	CategoryEnvironment = diagnose.CategoryEnvironment
	CategoryDependency  = diagnose.CategoryDependency
	CategoryData        = diagnose.CategoryData
	CategoryCode        = diagnose.CategoryCode
	CategoryScientific  = diagnose.CategoryScientific
	CategoryPlatform    = diagnose.CategoryPlatform
	CategoryUnknown     = diagnose.CategoryUnknown
)

// Diagnose says why the job in folder failed; see package diagnose. Nil where the job has no exit record, exited 0, or was
// ended on purpose.
func Diagnose(folder string) *Cause {
	exit, err := ReadExit(folder)
	if err != nil || exit == nil || exit.Reason == ReasonCancelled || exit.Reason == ReasonWallTime {
		return nil
	}
	if exit.Code != nil && *exit.Code == 0 {
		return nil
	}
	return diagnoseExit(folder, *exit)
}

// diagnoseExit takes an exit record that is not a success's. The request only adds to it: a job without one is diagnosed
// from its logs.
func diagnoseExit(folder string, exit Exit) *Cause {
	if exit.Signal == nil && exit.Code != nil && *exit.Code == 0 {
		return &Cause{Category: CategoryPlatform, Finding: finding.Finding{Code: "exit_reason_unknown", Severity: finding.Error,
			What:     fmt.Sprintf("the exit record has code 0 and the reason %q", exit.Reason),
			Expected: "the reason " + ReasonExited, Remedy: "look at " + ExitFile + "; whatever wrote it does not keep to the format"}}
	}
	request, err := ReadRequest(folder)
	if err != nil {
		request = Request{}
	}
	logs := []string{LogPath(folder, StreamStderr), LogPath(folder, StreamStdout)}
	ranks, _ := fs.Glob(os.DirFS(folder), "rank-*.log") // the pattern is well-formed
	for _, rank := range ranks {
		logs = append(logs, filepath.Join(folder, rank))
	}
	job := diagnose.Job{Logs: logs, Code: exit.Code, PeakBytes: exit.PeakRSSBytes, MemoryBytes: request.Resources.MemoryMB * 1e6,
		OutOfMemory: exit.OutOfMemory, WorkDir: request.WorkDir, Original: originals(folder)}
	if exit.Signal != nil {
		job.Signal = *exit.Signal
	}
	cause := diagnose.Why(job)
	return &cause
}

// originals turns paths of the job's copies of the code into those of the user's files; nil for a job without a snapshot.
func originals(folder string) func(string) string {
	taken, err := snapshot.Read(folder)
	if err != nil {
		return nil
	}
	return taken.Originals
}
