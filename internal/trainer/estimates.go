package trainer

import (
	"errors"
	"io/fs"
	"os"

	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/rundir"
)

// estimate tells the preflight what the job will need, as far as the smoke run and the plan show it: the checkpoints that the
// job starts from, how large its own are and how many are kept at once, and the memory that it holds at least.
func (w *launchWork) estimate(spec *local.PreflightSpec) error {
	named := w.step.Run.Handoff.Inputs.Checkpoint
	for _, path := range []string{named.InitCheckpoint, named.ResumeCheckpoint, named.FinetuneCheckpoint} {
		if path == "" {
			continue
		}
		if abs, err := w.step.Run.Roots.Readable(path); err == nil {
			path = abs // else the preflight tells
		}
		spec.Checkpoints = append(spec.Checkpoints, path)
	}
	var smoke Smoke
	// Read without being noted as an input: it decides whether the job may start, not what comes of it.
	if err := rundir.ReadJSON(w.step.Run.File(smokeFile), &smoke); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if smoke.State != jobs.StateSucceeded {
		return nil
	}
	spec.CheckpointMB, spec.KeptCheckpoints = mebibytes(smoke.CheckpointBytes), w.keptCheckpoints()
	if smoke.PeakRSSBytes > 0 {
		// What the smoke run held, and the rest of the data as it is on the disk: in memory it is rarely smaller.
		spec.MemoryEstimateMB = mebibytes(smoke.PeakRSSBytes + w.dataBytes())
	}
	return nil
}

// keptCheckpoints is how many checkpoints stand on the disk at once: what the script was told to keep, else one. Many
// scripts overwrite their one file, and nothing is to be blocked on a guess.
func (w *launchWork) keptCheckpoints() int {
	if keep := w.plan.Leaves["checkpoint.keep"]; keep.Status == evidence.Confirmed {
		if n, ok := asFloat(keep.Value); ok && n > 0 {
			return int(n)
		}
	}
	return 1
}

// dataBytes is how large the files are that the job reads.
func (w *launchWork) dataBytes() int64 {
	var total int64
	for _, path := range w.parts {
		if info, err := os.Stat(path); err == nil { // what is gone is told by the preflight
			total += info.Size()
		}
	}
	return total
}

func mebibytes(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }
