package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/launch"
	"github.com/trainwright/trainwright/internal/policy"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/trainer"
)

func approveCommand(s *settings, t terminal) *cobra.Command {
	return &cobra.Command{
		Use: "approve RUN|JOB", Short: "Allow what a run or a job asks for", Args: cobra.ExactArgs(1),
		Long: "Shows what the run, or the job of the tool runtime, wants to do that needs your word: the effect, the command, the\n" +
			"target and the hours, and asks. A yes holds for that very command of that run, on that target and for as many hours;\n" +
			"it is kept beside policy.yaml. Only a person at a terminal can approve.\n\n" +
			"Exit code: 0 approved, or there was nothing to approve; 4 not approved, or the policy forbids it; 2 there is no such\n" +
			"run or job, or no terminal.",
		Example: "  trainwright approve r-20261130-7f3a\n  trainwright --workspace project approve j-5f0c9a1b2c3d4e5f",
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := interruptible(c.Context())
			defer stop()
			work, err := s.open().trainer()
			if err != nil {
				return unusable(err)
			}
			a := &approval{t: t, work: work, id: args[0], now: time.Now()}
			return unusable(a.run(ctx))
		},
	}
}

// approval is one conversation with the user.
type approval struct {
	t    terminal
	work *trainer.Trainer
	id   string
	now  time.Time

	dir rundir.Dir // of the run or the job: its runtime_request.json and its events
	ask launch.Ask
}

// run shows what is asked for and takes the answer.
func (a *approval) run(ctx context.Context) error {
	if err := a.find(ctx); err != nil {
		return err
	}
	ask, err := launch.ReadAsk(filepath.Join(a.dir.Path, contract.FileRuntimeRequest), a.id)
	if errors.Is(err, fs.ErrNotExist) {
		return a.say("nothing to approve: %s has not come to a launch yet\n", a.id)
	}
	if err != nil {
		return err
	}
	a.ask = ask
	effects, err := a.open()
	if err != nil || len(effects) == 0 {
		return err
	}
	if err := a.show(effects); err != nil {
		return err
	}
	yes, err := a.answered(ctx)
	if err != nil {
		return err
	}
	if !yes {
		return errors.Join(a.say("not approved; nothing was changed\n"), exit(exitBlocked))
	}
	return a.grant(ctx, effects)
}

func (a *approval) say(format string, args ...any) error {
	_, err := fmt.Fprintf(a.t.out, format, args...)
	return err
}

// find locates the folder of the job or the run that the id names.
func (a *approval) find(ctx context.Context) error {
	roots, err := a.work.JobRoots()
	if err != nil {
		return err
	}
	if filepath.Base(a.id) == a.id {
		// The folder of a launch that waits for approval has no job in it yet, so that jobs.Find does not know it.
		folder := filepath.Join(roots[0], a.id)
		if _, err := os.Stat(filepath.Join(folder, contract.FileRuntimeRequest)); err == nil {
			a.dir = rundir.Dir{Path: folder}
			return nil
		}
	}
	folder, err := jobs.Find(roots, a.id)
	if err == nil {
		request, err := jobs.ReadRequest(folder)
		if err != nil {
			return err
		}
		if request.RunID != "" {
			a.id = request.RunID
		}
	}
	run, _, runErr := a.work.Engine.Open(ctx, nil, contract.Call{RunID: a.id})
	if runErr == nil {
		a.dir = run.Dir
		return nil
	}
	if strings.HasPrefix(a.id, "j-") && err != nil {
		return err // it tells the jobs there are
	}
	return runErr
}

// open are the effects that wait for the user's word. Of the others it says why there is nothing to ask.
func (a *approval) open() ([]string, error) {
	var grants []policy.Grant
	if a.work.Authority.Grants != nil {
		var err error
		if grants, _, err = a.work.Authority.Grants(); err != nil {
			return nil, err
		}
	}
	wanted := a.ask.Effects()
	if len(wanted) == 0 {
		return nil, a.say("nothing to approve: %s runs on this machine (%s) and has no effect that needs your word\n  %s\n", a.id, a.ask.Channel, launch.Visible(a.ask.Command))
	}
	unbudgeted := a.work.Authority.Policy
	unbudgeted.Budget = policy.Budget{} // hours are not approved here: they are the policy's
	found, _ := launch.Authorise(unbudgeted, grants, a.ask, launch.Hours{})
	var effects []string
	for _, what := range wanted {
		decision, why := unbudgeted.Allows(what)
		switch {
		case decision == policy.No:
			return nil, errors.Join(a.say("%s is forbidden, and an approval does not override that: %s\n", what, why), exit(exitBlocked))
		case decision == policy.Ask && waits(found, what):
			effects = append(effects, what)
		case decision == policy.Ask:
			if err := a.say("nothing to approve: you approved %s for this command already\n  %s\n", what, launch.Visible(a.ask.Command)); err != nil {
				return nil, err
			}
		default:
			if err := a.say("nothing to approve: %s\n", why); err != nil {
				return nil, err
			}
		}
	}
	return effects, nil
}

// waits says whether an effect still needs the user's word.
func waits(found []finding.Finding, what string) bool {
	for _, f := range found {
		if f.Code == "authorisation_missing" && f.Where != nil && f.Where.Field == what {
			return true
		}
	}
	return false
}

// show tells the user what a yes would allow. Nothing is shown to anything but a terminal: an agent could answer it.
func (a *approval) show(effects []string) error {
	if in, ok := a.t.in.(*os.File); !ok || !isatty.IsTerminal(in.Fd()) {
		return finding.Refuse(finding.Finding{Code: "approval_needs_terminal", Severity: finding.Error, What: "stdin is no terminal, and only a person can approve",
			Where: &finding.Where{Field: strings.Join(effects, ", ")}, Expected: "a person at a terminal", Remedy: "have the user run: trainwright approve " + a.id})
	}
	return a.say("%s\nAllow it? [y/N] ", a.ask.Words(effects, a.dir.Path))
}

// answered reads a line. Anything but y or yes is a no, and so is an interrupt.
func (a *approval) answered(ctx context.Context) (bool, error) {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(a.t.in).ReadString('\n') // the end of the input answers nothing
		line <- text
	}()
	select {
	case <-ctx.Done():
		return false, nil
	case text := <-line:
		text = strings.ToLower(strings.TrimSpace(text))
		return text == "y" || text == "yes", nil
	}
}

// grant keeps the user's word and writes into the events who gave it.
func (a *approval) grant(ctx context.Context, effects []string) error {
	if a.work.Authority.Save == nil {
		return errors.New("there is no home folder to keep the approval in: name a policy with --policy")
	}
	by := userName()
	if err := a.work.Authority.Allow(ctx, a.dir, a.ask, effects, by, "terminal", a.now); err != nil {
		return err
	}
	return a.say("approved by %s: %s; the agent can make its call again\n", by, strings.Join(effects, ", "))
}

func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "user"
}
