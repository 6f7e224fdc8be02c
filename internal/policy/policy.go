package policy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// Decision is what a policy says of an effect.
type Decision string

// The three decisions. Ask means that the user has to allow it for the run.
const (
	Yes Decision = "yes"
	Ask Decision = "ask"
	No  Decision = "no"
)

// The effects that need the user's word.
const (
	Network          = "network"
	PackageInstall   = "package_install"
	LargeDownload    = "large_download"
	RemoteSubmission = "remote_submission"
	GitPush          = "git_push"
	ModelCalls       = "model_calls"
)

// Effects are all of them.
var Effects = []string{Network, PackageInstall, LargeDownload, RemoteSubmission, GitPush, ModelCalls}

// Budget are the hours that runs may use; nil is no limit.
type Budget struct {
	CoreHours *float64 `json:"core_hours,omitempty"`
	GPUHours  *float64 `json:"gpu_hours,omitempty"`
}

// Site is a machine that jobs can be sent to.
type Site struct {
	SSH       string            `json:"ssh,omitempty"` // [user@]host
	WorkDir   string            `json:"work_dir,omitempty"`
	Scheduler string            `json:"scheduler,omitempty"` // slurm, or empty
	Defaults  map[string]string `json:"defaults,omitempty"`  // partition, account, …
}

// Policy is what holds in a workspace. Its fields are what was read; Allows tells the decisions.
type Policy struct {
	ReadRoots    []string // folders that may be read beside the workspace, absolute
	WriteRoots   []string
	Budget       Budget
	TrustHandoff bool
	Sites        map[string]Site
	Skills       []string // folders of skills, relative to the workspace
	// NetworkAddresses are ranges that pages may be fetched from although they are not of the public internet; only the user names them.
	NetworkAddresses []netip.Prefix

	path  string // of policy.yaml, for remedies; "" for none
	allow map[string]rule
}

// rule is a decision and who took it.
type rule struct {
	decision Decision
	why      string
	user     bool // policy.yaml says so itself
}

// Allows says whether an effect is allowed, and why: which line of which file says so, or what the user would have to
// write. An effect of an unknown name is not allowed.
func (p Policy) Allows(what string) (Decision, string) {
	if !slices.Contains(Effects, what) {
		return No, fmt.Sprintf("there is no effect %q; the effects are %s", what, strings.Join(Effects, ", "))
	}
	r, said := p.allow[what]
	switch {
	case !said:
		return Ask, "no file allows " + what + "; " + p.howToAllow(what)
	case r.decision == Ask:
		return Ask, r.why + "; " + p.howToAllow(what)
	}
	return r.decision, r.why
}

func (p Policy) howToAllow(what string) string {
	file := p.path
	if file == "" {
		file = "policy.yaml"
	}
	return fmt.Sprintf("the user allows it for one run with `trainwright approve RUN` in a terminal, or for all with allow: {%s: yes} in %s", what, file)
}

// Decide is Allows for one command of one run: what is asked for is allowed where the user granted it. A no stays a no.
func (p Policy) Decide(what, runID, command string, grants []Grant) (Decision, string) {
	decision, why := p.Allows(what)
	if decision != Ask {
		return decision, why
	}
	for _, g := range grants {
		if g.Covers(what, runID, command) {
			return Yes, fmt.Sprintf("%s approved it for run %s at %s", g.By, g.RunID, g.At.UTC().Format(time.RFC3339))
		}
	}
	return Ask, why
}

// Covers says whether the grant is for that effect, run and very command.
func (g Grant) Covers(what, runID, command string) bool {
	return g.What == what && g.RunID == runID && g.Command == command && runID != "" && command != ""
}

// Narrow applies what a handoff says of effects; from names it. It can make a decision stricter. A wider one is taken only
// where the user wrote trust_handoff: true and did not write no; otherwise it is a finding, policy_not_widened.
func (p Policy) Narrow(from string, allow map[string]Decision) (Policy, []finding.Finding) {
	var found []finding.Finding
	p.allow = maps.Clone(p.allow)
	if p.allow == nil {
		p.allow = map[string]rule{}
	}
	for _, what := range Effects {
		if decision, said := allow[what]; said {
			if f := p.take(what, decision, from+" says "+what+": "+string(decision), finding.Where{Field: what}); f != nil {
				found = append(found, *f)
			}
		}
	}
	return p, found
}

// strictness orders decisions.
var strictness = map[Decision]int{Yes: 0, Ask: 1, No: 2}

// take applies a decision that is not the user's.
func (p *Policy) take(what string, decision Decision, why string, where finding.Where) *finding.Finding {
	now, _ := p.Allows(what)
	switch {
	case strictness[decision] > strictness[now]:
		p.allow[what] = rule{decision: decision, why: why}
	case strictness[decision] < strictness[now] && p.TrustHandoff && !(now == No && p.allow[what].user):
		p.allow[what] = rule{decision: decision, why: why + ", and policy.yaml trusts it"}
	case strictness[decision] < strictness[now]:
		return &finding.Finding{Code: "policy_not_widened", Severity: finding.Warning, What: fmt.Sprintf("%s, but it stays %s: only the user's policy grants", why, now),
			Where: &where, Expected: "a stricter value than " + string(now), Remedy: p.howToAllow(what)}
	}
	return nil
}

// Within says whether so many hours fit the budget; why names the limit that they break. What was used before is the
// caller's to add.
func (b Budget) Within(coreHours, gpuHours float64) (ok bool, why string) {
	for _, part := range []struct {
		name  string
		want  float64
		limit *float64
	}{{"core_hours", coreHours, b.CoreHours}, {"gpu_hours", gpuHours, b.GPUHours}} {
		if part.limit != nil && !(part.want <= *part.limit) {
			return false, fmt.Sprintf("%.4g %s are more than the budget of %.4g", part.want, part.name, *part.limit)
		}
	}
	return true, ""
}
