package launch

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/policy"
	"github.com/trainwright/trainwright/internal/rundir"
)

// user answers every question in the same way and remembers what was asked.
type user struct {
	answer engine.Answer
	err    error
	asked  []engine.Question
}

func (*user) Progress(engine.Progress) {}

func (u *user) Ask(_ context.Context, q engine.Question) (engine.Answer, error) {
	u.asked = append(u.asked, q)
	return u.answer, u.err
}

// askable is an authority over a policy that keeps grants in a file outside of the workspace.
func askable(t *testing.T, text string) (a Authority, grants func() []policy.Grant) {
	workspace, file := t.TempDir(), filepath.Join(t.TempDir(), "grants.json")
	a = Authority{Policy: policyOf(t, text),
		Grants: func() ([]policy.Grant, []finding.Finding, error) { return policy.LoadGrants(file, workspace) },
		Save: func(ctx context.Context, g policy.Grant) error {
			g.Workspace = workspace
			return g.Save(ctx, file)
		}}
	return a, func() []policy.Grant {
		all, _, err := a.Grants()
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
}

var remotely = Ask{ID: "r-1", Command: "python3 a.py\x1b[2K\n  command  harmless", Channel: contract.ChannelSSHSlurm, Site: "hpc1", WallTimeSeconds: 1800}

// What the user says to a question holds as an approval at the terminal does, and is recorded like one.
func TestPermit(t *testing.T) {
	outside := errors.New("asked outside of the call")
	pip := remotely
	pip.Command = "pip install x"
	for name, c := range map[string]struct {
		policy string
		ask    Ask
		user   *user
		asked  int
		want   string // the errors
		said   string // in the first error
		grants int
	}{
		"a yes":                         {"", remotely, &user{answer: engine.Answer{Reply: engine.Accepted, By: "user via x"}}, 1, "", "", 1},
		"a yes for two effects at once": {"", pip, &user{answer: engine.Answer{Reply: engine.Accepted, By: "user via x"}}, 1, "", "", 2},
		"a no":                          {"", remotely, &user{answer: engine.Answer{Reply: engine.Declined}}, 1, "authorisation_missing", "the user was asked and declined", 0},
		"no answer":                     {"", remotely, &user{answer: engine.Answer{Reply: engine.Ignored}}, 1, "authorisation_missing", "did not answer", 0},
		"nobody to ask":                 {"", remotely, &user{}, 1, "authorisation_missing", "needs the user's word", 0},
		"allowed by the policy":         {"allow: {remote_submission: yes}", remotely, &user{}, 0, "", "", 0},
		"forbidden: nothing to ask":     {"allow: {remote_submission: no}", remotely, &user{answer: engine.Answer{Reply: engine.Accepted, By: "x"}}, 0, "authorisation_missing", "is forbidden", 0},
		"one of two is forbidden":       {"allow: {package_install: no}", pip, &user{answer: engine.Answer{Reply: engine.Accepted, By: "x"}}, 0, "authorisation_missing", "is forbidden", 0},
		"asked outside of the call":     {"", remotely, &user{err: outside}, 1, "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			a, grants := askable(t, c.policy)
			dir := rundir.Dir{Path: t.TempDir()}
			release, found, err := a.Permit(t.Context(), c.user, dir, c.ask, noon)
			release()
			if !errors.Is(err, c.user.err) || len(c.user.asked) != c.asked || len(grants()) != c.grants {
				t.Fatalf("%v, %d questions, grants %+v", err, len(c.user.asked), grants())
			}
			got := []string{}
			for _, f := range found {
				if f.Severity == finding.Error && len(got) == 0 {
					got = append(got, f.Code)
					if !strings.Contains(f.What, c.said) {
						t.Errorf("%q lacks %q", f.What, c.said)
					}
					if c.user.answer.Reply == engine.Declined && !strings.Contains(f.Remedy, "trainwright approve r-1") {
						t.Errorf("no command for the user: %s", f.Remedy)
					}
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%v", found)
			}
			events, _, err := dir.Events()
			if err != nil || len(events) != c.grants {
				t.Fatalf("%d events, %v", len(events), err)
			}
			for i, e := range events {
				if g := grants()[i]; e.Event != "approved" || e.By != "user via x" || e.Detail["how"] != "elicitation" || e.Detail["what"] != g.What || g.By != e.By || g.Command != c.ask.Command || g.CoreHours != 0.5 {
					t.Errorf("%+v for %+v", e, g)
				}
			}
			if c.want == "" && c.grants > 0 {
				again := &user{}
				if _, found, err := a.Permit(t.Context(), again, dir, c.ask, noon); err != nil || finding.Has(found, finding.Error) || len(again.asked) > 0 {
					t.Errorf("asked again: %v %v %v", again.asked, found, err)
				}
			}
		})
	}
}

// The question says what a yes allows, and a command can't hide behind an escape sequence or a line of its own.
func TestTheQuestionSaysWhatAYesAllows(t *testing.T) {
	a, _ := askable(t, "")
	u := &user{}
	if _, _, err := a.Permit(t.Context(), u, rundir.Dir{Path: "/w/run"}, remotely, noon); err != nil {
		t.Fatal(err)
	}
	want := "r-1 wants: remote_submission\n  command  python3 a.py\\x1b[2K\\n  command  harmless\n  target   ssh_slurm on hpc1\n  hours    at most 0.5 core hours (30m0s)\n  folder   /w/run\nAllow it?"
	if len(u.asked) != 1 || u.asked[0].Text != want || u.asked[0].Field != "allow" || u.asked[0].Choices != nil {
		t.Errorf("%+v", u.asked)
	}
}

// Without a place for grants, as without a home folder, nobody is asked: the answer would be lost.
func TestWhereGrantsCantBeKeptNobodyIsAsked(t *testing.T) {
	a, _ := askable(t, "")
	a.Save = nil
	u := &user{answer: engine.Answer{Reply: engine.Accepted, By: "x"}}
	if _, found, err := a.Permit(t.Context(), u, rundir.Dir{Path: t.TempDir()}, remotely, noon); err != nil || len(u.asked) != 0 || codes(found) != "authorisation_missing" {
		t.Errorf("%v %v %v", err, u.asked, found)
	}
}
