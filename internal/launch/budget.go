package launch

import (
	"context"
	"fmt"

	"github.com/trainwright/trainwright/internal/jobs"
)

// Hours are processor and GPU hours.
type Hours struct{ Core, GPU float64 }

// String tells both, the GPU hours only where there are any.
func (h Hours) String() string {
	if h.GPU == 0 {
		return fmt.Sprintf("%.4g core hours", h.Core)
	}
	return fmt.Sprintf("%.4g core hours and %.4g GPU hours", h.Core, h.GPU)
}

func (h Hours) plus(more Hours) Hours { return Hours{h.Core + more.Core, h.GPU + more.GPU} }

// hoursOf is what a job with these resources uses in so many seconds: cpus and gpus count per node, and whoever asks for no
// cpus or nodes has one.
func hoursOf(r jobs.Resources, seconds float64) Hours {
	nodes := float64(max(1, r.Nodes))
	return Hours{Core: seconds / 3600 * nodes * float64(max(1, r.CPUs)), GPU: seconds / 3600 * float64(gpus(r))}
}

func gpus(r jobs.Resources) int { return max(1, r.Nodes) * r.GPUsPerNode }

// Used adds up what jobs have used: one that has ended the seconds of its exit record, one that is under way its whole
// limit, or what it has run so far where it has none.
func Used(ctx context.Context, runtime Judge, entries []jobs.Entry) (Hours, error) {
	var used Hours
	var open []jobs.Entry
	for _, entry := range entries {
		exit, err := jobs.ReadExit(entry.Folder)
		if err != nil || exit == nil {
			open = append(open, entry) // what can't be read is the runtime's to judge
			continue
		}
		used = used.plus(hoursOf(entry.Request.Resources, exit.Seconds))
	}
	if len(open) == 0 {
		return used, nil
	}
	folders := make([]string, len(open))
	for i, entry := range open {
		folders[i] = entry.Folder
	}
	statuses, err := runtime.Status(ctx, folders)
	if err != nil {
		return used, err
	}
	for i, status := range statuses {
		used = used.plus(hoursOf(open[i].Request.Resources, secondsOf(open[i], status)))
	}
	return used, nil
}

// secondsOf is what a job without an exit record counts for.
func secondsOf(entry jobs.Entry, status jobs.Status) float64 {
	limit := entry.Request.WallTime().Seconds()
	switch {
	case status.Exit != nil: // it ended meanwhile
		return status.Exit.Seconds
	case status.State == jobs.StateUnknown:
		return lastSeen(entry.Folder)
	case limit > 0:
		return limit
	}
	return status.Seconds
}

// lastSeen is how long a job ran whose end nobody saw: up to its supervisor's last sign.
func lastSeen(folder string) float64 {
	state, err := jobs.ReadState(folder)
	if err != nil || state == nil || state.StartedAt.IsZero() {
		return 0
	}
	return max(0, state.HeartbeatAt.Sub(state.StartedAt).Seconds())
}
