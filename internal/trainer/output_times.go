package trainer

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

// clockSlack is how far a file's time may lie outside the job's own: file systems round, and clocks of two hosts differ.
const clockSlack = 2 * time.Second

// maxSkew bounds how far the clock of a file server may be from this machine's.
const maxSkew = 15 * time.Minute

// outputTimes compares the times of the outputs with the job's. What numbers and checkpoints are taken from has to be of
// that time; another file may honestly be a copy that kept its own, and is noted.
func (w *validationWork) outputTimes() {
	if w.exit == nil {
		return
	}
	skew := fileClock(w.step.Run.File("jobs/"+w.result.JobID), w.exit)
	from, to := w.exit.StartedAt.Add(skew-clockSlack), w.exit.EndedAt.Add(skew+clockSlack)
	good := true
	for _, o := range w.outputs {
		f := finding.Finding{Severity: finding.Error, Where: &finding.Where{Path: w.abs(o.Path)}}
		switch {
		case o.ModTime.Before(from):
			f.Code, f.What = "artifact_older_than_run", fmt.Sprintf("%s was last written %s, before the job started at %s", o.Path, clock(o.ModTime), clock(w.exit.StartedAt))
			f.Expected, f.Remedy = "an output that the job wrote", "find out where the script copied it from; it is no evidence of this run"
		case o.ModTime.After(to):
			f.Code, f.What = "artifact_changed_after_run", fmt.Sprintf("%s was last written %s, after the job ended at %s", o.Path, clock(o.ModTime), clock(w.exit.EndedAt))
			f.Expected, f.Remedy = "an output as the job left it", "run the job again: this file is no evidence of it"
		default:
			continue
		}
		if !w.isEvidence(o.Path) {
			f.Severity, f.Remedy = finding.Note, "nothing has to be done: no number and no checkpoint is taken from it"
		}
		good = good && f.Severity != finding.Error
		w.found(f)
	}
	w.out.Check("outputs_of_this_run", good, "metrics, predictions and checkpoints were written between the job's start and its end")
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// fileClock is how far the clock that dates the files of the job's folder is ahead of this machine's: that of a file server
// may be. Two records that say their own time must agree on it, else it is taken for none.
func fileClock(folder string, exit *jobs.Exit) time.Duration {
	request, err := jobs.ReadRequest(folder)
	if err != nil {
		return 0
	}
	ahead := func(name string, said time.Time) (time.Duration, bool) {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil {
			return 0, false
		}
		d := info.ModTime().Sub(said)
		return d, d.Abs() < maxSkew
	}
	first, ok := ahead(jobs.RequestFile, request.CreatedAt)
	last, also := ahead(jobs.ExitFile, exit.EndedAt)
	if !ok || !also || (last-first).Abs() > 2*clockSlack || first.Abs() < clockSlack {
		return 0
	}
	return first
}
