package trainer

import (
	"fmt"

	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
)

// Tier is how much a run of the plan may cost and what it may be taken for. WallSeconds is the limit of the job's wall time, 0 for
// none of the tier's own.
type Tier struct {
	Name        string `json:"name"`
	MostEpochs  int    `json:"most_epochs,omitempty"`
	WallSeconds int    `json:"wall_seconds,omitempty"`
	Keeps       string `json:"keeps"`
	Ends        string `json:"ends"`
	Says        string `json:"says"`
	Why         string `json:"why,omitempty"` // of the tier that is in force
}

// The tiers, the cheapest first.
const (
	tierSmoke = "smoke"
	tierQuick = "quick"
	tierFull  = "full"
)

var tiers = []Tier{
	{Name: tierSmoke, MostEpochs: 3, WallSeconds: 5 * 60, Keeps: "no weights", Ends: "after at most 3 epochs or 5 minutes", Says: "that the code runs; nothing about the model"},
	{Name: tierQuick, WallSeconds: 60 * 60, Keeps: "the best checkpoint", Ends: "after 60 minutes, or when the validation metric has not improved for the patience", Says: "whether it is worth a full run"},
	{Name: tierFull, Keeps: "checkpoints as planned", Ends: "as planned", Says: "what the criteria ask"},
}

// tierOf is the tier that the agent chose, else the full one.
func tierOf(name string) Tier {
	for _, t := range tiers {
		if t.Name == name {
			t.Why = "chosen by the agent"
			return t
		}
	}
	t := tiers[len(tiers)-1]
	t.Why = "nobody asked for less"
	return t
}

// tier holds the plan against its tier.
func (c *strategyCheck) tier() {
	t := c.plan.Tier
	epochs, known := c.number("epochs")
	if known && t.MostEpochs > 0 && epochs > float64(t.MostEpochs) {
		c.add("tier_exceeded", finding.Error, "epochs", fmt.Sprintf("the tier %s takes at most %d epochs, the plan has %g", t.Name, t.MostEpochs, epochs), fmt.Sprintf("at most %d", t.MostEpochs),
			"lower strategy.epochs (or the handoff's, with resolve), or choose the tier quick or full")
	}
	if t.Name == tierQuick && c.plan.Leaves["patience"].Value == nil {
		c.add("tier_without_patience", finding.Note, "patience", "nothing but the wall time ends a quick run: the plan has no patience", "a number of evaluations without an improvement",
			"send strategy.patience where the script takes one; else nothing has to be done")
	}
}

// tierLimit is the wall time that the plan's tier leaves, in seconds: the shorter one of it and of what the step may take; 0 for none.
func tierLimit(t Tier, budget int) int {
	switch {
	case t.WallSeconds == 0:
		return budget
	case budget == 0:
		return t.WallSeconds
	}
	return min(t.WallSeconds, budget)
}

// tierRisk says of a validated run what its tier leaves unsaid.
func tierRisk(plan Plan, report string) []finding.Finding {
	if plan.Tier.Name != tierSmoke && plan.Tier.Name != tierQuick {
		return nil
	}
	return []finding.Finding{{Code: "tier_is_a_trial", Severity: finding.Warning, What: fmt.Sprintf("this was a run of the tier %s: its numbers say %s", plan.Tier.Name, plan.Tier.Says),
		Where: &finding.Where{Path: report}, Expected: "a run of the tier full for a result", Remedy: "plan a full run before anything is concluded; the checkpoints of a smoke run may be deleted"}}
}

// renderTiers lists the tiers, the one in force marked.
func renderTiers(m *markdown, plan Plan) {
	m.heading(2, "Tiers")
	var rows [][]string
	for _, t := range tiers {
		status := ""
		if t.Name == plan.Tier.Name {
			status = evidence.Assumption + ": " + plan.Tier.Why
		}
		limit := "—"
		if t.WallSeconds > 0 {
			limit = fmt.Sprintf("%d min", t.WallSeconds/60)
		}
		rows = append(rows, []string{t.Name, limit, t.Keeps, t.Ends, t.Says, status})
	}
	m.table("", []string{"tier", "wall time", "keeps", "ends", "says", "in force"}, rows)
}

// projection is what a smoke run lets expect of the whole: never more than its time for each of its steps, since the start of the
// interpreter is counted with every one of them.
func projection(plan Plan, trainRows int64, smoke Smoke) (seconds float64, arithmetic string) {
	micro, okB := asFloat(plan.Leaves["batch.micro"].Value)
	epochs, okE := asFloat(plan.Leaves["epochs"].Value)
	cut := int64(smoke.Rows["train"])
	if !okB || !okE || micro < 1 || cut == 0 || trainRows == 0 || smoke.Seconds <= 0 {
		return 0, ""
	}
	steps := func(rows int64) float64 { return float64((rows + int64(micro) - 1) / int64(micro)) }
	seconds = smoke.Seconds / steps(cut) * steps(trainRows) * epochs
	return seconds, fmt.Sprintf("%.1f s / %g steps of the smoke run × %g steps × %g epochs, the start of the interpreter counted with every step", smoke.Seconds, steps(cut), steps(trainRows), epochs)
}
