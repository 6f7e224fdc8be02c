package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/project"
	"github.com/trainwright/trainwright/internal/rundir"
)

// neverThere are folders that have no place in a snapshot: histories, caches, and trainwright's own files.
var neverThere = map[string]bool{".git": true, ".hg": true, ".svn": true, "__pycache__": true, ".onescience": true, ".trainer_work": true, ".mypy_cache": true,
	".pytest_cache": true, ".ruff_cache": true, ".ipynb_checkpoints": true, ".tox": true, ".eggs": true}

// rank orders the kinds of files that are copied, so that a limit cuts documents before code. Kinds without a rank are
// never copied.
var rank = map[string]int{project.KindPython: 1, project.KindShell: 2, project.KindConfig: 3, project.KindOther: 4, project.KindDoc: 5}

// copyRoot makes the copies and links of one root.
func (t *taker) copyRoot(ctx context.Context, root Root) error {
	options := project.Options{Python: "none"}
	if root.Name != ProjectName {
		options.GitCeiling = root.Original
	}
	tree, found, err := project.Scan(ctx, root.Original, options)
	if err != nil {
		return fmt.Errorf("snapshot of %s: %w", root.Original, err)
	}
	for _, f := range found {
		if f.Code == "scan_cut" || f.Code == "folder_unreadable" {
			t.note("snapshot_cut", root.Original, "the snapshot is not whole: "+f.What, "a project of fewer files, all readable", "name a smaller code_path; what is missing is linked to the original")
		}
	}
	m := &mirror{t: t, root: root, excluded: t.excluded(root), outputs: inside(root, t.spec.Outputs), chosen: map[string]string{}, holds: map[string]bool{}}
	m.root.Files, m.root.Links, m.root.Skipped = []Copied{}, []Link{}, []Original{}
	if err := m.choose(tree.Files); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(t.into, root.Name), 0o755); err != nil {
		return err
	}
	if err := m.folder(ctx, "."); err != nil {
		return err
	}
	slices.SortFunc(m.root.Files, func(a, b Copied) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(m.root.Links, func(a, b Link) int { return strings.Compare(a.Path, b.Path) })
	t.snapshot.Roots = append(t.snapshot.Roots, m.root)
	if root.Name == ProjectName && tree.Git != nil {
		t.snapshot.Git = t.gitState(m.root, tree.Git)
	}
	return nil
}

// mirror is one root while it is copied.
type mirror struct {
	t        *taker
	root     Root
	excluded []string
	outputs  []string
	chosen   map[string]string // files to copy, with their kind
	holds    map[string]bool   // folders with such a file somewhere below
}

// choose decides which files are copied and records the others.
func (m *mirror) choose(files []project.File) error {
	entry := m.entry()
	order := func(f project.File) int {
		if f.Path == entry {
			return 0
		}
		return cmp.Or(rank[f.Kind], len(rank)+1)
	}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b project.File) int { return cmp.Compare(order(a), order(b)) })
	for _, f := range files {
		if below(f.Path, m.excluded) || below(f.Path, m.outputs) {
			continue
		}
		why := m.reason(f, f.Path == entry)
		if why == "" {
			m.take(f)
			continue
		}
		if f.Kind == project.KindPython {
			m.t.note("snapshot_code_linked", filepath.Join(m.root.Original, f.Path), f.Path+" is code and was not copied ("+why+"): the job sees later edits of it",
				"code within the limits of a snapshot", "leave it as it is until the job has ended")
		}
		original, err := m.skipped(f, why)
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since it was listed
		}
		if err != nil {
			m.t.note("snapshot_input_unreadable", filepath.Join(m.root.Original, f.Path), "the file can't be recorded: "+err.Error(), "a readable file", "correct its permissions if the job needs it")
			continue
		}
		m.root.Skipped = append(m.root.Skipped, original)
	}
	slices.SortFunc(m.root.Skipped, func(a, b Original) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// entry is the entry point relative to the root, "" where it is not in it.
func (m *mirror) entry() string {
	// The link of a linked script is what the command names, so only its folder is resolved.
	rel, ok := relative(m.root.Original, filepath.Join(real(filepath.Dir(m.t.spec.Entrypoint)), filepath.Base(m.t.spec.Entrypoint)))
	if !ok || below(rel, m.excluded) {
		return ""
	}
	return rel
}

// reason is why a file is not copied, "" where it is.
func (m *mirror) reason(f project.File, entry bool) string {
	switch {
	case f.Bytes > m.t.limits.MaxFileBytes:
		return "large"
	case entry:
		return ""
	case rank[f.Kind] == 0 && !m.t.spec.Trial:
		return f.Kind
	case secretName(path.Base(f.Path)):
		return "secrets"
	case m.t.files >= m.t.limits.MaxFiles || m.t.bytes+f.Bytes > m.t.limits.MaxBytes:
		return "limit"
	}
	return ""
}

func (m *mirror) take(f project.File) {
	m.t.files++
	m.t.bytes += f.Bytes
	m.chosen[f.Path] = f.Kind
	for folder := path.Dir(f.Path); !m.holds[folder]; folder = path.Dir(folder) {
		m.holds[folder] = true
	}
}

// skipped describes a file that is not copied, with the hash of the scan where it has one.
func (m *mirror) skipped(f project.File, why string) (Original, error) {
	file := filepath.Join(m.root.Original, filepath.FromSlash(f.Path))
	if f.SHA256 == "" || why == "secrets" {
		return m.t.original(f.Path, file, why)
	}
	info, err := os.Stat(file)
	if err != nil {
		return Original{}, err
	}
	return Original{Path: f.Path, Bytes: f.Bytes, SHA256: f.SHA256, ModTime: info.ModTime().UTC(), Why: why}, nil
}

// folder copies one folder: the chosen files, the folders that hold some, and links to everything else.
func (m *mirror) folder(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(m.root.Original, filepath.FromSlash(dir)))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		switch {
		case below(name, m.excluded), entry.IsDir() && neverThere[entry.Name()], entry.Name() == ".git":
		case entry.IsDir() && m.holds[name]:
			if err := os.Mkdir(m.in(name), 0o755); err != nil {
				return err
			}
			if err := m.folder(ctx, name); err != nil {
				return err
			}
		case m.chosen[name] != "":
			if err := m.copy(name); err != nil {
				return fmt.Errorf("copy %s into the snapshot: %w", name, err)
			}
		case entry.IsDir() && m.t.spec.Trial && !project.Skipped(entry.Name()):
			if err := m.apart(ctx, name); err != nil {
				return err
			}
		default:
			m.link(name, entry)
		}
	}
	return nil
}

