package resources

import (
	"context"
	"slices"

	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/skill"
)

// pageSize is how many items a page of the list has.
const pageSize = 200

// Source is a workspace and a skill library as resources. Canonical names the artifacts of a skill that may be listed;
// every regular file of a run can be read.
type Source struct {
	Roots     *rundir.Roots
	Library   *skill.Library
	Canonical func(skill string) []string
}

// List gives a page of what there is: the skills' files, then the artifacts of the newest runs. The cursor is the last
// address of the page before; one that is not there any more ends the list.
func (s *Source) List(_ context.Context, cursor string) (items []Item, next string, err error) {
	runs, err := s.runItems()
	if err != nil {
		return nil, "", err
	}
	all := append(s.skillItems(), runs...)
	if cursor != "" {
		at := slices.IndexFunc(all, func(i Item) bool { return i.URI == cursor })
		if at < 0 {
			return nil, "", nil
		}
		all = all[at+1:]
	}
	if len(all) > pageSize {
		return all[:pageSize], all[pageSize-1].URI, nil
	}
	return all, "", nil
}

// Read answers one address. ErrNotFound is wrapped by the error of one that names nothing.
func (s *Source) Read(_ context.Context, uri string) (Content, error) {
	if id, artifact, ok := split(uri, "run"); ok {
		return s.readRun(uri, id, artifact)
	}
	if name, file, ok := split(uri, "skill"); ok {
		return s.readSkill(uri, name, file)
	}
	return Content{}, notFound(uri, "addresses are skill://<name>/SKILL.md and run://<run_id>/<artifact>, without dots that lead up")
}
