package trainer

import (
	"context"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/launch"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Launch says where and with what a job runs.
type Launch = launch.Launch

// LaunchEnvironment is what the job's software comes from.
type LaunchEnvironment = launch.Environment

func (w *launchWork) launchInput() Launch {
	if w.given.Launch == nil {
		return Launch{}
	}
	return *w.given.Launch
}

// channelServes says whether this build can run the job where it is wanted.
func (w *launchWork) channelServes() bool {
	f := launch.Unserved(w.step.Run.Handoff.Inputs.Runtime, w.launchInput())
	if f == nil {
		return true
	}
	channel := launch.Channel(w.step.Run.Handoff.Inputs.Runtime, w.launchInput())
	w.out.Category = jobs.CategoryPlatform
	w.out.Findings = append(w.out.Findings, *f)
	w.out.Blockers = append(w.out.Blockers, "channel "+channel)
	w.out.Check("channel", false, "the channel is served")
	w.out.Summary = "not started: channel " + channel + " is not served"
	return false
}

// environmentServes refuses what a launch asks for and this build would silently leave out.
func (w *launchWork) environmentServes() bool {
	for _, f := range launch.Unsupported(w.launchInput()) {
		w.out.Findings = append(w.out.Findings, f)
		w.out.Blockers = append(w.out.Blockers, f.Where.Field)
		w.out.Summary = "not started: " + f.Where.Field + " is not served"
	}
	if f := launch.Unenforced(w.launchInput()); f != nil {
		w.out.Findings = append(w.out.Findings, *f)
	}
	return len(w.out.Blockers) == 0
}

// ask is what the launch wants to do, as the user is shown it.
func (w *launchWork) ask() launch.Ask {
	run, given := w.step.Run, w.launchInput()
	return launch.Ask{ID: run.ID, Command: w.request.Command, Channel: launch.Channel(run.Handoff.Inputs.Runtime, given), Site: given.Site,
		Resources: given.Resources, WallTimeSeconds: launch.WallTimeSeconds(w.wallBudget(), given.Resources)}
}

// wallBudget is what is left of the step's wall-clock budget in seconds, 0 for none: a try that failed has used its part.
func (w *launchWork) wallBudget() int {
	budget := w.step.Run.Handoff.Inputs.StepWallclockBudgetSeconds
	if budget > 0 {
		budget = max(1, budget-w.spent)
	}
	return tierLimit(w.plan.Tier, budget)
}

// authorised says whether the user allows the launch and the budget has room for it. What it holds until release is called
// keeps another launch from taking the same hours.
func (w *launchWork) authorised(ctx context.Context) (release func(), ok bool, err error) {
	run := w.step.Run
	release, found, err := w.p.t.Authority.Permit(ctx, w.step.Caller, run.Dir, w.ask(), w.step.Now())
	if err != nil {
		return release, false, err
	}
	w.out.Findings = append(w.out.Findings, found...)
	ok = !finding.Has(found, finding.Error)
	for _, f := range found {
		if f.Code != "authorised" {
			continue
		}
		event := rundir.Event{Time: w.step.Now(), Phase: w.p.Name(), Event: "authorised", By: "policy", Detail: map[string]any{"what": f.What}}
		if err := w.step.Run.Dir.AppendEvent(event); err != nil {
			return release, false, err
		}
	}
	if !ok {
		w.out.Check("authorised", false, "the user allows the launch and the budget has room for it")
		w.out.Blockers = append(w.out.Blockers, "authorisation")
		w.out.Summary = "not started: " + launch.FirstError(found)
		w.out.Next = &engine.NextCall{} // the user's word comes first
		if hasCode(found, "budget_needs_time_limit") {
			w.out.Next = &engine.NextCall{Tool: w.p.Tool(), Arguments: map[string]any{"run_id": w.step.Run.ID, "launch": map[string]any{"resources": map[string]any{"time_limit": "<HH:MM:SS>"}}}}
		}
	}
	return release, ok, nil
}