// apart makes a folder of which nothing is copied a folder of its own, with links to the files; an output folder stays empty.
func (m *mirror) apart(ctx context.Context, name string) error {
	if err := os.Mkdir(m.in(name), 0o755); err != nil || below(name, m.outputs) {
		return err
	}
	err := m.folder(ctx, name)
	if errors.Is(err, fs.ErrPermission) {
		return nil // the job can't read it either
	}
	return err
}

func (m *mirror) in(name string) string {
	return filepath.Join(m.t.into, m.root.Name, filepath.FromSlash(name))
}

func (m *mirror) copy(name string) error {
	copied, err := copyFile(filepath.Join(m.root.Original, filepath.FromSlash(name)), m.in(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // gone since it was listed; an entry point is missed by the caller
	}
	if err != nil {
		return err
	}
	copied.Path = name
	m.root.Files = append(m.root.Files, copied)
	if name == m.entry() {
		m.t.snapshot.Entrypoint = m.root.Name + "/" + name
	}
	return nil
}

// copyFile copies one file and hashes what it wrote.
func copyFile(from, to string) (Copied, error) {
	source, err := os.Open(from)
	if err != nil {
		return Copied{}, err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return Copied{}, err
	}
	mode, executable := fs.FileMode(0o644), info.Mode()&0o111 != 0
	if executable {
		mode = 0o755
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return Copied{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(target, sum), source)
	if closed := target.Close(); err == nil {
		err = closed
	}
	// A script may look at the times of its files; the copies have those of the originals.
	if err == nil {
		err = os.Chtimes(to, info.ModTime(), info.ModTime())
	}
	return Copied{Bytes: n, SHA256: "sha256:" + hex.EncodeToString(sum.Sum(nil)), Executable: executable}, err
}

// link leads to what is not copied.
func (m *mirror) link(name string, entry fs.DirEntry) {
	if m.t.links >= m.t.limits.MaxLinks {
		m.t.linksCut++
		return
	}
	target := filepath.Join(m.root.Original, filepath.FromSlash(name))
	info, err := os.Stat(target)
	isFolder := err == nil && info.IsDir()
	if err := os.Symlink(target, m.in(name)); err != nil {
		m.t.note("snapshot_link_failed", target, "the snapshot can't link to it: "+err.Error(), "a system with symbolic links", "pass it to the script by its absolute path")
		return
	}
	m.t.links++
	m.root.Links = append(m.root.Links, Link{Path: name, Target: target, Folder: isFolder})
	if isFolder && entry.Type()&fs.ModeSymlink != 0 && holdsPython(target) {
		m.t.note("snapshot_code_linked", target, name+" is a link to a folder of code, which was not copied: the job sees later edits of it",
			"code inside the project", "leave it as it is until the job has ended")
	}
}

// holdsPython looks at the first level of a folder only.
func holdsPython(folder string) bool {
	found, _ := filepath.Glob(filepath.Join(folder, "*.py")) // the pattern is well-formed
	return len(found) > 0
}

// treeHash is the hash of everything that is in the copies. The roots are in their order and their files sorted.
func treeHash(roots []Root) string {
	var text strings.Builder
	for _, root := range roots {
		for _, f := range root.Files {
			fmt.Fprintf(&text, "file %q %s %t\n", root.Name+"/"+f.Path, f.SHA256, f.Executable)
		}
		for _, l := range root.Links {
			fmt.Fprintf(&text, "link %q %q\n", root.Name+"/"+l.Path, l.Target)
		}
	}
	return rundir.HashBytes([]byte(text.String()))
}
