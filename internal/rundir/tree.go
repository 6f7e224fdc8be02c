package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// Entry is one regular file of a tree.
type Entry struct {
	Path    string    `json:"path"` // relative to the root of the tree, with forward slashes
	Size    int64     `json:"size"` // bytes
	ModTime time.Time `json:"mtime"`
	SHA256  string    `json:"sha256"` // "" for a file that is too large to be hashed or could not be read
}

// TreeOptions bounds an inventory. The zero value means the defaults.
type TreeOptions struct {
	Include      []string // names among SkippedDirs that are walked all the same
	MaxFiles     int      // default 20,000
	MaxHashBytes int64    // larger files are listed without a hash; default 256 MiB, negative is no limit
}

// SkippedDirs are the folders that an inventory leaves out wherever they stand below its root: no result of a run is in them.
var SkippedDirs = []string{".git", "__pycache__", "node_modules", ".onescience"}

const (
	treeMaxFiles     = 20_000
	treeMaxHashBytes = 256 << 20
)

// Tree takes an inventory of the regular files below root, sorted by path. Links are not followed and not listed. A root
// that does not exist holds nothing, as before a run that makes it. It says
// what it left out: tree_cut when there are more files than the limit, file_not_hashed for large files, file_unreadable.
func Tree(root string, opts TreeOptions) ([]Entry, []finding.Finding, error) {
	if opts.MaxFiles == 0 {
		opts.MaxFiles = treeMaxFiles
	}
	if opts.MaxHashBytes == 0 {
		opts.MaxHashBytes = treeMaxHashBytes
	}
	real, err := filepath.EvalSymlinks(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("inventory of %s: %w", root, err)
	}
	root = real
	w := treeWalk{root: root, opts: opts}
	if err := filepath.WalkDir(root, w.visit); err != nil {
		return nil, nil, fmt.Errorf("inventory of %s: %w", root, err)
	}
	if w.cut {
		w.note(finding.Warning, "tree_cut", root, fmt.Sprintf("the folder holds more than %d files; the rest is not in the inventory", opts.MaxFiles), "name a smaller folder")
	}
	if len(w.large) > 0 {
		w.note(finding.Note, "file_not_hashed", filepath.Join(root, w.large[0]), fmt.Sprintf("%d files over %d MiB are compared by size and time only", len(w.large), opts.MaxHashBytes>>20), "")
	}
	slices.SortFunc(w.entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return w.entries, w.findings, nil
}

type treeWalk struct {
	root     string
	opts     TreeOptions
	entries  []Entry
	findings []finding.Finding
	large    []string
	cut      bool
}

func (w *treeWalk) note(severity finding.Severity, code, path, what, remedy string) {
	w.findings = append(w.findings, finding.Finding{Code: code, Severity: severity, What: what, Where: &finding.Where{Path: path}, Remedy: remedy})
}

func (w *treeWalk) visit(path string, d fs.DirEntry, err error) error {
	if err != nil {
		if path == w.root {
			return err
		}
		if !errors.Is(err, fs.ErrNotExist) { // else it went away while we looked
			w.note(finding.Warning, "file_unreadable", path, "it is not in the inventory: "+err.Error(), "")
		}
		if d != nil && d.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if d.IsDir() {
		if path != w.root && slices.Contains(SkippedDirs, d.Name()) && !slices.Contains(w.opts.Include, d.Name()) {
			return fs.SkipDir
		}
		return nil
	}
	if !d.Type().IsRegular() {
		return nil
	}
	if len(w.entries) >= w.opts.MaxFiles {
		w.cut = true
		return fs.SkipAll
	}
	return w.add(path, d)
}

func (w *treeWalk) add(path string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return nil // gone since the folder was read
	}
	rel, err := filepath.Rel(w.root, path)
	if err != nil {
		return err
	}
	entry := Entry{Path: filepath.ToSlash(rel), Size: info.Size(), ModTime: info.ModTime().UTC()}
	if w.opts.MaxHashBytes > 0 && info.Size() > w.opts.MaxHashBytes {
		w.large = append(w.large, rel)
	} else if entry.SHA256, _, err = HashFile(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		w.note(finding.Warning, "file_unreadable", path, "it is listed without a hash: "+err.Error(), "")
	}
	w.entries = append(w.entries, entry)
	return nil
}

// Diff compares two inventories of one tree. A file whose hash is known on both sides changed when its hash did: a new
// time on old bytes proves nothing. Without a hash, size and time decide.
func Diff(before, after []Entry) (created, changed, removed []Entry) {
	old := make(map[string]Entry, len(before))
	for _, e := range before {
		old[e.Path] = e
	}
	for _, e := range after {
		was, ok := old[e.Path]
		delete(old, e.Path)
		switch {
		case !ok:
			created = append(created, e)
		case differs(was, e):
			changed = append(changed, e)
		}
	}
	for _, e := range before {
		if _, ok := old[e.Path]; ok {
			removed = append(removed, e)
		}
	}
	return created, changed, removed
}

func differs(a, b Entry) bool {
	if a.SHA256 != "" && b.SHA256 != "" {
		return a.SHA256 != b.SHA256
	}
	return a.Size != b.Size || !a.ModTime.Equal(b.ModTime)
}
