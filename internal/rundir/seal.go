package rundir

import (
	"sync/atomic"

	"github.com/trainwright/trainwright/internal/finding"
)

// sealed says that this process writes nothing. It is of the process, since what it promises is: a server that was started
// read-only changes nothing, whatever code path a call finds.
var sealed atomic.Bool

// Seal makes this process read-only, for good: from now on MayWrite refuses, and with it every commit, event, lock and move of
// this package, every run that is opened for work, and every job that is to be started or ended.
func Seal() { sealed.Store(true) }

// MayWrite refuses with read_only in a process that was sealed. Whoever begins something that changes the disk or starts
// a process asks it first; the ways of writing in this package ask it themselves.
func MayWrite() error {
	if !sealed.Load() {
		return nil
	}
	return finding.Refuse(finding.Finding{Code: "read_only", Severity: finding.Error, What: "this server was started with --read-only; nothing was changed and nothing was started",
		Expected: "a tool that only reads", Remedy: "read with run_status, job_status, job_logs or read_metrics; to go on have the user start trainwright serve without --read-only"})
}
