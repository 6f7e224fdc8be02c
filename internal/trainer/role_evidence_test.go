package trainer

import (
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
)

// What a checkpoint holds speaks against the role that it was given.
func TestACheckpointContradictsItsRole(t *testing.T) {
	t.Parallel()
	marker := func(holds, epoch string) string {
		return `{"sha256": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", "bytes": 2, "step": 50, "epoch": ` + epoch + `, "holds": [` + holds + `]}`
	}
	for name, c := range map[string]struct {
		role, holds, epoch string
		want               string
	}{
		"resumed without an optimizer": {contract.RoleResumeTraining, `"model"`, "1", "checkpoint_role_contradicted"},
		"resumed at its end":           {contract.RoleResumeTraining, `"model", "optimizer", "step"`, "2", "checkpoint_at_its_end"},
		"resumed in the middle":        {contract.RoleResumeTraining, `"model", "optimizer", "step"`, "1", ""},
		"weights of a whole one":       {contract.RoleInitFromCheckpoint, `"model", "optimizer"`, "1", "checkpoint_holds_optimizer"},
	} {
		f := newFixture(t)
		f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
		f.write("old/epoch-0001.json", "{}")
		f.write("old/epoch-0001.json.complete.json", marker(c.holds, c.epoch))
		if c.role == contract.RoleResumeTraining {
			f.handoff.Inputs.Checkpoint.ResumeCheckpoint = "old/epoch-0001.json"
		} else {
			f.handoff.Inputs.Checkpoint.InitCheckpoint = "old/epoch-0001.json"
		}
		answer := f.phase(1, f.walk().Run.RunID, nil)
		got := ""
		for _, found := range answer.Findings {
			if strings.HasPrefix(found.Code, "checkpoint_") && found.Code != "checkpoint_role_unsupported" {
				got += found.Code
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q\n%s", name, got, c.want, listFindings(answer.Findings))
		}
	}
}
