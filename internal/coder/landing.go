package coder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// A landing is a folder landings/<n>/ of the run: the files before and after, and a journal that is written before the first file
// of the repository is touched. A crash between two files leaves a journal that says "begun", and the next call goes on from it.
type journal struct {
	State      string         `json:"state"`   // begun, landed, undone
	Changes    string         `json:"changes"` // hash of what the call asked for
	Repository string         `json:"repository"`
	Files      []journalEntry `json:"files"`
}

// The states of a journal.
const (
	begun  = "begun"
	landed = "landed"
	undone = "undone"
)

// journalEntry is one file of a landing. Before is "new" for a file that did not exist. The bytes are in before/<i> and after/<i> of
// the folder.
type journalEntry struct {
	Path   string `json:"path"` // absolute
	Before string `json:"before"`
	After  string `json:"after"`
}

// landingOf is landing.json: what the newest call did.
type landingOf struct {
	Repository string       `json:"repository"`
	DryRun     bool         `json:"dry_run,omitempty"`
	Kept       string       `json:"kept,omitempty"` // folder with the files as they were before
	Files      []landedFile `json:"files"`
}

type landedFile struct {
	Path   string `json:"path"`
	Before string `json:"before"`
	After  string `json:"after"`
}

func (s *changeSet) landing(run *engine.Run, dry bool) landingOf {
	out := landingOf{Repository: run.Roots.Rel(s.root), DryRun: dry, Files: []landedFile{}}
	for _, c := range s.files {
		out.Files = append(out.Files, landedFile{c.name, c.beforeHash(), rundir.HashBytes(c.after)})
	}
	if n := len(landings(run)); !dry && !s.unchanged() && n > 0 {
		out.Kept = path.Join(landingsDir, strconv.Itoa(n), "before")
	}
	return out
}

// lockRepositories keeps two calls from landing at once, also those of two servers.
func lockRepositories(ctx context.Context, roots *rundir.Roots) (func(), error) {
	folder := filepath.Join(roots.Workspace(), ".onescience")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	return rundir.Lock(ctx, filepath.Join(folder, ".coder.lock"))
}

