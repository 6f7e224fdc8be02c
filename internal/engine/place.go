package engine

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// place is where a run lives, both absolute.
type place struct{ workdir, codeSaveDir string }

// placeRun applies the trainer_workdir rules of contracts.md, first that applies: inputs.runtime.trainer_workdir;
// <code_save_dir>/.trainer_work/<run_id>/ where code_save_dir is given; inputs.runtime.workdir or a folder named in
// relevant_artifacts or by the user; .onescience/trainer/<run_id>/. Without a code_save_dir it is <trainer_workdir>/code
// (settled.md).
func (e *Engine) placeRun(id string, handoff contract.StepHandoff) (place, error) {
	runtime := handoff.Inputs.Runtime
	var p place
	if runtime.CodeSaveDir != "" {
		dir, err := e.Roots.Writable(runtime.CodeSaveDir)
		if err != nil {
			return p, atField(err, "step_handoff.inputs.runtime.code_save_dir")
		}
		p.codeSaveDir = dir
	}
	given, field := runtime.TrainerWorkdir, "step_handoff.inputs.runtime.trainer_workdir"
	switch {
	case given != "":
	case p.codeSaveDir != "":
		given, field = filepath.Join(p.codeSaveDir, ".trainer_work", id), "step_handoff.inputs.runtime.code_save_dir"
	case runtime.Workdir != "":
		given, field = runtime.Workdir, "step_handoff.inputs.runtime.workdir"
	default:
		given, field = namedWorkdir(handoff), "step_handoff.task_context"
		if given == "" {
			given = filepath.Join(".onescience", "trainer", id)
		}
	}
	dir, err := e.Roots.Writable(given)
	if err != nil {
		return p, atField(err, field)
	}
	p.workdir = dir
	if p.codeSaveDir == "" {
		p.codeSaveDir = filepath.Join(dir, "code")
	}
	return p, nil
}

// Contradiction is the risk that the run's trainer_workdir lies outside the code_save_dir that was given: it is used, and
// said.
func (r *Run) Contradiction() []finding.Finding {
	given := r.Handoff.Inputs.Runtime
	if given.TrainerWorkdir == "" || given.CodeSaveDir == "" || rundir.Inside(r.CodeSaveDir, r.Workdir) {
		return nil
	}
	return []finding.Finding{{Code: "workdir_contradiction", Severity: finding.Warning,
		What:     fmt.Sprintf("trainer_workdir %s lies outside code_save_dir %s", r.Roots.Rel(r.Workdir), r.Roots.Rel(r.CodeSaveDir)),
		Where:    &finding.Where{Field: "step_handoff.inputs.runtime.trainer_workdir"},
		Expected: "a trainer_workdir inside code_save_dir", Remedy: "nothing to do when it is meant; trainer_workdir is used"}}
}

// workdirWords is how a user names the folder in words: "trainer_workdir: runs/a" or "workdir=runs/a".
var workdirWords = regexp.MustCompile(`(?i)\b(?:trainer_)?workdir\s*[:=]\s*["']?([^\s"',;]+)`)

// namedWorkdir is the folder that relevant_artifacts or the user's own words name as the working folder.
func namedWorkdir(handoff contract.StepHandoff) string {
	context := handoff.TaskContext
	for _, text := range append(append([]string{}, context.RelevantArtifacts...), append(context.Constraints, context.UserGoal)...) {
		if m := workdirWords.FindStringSubmatch(text); m != nil {
			return strings.TrimRight(m[1], ".")
		}
	}
	return ""
}

// atField adds to a refusal the field of the call that named the path.
func atField(err error, field string) error {
	refused, ok := err.(*finding.Refused)
	if !ok {
		return err
	}
	for i := range refused.Findings {
		where := finding.Where{}
		if refused.Findings[i].Where != nil {
			where = *refused.Findings[i].Where
		}
		where.Field = field
		refused.Findings[i].Where = &where
	}
	return refused
}
