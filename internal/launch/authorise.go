package launch

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/policy"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Ask is what a launch wants to do: which command, where, and how much of the machine for how long.
type Ask struct {
	// ID is the run, or the job of a command without one: what `trainwright approve` is called with.
	ID string
	// Command is the command line of runtime_request.json, as it is shown to the user.
	Command       string
	Channel, Site string
	Resources     jobs.Resources
	// WallTimeSeconds is the limit in force; 0 is none.
	WallTimeSeconds int
}

// Effects are those of policy.Effects that the launch has: a submission over ssh leaves this machine, and a command may show
// by its program that it installs, downloads or pushes.
func (a Ask) Effects() []string {
	argv, err := Split(a.Command)
	if err != nil {
		argv = strings.Fields(a.Command)
	}
	out := CommandEffects(argv)
	if remote := strings.HasPrefix(a.Channel, "ssh_") || a.Channel == contract.ChannelSCNet; remote && !slices.Contains(out, policy.RemoteSubmission) {
		out = append(out, policy.RemoteSubmission)
	}
	return out
}

// Target says where the job would run, in one word for a grant.
func (a Ask) Target() string {
	if a.Site == "" {
		return a.Channel
	}
	return a.Channel + " on " + a.Site
}

// Hours is the most that the launch may use. Without a time limit nobody can say: bounded is false.
func (a Ask) Hours() (h Hours, bounded bool) {
	return hoursOf(a.Resources, float64(a.WallTimeSeconds)), a.WallTimeSeconds > 0
}

// WallTimeSeconds is the limit of a job in seconds: the step's budget or resources.time_limit, whichever is shorter; 0 for
// none. A time limit that can't be read counts as none here: jobs.Create refuses it.
func WallTimeSeconds(budget int, resources jobs.Resources) int {
	limit, err := jobs.ParseTimeLimit(resources.TimeLimit)
	seconds := int(limit / time.Second)
	switch {
	case err != nil || seconds == 0:
		return max(0, budget)
	case budget > 0:
		return min(budget, seconds)
	}
	return seconds
}

// Authorise judges a launch by the policy, what the user granted, and what the jobs of the workspace have used so far. Not
// ok comes with an error among the findings: authorisation_missing, budget_exceeded or budget_needs_time_limit. What is
// allowed is a note that says by whom, authorised. A grant counts for the command, the target and the hours that the user
// was shown.
func Authorise(p policy.Policy, grants []policy.Grant, ask Ask, used Hours) (found []finding.Finding, ok bool) {
	for _, effect := range ask.Effects() {
		decision, why := p.Decide(effect, ask.ID, ask.Command, covering(grants, ask))
		if decision != policy.Yes {
			found = append(found, missingAuthorisation(ask, effect, decision, why))
			continue
		}
		found = append(found, finding.Finding{Code: "authorised", Severity: finding.Note, What: effect + " to " + ask.Target() + " is allowed: " + why, Where: &finding.Where{Field: effect}})
	}
	if f := overBudget(p.Budget, ask, used); f != nil {
		found = append(found, *f)
	}
	return found, !finding.Has(found, finding.Error)
}

// covering are the grants that were given for this target and for as many hours.
func covering(grants []policy.Grant, ask Ask) []policy.Grant {
	want, bounded := ask.Hours()
	const rounding = 1e-9
	return slices.DeleteFunc(slices.Clone(grants), func(g policy.Grant) bool {
		if g.Target != ask.Target() {
			return true
		}
		unlimited := g.CoreHours == 0 && g.GPUHours == 0
		return !unlimited && (!bounded || want.Core > g.CoreHours+rounding || want.GPU > g.GPUHours+rounding)
	})
}

func missingAuthorisation(ask Ask, effect string, decision policy.Decision, why string) finding.Finding {
	f := finding.Finding{Code: "authorisation_missing", Severity: finding.Error, Where: &finding.Where{Field: effect},
		What:     fmt.Sprintf("%s to %s needs the user's word and has not been allowed; nothing was started", effect, ask.Target()),
		Expected: "the user's approval of this very command",
		Remedy:   fmt.Sprintf("ask the user to run in a terminal: trainwright approve %s; then make the same call again", ask.ID)}
	if decision == policy.No {
		f.What = fmt.Sprintf("%s to %s is forbidden; nothing was started: %s", effect, ask.Target(), why)
		f.Expected, f.Remedy = "a launch without it", "use another channel, or ask the user whether to change the policy; no approval overrides it"
	}
	return f
}