// landings are the numbers of the run's landings, ascending.
func landings(run *engine.Run) []int {
	entries, _ := os.ReadDir(run.File(landingsDir)) // none yet
	var out []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && e.IsDir() {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// openFile names the landing that is under way in the workspace, so that whichever call comes next can end it, of this run or another.
const openFile = ".coder.open.json"

type openLanding struct {
	Folder string `json:"folder"` // absolute
}

func openPath(run *engine.Run) string {
	return filepath.Join(run.Roots.Workspace(), ".onescience", openFile)
}

// apply writes the set: copies and journal first, then file by file. Where one can't be written, those before it are put back.
func (c *Coder) apply(run *engine.Run, set *changeSet) error {
	if set.unchanged() {
		return nil
	}
	folder := run.File(path.Join(landingsDir, strconv.Itoa(len(landings(run))+1)))
	j := journal{State: begun, Changes: set.asked, Repository: set.root}
	for i, f := range set.files {
		j.Files = append(j.Files, journalEntry{f.path, f.beforeHash(), rundir.HashBytes(f.after)})
		if err := rundir.WriteFile(copyOf(folder, "after", i), f.after); err != nil {
			return err
		}
		if !f.exists {
			continue
		}
		if err := rundir.WriteFile(copyOf(folder, "before", i), f.before); err != nil {
			return err
		}
	}
	if err := rundir.WriteJSON(filepath.Join(folder, journalFile), j); err != nil {
		return err
	}
	if err := rundir.WriteJSON(openPath(run), openLanding{folder}); err != nil {
		return err
	}
	return c.roll(run, folder, &j)
}

// copyOf is the kept copy of a landing's file: part is before or after.
func copyOf(folder, part string, i int) string {
	return filepath.Join(folder, part, strconv.Itoa(i))
}

// roll brings a landing that was begun to its end: what is not there yet is written, if the file still is what it was; else all is
// put back.
func (c *Coder) roll(run *engine.Run, folder string, j *journal) error {
	var wrong error
	for i, f := range j.Files {
		now, err := hashOf(f.Path)
		switch {
		case err != nil:
			wrong = err
		case now == f.After:
			continue
		case now != f.Before:
			wrong = finding.Refuse(finding.Finding{Code: "base_changed", Severity: finding.Error, What: filepath.Base(f.Path) + " was changed by someone else while changes were landing; nothing of them is kept",
				Where: &finding.Where{Path: f.Path}, Expected: f.Before, Remedy: "read the file as it is now and send the changes again"})
		default:
			wrong = c.put(f.Path, copyOf(folder, "after", i))
		}
		if wrong != nil {
			break
		}
	}
	if wrong == nil {
		return c.end(run, folder, j, landed)
	}
	return errors.Join(wrong, c.undo(run, folder, j))
}

// end writes how a landing ended.
func (c *Coder) end(run *engine.Run, folder string, j *journal, state string) error {
	j.State = state
	if err := rundir.WriteJSON(filepath.Join(folder, journalFile), j); err != nil {
		return err
	}
	return os.Remove(openPath(run))
}

// undo puts back what a landing has written, unless someone has changed it since.
func (c *Coder) undo(run *engine.Run, folder string, j *journal) error {
	var failed error
	for i, f := range j.Files {
		now, err := hashOf(f.Path)
		if err != nil || now != f.After || f.After == f.Before {
			failed = errors.Join(failed, err)
			continue
		}
		if f.Before == baseNew {
			failed = errors.Join(failed, os.Remove(f.Path))
			continue
		}
		failed = errors.Join(failed, c.put(f.Path, copyOf(folder, "before", i)))
	}
	if failed != nil {
		return fmt.Errorf("put back what was written (the files are in %s): %w", filepath.Join(folder, "before"), failed)
	}
	return c.end(run, folder, j, undone)
}

// put writes a kept copy to its place in the repository.
func (c *Coder) put(path, kept string) error {
	data, err := os.ReadFile(kept)
	if err != nil {
		return err
	}
	return c.write(path, data)
}

// writeFile commits a file of the repository; it keeps its mode.
func writeFile(path string, data []byte) error { return rundir.WriteFile(path, data) }

// holds says whether these very changes have landed in this run and still stand.
func holds(run *engine.Run, asked string) bool {
	for _, n := range slices.Backward(landings(run)) {
		var j journal
		if err := rundir.ReadJSON(run.File(path.Join(landingsDir, strconv.Itoa(n), journalFile)), &j); err != nil || j.State != landed || j.Changes != asked {
			continue
		}
		return !slices.ContainsFunc(j.Files, func(f journalEntry) bool {
			now, err := hashOf(f.Path)
			return err != nil || now != f.After
		})
	}
	return false
}

// recover ends a landing that was cut short, of whatever run it is.
func (c *Coder) recover(run *engine.Run) ([]finding.Finding, error) {
	var open openLanding
	err := rundir.ReadJSON(openPath(run), &open)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var j journal
	switch err := rundir.ReadJSON(filepath.Join(open.Folder, journalFile), &j); {
	case errors.Is(err, fs.ErrNotExist): // its run was removed, and with it what was there before
		return []finding.Finding{{Code: "landing_lost", Severity: finding.Warning, What: "a landing was cut short, and its folder is gone: which of its files were written is not known",
			Where: &finding.Where{Path: open.Folder}, Expected: "the folder of the landing", Remedy: "compare the repository with its last commit"}}, os.Remove(openPath(run))
	case err != nil:
		return nil, fmt.Errorf("a landing was cut short, and its journal can't be read: %w", err)
	}
	if j.State != begun { // it ended, and the crash came before the file was removed
		return nil, os.Remove(openPath(run))
	}
	found, err := finding.Of(c.roll(run, open.Folder, &j))
	if err != nil {
		return nil, err
	}
	f := finding.Finding{Code: "landing_finished", Severity: finding.Note, What: "a landing that was cut short is complete now", Where: &finding.Where{Path: open.Folder}, Remedy: "nothing to do"}
	if j.State == undone {
		f.Code, f.Severity = "landing_undone", finding.Warning
		f.What, f.Remedy = "a landing was cut short; a file had changed meanwhile, so that all of it was put back", "send the changes again"
	}
	for i := range found {
		found[i].Severity = finding.Warning
	}
	return append([]finding.Finding{f}, found...), nil
}

// hashOf is the hash of a file, "new" where there is none.
func hashOf(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return baseNew, nil
	}
	if err != nil {
		return "", err
	}
	return rundir.HashBytes(data), nil
}
