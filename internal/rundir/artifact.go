package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// rendering is what rendered.json remembers of one artifact.
type rendering struct {
	SHA256 string `json:"sha256"` // what was last rendered to the artifact itself
	// Before is the rendering that SHA256 replaced. It is noted before the artifact is written, so that after a crash in
	// between the old file is known as ours and not taken for a hand's work.
	Before string `json:"before,omitempty"`
	// Offered is what was last put into the .new file beside an edited artifact.
	Offered string `json:"offered,omitempty"`
}

func (d Dir) renderedPath() string { return filepath.Join(d.Path, "rendered.json") }

// WriteArtifact writes a rendered file of the run, unless someone else changed it. What was rendered last is in
// rendered.json; a file that is neither that nor data is left alone:
//
//   - it was rendered before: the new rendering goes to <name>.new.md beside it (x.new.json for x.json) and the finding is
//     artifact_edited_by_hand, a warning for Markdown and an error for anything that phases read. Deleting the artifact
//     takes the new rendering at the next call; deleting the .new file keeps the edited one, until there is something newer.
//   - it was never rendered: the finding is artifact_planted, an error, and nothing is written.
//
// name is relative to the run, with forward slashes. wrote tells whether the artifact itself was written; it is false also
// when the file holds data already. The caller holds the run's lock.
func (d Dir) WriteArtifact(name string, data []byte) (wrote bool, f *finding.Finding, err error) {
	path, err := d.artifactPath(name)
	if err != nil {
		return false, nil, err
	}
	rendered := map[string]rendering{}
	if err := ReadJSON(d.renderedPath(), &rendered); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, nil, err
	}
	last, known := rendered[name]
	want := HashBytes(data)
	onDisk, err := diskHash(path)
	if err != nil {
		return false, nil, err
	}
	ours := onDisk == "" || known && (onDisk == last.SHA256 || onDisk == last.Before)
	if onDisk != want && !ours && !known {
		return false, planted(path, name, onDisk), nil
	}
	if onDisk != want && !ours {
		return d.offer(name, path, data, last, rendered)
	}
	if err := d.keepRendering(name, data, want); err != nil {
		return false, nil, err
	}
	if last.SHA256 != want || last.Offered != "" {
		rendered[name] = rendering{SHA256: want, Before: onDisk}
		if err := WriteJSON(d.renderedPath(), rendered); err != nil {
			return false, nil, err
		}
	}
	if onDisk != want {
		if err := WriteFile(path, data); err != nil {
			return false, nil, err
		}
	}
	return onDisk != want, nil, d.dropOffer(path, last.Offered)
}

// offer puts a rendering beside the artifact that was edited, once: an offer that was deleted was turned down.
func (d Dir) offer(name, path string, data []byte, last rendering, rendered map[string]rendering) (bool, *finding.Finding, error) {
	beside := newName(path)
	f := &finding.Finding{Code: "artifact_edited_by_hand", Severity: finding.Warning, Where: &finding.Where{Path: path},
		What:   name + " was edited by hand and is kept; what would be written now is in " + filepath.Base(beside),
		Remedy: fmt.Sprintf("compare the two; delete %s and call again to take the new one, or delete %s to keep yours", name, filepath.Base(beside))}
	if !isMarkdown(name) {
		f.Severity = finding.Error // phases read it: two truths are none
	}
	want := HashBytes(data)
	there, err := diskHash(beside)
	if err != nil {
		return false, nil, err
	}
	if there == "" && last.Offered == want {
		f.What = name + " was edited by hand and is kept; the rendering beside it was turned down"
		f.Remedy = fmt.Sprintf("delete %s and call again to have it rendered anew", name)
		return false, f, nil
	}
	if there != "" && there != want && there != last.Offered {
		return false, planted(beside, filepath.Base(beside), there), nil
	}
	last.Offered = want
	rendered[name] = last
	if err := WriteFile(beside, data); err != nil {
		return false, nil, err
	}
	return false, f, WriteJSON(d.renderedPath(), rendered)
}

// dropOffer removes a .new file that the artifact has caught up with, when it is still the one that was offered.
func (d Dir) dropOffer(path, offered string) error {
	beside := newName(path)
	if offered == "" {
		return nil
	}
	if there, err := diskHash(beside); err != nil || there != offered {
		return err
	}
	return os.Remove(beside)
}

func planted(path, name, sha string) *finding.Finding {
	return &finding.Finding{Code: "artifact_planted", Severity: finding.Error, Where: &finding.Where{Path: path},
		What: fmt.Sprintf("%s exists, and this run did not write it (%s)", name, sha), Expected: "no file of that name before the run writes it",
		Remedy: "move it away or delete it, and call again"}
}

// artifactPath refuses names that leave the run, also through a folder that is a link.
func (d Dir) artifactPath(name string) (string, error) {
	local := filepath.FromSlash(name)
	if !filepath.IsLocal(local) || filepath.Clean(local) == "." {
		return "", fmt.Errorf("artifact %q: not a name inside the run", name)
	}
	path := filepath.Join(d.Path, local)
	run, err := resolve(d.Path, 0)
	if err != nil {
		return "", fmt.Errorf("artifact %s: %w", path, err)
	}
	parent, err := resolve(filepath.Dir(path), 0)
	if err != nil {
		return "", fmt.Errorf("artifact %s: %w", path, err)
	}
	if !Inside(run, parent) {
		return "", finding.Refuse(finding.Finding{Code: "path_outside_roots", Severity: finding.Error, Where: &finding.Where{Path: path},
			What: "the artifact's folder is a link that leads to " + parent, Expected: "a folder inside " + run, Remedy: "replace the link with a folder"})
	}
	return path, nil
}

// diskHash is the hash of a file, "" when there is none. A link is not followed and hashes to what it says, so that it
// never counts as rendered.
func diskHash(path string) (string, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("hash %s: %w", path, err)
	case !info.Mode().IsRegular():
		return "a " + info.Mode().Type().String(), nil
	}
	sha, _, err := HashFile(path)
	return sha, err
}

// newName is training_plan.new.md for training_plan.md.
func newName(path string) string {
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + ".new" + ext
}
