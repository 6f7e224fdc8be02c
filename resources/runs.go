package resources

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/trainwright/trainwright/internal/rundir"
)

// newestRuns is how many runs the list shows; the others are found by run_list and read by their address.
const newestRuns = 50

// readRun answers run://<run_id>/<artifact>: a regular file inside the run's trainer_workdir. The index says where that
// is, the roots whether it may be read, and os.Root keeps links and dots inside it.
func (s *Source) readRun(uri, id, artifact string) (Content, error) {
	entry, err := s.index().Get(id)
	if err != nil {
		return Content{}, notFound(uri, "the index has no such run; run_list has them")
	}
	workdir, err := s.workdir(entry)
	if err != nil {
		return Content{}, notFound(uri, "the run's folder is not inside the folders that may be read")
	}
	root, err := os.OpenRoot(workdir)
	if err != nil {
		return Content{}, notFound(uri, "the run's folder is gone")
	}
	defer root.Close()
	head, total, err := headOf(root.FS(), artifact)
	if err != nil {
		return Content{}, orNotFound(uri, err)
	}
	return content(uri, artifact, head, total, filepath.Join(workdir, filepath.FromSlash(artifact))), nil
}

func (s *Source) index() rundir.Index { return rundir.Index{Workspace: s.Roots.Workspace()} }

// workdir is the absolute trainer_workdir of a run, checked against the roots: the index is a file that an agent could
// have written.
func (s *Source) workdir(entry rundir.IndexEntry) (string, error) {
	return s.Roots.Readable(filepath.FromSlash(entry.TrainerWorkdir))
}

// headOf reads the first MaxBytes of a regular file and its size.
func headOf(fsys fs.FS, name string) (head []byte, total int64, err error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() { // a pipe would block, a folder has no content
		return nil, 0, fmt.Errorf("%s is no regular file: %w", name, fs.ErrNotExist)
	}
	file, err := fsys.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	head, err = io.ReadAll(io.LimitReader(file, MaxBytes))
	if err != nil {
		return nil, 0, err
	}
	return head, max(info.Size(), int64(len(head))), nil
}

// runItems lists the canonical artifacts that exist of the newest runs.
func (s *Source) runItems() ([]Item, error) {
	entries, _, err := s.index().List() // findings about unreadable entries are run_list's to tell
	if err != nil {
		return nil, err
	}
	var items []Item
	for _, entry := range entries[:min(len(entries), newestRuns)] {
		workdir, err := s.workdir(entry)
		if err != nil {
			continue
		}
		for _, name := range s.Canonical(entry.Skill) {
			info, err := os.Lstat(filepath.Join(workdir, filepath.FromSlash(name)))
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			items = append(items, Item{URI: "run://" + entry.RunID + "/" + name, Name: entry.RunID + "/" + name,
				Description: entry.StepGoal, MIME: MIMEType(name, nil), Size: info.Size()})
		}
	}
	return items, nil
}

// split takes an address apart: the authority and the decoded path below it. ok is false for what can be no file
// inside a folder.
func split(uri, scheme string) (authority, name string, ok bool) {
	rest, ok := strings.CutPrefix(uri, scheme+"://")
	if !ok {
		return "", "", false
	}
	authority, escaped, ok := strings.Cut(rest, "/")
	if !ok || authority == "" {
		return "", "", false
	}
	name, err := url.PathUnescape(escaped)
	if err != nil || !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00") || path.Clean(name) != name {
		return "", "", false
	}
	return authority, name, true
}

func notFound(uri, why string) error {
	return fmt.Errorf("%w at %q: %s", ErrNotFound, uri, why)
}

// orNotFound keeps faults of the disk apart from names that lead nowhere or outside.
func orNotFound(uri string, err error) error {
	var p *fs.PathError
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrPermission) || (errors.As(err, &p) && strings.Contains(p.Err.Error(), "escapes")) {
		return notFound(uri, "no such file there; resources/list has what can be read")
	}
	return fmt.Errorf("read %s: %w", uri, err)
}

func cutNote(shown int, total int64, where string) string {
	return fmt.Sprintf("[cut: the first %d of %d bytes are shown; read the rest from the file %s]", shown, total, where)
}
