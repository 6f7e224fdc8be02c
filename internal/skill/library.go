package skill

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/trainwright/trainwright/internal/finding"
)

// WorkspaceFolders are where a workspace keeps its own skills, the first one first.
var WorkspaceFolders = []string{".agents/skills", ".claude/skills"}

// Root is one place that holds skills: the folders directly in folder Dir of FS. Label says where that is in words. Fixed is
// one that can't change, as what the binary carries. Foreign is one that is not the workspace's: what is wrong with its
// skills is no more than a warning there.
type Root struct {
	Label   string
	FS      fs.FS
	Dir     string
	Fixed   bool
	Foreign bool
	above   string // the folder on disk that paths in FS begin in, where a finding has to name it
}

// place is a path of FS as findings name it.
func (r Root) place(path string) string {
	if r.above == "" {
		return path
	}
	return filepath.Join(r.above, filepath.FromSlash(path))
}

// told is a finding about a skill of this root.
func (r Root) told(f finding.Finding) finding.Finding {
	if r.Foreign && f.Severity == finding.Error {
		f.Severity = finding.Warning
	}
	if f.Where != nil {
		where := *f.Where
		where.Path = r.place(where.Path)
		f.Where = &where
	}
	return f
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

// FolderRoot is a folder that the user named or owns: of skills, or of one skill. A skill in it may be a link to anywhere,
// since the user has put it there; what is in the skill may not lead out of the skill's folder.
func FolderRoot(folder string) Root {
	place := gathered{folder: folder}
	if info, err := os.Stat(filepath.Join(folder, manifest)); err == nil && info.Mode().IsRegular() {
		place = gathered{folder: filepath.Dir(folder), only: filepath.Base(folder)}
	}
	return Root{Label: folder, FS: place, Dir: ".", above: place.folder}
}

// Library holds the skills of several places. The zero value is empty and usable. One made by Live follows what changes in
// its places.
type Library struct {
	mu       sync.Mutex
	skills   map[string]*Skill
	findings []finding.Finding
	watched  *watched // nil: it does not change
}

// NewLibrary loads the skills of all roots, once. Where a name comes twice the earlier root wins, so a workspace's roots go
// before the embedded one. The same skill seen twice (through a link, or as a copy) is dropped without a word; a different
// one is told (skill_shadowed). A root that can't be listed is a finding too, and the others are loaded.
func NewLibrary(roots ...Root) (*Library, []finding.Finding) {
	library := &Library{}
	library.skills, library.findings = loadRoots(roots)
	return library, library.findings
}

// Findings tells what is wrong with the skills, also with those that could not be loaded.
func (l *Library) Findings() []finding.Finding {
	_, findings := l.current()
	return findings
}

func loadRoots(roots []Root) (map[string]*Skill, []finding.Finding) {
	loaded := map[string]*Skill{}
	places := map[string]string{} // of the skill of a name
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
			first, known := loaded[s.Name]
			if !known {
				loaded[s.Name], places[s.Name] = s, root.place(s.Dir)
				continue
			}
			if slices.Equal(first.Files, s.Files) {
				dropped = append(dropped, s.Dir+"/")
				continue
			}
			findings = append(findings, finding.Finding{Code: "skill_shadowed", Severity: finding.Note, What: fmt.Sprintf("the skill %s in %s is hidden by another one of that name in %s", s.Name, root.Label, places[s.Name]),
				Where: &finding.Where{Path: root.place(s.Dir)}, Expected: "each name once", Remedy: "rename one of them if both are meant"})
		}
		for _, f := range found {
			if !slices.ContainsFunc(dropped, func(dir string) bool { return strings.HasPrefix(f.Where.Path, dir) }) {
				findings = append(findings, root.told(f))
			}
		}
	}
	return loaded, findings
}

// List returns the skills of a type ("" for all) by name.
func (l *Library) List(kind string) []*Skill {
	skills, _ := l.current()
	var found []*Skill
	for _, s := range skills {
		if kind == "" || s.Type == kind {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b *Skill) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// Get returns the skill of a name; an unknown one is refused (skill_unknown) with the names there are.
func (l *Library) Get(name string) (*Skill, error) {
	skills, _ := l.current()
	if s, ok := skills[name]; ok {
		return s, nil
	}
	var names []string
	for _, s := range l.List("") {
		names = append(names, s.Name)
	}
	return nil, finding.Refuse(finding.Finding{Code: "skill_unknown", Severity: finding.Error, What: fmt.Sprintf("there is no skill named %q", name), Where: &finding.Where{Field: "name"},
		Expected: "one of " + enumerate(names), Remedy: "send one of these names"})
}

// Read returns a file of a skill. The path is relative to the skill's folder; one that is not among its files is refused
// (skill_file_unknown) with those there are. The bytes are those that the skill lists: a file that has changed since is
// listed anew first.
func (l *Library) Read(name, file string) ([]byte, error) {
	data, listed, err := l.read(name, file)
	if listed && err == nil || !l.refresh() {
		return data, err
	}
	data, _, err = l.read(name, file)
	return data, err
}

// read gives a file as it is now, and says whether it is what the skill lists.
func (l *Library) read(name, file string) (data []byte, asListed bool, err error) {
	s, err := l.Get(name)
	if err != nil {
		return nil, false, err
	}
	at := slices.IndexFunc(s.Files, func(f File) bool { return f.Path == file })
	if at < 0 && !(s.Dynamic && fs.ValidPath(file) && file != ".") {
		return nil, false, s.unknownFile(file, "")
	}
	data, err = readFile(s.FS, file, MaxBytes)
	if err != nil {
		return nil, false, s.unknownFile(file, fmt.Sprintf(": %v", reason(err)))
	}
	return data, at < 0 || digestOf(data) == s.Files[at].SHA256, nil
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
	if len(names) == 0 {
		return "none, there are none"
	}
	return finding.Few(names, 20)
}
