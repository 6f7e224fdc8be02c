package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// EditedInput is what the tools of phases take that render Markdown for people.
type EditedInput struct {
	Edited string `json:"edited,omitempty" jsonschema:"enum=take_over,enum=render_anew" jsonschema_description:"What becomes of an artifact that was edited by hand."`
}

const (
	editedArgument = "edited"
	takeOver       = "take_over"
	renderAnew     = "render_anew"
	// handNotesFile keeps, by artifact, the lines that a hand added and no field holds: each rendering ends with them.
	handNotesFile = rundir.EditsDir + "/notes.json"
)

// Taker is what a phase implements that can read its Markdown back: the section of a call that would say the same, the lines
// of the edited text that it covers (from 0), and findings about what can't be taken.
type Taker interface {
	TakeOver(run *Run, edit rundir.Edit) (section map[string]any, covered []int, found []finding.Finding, err error)
}

// editedOf takes the argument out of a section.
func editedOf(section map[string]any) (edited string, rest map[string]any, err error) {
	value, sent := section[editedArgument]
	if !sent {
		return "", section, nil
	}
	edited, _ = value.(string)
	if edited != takeOver && edited != renderAnew {
		return "", nil, finding.Refuse(finding.Finding{Code: "unknown_value", Severity: finding.Error, What: fmt.Sprintf("edited is %s", short(value)),
			Where: &finding.Where{Field: editedArgument}, Expected: takeOver + " or " + renderAnew, Remedy: "send one of the two"})
	}
	rest = maps.Clone(section)
	delete(rest, editedArgument)
	return edited, rest, nil
}

// joined adds to what a call says what an edited artifact says; where both say something the call counts.
func joined(section, given map[string]any) map[string]any {
	if len(given) == 0 {
		return section
	}
	out := maps.Clone(given)
	for key, value := range section {
		inner, isObject := value.(map[string]any)
		if under, both := out[key].(map[string]any); isObject && both {
			value = joined(inner, under)
		}
		out[key] = value
	}
	return out
}

// settleEdits does with the phase's edited Markdown what the caller wants: the rendering is put back, or the phase is given
// what the edit says. The edited text is kept either way.
func (e *Engine) settleEdits(ctx context.Context, run *Run, name, how string) (notes []finding.Finding, section map[string]any, err error) {
	unlock, err := rundir.Lock(ctx, run.File(".lock"))
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	edits, err := run.edits(name)
	if err != nil {
		return nil, nil, err
	}
	if len(edits) == 0 {
		return nil, nil, finding.Refuse(finding.Finding{Code: "nothing_edited", Severity: finding.Error, What: "no artifact of " + name + " was edited by hand",
			Where: &finding.Where{Field: editedArgument}, Expected: "a Markdown artifact of this phase that differs from what was rendered", Remedy: "make the call without edited"})
	}
	phase := run.Skill.Phases[slices.IndexFunc(run.Skill.Phases, func(p Phase) bool { return p.Name() == name })]
	for _, edit := range edits {
		newest, err := run.Dir.Newest(edit)
		if err != nil {
			return nil, nil, err
		}
		kept, err := run.Dir.KeepEdit(edit)
		if err != nil {
			return nil, nil, err
		}
		if how == renderAnew {
			notes = append(notes, finding.Finding{Code: "rendered_anew", Severity: finding.Note, What: edit.Name + " is written from the JSON again; the edited text is in " + kept,
				Where: &finding.Where{Path: run.File(edit.Name)}, Remedy: "nothing to do"})
			if _, err := run.Dir.WriteArtifacts(map[string][]byte{edit.Name: newest}); err != nil {
				return nil, nil, err
			}
			continue
		}
		given, more, err := takeEdit(run, phase, edit, kept)
		if err != nil {
			return nil, nil, err
		}
		notes, section = append(notes, more...), joined(given, section)
	}
	return notes, section, e.noteEdits(run, name, how, edits)
}

func (e *Engine) noteEdits(run *Run, phase, how string, edits []rundir.Edit) error {
	var names []string
	for _, edit := range edits {
		names = append(names, edit.Name)
	}
	return run.Dir.AppendEvent(rundir.Event{Time: e.Now(), Phase: phase, Event: "edit_settled", By: "agent", Detail: map[string]any{"how": how, "artifacts": names}})
}

// edits are the Markdown artifacts of a phase that were changed by hand.
func (r *Run) edits(phase string) ([]rundir.Edit, error) {
	record, err := r.Dir.Record(phase)
	if err != nil || record == nil {
		return nil, err
	}
	var edits []rundir.Edit
	for _, name := range slices.Sorted(maps.Keys(record.Outputs)) {
		if path.Ext(name) != ".md" {
			continue
		}
		edit, err := r.Dir.Edited(name)
		if err != nil {
			return nil, err
		}
		if edit != nil {
			edits = append(edits, *edit)
		}
	}
	return edits, nil
}

// takeEdit reads an edit back. Lines that were added and that no field holds are kept as notes; lines that were taken away
// without a field that says so come back, and that is told.
func takeEdit(run *Run, phase Phase, edit rundir.Edit, kept string) (section map[string]any, found []finding.Finding, err error) {
	var covered []int
	if taker, ok := phase.(Taker); ok {
		if section, covered, found, err = taker.TakeOver(run, edit); err != nil {
			return nil, nil, err
		}
	}
	added, removed := edit.Lines()
	lines := strings.Split(edit.Text(), "\n")
	var notes []string
	for _, at := range added {
		if line := strings.TrimSpace(lines[at]); line != "" && line != handNotesTitle && !slices.Contains(covered, at) {
			notes = append(notes, line)
		}
	}
	if err := keepNotes(run, edit.Name, notes); err != nil {
		return nil, nil, err
	}
	f := finding.Finding{Code: "edit_taken", Severity: finding.Note, Where: &finding.Where{Path: run.File(edit.Name)},
		What: fmt.Sprintf("%s: %d changed line(s) taken as values, %d kept as notes by hand; the edited text is in %s", edit.Name, len(covered), len(notes), kept), Remedy: "look whether it says what was meant"}
	if removed > len(covered) {
		f.Severity = finding.Warning
		f.What += "; lines that were taken out are written again, since what they say still holds"
		f.Remedy = "send what should hold instead to " + phase.Tool()
	}
	return section, append(found, f), nil
}

// keepNotes adds lines to the notes of an artifact.
func keepNotes(run *Run, name string, lines []string) error {
	all, err := handNotes(run)
	if err != nil || len(lines) == 0 {
		return err
	}
	for _, line := range lines {
		if !slices.Contains(all[name], line) {
			all[name] = append(all[name], line)
		}
	}
	return rundir.WriteJSON(run.File(handNotesFile), all)
}

func handNotes(run *Run) (map[string][]string, error) {
	all := map[string][]string{}
	if err := rundir.ReadJSON(run.File(handNotesFile), &all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return all, nil
}

// handNotesTitle heads the notes in a rendering.
const handNotesTitle = "## Notes by hand"

// addHandNotes ends each rendering with the notes that hands have added to the artifact.
func addHandNotes(run *Run, files map[string][]byte) error {
	all, err := handNotes(run)
	if err != nil {
		return err
	}
	for name, lines := range all {
		text, rendered := files[name]
		if !rendered || len(lines) == 0 {
			continue
		}
		files[name] = []byte(strings.TrimRight(string(text), "\n") + "\n\n" + handNotesTitle + "\n\n" + strings.Join(lines, "\n") + "\n")
	}
	return nil
}
