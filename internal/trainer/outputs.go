package trainer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/launch"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Files of a job's folder that phase 5 adds: what was there before the job, and what it left.
const (
	inventoryFile = "inventory.json"
	outputsFile   = "outputs.json"
)

// Output is a file in code_save_dir that a job made or changed. Path is relative to code_save_dir.
type Output = launch.Output

// inventory lists the project and code_save_dir as they are, so that what is new afterwards is this job's.
func inventory(run *engine.Run, made Codegen) ([]rundir.Entry, []finding.Finding, error) {
	var all []rundir.Entry
	var findings []finding.Finding
	seen := map[string]bool{}
	roots := []string{run.CodeSaveDir}
	if made.Native {
		roots = append(roots, made.Root)
	}
	for _, root := range roots {
		entries, found, err := rundir.Tree(root, rundir.TreeOptions{})
		if err != nil {
			return nil, nil, err
		}
		findings = append(findings, found...)
		for _, e := range entries {
			e.Path = filepath.Join(root, filepath.FromSlash(e.Path))
			if seen[e.Path] || noOutput(run, e.Path) {
				continue
			}
			seen[e.Path] = true
			all = append(all, e)
		}
	}
	return all, findings, nil
}

// noOutput says of a file that it is trainwright's own and no output of a job.
func noOutput(run *engine.Run, path string) bool {
	return isKnowledge(run, path) || rundir.Inside(filepath.Join(run.CodeSaveDir, "logs"), path) || filepath.Base(path) == launchLock
}

// knowledgeFolders are what a run keeps of its own in its trainer_workdir.
var knowledgeFolders = []string{"phases", "jobs", "answers", "split", "sources", "attempts", "smoke"}

// isKnowledge says whether a path is a run's bookkeeping and no output of a job: any .trainer_work folder, and what lies in
// trainer_workdir beside code_save_dir. Where the two are one folder, it is the run's own folders and the files beside them.
func isKnowledge(run *engine.Run, path string) bool {
	rel, err := filepath.Rel(run.Workdir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return slices.Contains(strings.Split(filepath.ToSlash(path), "/"), ".trainer_work")
	}
	first, _, nested := strings.Cut(filepath.ToSlash(rel), "/")
	if run.Workdir == run.CodeSaveDir {
		return !nested || slices.Contains(knowledgeFolders, first)
	}
	return rundir.Inside(run.CodeSaveDir, run.Workdir) || !rundir.Inside(run.CodeSaveDir, path)
}

// clearOutputs makes sure that nothing the job is expected to write exists yet. What an earlier job of this run left is
// moved into that job's folder, changed or not; anything else is in the way, and the job is not started. A handoff that
// resumes goes on with the checkpoints and metrics that are there.
func (w *launchWork) clearOutputs() (bool, error) {
	run := w.step.Run
	ours, err := earlierOutputs(run)
	if err != nil {
		return false, err
	}
	resumes := run.Handoff.Inputs.Checkpoint.ResumeCheckpoint != ""
	var inTheWay []string
	for _, pattern := range append(slices.Clone(w.made.Outputs), "outputs/*", "checkpoints/*") {
		matches, err := filepath.Glob(filepath.Join(run.CodeSaveDir, filepath.FromSlash(pattern)))
		if err != nil {
			return false, fmt.Errorf("expected output %q: %w", pattern, err)
		}
		inTheWay = append(inTheWay, matches...)
	}
	slices.Sort(inTheWay)
	for _, path := range slices.Compact(inTheWay) {
		if resumes && (rundir.Inside(filepath.Join(run.CodeSaveDir, "checkpoints"), path) || filepath.Base(path) == "metrics.jsonl") {
			continue
		}
		if job := ours[path]; job != "" {
			if err := setAside(run, job, path); err != nil {
				return false, err
			}
			continue
		}
		w.out.Findings = append(w.out.Findings, finding.Finding{Code: "output_exists", Severity: finding.Error,
			What:     run.Roots.Rel(path) + " exists before the job has run, so it can't be this run's",
			Where:    &finding.Where{Path: path},
			Expected: "no output or checkpoint in code_save_dir", Remedy: "move it away, or name another code_save_dir; to go on from a checkpoint name it in inputs.checkpoint.resume_checkpoint"})
	}
	if hasCode(w.out.Findings, "output_exists") {
		w.out.Summary = "not started: outputs exist that this run did not make"
		w.out.Blockers = append(w.out.Blockers, "existing outputs in code_save_dir")
		w.out.Check("outputs_absent", false, "nothing that the job writes exists yet")
		return false, nil
	}
	w.out.Check("outputs_absent", true, "nothing that the job writes exists yet")
	return true, nil
}

// earlierOutputs maps the outputs of the run's earlier jobs, and the folders that hold them, to the job's folder.
func earlierOutputs(run *engine.Run) (map[string]string, error) {
	ours := map[string]string{}
	entries, _ := jobs.List([]string{run.File("jobs")})
	for _, e := range entries {
		outputs, err := readOutputs(e.Folder)
		if err != nil {
			return nil, err
		}
		for _, o := range outputs {
			for p := filepath.Join(run.CodeSaveDir, filepath.FromSlash(o.Path)); rundir.Inside(run.CodeSaveDir, p) && p != run.CodeSaveDir; p = filepath.Dir(p) {
				if ours[p] == "" { // the newest job that left it
					ours[p] = e.Folder
				}
			}
		}
	}
	return ours, nil
}

// tamperedFile marks a job whose own records were changed: what they say now is no evidence, then or later.
const tamperedFile = "tampered.json"

// tampered tells whether the job's own records were changed after phase 5 had committed them.
func (w *launchWork) tampered(folder string) (*finding.Finding, error) {
	var known finding.Finding
	if err := rundir.ReadJSON(filepath.Join(folder, tamperedFile), &known); err == nil {
		return &known, nil
	}
	record, err := w.step.Run.Dir.Record(contract.PhaseExecution)
	if err != nil || record == nil {
		return nil, nil // the run's standing tells of a record that can't be read
	}
	for _, name := range []string{outputsFile, jobs.ExitFile} {
		path := filepath.Join(folder, name)
		want := record.Outputs[w.step.Run.Rel(path)]
		if want == "" {
			continue
		}
		if sha, _, err := rundir.HashFile(path); err != nil || sha != want {
			f := finding.Finding{Code: "artifact_edited", Severity: finding.Error, What: name + " of the job is not what was recorded when it ended", Where: &finding.Where{Path: path},
				Expected: "the record as it was", Remedy: "run the job again: phase_5_execution with launch"}
			return &f, rundir.WriteJSON(filepath.Join(folder, tamperedFile), f)
		}
	}
	return nil, nil
}

func setAside(run *engine.Run, folder, path string) error {
	rel, err := filepath.Rel(run.CodeSaveDir, path)
	if err != nil {
		return err
	}
	to := filepath.Join(folder, "superseded", rel)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.Rename(path, to); err != nil {
		return fmt.Errorf("set aside the output of an earlier job: %w", err)
	}
	return nil
}

