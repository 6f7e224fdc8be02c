package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Spec says what a snapshot is taken of. All paths are absolute.
type Spec struct {
	// ProjectRoot is the top of the tree that holds the code; CodeSaveDir is copied too where it is another folder, for what
	// phase 4 wrote there. CodeSaveDir may be empty or not there yet.
	ProjectRoot, CodeSaveDir string
	// Entrypoint is the script, inside one of the two.
	Entrypoint string
	// Python is the interpreter; its packages are listed unless it is empty.
	Python string
	// Folder is the job's folder, before the job is created in it.
	Folder string
	// Exclude are folders that are neither copied nor linked: trainer_workdir. The folder of the jobs always is.
	Exclude []string
	// Outputs are folders that the job writes. They are made where they are missing and always linked, so that a script that
	// writes beside itself still writes into the original tree.
	Outputs []string
	// Trial keeps the job away from the original trees: data and checkpoints are copied too where the limits have room for
	// them, folders are never links, and of Outputs only the empty folders are there. Only large files lead back.
	Trial bool
	// Inputs are files that the command reads without being code. A folder stands for the files in it.
	Inputs []string
	// Environ is the environment in which the interpreter will run.
	Environ []string
	Machine Machine
	Now     time.Time
	Limits  Limits
}

// taker takes one snapshot.
type taker struct {
	spec     Spec
	limits   Limits
	into     string // the folder that becomes snapshot/
	snapshot Snapshot
	findings []finding.Finding

	files, links int
	bytes        int64
	hashed       int64
	linksCut     int
}

// Take copies the code and writes snapshot.json; what an earlier Take left in the folder is replaced. It refuses with
// snapshot_entrypoint_missing where the entry point can't be copied. The findings are risks of a snapshot that was taken:
// snapshot_cut, snapshot_code_linked, snapshot_link_failed, snapshot_input_unreadable, freeze_failed. The copies are not
// synchronised to the disk one by one: after a power cut Verify sees what is torn.
func Take(ctx context.Context, spec Spec) (Snapshot, []finding.Finding, error) {
	t := &taker{spec: spec, limits: spec.Limits.orDefault()}
	t.snapshot = Snapshot{TakenAt: spec.Now.UTC(), Machine: spec.Machine, Modules: modules(spec.Environ), Inputs: []Original{}, JobFolder: spec.Folder}
	if t.snapshot.Machine.Accelerators == nil {
		t.snapshot.Machine.Accelerators = []Accelerator{}
	}
	if err := os.MkdirAll(spec.Folder, 0o755); err != nil {
		return Snapshot{}, nil, err
	}
	into, err := os.MkdirTemp(spec.Folder, ".snapshot-*")
	if err != nil {
		return Snapshot{}, nil, err
	}
	t.into = into
	if err := t.take(ctx); err != nil {
		return Snapshot{}, nil, errors.Join(err, os.RemoveAll(into))
	}
	return t.snapshot, t.findings, nil
}

