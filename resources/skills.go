package resources

import (
	"errors"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/skill"
	"github.com/trainwright/trainwright/skills"
)

// Skills loads the library of a workspace: its own skills first, then those the binary carries.
func Skills(workspace string) (*skill.Library, []finding.Finding) {
	return skill.NewLibrary(append(skill.WorkspaceRoots(workspace), skill.Root{Label: "trainwright", FS: skills.FS, Dir: "."})...)
}

// readSkill answers skill://<name>/<file>.
func (s *Source) readSkill(uri, name, file string) (Content, error) {
	data, err := s.Library.Read(name, file)
	var refused *finding.Refused
	if errors.As(err, &refused) {
		return Content{}, notFound(uri, refused.Findings[0].What+"; there are: "+refused.Findings[0].Expected)
	}
	if err != nil {
		return Content{}, orNotFound(uri, err)
	}
	return content(uri, file, data, int64(len(data)), file+" in the folder of skill "+name), nil
}

// skillItems lists the files of every skill; the entry of a SKILL.md says what the skill is for.
func (s *Source) skillItems() []Item {
	var items []Item
	for _, sk := range s.Library.List("") {
		for _, f := range sk.Files {
			item := Item{URI: f.URI, Name: sk.Name + "/" + f.Path, MIME: MIMEType(f.Path, nil), Size: f.Size}
			if f.Path == "SKILL.md" {
				item.Title, item.Description = sk.Name, sk.Description
			}
			items = append(items, item)
		}
	}
	return items
}
