package trainer

import (
	"fmt"
	"strings"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
)

// knowledgeSections are the fixed sections of training_knowledge.md: a title and the fields that belong there.
var knowledgeSections = []struct{ title, prefix string }{
	{"Model and runner", "model."}, {"Checkpoint", "checkpoint."}, {"Task", "task."}, {"Data", "data."}, {"Training", "training."},
}

// renderKnowledge is training_knowledge.md: the facts in force with their quotes, what was overruled, what is missing.
func renderKnowledge(run *engine.Run, l *ledger, view projectView, out engine.Outcome) []byte {
	var m markdown
	m.line("# Training knowledge")
	m.line("\nRun %s. Every CONFIRMED fact has a verbatim quote in a captured source (see source_capture.md).", code(run.ID))
	for _, section := range knowledgeSections {
		m.heading(2, section.title)
		var rows [][]string
		for _, f := range l.inForce() {
			if strings.HasPrefix(f.Field, section.prefix) && f.Field != domainField && !strings.HasPrefix(f.Field, metadataPrefix) {
				rows = append(rows, factRow(f))
			}
		}
		m.table("Nothing is known.", []string{"field", "value", "status", "fact", "source", "quote or reason"}, rows)
	}
	renderMetadata(&m, l.facts, view.Docs)
	m.heading(2, "How the model is run")
	if script := view.script(); script != nil {
		m.line("%s is started with its own arguments; it defines %s.", code(view.Entry), code(strings.Join(script.Functions, ", ")))
	} else {
		m.line("MISSING: no entry point is known.")
	}
	m.heading(2, "Conflicts")
	var conflicts []string
	for _, f := range l.inForce() {
		for _, id := range f.Conflicts {
			if other := l.byID(id); other != nil {
				conflicts = append(conflicts, fmt.Sprintf("%s: %s (%s, by %s) is used; %s says %s (by %s, %s)", f.Field, show(f.Value), f.ID, f.By, other.ID, show(other.Value), other.By, other.Why))
			}
		}
	}
	m.list("None.", conflicts)
	m.heading(2, "Open")
	var open []string
	for _, n := range out.Needs {
		open = append(open, fmt.Sprintf("MISSING: %s (%s); look in %s", n.Field, n.Why, strings.Join(n.WhereToLook, ", ")))
	}
	for _, f := range l.inForce() {
		if f.Status == evidence.Inferred || f.Status == evidence.Assumption {
			open = append(open, fmt.Sprintf("%s: %s = %s (%s) %s", f.Status, f.Field, show(f.Value), f.Why, f.VerifyLater))
		}
	}
	m.list("Nothing.", open)
	return []byte(m.String())
}

func factRow(f evidence.Fact) []string {
	why := f.Why
	if f.Quote != "" {
		why = code(f.Quote)
	}
	return []string{f.Field, show(f.Value), f.Status, f.ID, f.Source, why}
}
