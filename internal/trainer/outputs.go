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

// knowledgeFolders and knowledgeFiles are what a run keeps of its own in its trainer_workdir, beside its canonical artifacts.
var (
	knowledgeFolders = []string{"phases", "jobs", "answers", "split", "sources", "attempts", "smoke", rundir.RenderingsDir, rundir.EditsDir}
	knowledgeFiles   = []string{ownedFile, "rendered.json", "events.jsonl", "adopted.json"}
)

// isKnowledge says whether a path is a run's bookkeeping and no output of a job: any .trainer_work folder, and what lies in
// trainer_workdir beside code_save_dir. Where the two are one folder, it is the run's own folders and files.
func isKnowledge(run *engine.Run, path string) bool {
	rel, err := filepath.Rel(run.Workdir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return slices.Contains(strings.Split(filepath.ToSlash(path), "/"), ".trainer_work")
	}
	first, _, nested := strings.Cut(filepath.ToSlash(rel), "/")
	if run.Workdir == run.CodeSaveDir {
		own := slices.Contains(knowledgeFiles, first) || slices.Contains(run.Skill.Canonical, first) || strings.HasPrefix(first, ".")
		return !nested && own || nested && slices.Contains(knowledgeFolders, first)
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
		if w.goesOnWith(path, ours[path]) {
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

// goesOnWith says whether a job that resumes is to find this checkpoint or metrics file, which folder's job left. What an
// earlier try of this very launch made is not what the user resumes from, and neither is anything of this run where the
// checkpoint lies elsewhere: the script would go on from there without a word.
func (w *launchWork) goesOnWith(path, folder string) bool {
	run := w.step.Run
	resume := run.Handoff.Inputs.Checkpoint.ResumeCheckpoint
	if resume == "" || !rundir.Inside(filepath.Join(run.CodeSaveDir, "checkpoints"), path) && filepath.Base(path) != "metrics.jsonl" {
		return false
	}
	if folder == "" {
		return true
	}
	from, err := run.Roots.Readable(resume)
	if err != nil || !rundir.Inside(run.CodeSaveDir, from) {
		return false
	}
	request, err := jobs.ReadRequest(folder)
	if err != nil || request.Marker != w.marker {
		return true
	}
	var before []rundir.Entry
	if err := rundir.ReadJSON(filepath.Join(folder, inventoryFile), &before); err != nil {
		return true
	}
	return slices.ContainsFunc(before, func(e rundir.Entry) bool { return e.Path == path })
}

// earlierOutputs maps the outputs of the run's earlier jobs, and the folders that hold them, to the job's folder.
func earlierOutputs(run *engine.Run) (map[string]string, error) {
	ours := map[string]string{}
	for _, e := range jobsOf(run) {
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
	if err := rundir.Move(path, to); err != nil {
		return fmt.Errorf("set aside the output of an earlier job: %w", err)
	}
	return nil
}

// leavings is outputs.json: what a job left, and what was noticed when that was worked out.
type leavings struct {
	Files    []Output          `json:"files"`
	Findings []finding.Finding `json:"findings"`
}

// readOutputs are the files that a job left; nil where nobody has worked that out yet.
func readOutputs(folder string) ([]Output, error) {
	left, err := readLeavings(folder)
	if left == nil {
		return nil, err
	}
	return left.Files, err
}

func readLeavings(folder string) (*leavings, error) {
	left := leavings{Files: []Output{}}
	err := rundir.ReadJSON(filepath.Join(folder, outputsFile), &left)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &left, err
}

// collect works out what the job left, once: the first answer is kept in the job's folder, with what was noticed then, and
// later changes to the files are seen against it.
func collect(run *engine.Run, made Codegen, folder string) ([]Output, []finding.Finding, error) {
	if left, err := readLeavings(folder); err != nil {
		return nil, nil, err
	} else if left != nil {
		return left.Files, left.Findings, nil
	}
	var before []rundir.Entry
	if err := rundir.ReadJSON(filepath.Join(folder, inventoryFile), &before); err != nil {
		return nil, nil, fmt.Errorf("read the inventory of before the job: %w", err)
	}
	after, findings, err := inventory(run, made)
	if err != nil {
		return nil, nil, err
	}
	after, more, err := asLeft(run, folder, after)
	if err != nil {
		return nil, nil, err
	}
	left := leavings{Files: []Output{}, Findings: append(findings, more...)}
	created, changed, _ := rundir.Diff(before, after)
	for _, e := range append(created, changed...) {
		rel, err := filepath.Rel(run.CodeSaveDir, e.Path)
		if err != nil || !filepath.IsLocal(rel) {
			left.Findings = append(left.Findings, finding.Finding{Code: "project_changed_during_job", Severity: finding.Warning, What: run.Roots.Rel(e.Path) + " changed while the job ran",
				Where: &finding.Where{Path: e.Path}, Expected: "a job that writes into code_save_dir only", Remedy: "if the script wrote it, pass it an output folder; it is not counted as this run's output"})
			continue
		}
		left.Files = append(left.Files, Output{Path: filepath.ToSlash(rel), SHA256: e.SHA256, Bytes: e.Size, ModTime: e.ModTime})
	}
	slices.SortFunc(left.Files, func(a, b Output) int { return strings.Compare(a.Path, b.Path) })
	return left.Files, left.Findings, rundir.WriteJSON(filepath.Join(folder, outputsFile), left)
}

// asLeft puts what the supervisor saw in code_save_dir when the job's last process was gone in the place of what is there now.
// What came to lie among the outputs since then is a finding, and no output. Where the supervisor's list is not whole, what
// it lacks is taken as it is now; where it is gone or not what the supervisor wrote, a finding says so.
func asLeft(run *engine.Run, folder string, now []rundir.Entry) ([]rundir.Entry, []finding.Finding, error) {
	left, found, err := supervised(folder)
	if err != nil || left == nil {
		return now, found, err
	}
	is := map[string]rundir.Entry{}
	for _, e := range now {
		is[e.Path] = e
	}
	out := slices.DeleteFunc(slices.Clone(now), func(e rundir.Entry) bool { return rundir.Inside(run.CodeSaveDir, e.Path) })
	for _, f := range left.Files {
		if !rundir.Inside(run.CodeSaveDir, f.Path) || noOutput(run, f.Path) {
			continue
		}
		e := rundir.Entry{Path: f.Path, Size: f.Bytes, ModTime: f.ModTime, SHA256: f.SHA256}
		if same := is[f.Path]; e.SHA256 == "" && same.Size == f.Bytes && same.ModTime.Truncate(time.Second).Equal(f.ModTime.Truncate(time.Second)) {
			e.SHA256 = same.SHA256 // beyond what the supervisor hashes: from now on at least a change is seen
		}
		delete(is, f.Path)
		out = append(out, e)
	}
	whole := !left.Truncated && left.Note == "" && left.Skipped == 0
	for _, e := range now {
		if _, unlisted := is[e.Path]; !unlisted || !rundir.Inside(run.CodeSaveDir, e.Path) {
			continue
		}
		if !whole {
			out = append(out, e)
			continue
		}
		if f := addedLate(run, e.Path); f != nil {
			found = append(found, *f)
		}
	}
	return out, found, nil
}

// supervised is the supervisor's list of what the job left, nil where there is none that can be trusted.
func supervised(folder string) (*jobs.Left, []finding.Finding, error) {
	request, err := jobs.ReadRequest(folder)
	if err != nil || len(request.Watch) == 0 {
		return nil, nil, err
	}
	exit, err := jobs.ReadExit(folder)
	if err != nil || exit == nil {
		return nil, nil, err // a job whose end nobody saw has no list
	}
	path := filepath.Join(folder, jobs.LeftFile)
	sha, _, err := rundir.HashFile(path)
	switch {
	case exit.Left == "" && err != nil:
		return nil, []finding.Finding{{Code: "outputs_unlisted", Severity: finding.Warning, What: "the supervisor could not list what the job left: a change between the job's end and now would not be seen",
			Where: &finding.Where{Path: path}, Expected: "a list that the supervisor wrote", Remedy: "if that matters, run the job again with room on the disk: phase_5_execution with launch"}}, nil
	case err != nil || sha != exit.Left:
		return nil, []finding.Finding{{Code: "artifact_edited", Severity: finding.Error, What: jobs.LeftFile + " of the job is not what the supervisor wrote when it ended",
			Where: &finding.Where{Path: path}, Expected: "the list whose hash is in " + jobs.ExitFile, Remedy: "run the job again: phase_5_execution with launch"}}, nil
	}
	left, err := jobs.ReadLeft(folder)
	return left, nil, err
}

// litter are files that file managers put anywhere.
var litter = []string{".DS_Store", "Thumbs.db", "desktop.ini", ".directory"}

// addedLate tells of a file among the outputs that the job did not leave. It is no output, so that nothing rests on it.
func addedLate(run *engine.Run, file string) *finding.Finding {
	if !rundir.Inside(filepath.Join(run.CodeSaveDir, "outputs"), file) && !rundir.Inside(filepath.Join(run.CodeSaveDir, "checkpoints"), file) || slices.Contains(litter, filepath.Base(file)) {
		return nil
	}
	return &finding.Finding{Code: "artifact_added_after_run", Severity: finding.Warning, What: run.Roots.Rel(file) + " was not there when the job's last process ended; it is not counted as this run's output",
		Where: &finding.Where{Path: file}, Expected: "outputs that the job left", Remedy: "find out who put it there; move it away"}
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
