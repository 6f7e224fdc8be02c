package snapshot

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Command is a command line that runs the copies.
type Command struct {
	Argv []string
	// Env belongs into the job's request.
	Env map[string]string
	// Rewritten are the words of the original command that name a copy now, by what they were.
	Rewritten map[string]string
}

// Command points a command line into the snapshot: every word, or the part of one behind "=", that names a copied file by
// its absolute path or from workDir. The script then imports the modules beside it from the copies, and finds data files
// beside itself through the links. The copies get no bytecode files. A command of which no word is the entry point is
// refused with snapshot_not_used: it would run the tree as it is then. A word that names a folder with copied code stays
// as it is, since the job may write there, and is told as snapshot_argument_live.
func (s Snapshot) Command(argv []string, workDir string) (Command, []finding.Finding, error) {
	out := Command{Argv: slices.Clone(argv), Rewritten: map[string]string{}, Env: map[string]string{"PYTHONDONTWRITEBYTECODE": "1", TreeVariable: s.TreeSHA256}}
	var findings []finding.Finding
	started := false
	for i, word := range argv {
		name, value, assigned := strings.Cut(word, "=")
		if !assigned || !strings.HasPrefix(name, "-") {
			name, value, assigned = "", word, false
		}
		where, kind := s.find(value, workDir)
		switch kind {
		case isFile:
			rewritten := filepath.Join(s.dir(), filepath.FromSlash(where))
			if assigned {
				rewritten = name + "=" + rewritten
			}
			out.Argv[i], out.Rewritten[word] = rewritten, rewritten
			started = started || where == s.Entrypoint
		case isFolder:
			findings = append(findings, finding.Finding{Code: "snapshot_argument_live", Severity: finding.Warning,
				What:  fmt.Sprintf("%s is a folder with code or configuration that the job reads as it is then, not as it was in the snapshot", value),
				Where: &finding.Where{Field: fmt.Sprintf("command[%d]", i), Path: value}, Expected: "arguments that name files", Remedy: "leave the folder as it is until the job has ended"})
		}
	}
	if !started {
		return Command{}, nil, finding.Refuse(finding.Finding{Code: "snapshot_not_used", Severity: finding.Error,
			What: "no word of the command is the entry point of the snapshot: " + s.original(s.Entrypoint), Where: &finding.Where{Field: "command"},
			Expected: "a command that names its script by path", Remedy: "start the script itself instead of a module or a wrapper that finds it"})
	}
	if len(s.PythonPath) > 0 {
		var places []string
		for _, place := range s.PythonPath {
			places = append(places, filepath.Join(s.dir(), filepath.FromSlash(place)))
		}
		if s.Inherited != "" {
			places = append(places, s.Inherited)
		}
		out.Env["PYTHONPATH"] = strings.Join(places, string(filepath.ListSeparator))
	}
	return out, findings, nil
}

// What a word of a command can name.
const (
	isNothing = iota
	isFile
	isFolder
)

// find says what a word names, and where that is below snapshot/.
func (s Snapshot) find(word, workDir string) (name string, kind int) {
	if word == "" {
		return "", isNothing
	}
	if !filepath.IsAbs(word) {
		// A bare word is more often a value than a file: one that is meant as a file has a folder or an extension.
		if !strings.ContainsAny(word, `./\`) {
			return "", isNothing
		}
		word = filepath.Join(workDir, word)
	}
	resolved := filepath.Join(real(filepath.Dir(word)), filepath.Base(word))
	for _, root := range s.Roots {
		rel, ok := relative(root.Original, resolved)
		if !ok {
			continue
		}
		for _, f := range root.Files {
			if f.Path == rel {
				return path.Join(root.Name, rel), isFile
			}
			if rel == "." || strings.HasPrefix(f.Path, rel+"/") {
				kind = isFolder
			}
		}
		if kind == isFolder && rel == "." {
			kind = isNothing // the root itself: a working folder, named by many commands
		}
	}
	return "", kind
}

// Copy is where the copy of a file or folder of the original trees lies; false where there is none.
func (s Snapshot) Copy(original string) (string, bool) {
	for _, root := range s.Roots {
		rel, ok := relative(root.Original, original)
		if !ok {
			continue
		}
		for _, f := range root.Files {
			if rel == "." || f.Path == rel || strings.HasPrefix(f.Path, rel+"/") {
				return filepath.Join(s.dir(), root.Name, filepath.FromSlash(rel)), true
			}
		}
	}
	return "", false
}

// Root is where the copy of one of the original trees lies; false where that tree was not taken.
func (s Snapshot) Root(original string) (string, bool) {
	for _, root := range s.Roots {
		if root.Original == real(original) {
			return filepath.Join(s.dir(), root.Name), true
		}
	}
	return "", false
}

// Original is the file of the user's tree that a path inside the snapshot is a copy of, for messages that name places; a
// path that is not inside stays as it is.
func (s Snapshot) Original(copied string) string {
	rel, ok := relative(real(s.dir()), real(copied))
	if !ok {
		return copied
	}
	return s.original(rel)
}

// Originals is text with every path of a copy replaced by that of the file it is a copy of, as Original does for one path.
func (s Snapshot) Originals(text string) string {
	separator := string(os.PathSeparator)
	var pairs []string
	for _, dir := range []string{s.dir(), real(s.dir())} {
		for _, root := range s.Roots {
			pairs = append(pairs, filepath.Join(dir, root.Name)+separator, strings.TrimSuffix(root.Original, separator)+separator)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func (s Snapshot) original(name string) string {
	top, rest, _ := strings.Cut(name, "/")
	for _, root := range s.Roots {
		if root.Name == top {
			return filepath.Join(root.Original, filepath.FromSlash(rest))
		}
	}
	return name
}

// Moved points a command line and an environment that run one job's snapshot into the copy of it that lies in another
// job's folder.
func Moved(argv []string, env map[string]string, from, to string) ([]string, map[string]string) {
	before, after := filepath.Join(from, Folder)+string(os.PathSeparator), filepath.Join(to, Folder)+string(os.PathSeparator)
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = strings.ReplaceAll(word, before, after)
	}
	out := map[string]string{}
	for name, value := range env {
		out[name] = strings.ReplaceAll(value, before, after)
	}
	return words, out
}