func readOutputs(folder string) ([]Output, error) {
	var outputs []Output
	err := rundir.ReadJSON(filepath.Join(folder, outputsFile), &outputs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return outputs, err
}

// collect works out what the job left, once: the first answer is kept in the job's folder, and later changes to the files
// are seen against it.
func collect(run *engine.Run, made Codegen, folder string) ([]Output, []finding.Finding, error) {
	if outputs, err := readOutputs(folder); err != nil || outputs != nil {
		return outputs, nil, err
	}
	var before []rundir.Entry
	if err := rundir.ReadJSON(filepath.Join(folder, inventoryFile), &before); err != nil {
		return nil, nil, fmt.Errorf("read the inventory of before the job: %w", err)
	}
	after, findings, err := inventory(run, made)
	if err != nil {
		return nil, nil, err
	}
	after, late, err := asLeft(run, folder, after)
	if err != nil {
		return nil, nil, err
	}
	findings = append(findings, late...)
	created, changed, _ := rundir.Diff(before, after)
	outputs := []Output{}
	for _, e := range append(created, changed...) {
		rel, err := filepath.Rel(run.CodeSaveDir, e.Path)
		if err != nil || !filepath.IsLocal(rel) {
			findings = append(findings, finding.Finding{Code: "project_changed_during_job", Severity: finding.Warning, What: run.Roots.Rel(e.Path) + " changed while the job ran",
				Where: &finding.Where{Path: e.Path}, Expected: "a job that writes into code_save_dir only", Remedy: "if the script wrote it, pass it an output folder; it is not counted as this run's output"})
			continue
		}
		outputs = append(outputs, Output{Path: filepath.ToSlash(rel), SHA256: e.SHA256, Bytes: e.Size, ModTime: e.ModTime})
	}
	slices.SortFunc(outputs, func(a, b Output) int { return strings.Compare(a.Path, b.Path) })
	return outputs, findings, rundir.WriteJSON(filepath.Join(folder, outputsFile), outputs)
}

// asLeft puts what the supervisor saw in code_save_dir when the job's last process was gone in the place of what is there now,
// where it kept a whole list. What came to lie among the outputs since then is a finding, and no output.
func asLeft(run *engine.Run, folder string, now []rundir.Entry) ([]rundir.Entry, []finding.Finding, error) {
	left, err := jobs.ReadLeft(folder)
	if err != nil || left == nil || left.Truncated || left.Note != "" {
		return now, nil, err
	}
	out := slices.DeleteFunc(slices.Clone(now), func(e rundir.Entry) bool { return rundir.Inside(run.CodeSaveDir, e.Path) })
	seen := map[string]bool{}
	for _, f := range left.Files {
		if rundir.Inside(run.CodeSaveDir, f.Path) && !noOutput(run, f.Path) {
			seen[f.Path] = true
			out = append(out, rundir.Entry{Path: f.Path, Size: f.Bytes, ModTime: f.ModTime, SHA256: f.SHA256})
		}
	}
	var late []finding.Finding
	for _, e := range now {
		if seen[e.Path] || !rundir.Inside(filepath.Join(run.CodeSaveDir, "outputs"), e.Path) && !rundir.Inside(filepath.Join(run.CodeSaveDir, "checkpoints"), e.Path) {
			continue
		}
		late = append(late, finding.Finding{Code: "artifact_changed_after_run", Severity: finding.Error, What: run.Roots.Rel(e.Path) + " was not there when the job's last process ended",
			Where: &finding.Where{Path: e.Path}, Expected: "outputs that the job left", Remedy: "remove it: it is no evidence of this run; then phase_5_execution with launch runs the job again"})
	}
	return out, late, nil
}

// clockSlack is how far a file's time may lie outside the job's own: file systems round, and clocks of two hosts differ.
const clockSlack = 2 * time.Second

// checkTimes compares the times of the outputs with the job's.
func checkTimes(outputs []Output, exit *jobs.Exit) []finding.Finding {
	var found []finding.Finding
	for _, o := range outputs {
		switch {
		case o.ModTime.Before(exit.StartedAt.Add(-clockSlack)):
			found = append(found, finding.Finding{Code: "artifact_older_than_run", Severity: finding.Error,
				What:     fmt.Sprintf("%s was last written %s, before the job started at %s", o.Path, o.ModTime.UTC().Format(time.RFC3339), exit.StartedAt.UTC().Format(time.RFC3339)),
				Where:    &finding.Where{Path: o.Path},
				Expected: "an output that the job wrote", Remedy: "find out where the script copied it from; it is no evidence of this run"})
		case o.ModTime.After(exit.EndedAt.Add(clockSlack)):
			found = append(found, finding.Finding{Code: "artifact_changed_after_run", Severity: finding.Error,
				What:     fmt.Sprintf("%s was last written %s, after the job ended at %s", o.Path, o.ModTime.UTC().Format(time.RFC3339), exit.EndedAt.UTC().Format(time.RFC3339)),
				Where:    &finding.Where{Path: o.Path},
				Expected: "an output as the job left it", Remedy: "run the job again: this file is no evidence of it"})
		}
	}
	return found
}

// outputsIn are the outputs below a folder of code_save_dir.
func outputsIn(outputs []Output, folder string) []string {
	out := []string{}
	for _, o := range outputs {
		if strings.HasPrefix(o.Path, folder+"/") {
			out = append(out, o.Path)
		}
	}
	return out
}
