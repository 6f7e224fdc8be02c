package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
)

// Choice is something of the handoff that a gate waits for and the user can settle by picking one of a few candidates: the
// column to predict, the file with the data. Put writes what was picked into a handoff.
type Choice struct {
	Field      string // of the need
	Word       string // names the answer in the form
	Text       string
	Candidates []string
	Put        func(handoff *contract.StepHandoff, picked string)
}

// A choice that has fewer candidates is none, one that has more is no question for a person.
const (
	leastCandidates = 2
	mostCandidates  = 60
	// longestCandidate is how long one may be, in bytes.
	longestCandidate = 200
)

// canBeShown says whether candidates make a list that a person can pick from: a few, each of its own and of text that a
// client shows as it is. They come from files.
func canBeShown(candidates []string) bool {
	if len(candidates) < leastCandidates || len(candidates) > mostCandidates {
		return false
	}
	for i, c := range candidates {
		hidden := strings.ContainsFunc(c, func(r rune) bool { return !strconv.IsPrint(r) })
		if hidden || strings.TrimSpace(c) == "" || len(c) > longestCandidate || slices.Contains(candidates[:i], c) {
			return false
		}
	}
	return true
}

// choose asks the user for what the gate waits for. What is picked becomes a part of the run's handoff, as if it had been
// there: the phases that rest on it run again. What is not picked is noted, and stays a need. taken says what
// was picked; nothing means that the outcome stands.
func (e *Engine) choose(ctx context.Context, run *Run, step *Step, out *Outcome) (taken []finding.Finding, err error) {
	if run.Handoff.Inputs.ExecutionFlags.AutonomousMode { // it goes on without asking, or stops at the need
		return nil, nil
	}
	for _, c := range out.Choices {
		if !canBeShown(c.Candidates) {
			continue
		}
		answer, err := Ask(ctx, step.Caller, Question{Field: c.Word, Text: fmt.Sprintf("Run %s (%s) waits for a choice.\n%s", run.ID, short(run.Handoff.StepGoal), c.Text), Choices: c.Candidates})
		switch {
		case err != nil:
			return nil, err
		case answer.Reply == Accepted:
			var sent contract.StepHandoff
			c.Put(&sent, answer.Choice)
			notes, err := e.amend(ctx, run, sent, nil, answer.By, map[string]any{"how": "elicitation"})
			var refused *finding.Refused
			if errors.As(err, &refused) { // the handoff says something else already: it holds
				out.Findings = append(out.Findings, refused.Findings...)
				continue
			}
			if at := slices.IndexFunc(notes, func(f finding.Finding) bool { return f.Code == "handoff_amended" }); err != nil || at >= 0 {
				return notes, err
			}
			// It was picked before and did not settle the need.
		case answer.Reply != Unable:
			out.Findings = append(out.Findings, finding.Finding{Code: "choice_not_made", Severity: finding.Note, What: fmt.Sprintf("the user was asked for %s and %s", c.Field, map[Reply]string{Declined: "declined", Ignored: "did not answer"}[answer.Reply]),
				Where: &finding.Where{Field: c.Field}, Remedy: "settle it with the user before the next call"})
		}
	}
	return nil, nil
}
