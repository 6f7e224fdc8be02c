//go:build linux || darwin

package local

import (
	"context"
	"slices"
	"syscall"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
)

// terminate asks a process to end. One that is gone already has.
func terminate(pid int) { _ = syscall.Kill(pid, syscall.SIGTERM) }

// endOrphans ends what a lost supervisor left: the command with everything below it, and every process that carries the
// job's mark. It returns when none is left, when they have resisted SIGKILL for 15 s, or when ctx ends.
func (r *Runtime) endOrphans(ctx context.Context, folder string, state jobs.StateFile, grace time.Duration) {
	alive := func() []int {
		pids := marked(folder)
		if r.runs(state.PID, state.StartTicks) {
			pids = append(pids, state.PID)
			pids = append(pids, descendants(state.PID)...)
		}
		slices.Sort(pids)
		return slices.Compact(pids)
	}
	for _, pid := range alive() {
		terminate(pid)
	}
	empty := 0
	for kill, end := time.Now().Add(grace), time.Now().Add(grace+killWait); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(lingerEvery) {
		pids := alive()
		if len(pids) > 0 {
			empty = 0
		} else if empty++; empty == 2 { // one look can miss what is just being started
			return
		}
		if time.Now().After(kill) {
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL) // what is gone needs no signal
			}
		}
	}
}
