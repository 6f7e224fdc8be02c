package rundir

import (
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/trainwright/trainwright/internal/finding"
)

// WriteArtifacts writes several rendered files in the order of their names, each by the rules of WriteArtifact, and returns
// what stood in the way. What is about to be written is noted in rendered.json once for all of them, before the first. The
// caller holds the run's lock.
func (d Dir) WriteArtifacts(files map[string][]byte) ([]finding.Finding, error) {
	rendered := map[string]rendering{}
	if err := ReadJSON(d.renderedPath(), &rendered); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	changed := false
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		path, err := d.artifactPath(name)
		if err != nil {
			return nil, err
		}
		onDisk, err := diskHash(path)
		if err != nil {
			return nil, err
		}
		last, known := rendered[name]
		want := HashBytes(files[name])
		if ours := onDisk == "" || onDisk == want || known && (onDisk == last.SHA256 || onDisk == last.Before); ours && last.Offered == "" && last.SHA256 != want {
			rendered[name], changed = rendering{SHA256: want, Before: onDisk}, true
		}
	}
	if changed {
		if err := WriteJSON(d.renderedPath(), rendered); err != nil {
			return nil, err
		}
	}
	var findings []finding.Finding
	for _, name := range names {
		_, f, err := d.WriteArtifact(name, files[name])
		if err != nil {
			return findings, err
		}
		if f != nil {
			findings = append(findings, *f)
		}
	}
	return findings, nil
}

// WroteIt says whether a file holds what trainwright last wrote there, or was about to write when it was interrupted.
func (d Dir) WroteIt(name string, data []byte) (bool, error) {
	rendered := map[string]rendering{}
	if err := ReadJSON(d.renderedPath(), &rendered); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, err
	}
	last, known := rendered[name]
	sha := HashBytes(data)
	return known && (sha == last.SHA256 || sha == last.Before), nil
}
