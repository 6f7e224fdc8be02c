package launch

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/policy"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Permit is Clear for a launch whose caller may be asked: where nothing but the user's word is missing, the user is asked
// once, for everything at once, and a yes is kept as a grant as `trainwright approve` keeps it. dir is the folder of the run
// or of the job, whose events say who allowed what. An error of the question itself ends the call (engine.Caller).
func (a Authority) Permit(ctx context.Context, caller engine.Caller, dir rundir.Dir, ask Ask, now time.Time) (release func(), found []finding.Finding, err error) {
	release, found, err = a.Clear(ctx, ask)
	if err != nil || a.Save == nil {
		return release, found, err
	}
	open := a.open(found)
	if len(open) == 0 {
		return release, found, nil
	}
	answer, err := engine.Ask(ctx, caller, engine.Question{Field: "allow", Text: ask.Words(open, dir.Path) + "\nAllow it?"})
	switch {
	case err != nil:
		return release, nil, err
	case answer.Reply == engine.Unable:
		return release, found, nil
	case answer.Reply == engine.Accepted:
		if err := a.Allow(ctx, dir, ask, open, answer.By, "elicitation", now); err != nil {
			return release, nil, err
		}
		return a.Clear(ctx, ask)
	}
	return release, unanswered(found, ask, answer.Reply), nil
}

// open are the effects that only wait for the user's word; none where something else stands against the launch too.
func (a Authority) open(found []finding.Finding) []string {
	var open []string
	for _, f := range found {
		switch {
		case f.Severity != finding.Error:
		case f.Code != "authorisation_missing":
			return nil
		default:
			if decision, _ := a.Policy.Allows(f.Where.Field); decision != policy.Ask {
				return nil
			}
			open = append(open, f.Where.Field)
		}
	}
	return open
}

// unanswered words what is missing after the user did not say yes.
func unanswered(found []finding.Finding, ask Ask, reply engine.Reply) []finding.Finding {
	said := "the user was asked and declined"
	if reply == engine.Ignored {
		said = "the user was asked and did not answer"
	}
	for i, f := range found {
		if f.Code == "authorisation_missing" {
			found[i].What = fmt.Sprintf("%s to %s: %s; nothing was started", f.Where.Field, ask.Target(), said)
			found[i].Remedy = fmt.Sprintf("do not repeat the call by yourself; if the user wants it after all, they run in a terminal: trainwright approve %s", ask.ID)
		}
	}
	return found
}

// Allow keeps the user's word for effects of a launch, and notes in dir's events who gave it and how: at a terminal, or in
// an elicitation.
func (a Authority) Allow(ctx context.Context, dir rundir.Dir, ask Ask, effects []string, by, how string, now time.Time) error {
	most, _ := ask.Hours()
	for _, what := range effects {
		grant := policy.Grant{RunID: ask.ID, What: what, Command: ask.Command, Target: ask.Target(), CoreHours: most.Core, GPUHours: most.GPU, By: by, At: now}
		if err := a.Save(ctx, grant); err != nil {
			return err
		}
		detail := map[string]any{"what": what, "how": how, "command": ask.Command, "target": ask.Target(), "core_hours": most.Core, "gpu_hours": most.GPU}
		if err := dir.AppendEvent(rundir.Event{Time: now, Event: "approved", By: by, Detail: detail}); err != nil {
			return err
		}
	}
	return nil
}

// Words tell the user what a yes would allow. folder is where the run or the job keeps its files.
func (a Ask) Words(effects []string, folder string) string {
	hours := "without a time limit: no bound on the hours"
	if most, bounded := a.Hours(); bounded {
		hours = "at most " + most.String() + " (" + (time.Duration(a.WallTimeSeconds) * time.Second).String() + ")"
	}
	return fmt.Sprintf("%s wants: %s\n  command  %s\n  target   %s\n  hours    %s\n  folder   %s",
		a.ID, strings.Join(effects, ", "), Visible(a.Command), Visible(a.Target()), hours, folder)
}

// Visible is text as it can be shown without steering what shows it: a command comes from an agent, and an escape sequence
// or a line break in it could hide the rest.
func Visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
	return b.String()
}
