package trainer

import (
	"fmt"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/project"
)

// addRole names the checkpoint's role. A checkpoint in the handoff decides; two of them contradict each other; without
// one, and with a script that loads none by default, it is training from scratch, INFERRED.
func (l *ledger) addRole(h contract.StepHandoff, view projectView) {
	named := []struct{ field, path, role string }{
		{"checkpoint.resume_checkpoint", h.Inputs.Checkpoint.ResumeCheckpoint, contract.RoleResumeTraining},
		{"checkpoint.init_checkpoint", h.Inputs.Checkpoint.InitCheckpoint, contract.RoleInitFromCheckpoint},
		{"checkpoint.finetune_checkpoint", h.Inputs.Checkpoint.FinetuneCheckpoint, contract.RoleFinetune},
	}
	var fields []string
	for _, n := range named {
		if n.path == "" {
			continue
		}
		fields = append(fields, n.field)
		if from := l.confirmed(n.field, n.path); from != nil {
			l.facts = append(l.facts, evidence.Fact{ID: l.nextID(), Field: "checkpoint.role", Value: n.role, Status: evidence.Confirmed, Source: from.Source,
				Quote: from.Quote, Start: from.Start, End: from.End, By: byUser, Why: n.field + " is given"})
		}
	}
	if len(fields) > 1 {
		l.findings = append(l.findings, finding.Finding{Code: "checkpoint_role_conflict", Severity: finding.Error, What: strings.Join(fields, " and ") + " are both given",
			Where: &finding.Where{Field: "step_handoff.inputs.checkpoint"}, Expected: "one checkpoint with one role", Remedy: "send a handoff that names only the one that is meant"})
	}
	if len(fields) > 0 || len(l.candidatesFor("checkpoint.role")) > 0 {
		return
	}
	if loads := loadsByDefault(view); loads != nil {
		l.findings = append(l.findings, finding.Finding{Code: "checkpoint_role_unclear", Severity: finding.Error,
			What:     fmt.Sprintf("no checkpoint was named, but %s loads %s by default", view.Entry, show(loads.Default)),
			Where:    &finding.Where{Path: view.path(), Line: loads.Place.Line},
			Expected: "the role of that checkpoint: resume, initialise or fine-tune", Remedy: "ask the user, then name it in inputs.checkpoint, or add the fact checkpoint.role"})
		return
	}
	l.facts = append(l.facts, evidence.Fact{ID: l.nextID(), Field: "checkpoint.role", Value: contract.RoleTrainFromScratch, Status: evidence.Inferred, By: byServer,
		Why: "no checkpoint is named and no argument of the script loads one by default", VerifyLater: "the checkpoint folder must be empty before the job starts"})
}

// confirmed is the fact of a field with that value.
func (l *ledger) confirmed(field, value string) *evidence.Fact {
	for i, f := range l.facts {
		if f.Field == field && f.Value == value {
			return &l.facts[i]
		}
	}
	return nil
}

// loadsByDefault is an argument of the script that names a checkpoint to load although nobody asked for it.
func loadsByDefault(view projectView) *project.Argument {
	for _, role := range []string{"checkpoint.resume_checkpoint", "checkpoint.init_checkpoint", "checkpoint.finetune_checkpoint"} {
		if a := view.argument(role); a != nil && !a.IsFlag && a.HasDefault && a.Default != nil && a.Default != "" {
			return a
		}
	}
	return nil
}