func (t *taker) take(ctx context.Context) error {
	roots, err := t.roots()
	if err != nil {
		return err
	}
	for _, folder := range t.spec.Outputs {
		if t.spec.Trial {
			break
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	for _, r := range roots {
		if err := t.copyRoot(ctx, r); err != nil {
			return err
		}
	}
	if t.snapshot.Entrypoint == "" {
		return finding.Refuse(finding.Finding{Code: "snapshot_entrypoint_missing", Severity: finding.Error,
			What: "the entry point is not among the files that can be copied", Where: &finding.Where{Path: t.spec.Entrypoint},
			Expected: fmt.Sprintf("a readable file of at most %d bytes in %s or %s", t.limits.MaxFileBytes, t.spec.ProjectRoot, t.spec.CodeSaveDir),
			Remedy:   "name a script inside the project or code_save_dir"})
	}
	if t.linksCut > 0 {
		t.note("snapshot_cut", t.spec.ProjectRoot, fmt.Sprintf("%d files that were not copied have no link either: there are more than %d", t.linksCut, t.limits.MaxLinks),
			"a tree whose data lies in folders of its own", "pass the data by an absolute path")
	}
	if err := t.takeInputs(ctx); err != nil {
		return err
	}
	if t.spec.Python != "" {
		t.freeze(ctx)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	t.snapshot.TreeSHA256 = treeHash(t.snapshot.Roots)
	return t.commit()
}

// commit puts the copies in place, then snapshot.json: a folder without it holds no snapshot.
func (t *taker) commit() error {
	record := filepath.Join(t.spec.Folder, File)
	if err := os.Remove(record); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.RemoveAll(t.snapshot.dir()); err != nil {
		return err
	}
	if err := os.Rename(t.into, t.snapshot.dir()); err != nil {
		return err
	}
	return rundir.WriteJSON(record, t.snapshot)
}

func (t *taker) note(code, where, what, expected, remedy string) {
	t.findings = append(t.findings, finding.Finding{Code: code, Severity: finding.Warning, What: what, Where: &finding.Where{Path: where}, Expected: expected, Remedy: remedy})
}

// roots are the trees to copy, with their links resolved.
func (t *taker) roots() ([]Root, error) {
	project, err := filepath.EvalSymlinks(t.spec.ProjectRoot)
	if err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", t.spec.ProjectRoot, err)
	}
	roots := []Root{{Name: ProjectName, Original: project}}
	if t.spec.CodeSaveDir != "" {
		code, err := filepath.EvalSymlinks(t.spec.CodeSaveDir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, fmt.Errorf("snapshot of %s: %w", t.spec.CodeSaveDir, err)
		case code != project:
			roots = append(roots, Root{Name: CodeName, Original: code})
		}
	}
	return roots, nil
}

// excluded are the folders inside a root that are left out: what the caller names, the jobs, and the other root.
func (t *taker) excluded(root Root) []string {
	list := append(slices.Clone(t.spec.Exclude), filepath.Dir(t.spec.Folder), t.spec.Folder, t.spec.ProjectRoot, t.spec.CodeSaveDir)
	return inside(root, list)
}

// inside are those of the folders that lie below the root, relative to it.
func inside(root Root, folders []string) []string {
	var out []string
	for _, folder := range folders {
		if folder == "" {
			continue
		}
		if rel, ok := relative(root.Original, real(folder)); ok && rel != "." {
			out = append(out, rel)
		}
	}
	return out
}

// real is path with its links resolved, as far as it exists.
func real(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(real(parent), filepath.Base(path))
}

// relative is the slash path of a file inside a folder.
func relative(folder, file string) (string, bool) {
	rel, err := filepath.Rel(folder, file)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// below says whether a slash path is one of the folders or lies in one.
func below(name string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return name == f || strings.HasPrefix(name, f+"/") })
}

// modules are the environment modules that are loaded, as both module systems list them.
func modules(environ []string) []string {
	out := []string{}
	for _, name := range strings.Split(variable(environ, "LOADEDMODULES"), ":") {
		if name != "" {
			out = append(out, name)
		}
	}
	return out
}

func variable(environ []string, name string) string {
	for _, pair := range slices.Backward(environ) {
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value
		}
	}
	return ""
}

// takeInputs records the files that the command reads.
func (t *taker) takeInputs(ctx context.Context) error {
	for _, input := range t.spec.Inputs {
		err := filepath.WalkDir(input, func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if len(t.snapshot.Inputs) >= t.limits.MaxFiles {
				return fs.SkipAll
			}
			if entry.IsDir() {
				return ctx.Err()
			}
			original, err := t.original(name, name, "input")
			if err == nil {
				t.snapshot.Inputs = append(t.snapshot.Inputs, original)
			}
			return err
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			t.note("snapshot_input_unreadable", input, "the input can't be recorded: "+err.Error(), "a readable file or folder", "correct the path, or its permissions")
		}
	}
	return nil
}

// original describes a file that is not copied. It is hashed as long as the budget lasts.
func (t *taker) original(name, file, why string) (Original, error) {
	info, err := os.Stat(file)
	if err != nil {
		return Original{}, err
	}
	out := Original{Path: name, Bytes: info.Size(), ModTime: info.ModTime().UTC(), Why: why}
	if secretName(path.Base(filepath.ToSlash(name))) || !info.Mode().IsRegular() || t.hashed+info.Size() > t.limits.MaxHashBytes {
		return out, nil
	}
	t.hashed += info.Size()
	out.SHA256, _, err = rundir.HashFile(file)
	return out, err
}

// secretName says whether a file is one that holds secrets by its name: no copy of it is made.
func secretName(base string) bool {
	base = strings.ToLower(base)
	return base == ".env" || strings.HasPrefix(base, ".env.") || base == ".netrc" || base == ".pypirc" || base == "credentials" || base == "credentials.json" ||
		strings.HasPrefix(base, "id_rsa") || strings.HasPrefix(base, "id_ed25519") || strings.HasSuffix(base, ".pem") || strings.HasSuffix(base, ".key")
}
