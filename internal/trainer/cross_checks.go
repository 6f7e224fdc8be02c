package trainer

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/checkpoint"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/metrics"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/snapshot"
)

// Bounds of the cross-checks: copies of a snapshot whose later change makes the verdict stale (every one is compared when
// the run is validated), and bytes of a job's own output that are searched for a NaN.
const (
	maxWatchedCopies = 200
	maxPrinted       = 64 << 20
)

// crossCheck holds what the job left against what else knows of the job: the snapshot that it ran, the files that were
// there before it, its clock, the plan, its summary and what it printed. One who forges an output has to forge all of them.
func (w *validationWork) crossCheck() error {
	if !w.external {
		if err := w.snapshotUnchanged(); err != nil {
			return err
		}
		if err := w.notCopied(); err != nil {
			return err
		}
	}
	w.bestIsThere()
	w.checkpointAge()
	if w.log == nil {
		return nil
	}
	w.metricsTimes()
	w.resumedWhereItStopped()
	w.epochsOfThePlan()
	w.summaryOfTheLog()
	return w.printedNaN()
}

func (w *validationWork) found(f finding.Finding) { w.out.Findings = append(w.out.Findings, f) }

// snapshotUnchanged makes sure that the code which the job ran is still what its snapshot says.
func (w *validationWork) snapshotUnchanged() error {
	folder := w.step.Run.File("jobs/" + w.result.JobID)
	request, err := jobs.ReadRequest(folder)
	if err != nil {
		return err
	}
	taken, found, err := snapshot.Verify(folder, request.Env[snapshot.TreeVariable])
	if err != nil {
		w.out.Findings = append(w.out.Findings, refusalOf(err)...)
		return notRefused(err)
	}
	for _, f := range found {
		if f.Code == "snapshot_altered" || f.Code == "snapshot_grown" { // the data is compared by its own manifest
			w.found(f)
		}
	}
	watched := []string{filepath.Join(folder, snapshot.File)}
	for _, root := range taken.Roots {
		for _, f := range root.Files {
			watched = append(watched, filepath.Join(folder, snapshot.Folder, root.Name, filepath.FromSlash(f.Path)))
		}
	}
	for _, file := range watched[:min(len(watched), maxWatchedCopies)] {
		if _, err := w.step.Track(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	w.out.Check("snapshot_unchanged", !hasCode(found, "snapshot_altered"), fmt.Sprintf("%d copies of the code that ran", len(watched)-1))
	return nil
}

// notCopied finds evidence that is byte for byte a file which was there before the job: it was carried over, not trained.
func (w *validationWork) notCopied() error {
	var before []rundir.Entry
	if err := rundir.ReadJSON(w.step.Run.File("jobs/"+w.result.JobID+"/"+inventoryFile), &before); err != nil {
		return err
	}
	earlier := map[string]string{}
	for _, e := range before {
		if e.SHA256 != "" && e.Size > 0 && !w.besideTheStart(e.Path) {
			earlier[e.SHA256] = e.Path
		}
	}
	for _, o := range w.outputs {
		twin := earlier[o.SHA256]
		if twin == "" || twin == w.abs(o.Path) || !w.isEvidence(o.Path) {
			continue
		}
		f := finding.Finding{Code: "artifact_copied", Severity: finding.Error, What: fmt.Sprintf("%s is byte for byte %s, which was there before the job", o.Path, w.step.Run.Roots.Rel(twin)),
			Where: &finding.Where{Path: w.abs(o.Path)}, Expected: "what this job computed", Remedy: "find out in the script what copies it; it is no evidence of this run"}
		if job, err := w.jobThatLeft(twin); err != nil {
			return err
		} else if job != "" {
			f.Severity = finding.Warning
			f.What += " and was left by job " + job
			f.Remedy = "the same training gives the same bytes; where data, code or parameters differ, it was copied: compare the two jobs"
		}
		w.found(f)
	}
	return nil
}

// besideTheStart says whether a file lies where the checkpoint lies that the run starts from: a resumed run may carry over
// what it goes on with.
func (w *validationWork) besideTheStart(file string) bool {
	from := w.step.Run.Handoff.Inputs.Checkpoint
	for _, start := range []string{from.ResumeCheckpoint, from.InitCheckpoint, from.FinetuneCheckpoint} {
		if start == "" {
			continue
		}
		if abs, err := w.step.Run.Roots.Readable(start); err == nil && filepath.Dir(abs) == filepath.Dir(file) {
			return true
		}
	}
	return false
}

// isEvidence says whether an output is one that numbers or checkpoints are taken from.
func (w *validationWork) isEvidence(output string) bool {
	base := path.Base(output)
	if w.made.CheckpointDir != "" && rundir.Inside(w.made.CheckpointDir, w.abs(output)) {
		return !strings.HasSuffix(base, ".complete.json")
	}
	return strings.HasPrefix(base, "metrics.") || strings.HasPrefix(base, "predictions-")
}

// jobThatLeft is the job of this workspace whose output a file is, "" for none.
func (w *validationWork) jobThatLeft(file string) (string, error) {
	roots, err := w.t.JobRoots()
	if err != nil {
		return "", err
	}
	entries, _ := jobs.List(roots)
	for _, e := range entries {
		if !rundir.Inside(e.Request.WorkDir, file) {
			continue
		}
		outputs, err := readOutputs(e.Folder)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(outputs, func(o Output) bool { return filepath.Join(e.Request.WorkDir, filepath.FromSlash(o.Path)) == file }) {
			return e.JobID, nil
		}
	}
	return "", nil
}

// bestIsThere looks for the checkpoint that the script says its numbers are of.
func (w *validationWork) bestIsThere() {
	if w.best.From == "" || len(w.checkpoints) == 0 {
		return
	}
	left := slices.Clone(w.checkpoints)
	if w.start != nil {
		left = append(left, *w.start) // nothing better came after it
	}
	if slices.ContainsFunc(left, func(c checkpoint.Info) bool { return w.isBest(c) || c.Epoch == nil && c.Step == nil }) {
		return // one such as best.pt may be it
	}
	w.found(finding.Finding{Code: "best_checkpoint_missing", Severity: finding.Warning, What: fmt.Sprintf("%s names %s as the best checkpoint, and the job left none of it", w.best.From, w.best),
		Where: &finding.Where{Path: w.abs(w.best.From)}, Expected: "the checkpoint that the numbers are of", Remedy: "keep the best checkpoint when old ones are removed"})
}

func (w *validationWork) isBest(c checkpoint.Info) bool {
	return c.Epoch != nil && w.best.Epoch != nil && *c.Epoch == *w.best.Epoch || c.Step != nil && w.best.Step != nil && *c.Step == *w.best.Step
}

// printedNaN looks for a NaN that the job printed about a measure and that its metrics file leaves out.
func (w *validationWork) printedNaN() error {
	if w.external {
		return nil
	}
	for _, name := range []string{jobs.StdoutFile, jobs.StderrFile} {
		file := w.step.Run.File("jobs/" + w.result.JobID + "/" + name)
		info, err := os.Stat(file)
		if err != nil || info.Size() == 0 {
			continue
		}
		if info.Size() > maxPrinted {
			w.unchecked = append(w.unchecked, fmt.Sprintf("%s: %d bytes were not searched for a NaN that the metrics leave out", name, info.Size()))
			continue
		}
		printed, _, err := metrics.Read(file)
		if err != nil {
			if err := notRefused(err); err != nil {
				return err
			}
			continue
		}
		w.leftOut(printed, name)
	}
	return nil
}

// leftOut tells of the first NaN of a log whose measure the metrics know as finite alone.
func (w *validationWork) leftOut(printed *metrics.Log, name string) {
	for _, p := range printed.Points {
		if _, mode, _ := metrics.MetricKind(p.Name); p.NonFinite != "nan" || mode == "" {
			continue
		}
		logged, broken := false, false
		for _, q := range w.log.Points {
			logged = logged || q.Name == p.Name && (p.Split == "" || q.Split == p.Split)
			broken = broken || q.NonFinite != ""
		}
		if logged && !broken {
			severity := finding.Error
			if p.Epoch == nil && p.Step == nil { // it may be of a part of the data, or of something else of that name
				severity = finding.Warning
			}
			w.found(finding.Finding{Code: "values_filtered", Severity: severity, What: fmt.Sprintf("the job printed %s nan, and every value of %s is finite", p.Key(), w.metricsName),
				Where: &finding.Where{Path: printed.Path, Line: p.Line, Byte: p.Start}, Expected: "every value as it was, NaN included",
				Remedy: "training broke there: log it as null with \"nonfinite\": \"nan\", lower the learning rate or clip gradients, and run again"})
			return
		}
	}
}
