package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/trainwright/trainwright/internal/finding"
)

// PhaseState is what a phase's record is worth now.
type PhaseState struct {
	Phase  string
	Status string  // as recorded, or "pending" when there is no record or it no longer holds
	Record *Record // nil when there is none or it can't be read
	// Stale says why a record no longer holds: the paths that changed, or the earlier phase that has to run again. Empty
	// for a record that holds.
	Stale []string
}

const pending = "pending" // contract.PhasePending; rundir sees records only

// State walks the phases in order and tells which records still hold. A phase whose record can't be read
// (record_unreadable), whose inputs changed (phase_stale), whose output is gone (artifact_missing) or was changed
// (artifact_edited) is pending, and so is every later one; the finding stands at the first. A Markdown output edited by
// hand (artifact_edited_by_hand) stays valid, since later phases read the JSON beside it.
func (d Dir) State(phases []string) ([]PhaseState, []finding.Finding, error) {
	h := d.loadHashes()
	defer h.save()
	var states []PhaseState
	var findings []finding.Finding
	broken := "" // the first phase that has to run again
	for _, phase := range phases {
		state := PhaseState{Phase: phase, Status: pending}
		record, err := d.Record(phase)
		var refused *finding.Refused
		switch {
		case errors.As(err, &refused):
			state.Stale = []string{"phases/" + phase + ".json"}
			if broken == "" {
				findings = append(findings, refused.Findings...)
			}
		case err != nil:
			return nil, nil, err
		case record == nil:
		case broken != "":
			state.Record, state.Stale = record, []string{broken}
		default:
			state.Record, state.Status = record, record.Status
			var found []finding.Finding
			state.Stale, found = d.check(h, record)
			findings = append(findings, found...)
		}
		if len(state.Stale) > 0 {
			state.Status = pending
			if broken == "" {
				broken = phase
			}
		}
		states = append(states, state)
	}
	return states, findings, nil
}

// check compares a record with the files it names.
func (d Dir) check(h *hashes, r *Record) (stale []string, findings []finding.Finding) {
	var says []string
	for _, path := range slices.Sorted(maps.Keys(r.Inputs)) {
		if change := change(h, path, r.Inputs[path]); change != "" {
			stale, says = append(stale, path), append(says, path+" "+change)
		}
	}
	if len(stale) > 0 {
		findings = append(findings, finding.Finding{Code: "phase_stale", Severity: finding.Warning, Where: &finding.Where{Path: d.Abs(stale[0])},
			What: fmt.Sprintf("%s after %s had used it", finding.Few(says, 3), r.Phase), Expected: r.Inputs[stale[0]], Remedy: runAgain(r.Phase)})
	}
	for _, path := range slices.Sorted(maps.Keys(r.Outputs)) {
		change := change(h, path, r.Outputs[path])
		if change == "" {
			continue
		}
		f := d.outputFinding(r.Phase, path, change, r.Outputs[path])
		if f.Severity == finding.Error {
			stale = append(stale, path)
		}
		findings = append(findings, f)
	}
	return stale, findings
}

func runAgain(phase string) string {
	return fmt.Sprintf("call phase_%s with the run_id: it runs again, and so do the phases after it", phase)
}

const (
	wentMissing = "went missing"
	changed     = "changed"
)

// change tells how a file differs from its recorded hash; "" when it does not. One that can't be read differs: what it
// holds is not known.
func change(h *hashes, path, sha string) string {
	now, err := h.of(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wentMissing
	case err != nil:
		return "became unreadable (" + err.Error() + ")"
	case now != sha:
		return changed
	}
	return ""
}

func (d Dir) outputFinding(phase, path, change, sha string) finding.Finding {
	f := finding.Finding{Severity: finding.Error, Where: &finding.Where{Path: d.Abs(path)}, Expected: sha, Remedy: runAgain(phase)}
	switch {
	case change == wentMissing:
		f.Code, f.What = "artifact_missing", fmt.Sprintf("%s, which %s had written, is missing", path, phase)
	case change == changed && isMarkdown(path):
		return d.editedFinding(path, phase)
	default:
		f.Code, f.What = "artifact_edited", fmt.Sprintf("%s %s after %s had written it", path, change, phase)
	}
	return f
}
