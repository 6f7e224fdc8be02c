package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// WorkspaceFolders are where a workspace keeps its own skills, the first one first.
var WorkspaceFolders = []string{".agents/skills", ".claude/skills"}

// Root is one place that holds skills: the folders directly in folder Dir of FS. Label says where that is in words.
type Root struct {
	Label string
	FS    fs.FS
	Dir   string
}

// WorkspaceRoots names a workspace's own places: folders relative to it, WorkspaceFolders if none are given. Links inside
// them may lead anywhere in the workspace, and not out of it.
func WorkspaceRoots(workspace string, folders ...string) []Root {
	if len(folders) == 0 {
		folders = WorkspaceFolders
	}
	roots := make([]Root, 0, len(folders))
	for _, folder := range folders {
		roots = append(roots, Root{Label: folder, FS: confined(workspace), Dir: path.Clean(filepath.ToSlash(folder))})
	}
	return roots
}

// Library holds the skills of several places. The zero value is empty and usable; a Library does not change once made.
type Library struct {
	skills map[string]*Skill
}

// NewLibrary loads the skills of all roots. Where a name comes twice the earlier root wins, so a workspace's roots go
// before the embedded one. The same skill seen twice (through a link, or as a copy) is dropped without a word; a different
// one is told (skill_shadowed). A root that can't be listed is a finding too, and the others are loaded.
func NewLibrary(roots ...Root) (*Library, []finding.Finding) {
	library := &Library{skills: map[string]*Skill{}}
	var findings []finding.Finding
	for _, root := range roots {
		skills, found, err := LoadAll(root.FS, root.Dir)
		if err != nil {
			findings = append(findings, finding.Finding{Code: "skill_root_unreadable", Severity: finding.Warning, What: fmt.Sprintf("the skills in %s can't be listed: %v", root.Label, reason(err)),
				Where: &finding.Where{Path: root.Dir}, Expected: "a folder of skills", Remedy: "correct its permissions, or remove it from the list of skill folders"})
			continue
		}
		var dropped []string // folders of repeated skills: what is wrong with them has been said of the first one
		for _, s := range skills {
			first, known := library.skills[s.Name]
			if !known {
				library.skills[s.Name] = s
				continue
			}
			if slices.Equal(first.Files, s.Files) {
				dropped = append(dropped, s.Dir+"/")
				continue
			}
			findings = append(findings, finding.Finding{Code: "skill_shadowed", Severity: finding.Note, What: fmt.Sprintf("the skill %s in %s is hidden by another one of that name in %s", s.Name, root.Label, first.Dir),
				Where: &finding.Where{Path: s.Dir}, Expected: "each name once", Remedy: "rename one of them if both are meant"})
		}
		for _, f := range found {
			if !slices.ContainsFunc(dropped, func(dir string) bool { return strings.HasPrefix(f.Where.Path, dir) }) {
				findings = append(findings, f)
			}
		}
	}
	return library, findings
}

// List returns the skills of a type ("" for all) by name.
func (l *Library) List(kind string) []*Skill {
	if l == nil {
		return nil
	}
	var found []*Skill
	for _, s := range l.skills {
		if kind == "" || s.Type == kind {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b *Skill) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// Get returns the skill of a name; an unknown one is refused (skill_unknown) with the names there are.
func (l *Library) Get(name string) (*Skill, error) {
	if l != nil {
		if s, ok := l.skills[name]; ok {
			return s, nil
		}
	}
	var names []string
	for _, s := range l.List("") {
		names = append(names, s.Name)
	}
	return nil, finding.Refuse(finding.Finding{Code: "skill_unknown", Severity: finding.Error, What: fmt.Sprintf("there is no skill named %q", name), Where: &finding.Where{Field: "name"},
		Expected: "one of " + enumerate(names), Remedy: "send one of these names"})
}

// Read returns a file of a skill. The path is relative to the skill's folder; one that is not among its files is refused
// (skill_file_unknown) with those there are.
func (l *Library) Read(name, file string) ([]byte, error) {
	s, err := l.Get(name)
	if err != nil {
		return nil, err
	}
	listed := slices.ContainsFunc(s.Files, func(f File) bool { return f.Path == file })
	if !listed && !(s.Dynamic && fs.ValidPath(file) && file != ".") {
		return nil, s.unknownFile(file, "")
	}
	data, err := readFile(s.FS, file, MaxBytes)
	if err != nil {
		return nil, s.unknownFile(file, fmt.Sprintf(": %v", reason(err)))
	}
	return data, nil
}

func (s *Skill) unknownFile(file, why string) error {
	var paths []string
	for _, f := range s.Files {
		paths = append(paths, f.Path)
	}
	return finding.Refuse(finding.Finding{Code: "skill_file_unknown", Severity: finding.Error, What: fmt.Sprintf("the skill %s has no file %q%s", s.Name, file, why), Where: &finding.Where{Field: "path"},
		Expected: "one of " + enumerate(paths), Remedy: "send one of these paths"})
}

// enumerate names up to 20 things and counts the rest.
func enumerate(names []string) string {
	const most = 20
	switch n := len(names); {
	case n == 0:
		return "none, there are none"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}

// confined is a folder as a file system whose links can't leave it: every path is opened with os.Root. Only regular files
// and folders are opened, since opening a pipe would wait for its writer.
type confined string

var errIrregular = errors.New("it is neither a file nor a folder")

// Open opens a file or folder inside the root.
func (c confined) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	root, err := os.OpenRoot(string(c))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errIrregular}
	}
	return root.Open(name)
}

// Stat follows links inside the root.
func (c confined) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	root, err := os.OpenRoot(string(c))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Stat(name)
}
