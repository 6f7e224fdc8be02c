package resources

import (
	"os"
	"path/filepath"

	"github.com/trainwright/trainwright/internal/rundir"
)

// newestRuns is how many runs the list shows; the others are found by run_list and read by their address.
const newestRuns = 50

// readRun answers run://<run_id>/<artifact>: a regular file inside the run's trainer_workdir. The index says where that
// is, and the roots whether it may be read.
func (s *Source) readRun(a address) (Content, error) {
	entry, err := s.index().Get(a.of)
	if err != nil {
		return Content{}, notFound(a.uri, "the index has no such run; run_list has them")
	}
	workdir, err := s.workdir(entry)
	if err != nil {
		return Content{}, notFound(a.uri, "the run's folder is not inside the folders that may be read")
	}
	return a.readFile(workdir, a.path, showAll, false)
}

func (s *Source) index() rundir.Index { return rundir.Index{Workspace: s.Roots.Workspace()} }

// workdir is the absolute trainer_workdir of a run, checked against the roots: the index is a file that an agent could
// have written.
func (s *Source) workdir(entry rundir.IndexEntry) (string, error) {
	return s.Roots.Readable(filepath.FromSlash(entry.TrainerWorkdir))
}

// runItems lists the canonical artifacts that exist of the newest runs.
func (s *Source) runItems() ([]Item, error) {
	entries, _, err := s.index().List() // findings about unreadable entries are run_list's to tell
	if err != nil {
		return nil, err
	}
	var items []Item
	for _, entry := range entries[:min(len(entries), newestRuns)] {
		items = append(items, s.artifactItems(entry)...)
	}
	return items, nil
}

// artifactItems lists the canonical artifacts that exist of a run; none where its folder may not be read.
func (s *Source) artifactItems(entry rundir.IndexEntry) (items []Item) {
	workdir, err := s.workdir(entry)
	if err != nil {
		return nil
	}
	for _, name := range s.Canonical(entry.Skill) {
		info, err := os.Lstat(filepath.Join(workdir, filepath.FromSlash(name)))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		items = append(items, Item{URI: "run://" + entry.RunID + "/" + name, Name: entry.RunID + "/" + name,
			Description: entry.StepGoal, MIME: MIMEType(name, nil), Size: info.Size()})
	}
	return items
}
