package trainer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/metrics"
	"github.com/trainwright/trainwright/internal/rundir"
)

// readMetrics reads the metrics and looks for numbers that are not finite and steps that do not go on.
func (w *validationWork) readMetrics() {
	log, found, err := w.metricsLog()
	if err != nil {
		w.out.Findings = append(w.out.Findings, refusalOf(err)...)
		return
	}
	if log == nil {
		w.unchecked = append(w.unchecked, "metrics: the job left no metrics.jsonl")
		w.out.Findings = append(w.out.Findings, finding.Finding{Code: "metrics_missing", Severity: finding.Warning, What: "the job left no metrics.jsonl", Where: &finding.Where{Path: w.base},
			Expected: "one JSON object a line: step, epoch, split, name, value", Remedy: "without it no number of the training can be reported"})
		return
	}
	w.log = log
	w.inherit(w.metricsName)
	health := metrics.Health(w.ownLog())
	w.out.Findings = append(append(w.out.Findings, found...), health...)
	w.out.Check("metrics_healthy", !finding.Has(append(found, health...), finding.Error), fmt.Sprintf("%d values in %d series", len(log.Points), len(log.Names)))
	w.findBest()
}

// metricsLog reads the file that the job left its metrics in: metrics.jsonl, metrics.csv (Lightning's too) or a log of its
// own, else what it printed. It is nil where none of them has a value.
func (w *validationWork) metricsLog() (*metrics.Log, []finding.Finding, error) {
	for _, name := range []string{"metrics.jsonl", "metrics.csv"} {
		if w.metricsName = w.outputNamed(name); w.metricsName != "" {
			return metrics.Read(w.abs(w.metricsName))
		}
	}
	var texts []string
	for _, name := range []string{"train.log", "trainer.log"} {
		if o := w.outputNamed(name); o != "" {
			texts = append(texts, o)
		}
	}
	names := slices.Clone(texts)
	if !w.external { // logs/ has links to them
		folder := w.step.Run.File("jobs/" + w.result.JobID)
		texts = append(texts, filepath.Join(folder, jobs.StdoutFile), filepath.Join(folder, jobs.StderrFile))
		names = append(names, "logs/"+w.result.JobID+".out", "logs/"+w.result.JobID+".err")
	}
	for i, text := range texts {
		info, err := os.Stat(w.abs(text))
		if err != nil || info.Size() > maxPrinted {
			continue
		}
		log, _, err := metrics.Read(w.abs(text))
		if err != nil && notRefused(err) != nil {
			return nil, nil, err
		}
		if err == nil && len(log.Points) > 0 {
			w.metricsName = names[i]
			_, err := w.step.Track(w.abs(text))
			return log, nil, err
		}
	}
	w.metricsName = ""
	return nil, nil, nil
}

// inherit notes what a job that resumes found in its metrics file. What stands there is an earlier job's, unless the file was
// written anew.
func (w *validationWork) inherit(name string) {
	if w.external {
		return
	}
	w.start = w.resumeStart()
	var before []rundir.Entry
	if err := rundir.ReadJSON(w.step.Run.File("jobs/"+w.result.JobID+"/"+inventoryFile), &before); err != nil {
		return
	}
	for _, e := range before {
		if e.Path != w.abs(name) || e.Size == 0 {
			continue
		}
		if w.rewritten = !startsWith(e.Path, e.Size, e.SHA256); !w.rewritten {
			w.oldBytes = e.Size
		}
	}
}

// ownLog is the log without what an earlier job wrote into it: that was judged with its own run, and a job that resumes may
// honestly go over the steps behind its checkpoint again.
func (w *validationWork) ownLog() *metrics.Log {
	if w.oldBytes == 0 && !w.rewritten {
		return w.log
	}
	own := &metrics.Log{Path: w.log.Path, Names: w.log.Names}
	for _, p := range w.log.Points {
		if w.own(p) {
			own.Points = append(own.Points, p)
		}
	}
	return own
}

// startsWith says whether the first bytes of a file have that hash.
func startsWith(path string, bytes int64, sha string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	digest := sha256.New()
	n, err := io.Copy(digest, io.LimitReader(file, bytes))
	return err == nil && n == bytes && "sha256:"+hex.EncodeToString(digest.Sum(nil)) == sha
}

// curveFile is the picture of the training's course, beside the report that shows it.
const curveFile = "loss_curve.png"

// plot draws the series. A log that can't be drawn only leaves the picture out.
func (w *validationWork) plot() {
	if w.log == nil {
		return
	}
	picture, err := metrics.Plot(w.log, nil, metrics.PlotOptions{Best: w.bestPoint()})
	if err != nil {
		w.unchecked = append(w.unchecked, "picture of the course: "+err.Error())
		return
	}
	w.out.AddText(curveFile, picture)
}

// bestPoint is the validation value at the checkpoint that the script took for the best, to be marked in the picture.
func (w *validationWork) bestPoint() *metrics.Point {
	if w.best.From == "" {
		return nil
	}
	for _, key := range w.log.Names {
		if p, ok := w.log.At(key, w.best.Step, w.best.Epoch); ok && key.Split == "val" && key.Name == "loss" {
			return &p
		}
	}
	return nil
}
