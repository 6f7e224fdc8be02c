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

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Files of a job's folder that phase 5 adds: what was there before the job, and what it left.
const (
	inventoryFile = "inventory.json"
	outputsFile   = "outputs.json"
)

// Output is a file in code_save_dir that a job made or changed. Path is relative to code_save_dir.
type Output struct {
	Path    string    `json:"path"`
	SHA256  string    `json:"sha256"`
	Bytes   int64     `json:"bytes"`
	ModTime time.Time `json:"mod_time"`
}

// inventory lists the project and code_save_dir as they are, so that what is new afterwards is this job's.
func inventory(run *engine.Run, made Codegen) ([]rundir.Entry, []finding.Finding, error) {
	var all []rundir.Entry
	var findings []finding.Finding
	roots := []string{run.CodeSaveDir}
	if root := filepath.Dir(made.Entrypoint); !within(root, run.CodeSaveDir) {
		roots = append(roots, root)
	}
	for _, root := range roots {
		entries, found, err := rundir.Tree(root, rundir.TreeOptions{})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		findings = append(findings, found...)
		for _, e := range entries {
			e.Path = filepath.Join(root, filepath.FromSlash(e.Path))
			if isKnowledge(run, e.Path) || within(e.Path, filepath.Join(run.CodeSaveDir, "logs")) || slices.ContainsFunc(all, func(x rundir.Entry) bool { return x.Path == e.Path }) {
				continue
			}
			all = append(all, e)
		}
	}
	return all, findings, nil
}

// isKnowledge says whether a path is part of trainer_workdir and not of code_save_dir, whichever of the two holds the other.
func isKnowledge(run *engine.Run, path string) bool {
	if within(run.Workdir, run.CodeSaveDir) {
		return within(path, run.Workdir)
	}
	return within(path, run.Workdir) && !within(path, run.CodeSaveDir)
}

// clearOutputs makes sure that nothing the job is expected to write exists yet. What an earlier job of this run left is
// moved into that job's folder; anything else is in the way, and the job is not started.
func (w *launchWork) clearOutputs() (bool, error) {
	run := w.step.Run
	if run.Handoff.Inputs.Checkpoint.ResumeCheckpoint != "" {
		return true, nil // the handoff resumes from what is there
	}
	ours, err := earlierOutputs(run)
	if err != nil {
		return false, err
	}
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

// earlierOutputs maps the outputs of the run's earlier jobs, as long as they are unchanged, to the job's folder.
func earlierOutputs(run *engine.Run) (map[string]string, error) {
	ours := map[string]string{}
	entries, _ := jobs.List([]string{run.File("jobs")})
	for _, e := range entries {
		outputs, err := readOutputs(e.Folder)
		if err != nil {
			return nil, err
		}
		for _, o := range outputs {
			path := filepath.Join(run.CodeSaveDir, filepath.FromSlash(o.Path))
			if sha, _, err := rundir.HashFile(path); err == nil && sha == o.SHA256 {
				for p := path; within(p, run.CodeSaveDir) && p != run.CodeSaveDir; p = filepath.Dir(p) {
					ours[p] = e.Folder
				}
			}
		}
	}
	return ours, nil
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
