package trainer

import (
	"fmt"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
)

// renderCapture is source_capture.md: every source with its hash, and what the project's code says.
func renderCapture(run *engine.Run, c *capture, candidates []evidence.Fact, recalled recalled) []byte {
	var m markdown
	m.line("# Source capture")
	m.line("\nRun %s, step %s: %s", code(run.ID), code(run.Handoff.StepID), cellText(run.Handoff.StepGoal))
	m.heading(2, "Sources")
	var rows [][]string
	for _, s := range c.sources {
		rows = append(rows, []string{s.ID, s.Kind, code(s.Ref), fmt.Sprint(s.Bytes), shortHash(s.SHA256), s.CapturedAt.UTC().Format(time.RFC3339), s.Note})
	}
	m.table("No source was captured.", []string{"id", "kind", "where", "bytes", "sha256", "captured", "note"}, rows)
	m.heading(2, "Project")
	c.renderProject(&m)
	m.heading(2, "Candidate facts")
	rows = nil
	for _, f := range candidates {
		rows = append(rows, []string{f.ID, f.Field, show(f.Value), f.By, f.Source, code(f.Quote)})
	}
	m.table("Nothing was found.", []string{"id", "field", "value", "by", "source", "quote"}, rows)
	m.heading(2, "Recall")
	var matched []string
	for _, r := range recalled.file.Result.MatchedResources {
		matched = append(matched, fmt.Sprintf("%s (%s): %s", code(r.Name), r.Path, r.WhyMatched))
	}
	m.list("Missing: "+recalled.file.Result.QuerySummary, matched)
	return []byte(m.String())
}

func (c *capture) renderProject(m *markdown) {
	if c.scan == nil {
		m.line("No project was named or found.")
		return
	}
	m.line("Folder %s, %d files.", code(c.step.Run.Roots.Rel(c.root)), len(c.scan.Files))
	switch g := c.scan.Git; {
	case g == nil:
		m.line("\nNot in a git repository.")
	case g.Error != "":
		m.line("\nThe git repository could not be read fully: %s", g.Error)
	default:
		state := "clean"
		if g.Dirty || len(g.Untracked) > 0 {
			state = fmt.Sprintf("%d files modified, %d untracked", len(g.Modified), len(g.Untracked))
		}
		m.line("\nGit commit %s, %s.", code(g.Commit), state)
	}
	m.heading(3, "Entry points")
	var rows [][]string
	for i, e := range c.scan.Entrypoints {
		if i == 5 {
			break
		}
		chosen := ""
		if e.Path == c.entry {
			chosen = "chosen"
		}
		rows = append(rows, []string{code(e.Path), chosen, strings.Join(e.Reasons, "; ")})
	}
	m.table("No script looks like one.", []string{"script", "", "reasons"}, rows)
	if script := c.scan.Entrypoint(c.entry); script != nil {
		m.heading(3, "Arguments of "+c.entry)
		rows = nil
		for _, a := range script.Arguments {
			value := "—"
			if a.HasDefault {
				value = show(a.Default)
				if a.Default == nil && a.DefaultText != "" && a.DefaultText != "None" {
					value = code(a.DefaultText)
				}
			} else if a.Required || a.Positional {
				value = "required"
			}
			rows = append(rows, []string{code(a.Name), value, a.Role, fmt.Sprintf("%s:%d", a.Place.Path, a.Place.Line)})
		}
		m.table("It takes none.", []string{"argument", "default", "meaning", "place"}, rows)
	}
	m.heading(3, "Dependencies")
	var needs []string
	for _, d := range c.scan.Dependencies {
		needs = append(needs, fmt.Sprintf("%s%s (%s:%d)", d.Name, d.Constraint, d.Place.Path, d.Place.Line))
	}
	m.list("None beyond Python's standard library were found.", needs)
	m.heading(3, "Traps")
	var traps []string
	for _, t := range c.scan.Traps {
		traps = append(traps, fmt.Sprintf("%s: %s (%s:%d)", t.Kind, t.What, t.Place.Path, t.Place.Line))
	}
	m.list("None were noticed.", traps)
}
