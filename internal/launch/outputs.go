package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Output is a file that a job made or changed. Path is relative to the working folder where it lies in it.
type Output struct {
	Path    string    `json:"path"`
	SHA256  string    `json:"sha256"`
	Bytes   int64     `json:"bytes"`
	ModTime time.Time `json:"mod_time"`
}

// Intact says whether the file at path, where the output lies, is as the job left it. One too large to be hashed is compared
// by size and time.
func (o Output) Intact(path string) bool {
	if o.SHA256 == "" {
		info, err := os.Lstat(path)
		return err == nil && info.Mode().IsRegular() && info.Size() == o.Bytes && info.ModTime().Equal(o.ModTime)
	}
	sha, _, err := rundir.HashFile(path)
	return err == nil && sha == o.SHA256
}

// file is where an expected output or an Output lies.
func (e *errand) file(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(e.workDir, filepath.FromSlash(name))
}

// rel is a file as Output.Path names it.
func (e *errand) rel(file string) string {
	if rel, err := filepath.Rel(e.workDir, file); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return file
}

// matches are the files and folders that an expected output names now. The pattern was checked by place.
func (e *errand) matches(pattern string) []string {
	if _, err := os.Lstat(e.file(pattern)); err == nil {
		return []string{e.file(pattern)}
	}
	found, _ := filepath.Glob(e.file(pattern))
	return found
}

// inventory lists what the job's outputs are told from afterwards: the expected ones that are there, and the whole working
// folder where that is the step's own.
func (e *errand) inventory() ([]rundir.Entry, error) {
	roots := []string{}
	if e.dedicated() {
		roots = append(roots, e.workDir)
	}
	for _, pattern := range e.order.ExpectedOutputs {
		roots = append(roots, e.matches(pattern)...)
	}
	all := []rundir.Entry{}
	seen := map[string]bool{}
	for _, root := range roots {
		entries, found, err := rundir.Tree(root, rundir.TreeOptions{})
		if err != nil {
			return nil, err
		}
		e.findings = finding.Merge(e.findings, found)
		for _, entry := range entries {
			entry.Path = filepath.Join(root, filepath.FromSlash(entry.Path))
			logs := filepath.Join(e.workDir, "logs")
			if seen[entry.Path] || rundir.Inside(logs, entry.Path) || filepath.Base(entry.Path) == workDirLock {
				continue
			}
			seen[entry.Path] = true
			all = append(all, entry)
		}
	}
	return all, nil
}

// clearOutputs makes sure that nothing the job is to write exists yet. What an earlier attempt of the same handoff left is
// moved into that job's folder; anything else is in the way. A handoff that resumes goes on with what is there.
func (e *errand) clearOutputs(ctx context.Context) (bool, error) {
	if e.handoff.Inputs.Checkpoint.ResumeCheckpoint != "" {
		return true, nil
	}
	there := map[string][]string{} // the files of each output that is there
	for _, pattern := range e.order.ExpectedOutputs {
		for _, match := range e.matches(pattern) {
			if files := filesIn(match); len(files) > 0 { // a folder without files is no output yet
				there[match] = files
			}
		}
	}
	if len(there) == 0 {
		return true, nil
	}
	earlier, err := e.earlierOutputs(ctx)
	if err != nil {
		return false, err
	}
	ok := true
	for _, match := range slices.Sorted(maps.Keys(there)) {
		foreign := slices.ContainsFunc(there[match], func(file string) bool { return earlier[file] == "" })
		if !foreign {
			if err := e.setAside(earlier, there[match]); err != nil {
				return false, err
			}
			continue
		}
		ok = false
		e.findings = append(e.findings, finding.Finding{Code: "output_exists", Severity: finding.Error,
			What:     e.c.Roots.Rel(match) + " exists before the job has run, so it can't be this job's",
			Where:    &finding.Where{Path: match, Field: "launch.expected_outputs"},
			Expected: "expected outputs that are not there yet", Remedy: "move it away, or expect another file; to go on from a checkpoint name it in inputs.checkpoint.resume_checkpoint"})
	}
	return ok, nil
}

// filesIn are the files below a path, or itself where it is no folder. What can't be listed counts as a file: it is there.
func filesIn(path string) []string {
	var files []string
	_ = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			files = append(files, name)
		}
		return nil
	})
	return files
}

// earlierOutputs maps the files that earlier attempts of this handoff left to the job's folder.
func (e *errand) earlierOutputs(ctx context.Context) (map[string]string, error) {
	ours := map[string]string{}
	sha := contract.HandoffSHA256(e.handoff)
	entries, _ := jobs.List([]string{e.c.root()})
	for _, entry := range entries {
		named := e.handoff.StepID != "" || e.handoff.StepGoal != "" || e.handoff.TaskContext.UserGoal != ""
		same := named || slices.Equal(entry.Request.Command, e.argv) // a launch alone says of no other one that it is the same step
		if entry.Request.WorkDir != e.workDir || !same || sha != handoffOf(entry.Folder) {
			continue
		}
		left, err := e.leftBy(ctx, entry)
		if err != nil {
			return nil, err
		}
		for _, o := range left {
			if file := e.file(o.Path); ours[file] == "" { // the newest job that left it
				ours[file] = entry.Folder
			}
		}
	}
	return ours, nil
}

