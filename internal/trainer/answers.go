package trainer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
)

// answersFile keeps what the agent contributed to a phase, so that the phase can be run again without asking again.
func answersFile(phase string) string { return "answers/" + phase + ".json" }

// stored decodes into v what earlier calls contributed to this phase; nothing contributed leaves v as it is.
func stored(step *engine.Step, phase string, v any) error {
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
