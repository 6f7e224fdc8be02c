package resources

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/jobs"
)

// Complete gives the values that an argument of a template may have and that begin with what is written already. known are
// the arguments that are settled. Values are as the address writes them, in the order of the lists they come from.
func (s *Source) Complete(_ context.Context, template, argument, written string, known map[string]string) ([]string, error) {
	scheme, _, _ := strings.Cut(template, "://")
	var values []string
	var err error
	switch {
	case scheme == "workspace" && argument == "path":
		values = s.pathsBelow(written)
	case scheme == "skill" && argument == "name":
		for _, sk := range s.Library.List("") {
			values = append(values, sk.Name)
		}
	case scheme == "skill" && argument == "path":
		values = s.skillPaths(known["name"])
	case scheme == "run" && argument == "run_id":
		values, err = s.runIDs()
	case scheme == "run" && argument == "artifact":
		values = s.artifactsOf(known["run_id"])
	case scheme == "job" && argument == "job_id":
		values, err = s.jobIDs()
	case scheme == "job" && argument == "file":
		values = s.filesOfJob(known["job_id"])
	}
	return slices.DeleteFunc(values, func(v string) bool { return !strings.HasPrefix(v, written) }), err
}

// pathsBelow lists the folder that a path has come to.
func (s *Source) pathsBelow(written string) (values []string) {
	folder, _ := path.Split(written)
	a, err := parse("workspace:///" + folder)
	if err != nil {
		return nil // what is written leads nowhere
	}
	o, err := openInside(s.Roots.Workspace(), a.path, s.ignored)
	if err != nil {
		return nil
	}
	defer o.close()
	if o.folder == nil {
		return nil
	}
	entries, _, _, _ := s.entries(o) // a folder that can't be read completes nothing
	for _, e := range entries {
		value := folder + escaped(e.Name)
		if e.Kind == kindFolder {
			value += "/"
		}
		if e.Kind != kindLink {
			values = append(values, value)
		}
	}
	return values
}

func (s *Source) skillPaths(name string) (values []string) {
	sk, err := s.Library.Get(name)
	if err != nil {
		return nil
	}
	for _, f := range sk.Files {
		values = append(values, f.Path)
	}
	return values
}

func (s *Source) runIDs() (values []string, err error) {
	entries, _, err := s.index().List()
	for _, e := range entries {
		values = append(values, e.RunID)
	}
	return values, err
}

func (s *Source) artifactsOf(id string) (values []string) {
	entry, err := s.index().Get(id)
	if err != nil {
		return nil
	}
	for _, item := range s.artifactItems(entry) {
		values = append(values, strings.TrimPrefix(item.URI, "run://"+id+"/"))
	}
	return values
}

func (s *Source) jobIDs() (values []string, err error) {
	if s.JobRoots == nil {
		return nil, nil
	}
	roots, err := s.JobRoots()
	if err != nil {
		return nil, err
	}
	entries, _ := jobs.List(roots)
	for _, e := range entries {
		values = append(values, e.JobID)
	}
	return values, nil
}

func (s *Source) filesOfJob(id string) (values []string) {
	folder, err := s.jobFolder(address{uri: "job://" + id, of: id})
	if err != nil {
		return nil
	}
	for _, f := range jobFiles(id, folder) {
		values = append(values, escaped(f.Name))
	}
	return values
}
