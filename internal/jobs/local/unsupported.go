//go:build !linux && !darwin

package local

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

// unsupported refuses to run jobs: this system has neither sessions nor signals, on which the supervisor rests.
func unsupported() error {
	return finding.Refuse(finding.Finding{Code: "runtime_unsupported_here", Severity: finding.Error,
		What:     "local jobs can't be run on " + runtime.GOOS + ": the supervisor needs POSIX sessions, signals and a list of processes",
		Expected: "Linux or macOS", Remedy: "run trainwright in WSL, or send the job to a site over SSH or SLURM"})
}

// Supervise is the supervisor's main function; on this system there is none.
func Supervise(string) int {
	fmt.Fprintln(os.Stderr, unsupported())
	return 78
}

func (r *Runtime) launch(context.Context, string, jobs.Request) error { return unsupported() }

func (r *Runtime) endOrphans(context.Context, string, jobs.StateFile, time.Duration) {}

func terminate(int) {}

func bootID() string { return "" }

// processStart knows no process here, so that a job whose records stop is unknown.
func processStart(int) (ticks uint64, alive bool) { return 0, false }

func marked(string) []int { return nil }
