package trainer

import (
	"fmt"
	"strings"

	"github.com/trainwright/trainwright/internal/engine"
)

// renderPlan is training_plan.md.
func renderPlan(run *engine.Run, plan Plan, view projectView, out engine.Outcome) []byte {
	var m markdown
	m.line("# Training plan")
	m.line("\nRun %s: %s", code(run.ID), cellText(words(run.Handoff)))
	m.heading(2, "Strategy")
	var rows [][]string
	for _, spec := range leaves {
		leaf := plan.Leaves[spec.path]
		from := leaf.Why
		if leaf.Fact != "" {
			from = strings.TrimSpace(leaf.Fact + " " + leaf.Why)
		}
		rows = append(rows, []string{spec.path, show(leaf.Value), leaf.Status, code(leaf.Argument), from})
	}
	m.table("", []string{"field", "value", "status", "argument", "fact or reason"}, rows)
	m.heading(2, "Checkpoint role")
	m.line("%s (%s%s)", show(plan.Role.Value), plan.Role.Status, suffix(": ", plan.Role.Why))
	m.heading(2, "Success criteria")
	m.list("MISSING: "+plan.Success.Why, plan.criteriaOf())
	m.heading(2, "Runner contract")
	rows = nil
	for _, e := range plan.RunnerContract {
		rows = append(rows, []string{code(e.Function), e.In, e.Status})
	}
	m.table("", []string{"function", "where", "status"}, rows)
	m.heading(2, "Estimates")
	m.list("", plan.Estimates)
	renderTiers(&m, plan)
	m.heading(2, "Smoke plan")
	m.list("", plan.Smoke)
	m.heading(2, "Open")
	var open []string
	for _, n := range out.Needs {
		open = append(open, fmt.Sprintf("MISSING: %s (%s)", n.Field, n.Why))
	}
	m.list("Nothing.", append(open, out.Assumptions...))
	return []byte(m.String())
}

func suffix(sep, s string) string {
	if s == "" {
		return ""
	}
	return sep + s
}
