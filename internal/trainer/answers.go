package trainer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// answersFile keeps what the agent contributed to a phase, so that the phase can be run again without asking again.
func answersFile(phase string) string { return "answers/" + phase + ".json" }

// stored decodes into v what earlier calls contributed to this phase; nothing contributed leaves v as it is.
func stored(step *engine.Step, phase string, v any) error {
	if err := step.TrackOwn(answersFile(phase)); err != nil {
		return err
	}
	data, err := os.ReadFile(step.Run.File(answersFile(phase)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", answersFile(phase), err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", answersFile(phase), err)
	}
	return nil
}

// brought decodes into v what this call contributes; v keeps what the call leaves out.
// What decoding noticed is told by the tool that decoded the call.
func brought(step *engine.Step, v any) error {
	if len(step.Section) == 0 {
		return nil
	}
	_, err := contract.Decode(step.Section, v)
	return err
}

// keepAnswers commits the contribution that the phase accepted.
func keepAnswers(out *engine.Outcome, step *engine.Step, phase string, v any) error {
	if _, err := os.Stat(step.Run.File(answersFile(phase))); err != nil && len(step.Section) == 0 {
		return nil
	}
	return out.AddFile(answersFile(phase), v)
}

// ownedFile lists what trainwright itself writes into code_save_dir, noted before it is written: anything else that is
// there is the user's.
const ownedFile = "written.json"

// own notes paths of code_save_dir that are about to be written. A path that exists and was not noted before is refused:
// it would be overwritten.
func own(run *engine.Run, paths ...string) error {
	var written []string
	if err := rundir.ReadJSON(run.File(ownedFile), &written); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	refused := finding.Refuse()
	before := len(written)
	for _, path := range paths {
		name := run.Rel(path)
		if slices.Contains(written, name) {
			continue
		}
		if _, err := os.Lstat(path); err == nil {
			refused.Findings = append(refused.Findings, finding.Finding{Code: "file_in_the_way", Severity: finding.Error, What: run.Roots.Rel(path) + " exists and was not written by this run; it is left as it is",
				Where: &finding.Where{Path: path}, Expected: "a code_save_dir where this name is free", Remedy: "name another inputs.runtime.code_save_dir, or leave it out"})
			continue
		}
		written = append(written, name)
	}
	if len(refused.Findings) > 0 {
		return refused
	}
	if len(written) == before {
		return nil
	}
	return rundir.WriteJSON(run.File(ownedFile), written)
}
