package trainer

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// adopt takes a folder that something else filled. Its evidence is external: no exit record of ours vouches for it.
func (w *validationWork) adopt() error {
	if w.given.Adopt != nil && w.given.Adopt.Path != "" {
		dir, err := w.step.Run.Roots.Readable(w.given.Adopt.Path)
		if err != nil {
			w.out.Findings = append(w.out.Findings, refusalOf(err)...)
			return notRefused(err)
		}
		w.base = dir
	}
	entries, found, err := rundir.Tree(w.base, rundir.TreeOptions{})
	if err != nil {
		return err
	}
	w.out.Findings = append(w.out.Findings, found...)
	for _, e := range entries {
		if adoptable(e.Path) {
			w.outputs = append(w.outputs, Output{Path: e.Path, SHA256: e.SHA256, Bytes: e.Size, ModTime: e.ModTime})
		}
	}
	if len(w.outputs) == 0 {
		w.nothingToAdopt()
		return nil
	}
	if err := w.pinAdopted(); err != nil {
		return err
	}
	w.out.Findings = append(w.out.Findings, finding.Finding{Code: "evidence_external", Severity: finding.Warning, What: "the run was started elsewhere: no exit record or inventory of trainwright vouches for its files",
		Where: &finding.Where{Path: w.base}, Remedy: "run it through phase_5_execution for evidence of its own"})
	w.made.CheckpointDir = filepath.Join(w.base, "checkpoints")
	return nil
}

// adoptable says whether a file of a folder is something that a training left there: what lies in the folders that trainers
// write into, and metrics, predictions and logs beside them.
func adoptable(name string) bool {
	first, _, nested := strings.Cut(name, "/")
	if nested {
		return slices.Contains([]string{"outputs", "checkpoints", "logs", "lightning_logs"}, first)
	}
	return strings.HasPrefix(name, "metrics.") || strings.HasPrefix(name, "predictions-") || slices.Contains([]string{"summary.json", "train.log", "trainer.log"}, name)
}

// adoptedFile keeps the files of an adopted run as they were when it was adopted.
const adoptedFile = "adopted.json"

// adoptedRun is adopted.json.
type adoptedRun struct {
	Path    string   `json:"path"`
	JobID   string   `json:"job_id,omitempty"`
	Outputs []Output `json:"outputs"`
}

// pinAdopted takes the files as they were when the folder was adopted, so that a later edit is seen against them. Adopting it
// again by an explicit call takes them as they are now.
func (w *validationWork) pinAdopted() error {
	now := adoptedRun{Path: w.step.Run.Roots.Rel(w.base), Outputs: w.outputs}
	if w.given.Adopt != nil {
		now.JobID = w.given.Adopt.JobID
	}
	var pinned adoptedRun
	err := rundir.ReadJSON(w.step.Run.File(adoptedFile), &pinned)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, asked := w.step.Section["adopt"]; err == nil && !asked && pinned.Path == now.Path {
		now, w.outputs = pinned, pinned.Outputs
	}
	return w.out.AddFile(adoptedFile, now)
}

// nothingToAdopt blocks the phase until the agent says where the run is.
func (w *validationWork) nothingToAdopt() {
	w.out.Findings = append(w.out.Findings, finding.Finding{Code: "nothing_to_adopt", Severity: finding.Error, What: w.step.Run.Roots.Rel(w.base) + " holds neither outputs nor checkpoints",
		Where: &finding.Where{Path: w.base}, Expected: "the folder of a run with outputs/ and checkpoints/", Remedy: `send {"adopt": {"path": "<folder>"}}`})
	w.out.Needs = append(w.out.Needs, engine.Need{Field: "adopt.path", Why: "execution_intent validate_only: the run to validate", WhereToLook: []string{"ask the user"}, Candidates: []string{}})
	w.out.Next = &engine.NextCall{Tool: "phase_6_validation", Arguments: map[string]any{"run_id": w.step.Run.ID, "adopt": map[string]any{"path": "<folder>"}}}
	w.out.Summary = "nothing to adopt"
	w.out.Decide()
}