// overBudget tells that the launch does not fit what is left of the budget.
func overBudget(budget policy.Budget, ask Ask, used Hours) *finding.Finding {
	limits := budget.CoreHours != nil || budget.GPUHours != nil && gpus(ask.Resources) > 0
	if !limits {
		return nil
	}
	want, bounded := ask.Hours()
	if !bounded {
		return &finding.Finding{Code: "budget_needs_time_limit", Severity: finding.Error, Where: &finding.Where{Field: "launch.resources.time_limit"},
			What:     "the user's policy has a budget of hours, and a job without a time limit could use any number of them; nothing was started",
			Expected: `such as "00:30:00"`, Remedy: `send launch.resources.time_limit with the longest the job may take, or inputs.step_wallclock_budget_seconds`}
	}
	ok, why := budget.Within(used.Core+want.Core, used.GPU+want.GPU)
	if ok {
		return nil
	}
	return &finding.Finding{Code: "budget_exceeded", Severity: finding.Error, Where: &finding.Where{Field: "launch.resources"},
		What: fmt.Sprintf("%s: this launch may use %s, the workspace's jobs have used or hold %s; nothing was started", why, want, used), Expected: "a launch within what is left",
		Remedy: "ask for fewer cpus or gpus or a shorter time_limit, wait for running jobs to end below their limits, or have the user raise budget in policy.yaml"}
}

// FirstError is the sentence of the first error among findings.
func FirstError(found []finding.Finding) string {
	for _, f := range found {
		if f.Severity == finding.Error {
			return f.What
		}
	}
	return ""
}

// Authority is who may launch what in a workspace. The zero value asks the user for every effect and has no budget.
type Authority struct {
	Policy policy.Policy
	// Grants reads what the user approved, at every launch anew, since that happens in another process; nil for none.
	Grants func() ([]policy.Grant, []finding.Finding, error)
	// Save keeps what the user approved, for this workspace, whose name it puts in; nil where there is no place for it: then
	// nobody is asked.
	Save func(context.Context, policy.Grant) error
	// Jobs are the folders that hold the workspace's job folders; the first one takes the lock of the budget.
	Jobs    func() ([]string, error)
	Runtime Judge
}

// Judge tells where jobs stand (jobs.Runtime).
type Judge interface {
	Status(ctx context.Context, folders []string) ([]jobs.Status, error)
}

// Clear says whether a launch may go ahead: it may unless a finding is an error (Authorise). Where the policy has a budget,
// the hours are held against other launches until release is called, which is to be done when the job's folder is there;
// release is never nil.
func (a Authority) Clear(ctx context.Context, ask Ask) (release func(), found []finding.Finding, err error) {
	release = func() {}
	var grants []policy.Grant
	if a.Grants != nil && len(ask.Effects()) > 0 {
		if grants, found, err = a.Grants(); err != nil {
			return release, nil, err
		}
	}
	var used Hours
	if a.Policy.Budget != (policy.Budget{}) && a.Jobs != nil {
		unlock, hours, more, err := a.held(ctx)
		if err != nil {
			return release, nil, err
		}
		release, used, found = unlock, hours, append(found, more...)
	}
	more, ok := Authorise(a.Policy, grants, ask, used)
	if !ok {
		release()
		release = func() {}
	}
	return release, append(found, more...), nil
}

// budgetLock is the file that is locked while hours are counted and taken.
const budgetLock = ".budget.lock"

// held locks the budget and counts what was used.
func (a Authority) held(ctx context.Context) (unlock func(), used Hours, found []finding.Finding, err error) {
	roots, err := a.Jobs()
	if err != nil || len(roots) == 0 {
		return func() {}, Hours{}, nil, err
	}
	unlock, err = rundir.Lock(ctx, filepath.Join(roots[0], budgetLock))
	if err != nil {
		return nil, Hours{}, nil, err
	}
	entries, found := jobs.List(roots)
	used, err = Used(ctx, a.Runtime, entries)
	if err != nil {
		unlock()
	}
	return unlock, used, found, err
}
