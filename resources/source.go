package resources

import (
	"context"
	"slices"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/skill"
)

// pageSize is how many items a page of the list has.
const pageSize = 200

// Source is a workspace and a skill library as resources. Canonical names the artifacts of a skill that may be listed;
// every regular file of a run can be read. JobRoots are the folders that hold jobs, and JobStatus says where those in the
// given folders stand; without them there are no jobs.
type Source struct {
	Roots     *rundir.Roots
	Library   *skill.Library
	Canonical func(skill string) []string
	JobRoots  func() ([]string, error)
	JobStatus func(ctx context.Context, folders []string) ([]jobs.Status, error)
}

// List gives a page of what there is: the skills' files, the workspace's top folder, the newest jobs, then the artifacts of
// the newest runs. The cursor is the last address of the page before; one that is not there any more ends the list.
func (s *Source) List(_ context.Context, cursor string) (items []Item, next string, err error) {
	runs, err := s.runItems()
	if err != nil {
		return nil, "", err
	}
	newest, err := s.jobItems()
	if err != nil {
		return nil, "", err
	}
	all := slices.Concat(s.skillItems(), []Item{workspaceItem()}, newest, runs)
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

// Read answers one address. ErrNotFound is wrapped by the error of one that names nothing, ErrInvalid by that of one whose
// range can't be understood.
func (s *Source) Read(ctx context.Context, uri string) (Content, error) {
	a, err := parse(uri)
	if err != nil {
		return Content{}, err
	}
	switch a.scheme {
	case "workspace":
		return s.readWorkspace(a)
	case "run":
		return s.readRun(a)
	case "job":
		return s.readJob(ctx, a)
	}
	return s.readSkill(uri, a.of, a.path)
}
