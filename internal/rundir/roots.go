package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Roots decides which paths may be read and written. Every path that comes from outside (a handoff, a script, an agent)
// goes through it; what it returns is free of symbolic links.
//
// The check is made once, before the path is used: a process that swaps a folder for a link in between is not covered.
type Roots struct {
	given     string // the workspace as it was named, for Rel
	workspace string
	read      []string // beside the workspace
	write     []string
}

// NewRoots makes roots of a workspace, which must be a folder, and of further folders that may be read, or read and
// written. Those may be missing (a file system that is not mounted now); relative ones are relative to the workspace.
func NewRoots(workspace string, read, write []string) (*Roots, error) {
	if workspace == "" || strings.ContainsRune(workspace, 0) {
		return nil, fmt.Errorf("workspace %q: not a path", workspace)
	}
	given, err := filepath.Abs(workspace)
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", workspace, err)
	}
	canonical, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", given, err)
	}
	if info, err := os.Stat(canonical); err != nil {
		return nil, fmt.Errorf("workspace %s: %w", given, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("workspace %s is not a folder", given)
	}
	r := &Roots{given: given, workspace: canonical}
	if r.read, err = r.others(read); err != nil {
		return nil, err
	}
	r.write, err = r.others(write)
	return r, err
}

func (r *Roots) others(roots []string) ([]string, error) {
	var canonical []string
	for _, root := range roots {
		if root == "" || strings.ContainsRune(root, 0) {
			return nil, fmt.Errorf("root %q: not a path", root)
		}
		resolved, err := resolve(r.absolute(root), 0)
		if err != nil {
			return nil, fmt.Errorf("root %s: %w", root, err)
		}
		canonical = append(canonical, resolved)
	}
	return canonical, nil
}

// Workspace is the canonical absolute path of the workspace.
func (r *Roots) Workspace() string { return r.workspace }

// Readable returns the canonical absolute path of a file or folder that may be read. Relative paths are relative to the
// workspace. The path need not exist; as far as it does, links are followed. A path that leads outside is refused with
// path_outside_roots, an empty one with path_empty, one that can't be looked up with path_unreadable.
func (r *Roots) Readable(path string) (string, error) {
	return r.check(path, "read", append(append([]string{r.workspace}, r.read...), r.write...))
}

// Writable is Readable for a path that will be written. No link leads out of the workspace and the write roots.
func (r *Roots) Writable(path string) (string, error) {
	return r.check(path, "write", append([]string{r.workspace}, r.write...))
}

// Rel names a path as people see it: relative to the workspace with forward slashes where it is inside, otherwise as it is.
func (r *Roots) Rel(abs string) string {
	for _, root := range []string{r.workspace, r.given} {
		if Inside(root, abs) {
			if rel, err := filepath.Rel(root, abs); err == nil {
				return filepath.ToSlash(rel)
			}
		}
	}
	return abs
}

func (r *Roots) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(r.workspace, path)
}

func (r *Roots) check(path, verb string, allowed []string) (string, error) {
	if strings.TrimSpace(path) == "" {
		return "", finding.Refuse(finding.Finding{Code: "path_empty", Severity: finding.Error, What: "the path is empty",
			Expected: "a path relative to the workspace " + r.workspace, Remedy: "name the file or folder"})
	}
	if strings.ContainsRune(path, 0) {
		return "", r.outside(strings.ReplaceAll(path, "\x00", `\0`), "it holds a NUL byte", verb, allowed)
	}
	if len(path) > longestPath {
		return "", r.outside(path[:64]+"…", fmt.Sprintf("it has %d bytes", len(path)), verb, allowed)
	}
	resolved, err := resolve(r.absolute(path), 0)
	switch {
	case errors.Is(err, errLinkLoop):
		return "", r.outside(path, "its symbolic links form a loop", verb, allowed)
	case err != nil:
		return "", finding.Refuse(finding.Finding{Code: "path_unreadable", Severity: finding.Error, What: fmt.Sprintf("%s can't be looked up: %v", path, err),
			Where: &finding.Where{Path: path}, Remedy: "check the permissions of the folders above it, or name another path"})
	}
	for _, root := range allowed {
		if Inside(root, resolved) {
			return resolved, nil
		}
	}
	return "", r.outside(path, "it leads to "+resolved, verb, allowed)
}

func (r *Roots) outside(path, why, verb string, allowed []string) error {
	remedy := "use a path inside the workspace, or have the user add the folder to read_roots in policy.yaml"
	if verb == "write" {
		remedy = "use a path inside the workspace, or have the user add the folder to write_roots in policy.yaml"
	}
	return finding.Refuse(finding.Finding{Code: "path_outside_roots", Severity: finding.Error,
		What:  fmt.Sprintf("%s may not be %s: %s", path, map[string]string{"read": "read", "write": "written"}[verb], why),
		Where: &finding.Where{Path: path}, Expected: "a path inside " + strings.Join(allowed, " or "), Remedy: remedy})
}

// Inside tells whether path is root or below it. Both are clean and absolute.
func Inside(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// longestPath is PATH_MAX of Linux in bytes.
const longestPath = 4096

var errLinkLoop = errors.New("too many symbolic links")

// resolve follows every link in path, also where its end does not exist yet: there it goes on from the longest prefix
// that does. A link that leads nowhere counts as the place it names.
func resolve(path string, depth int) (string, error) {
	const mostLinks = 40 // as Linux: path_resolution(7)
	if depth > mostLinks {
		return "", errLinkLoop
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return "", err
	}
	parent := filepath.Dir(path)
	if parent == path {
		return "", err
	}
	info, lerr := os.Lstat(path)
	if lerr == nil && info.Mode()&fs.ModeSymlink == 0 && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	above, perr := resolve(parent, depth)
	if perr != nil {
		return "", perr
	}
	if lerr != nil || info.Mode()&fs.ModeSymlink == 0 {
		return filepath.Join(above, filepath.Base(path)), nil
	}
	target, err := os.Readlink(path)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(above, target)
	}
	return resolve(filepath.Clean(target), depth+1)
}
