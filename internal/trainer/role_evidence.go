package trainer

import (
	"fmt"

	"github.com/trainwright/trainwright/internal/checkpoint"
	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// contradictRole reads the checkpoint that the handoff names and tells where what it holds speaks against its role: one to be resumed that
// lacks the optimizer's state or has seen all epochs already, and one to start from that still has both.
func (l *ledger) contradictRole(h contract.StepHandoff, roots *rundir.Roots) {
	named := h.Inputs.Checkpoint
	path, role := named.ResumeCheckpoint, contract.RoleResumeTraining
	if path == "" {
		if path, role = named.FinetuneCheckpoint, contract.RoleFinetune; path == "" {
			path, role = named.InitCheckpoint, contract.RoleInitFromCheckpoint
		}
	}
	if path == "" {
		return
	}
	abs, err := roots.Readable(path)
	if err != nil {
		return // phase 0 tells
	}
	info, _, err := checkpoint.Inspect(abs)
	if err != nil {
		return
	}
	tell := func(code string, severity finding.Severity, what, expected, remedy string) {
		l.findings = append(l.findings, finding.Finding{Code: code, Severity: severity, What: what, Where: &finding.Where{Path: abs, Field: "step_handoff.inputs.checkpoint"}, Expected: expected, Remedy: remedy})
	}
	holds, known := checkpoint.HoldsOptimizer(info)
	epochs, limited := asFloat(l.value("training.epochs_or_steps"))
	switch {
	case role == contract.RoleResumeTraining && known && !holds:
		tell("checkpoint_role_contradicted", finding.Warning, fmt.Sprintf("%s is to be resumed and holds no optimizer state: the optimizer would start anew, with its momentum and step count lost", path),
			"a checkpoint with optimizer state, or the role init_from_checkpoint", "ask the user which is meant; name it in inputs.checkpoint.init_checkpoint if only the weights count")
	case role == contract.RoleResumeTraining && limited && info.Epoch != nil && *info.Epoch >= epochs:
		tell("checkpoint_at_its_end", finding.Warning, fmt.Sprintf("%s is of epoch %g, and the training is to have %g: nothing is left to train", path, *info.Epoch, epochs),
			fmt.Sprintf("more than %g epochs", *info.Epoch), "raise epochs_or_steps, or name an earlier checkpoint")
	case role != contract.RoleResumeTraining && known && holds:
		tell("checkpoint_holds_optimizer", finding.Note, fmt.Sprintf("%s holds optimizer state as well; as %s only its weights count", path, role),
			"", "if the training is to be continued, name it in inputs.checkpoint.resume_checkpoint")
	}
}
