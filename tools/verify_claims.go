package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/trainer"
)

// VerifyClaimsInput holds statements about a run.
type VerifyClaimsInput struct {
	RunID  string              `json:"run_id" jsonschema:"required"`
	Claims []trainer.Statement `json:"claims" jsonschema:"required" jsonschema_description:"At most 50."`
}

// verifyClaims is the tool verify_claims.
func verifyClaims(deps Deps) Tool {
	return typedTool("verify_claims",
		"Holds statements about a validated run against its files: each is derived anew and holds, does_not_hold or can_not_be_checked, with the value found, its level (logged, recomputed) and the bytes it comes from. Use it before you report a number.",
		Annotations{ReadOnly: true, Idempotent: true},
		func(ctx context.Context, _ engine.Caller, in VerifyClaimsInput) (trainer.Verifications, error) {
			if in.RunID == "" {
				return trainer.Verifications{}, missing("run_id", "the id of a run", "run_list has the ids")
			}
			t, err := deps.Trainer()
			if err != nil {
				return trainer.Verifications{}, err
			}
			return t.VerifyClaims(ctx, in.RunID, in.Claims)
		},
		more[trainer.Verifications]{toolset: SetTrainer, rest: "send fewer claims", text: verifiedText})
}

func verifiedText(out trainer.Verifications) string {
	var lines []string
	for _, c := range out.Claims {
		lines = append(lines, fmt.Sprintf("%s: %s (%s)", c.Verdict, c.Statement, c.Why))
	}
	return strings.Join(lines, "\n")
}