// handoffOf is the hash of the handoff that a job was made of, "" where it has none.
func handoffOf(folder string) string {
	data, err := os.ReadFile(filepath.Join(folder, contract.FileStepHandoff))
	if err != nil {
		return ""
	}
	handoff, _, err := contract.DecodeHandoff(data)
	if err != nil {
		return ""
	}
	return contract.HandoffSHA256(handoff)
}

// leftBy is what an earlier job left, worked out now where nobody came back to it.
func (e *errand) leftBy(ctx context.Context, entry jobs.Entry) ([]Output, error) {
	status, err := e.c.Runtime.Status(ctx, []string{entry.Folder})
	if err != nil || !jobs.Over(status[0].State) {
		return nil, err
	}
	other := &errand{c: e.c, caller: e.caller, id: entry.JobID, folder: entry.Folder, workDir: entry.Request.WorkDir}
	if err := rundir.ReadJSON(filepath.Join(entry.Folder, orderFile), &other.order); err != nil {
		return nil, err
	}
	return other.collect()
}

// setAside moves files into the folders of the jobs that left them.
func (e *errand) setAside(left map[string]string, files []string) error {
	for _, file := range files {
		to := filepath.Join(left[file], "superseded", filepath.FromSlash(e.rel(file)))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.Rename(file, to); err != nil {
			return fmt.Errorf("set aside the output of an earlier attempt: %w", err)
		}
	}
	return nil
}

// collect works out what the job left, once: the first answer is kept in its folder, and later changes are seen against it.
func (e *errand) collect() ([]Output, error) {
	var kept []Output
	err := rundir.ReadJSON(filepath.Join(e.folder, outputsFile), &kept)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return kept, err
	}
	var before []rundir.Entry
	if err := rundir.ReadJSON(filepath.Join(e.folder, inventoryFile), &before); err != nil {
		return nil, fmt.Errorf("read the inventory of before the job: %w", err)
	}
	after, err := e.inventory()
	if err != nil {
		return nil, err
	}
	exit, err := jobs.ReadExit(e.folder)
	if err != nil {
		return nil, err
	}
	created, changed, _ := rundir.Diff(before, after)
	outputs := []Output{}
	for _, entry := range append(created, changed...) {
		if exit != nil && entry.ModTime.After(exit.EndedAt.Add(clockSlack)) && !e.expected(entry.Path) {
			continue // somebody else's; an expected output is told as changed after the job
		}
		outputs = append(outputs, Output{Path: e.rel(entry.Path), SHA256: entry.SHA256, Bytes: entry.Size, ModTime: entry.ModTime})
	}
	slices.SortFunc(outputs, func(a, b Output) int { return strings.Compare(a.Path, b.Path) })
	return outputs, rundir.WriteJSON(filepath.Join(e.folder, outputsFile), outputs)
}

// clockSlack is how far a file's time may lie outside the job's own: file systems round, and clocks of two hosts differ.
const clockSlack = 2 * time.Second

// checkOutputs compares what was expected with what the job left: each has to be new or changed, and written while it ran.
func (e *errand) checkOutputs(left []Output, exit *jobs.Exit) []finding.Finding {
	var found []finding.Finding
	note := func(code, file, what, remedy string) {
		found = append(found, finding.Finding{Code: code, Severity: finding.Error, What: what, Where: &finding.Where{Path: file, Field: "launch.expected_outputs"},
			Expected: "an output that this job wrote", Remedy: remedy})
	}
	for _, pattern := range e.order.ExpectedOutputs {
		mine := slices.DeleteFunc(slices.Clone(left), func(o Output) bool { return !e.names(pattern, e.file(o.Path)) })
		switch {
		case len(mine) == 0 && len(e.matches(pattern)) > 0:
			note("expected_output_unchanged", e.file(pattern), pattern+" is as it was before the job: the job did not write it", "see the log for what it wrote instead, or correct expected_outputs")
		case len(mine) == 0:
			note("expected_output_missing", e.file(pattern), pattern+" is not there", "see the log for what it wrote instead, or correct expected_outputs")
		}
		for _, o := range mine {
			switch {
			case exit == nil:
			case o.ModTime.Before(exit.StartedAt.Add(-clockSlack)):
				note("artifact_older_than_run", e.file(o.Path), o.Path+" was last written before the job started", "find out where the command copied it from; it is no evidence of this job")
			case o.ModTime.After(exit.EndedAt.Add(clockSlack)):
				note("artifact_changed_after_run", e.file(o.Path), o.Path+" was last written after the job ended", "run the job again: this file is no evidence of it")
			}
		}
	}
	return found
}

// expected says whether any expected output means the file.
func (e *errand) expected(file string) bool {
	return slices.ContainsFunc(e.order.ExpectedOutputs, func(pattern string) bool { return e.names(pattern, file) })
}

// names says whether an expected output means the file: itself, by a glob, or as a folder above it.
func (e *errand) names(pattern, file string) bool {
	whole := e.file(pattern)
	for p := file; ; p = filepath.Dir(p) {
		if matched, err := filepath.Match(whole, p); p == whole || err == nil && matched {
			return true
		}
		if p == filepath.Dir(p) {
			return false
		}
	}
}
