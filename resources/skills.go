package resources

import (
	"errors"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/skill"
	"github.com/trainwright/trainwright/skills"
)

// SkillPlaces is where skills come from: the workspace, folders that were named (of skills, or of one skill), and the
// user's home, "" where there is none. Now is the clock by which the library looks again.
type SkillPlaces struct {
	Workspace string
	Folders   []string
	Home      string
	Now       func() time.Time
}

// Skills makes the library of a workspace, which follows what changes. Where a name comes twice, the workspace's own skill
// wins, then that of a named folder, then the user's; what the binary carries comes last.
func Skills(p SkillPlaces) *skill.Library {
	roots := skill.WorkspaceRoots(p.Workspace)
	for _, folder := range p.Folders {
		roots = append(roots, skill.FolderRoot(folder))
	}
	if p.Home != "" {
		for _, folder := range skill.WorkspaceFolders {
			root := skill.FolderRoot(filepath.Join(p.Home, filepath.FromSlash(folder)))
			root.Foreign = true
			roots = append(roots, root)
		}
	}
	return skill.Live(p.Now, append(roots, skill.Root{Label: "trainwright", FS: skills.FS, Dir: ".", Fixed: true})...)
}

// readSkill answers skill://<name>/<file> with the file's very bytes: clients compare them with the digest that skills/list
// gives, so nothing is masked or cut.
func (s *Source) readSkill(uri, name, file string) (Content, error) {
	data, err := s.Library.Read(name, file)
	var refused *finding.Refused
	if errors.As(err, &refused) {
		return Content{}, notFound(uri, refused.Findings[0].What+"; there are: "+refused.Findings[0].Expected)
	}
	if err != nil {
		return Content{}, orNotFound(uri, err)
	}
	c := Content{URI: uri, MIME: MIMEType(file, data), Shown: int64(len(data)), Total: int64(len(data))}
	if utf8.Valid(data) {
		c.Text = string(data)
	} else {
		c.Binary, c.Blob = true, data
	}
	return c, nil
}

// skillItems lists the files of every skill; the entry of a SKILL.md says what the skill is for. Of a resource skill it is the only
// one: its cards are found by recall, and read by their address.
func (s *Source) skillItems() []Item {
	var items []Item
	for _, sk := range s.Library.List("") {
		for _, f := range sk.Files {
			if sk.Type == skill.TypeResource && f.Path != "SKILL.md" {
				continue
			}
			item := Item{URI: f.URI, Name: sk.Name + "/" + f.Path, MIME: MIMEType(f.Path, nil), Size: f.Size}
			if f.Path == "SKILL.md" {
				item.Title, item.Description = sk.Name, sk.Description
			}
			items = append(items, item)
		}
	}
	return items
}
