package rundir

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// ReadableFile is Readable for a regular file that exists. It refuses with file_missing (and the nearest names there are),
// is_a_directory, and not_a_regular_file for devices, sockets and named pipes, reading which might never end.
func (r *Roots) ReadableFile(path string) (string, fs.FileInfo, error) {
	abs, info, err := r.existing(path)
	switch {
	case err != nil:
		return "", nil, err
	case info.IsDir():
		return "", nil, kindRefusal("is_a_directory", path, "is a folder", "a file", "name a file inside it: "+strings.Join(namesIn(abs, 5), ", "))
	case !info.Mode().IsRegular():
		return "", nil, kindRefusal("not_a_regular_file", path, "is a "+kindOf(info.Mode()), "a regular file", "copy its content into a file in the workspace")
	}
	return abs, info, nil
}

// ReadableDir is Readable for a folder that exists. It refuses with file_missing and not_a_directory.
func (r *Roots) ReadableDir(path string) (string, error) {
	abs, info, err := r.existing(path)
	switch {
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", kindRefusal("not_a_directory", path, "is not a folder", "a folder", "name the folder that holds it: "+r.Rel(filepath.Dir(abs)))
	}
	return abs, nil
}

func (r *Roots) existing(path string) (string, fs.FileInfo, error) {
	abs, err := r.Readable(path)
	if err != nil {
		return "", nil, err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", nil, r.missing(path, abs, err)
	}
	return abs, info, nil
}

func kindRefusal(code, path, what, expected, remedy string) error {
	return finding.Refuse(finding.Finding{Code: code, Severity: finding.Error, What: path + " " + what,
		Where: &finding.Where{Path: path}, Expected: expected, Remedy: remedy})
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// missing says what is there instead: names alike in the same folder, or the nearest folder that exists.
func (r *Roots) missing(path, abs string, err error) error {
	parent := filepath.Dir(abs)
	for !isDir(parent) && parent != filepath.Dir(parent) {
		parent = filepath.Dir(parent)
	}
	remedy := fmt.Sprintf("name a file that exists; %s is empty", r.Rel(parent))
	if names := nearestNames(filepath.Base(abs), namesIn(parent, 2000), 3); parent == filepath.Dir(abs) && len(names) > 0 {
		remedy = fmt.Sprintf("did you mean %s? (in %s)", strings.Join(names, ", "), r.Rel(parent))
	} else if names := namesIn(parent, 5); len(names) > 0 {
		remedy = fmt.Sprintf("%s exists and holds %s", r.Rel(parent), strings.Join(names, ", "))
	}
	what := path + " does not exist"
	if !os.IsNotExist(err) && isDir(filepath.Dir(abs)) {
		what = fmt.Sprintf("%s can't be opened: %v", path, err)
	}
	return finding.Refuse(finding.Finding{Code: "file_missing", Severity: finding.Error, What: what,
		Where: &finding.Where{Path: path}, Expected: "an existing path; it was looked for at " + abs, Remedy: remedy})
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// namesIn lists up to most names in a folder, sorted; folders end in a slash. It reads no more than 2000 entries.
func namesIn(dir string, most int) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(2000) // what could be read is enough for a suggestion
	var names []string
	for _, e := range entries {
		if name := e.Name(); e.IsDir() {
			names = append(names, name+"/")
		} else {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names[:min(most, len(names))]
}

// nearestNames ranks names by edit distance to want, folded to lower case, and drops those with little in common.
func nearestNames(want string, names []string, most int) []string {
	type near struct {
		name     string
		distance int
	}
	var ranked []near
	want = strings.ToLower(want)
	for _, name := range names {
		folded := strings.ToLower(strings.TrimSuffix(name, "/"))
		d := finding.Distance(want, folded)
		if stem(want) == stem(folded) {
			d = min(d, 1)
		}
		if d <= max(2, len(want)/2) {
			ranked = append(ranked, near{name, d})
		}
	}
	slices.SortFunc(ranked, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	var nearest []string
	for _, n := range ranked[:min(most, len(ranked))] {
		nearest = append(nearest, n.name)
	}
	return nearest
}

func stem(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }
