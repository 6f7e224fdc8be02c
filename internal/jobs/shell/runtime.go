package shell

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Options are what a Runtime takes from outside.
type Options struct {
	// Shell is the machine that the jobs run on.
	Shell Shell
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Environ is where the values of a request's pass_env are taken from. Default: os.Environ.
	Environ []string
	// By names the submitter in cancel requests; default: "trainwright on <this host>".
	By string
}

// Runtime runs jobs through a Shell.
type Runtime struct {
	shell   Shell
	now     func() time.Time
	environ []string
	by      string
}

var _ jobs.Runtime = (*Runtime)(nil)

// New makes a Runtime over options.Shell.
func New(options Options) *Runtime {
	r := &Runtime{shell: options.Shell, now: options.Now, environ: options.Environ, by: options.By}
	if r.now == nil {
		r.now = time.Now
	}
	if r.environ == nil {
		r.environ = os.Environ()
	}
	if r.by == "" {
		host, _ := os.Hostname() // a name for people
		r.by = "trainwright on " + host
	}
	return r
}

// startWait bounds Submit's wait for the runner's first word, endWait what Cancel waits beyond the grace.
const (
	startWait = 45 * time.Second
	endWait   = 20 * time.Second
)

// start runs the rendered runner; $1 is the job's folder.
const start = `exec ${TRAINWRIGHT_SHELL:-sh} "$1/` + jobs.RunnerFile + `" start`

// cancel lets the runner end the job.
const cancel = `exec ${TRAINWRIGHT_SHELL:-sh} "$1/` + jobs.RunnerFile + `" cancel`

// Submit starts the job in folder and waits until its command runs or has ended. It may be called again at any time, by any
// process: a job that a runner has taken is never started a second time.
func (r *Runtime) Submit(ctx context.Context, folder string) (jobs.Status, error) {
	folder, request, err := r.open(ctx, folder)
	if err != nil {
		return jobs.Status{}, err
	}
	state, exit, err := records(folder)
	if err != nil {
		return jobs.Status{}, err
	}
	if state == nil && exit == nil {
		if err := r.start(ctx, folder, request); err != nil {
			return jobs.Status{}, err
		}
	}
	started, err := jobs.Await(ctx, startWait, func() (bool, error) { return r.started(ctx, folder) })
	if err != nil {
		return jobs.Status{}, err
	}
	if !started {
		return jobs.Status{}, fmt.Errorf("the runner of job %s did not report within %s: submit again, which is safe; where it stays "+
			"so, run sh %s supervise by hand and see what it says", request.JobID, startWait, filepath.Join(folder, jobs.RunnerFile))
	}
	return r.one(ctx, folder, request)
}

// start renders the runner, carries it over and starts it.
func (r *Runtime) start(ctx context.Context, folder string, request jobs.Request) error {
	there, err := r.render(ctx, folder, request)
	if err != nil {
		return err
	}
	var passed []string
	for _, pair := range r.environ {
		if name, _, _ := strings.Cut(pair, "="); slices.Contains(request.PassEnv, name) {
			passed = append(passed, pair)
		}
	}
	if _, err := r.shell.Run(ctx, start, passed, []string{there}); err != nil {
		return fmt.Errorf("start the runner of job %s: %w", request.JobID, err)
	}
	return nil
}

// render leaves the runner in the job's folder, here and there.
func (r *Runtime) render(ctx context.Context, folder string, request jobs.Request) (there string, err error) {
	if there, err = r.shell.Push(ctx, folder, jobs.RequestFile, jobs.ScriptFile); err != nil {
		return "", fmt.Errorf("bring job %s to its machine: %w", request.JobID, err)
	}
	path, text := filepath.Join(folder, jobs.RunnerFile), []byte(jobs.Runner(request, there))
	if old, err := os.ReadFile(path); err != nil || !bytes.Equal(old, text) { // a full disk takes no second one
		if err := rundir.WriteFile(path, text); err != nil {
			return "", fmt.Errorf("render the runner of job %s: %w", request.JobID, err)
		}
	}
	if _, err := r.shell.Push(ctx, folder, jobs.RunnerFile); err != nil {
		return "", fmt.Errorf("bring the runner of job %s to its machine: %w", request.JobID, err)
	}
	return there, nil
}

// started reports whether the runner has started the command, or never will.
func (r *Runtime) started(ctx context.Context, folder string) (bool, error) {
	if err := r.shell.Pull(ctx, folder); err != nil {
		return false, err
	}
	state, exit, err := records(folder)
	if err != nil || exit != nil {
		return exit != nil, err
	}
	if state == nil || state.PID > 0 {
		return state != nil, nil
	}
	looks, err := r.look(ctx, []underway{{folder: folder, state: *state}})
	return err == nil && !looks[0].supervisor, err
}

func records(folder string) (*jobs.StateFile, *jobs.Exit, error) {
	exit, err := jobs.ReadExit(folder)
	if err != nil {
		return nil, nil, err
	}
	state, err := jobs.ReadState(folder)
	return state, exit, err
}

// open brings the job's records here, reads its request and makes the folder absolute.
func (r *Runtime) open(ctx context.Context, folder string) (string, jobs.Request, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", jobs.Request{}, fmt.Errorf("find the job's folder: %w", err)
	}
	request, err := jobs.ReadRequest(folder)
	if err != nil {
		return folder, request, err
	}
	if err := r.shell.Pull(ctx, folder); err != nil {
		return folder, request, fmt.Errorf("bring the records of job %s here: %w", request.JobID, err)
	}
	return folder, request, nil
}

// Cancel ends the job and waits for its exit record, at most the job's grace and 20 s, in the same terms as package local:
// already_finished and cancel_pending are findings of the answer.
func (r *Runtime) Cancel(ctx context.Context, folder string) (jobs.Status, error) {
	folder, request, err := r.open(ctx, folder)
	if err != nil {
		return jobs.Status{}, err
	}
	if status, done, err := jobs.Ended(folder, request); done || err != nil {
		status.Findings = append(status.Findings, jobs.AlreadyFinished(folder, request))
		return status, err
	}
	there, err := r.render(ctx, folder, request)
	if err != nil {
		return jobs.Status{}, err
	}
	unasked := r.ask(ctx, folder, request) // on a full disk; the signal that follows is enough for a runner that is there
	ended, err := jobs.Await(ctx, request.Grace()+endWait, func() (bool, error) {
		if _, err := r.shell.Run(ctx, cancel, nil, []string{there}); err != nil {
			return false, fmt.Errorf("cancel job %s: %w", request.JobID, err)
		}
		if err := r.shell.Pull(ctx, folder); err != nil {
			return false, err
		}
		exit, err := jobs.ReadExit(folder)
		return exit != nil, err
	})
	if err != nil {
		return jobs.Status{}, err
	}
	if !ended && unasked != nil {
		return jobs.Status{}, unasked
	}
	status, err := r.one(ctx, folder, request)
	if err == nil && !ended {
		status.Findings = append(status.Findings, jobs.CancelPending(folder, request))
	}
	return status, err
}

// ask leaves the request to end where the runner looks.
func (r *Runtime) ask(ctx context.Context, folder string, request jobs.Request) error {
	if err := jobs.AskForEnd(folder, jobs.CancelRequest{At: r.now().UTC(), By: r.by}); err != nil {
		return err
	}
	if _, err := r.shell.Push(ctx, folder, jobs.CancelFile); err != nil {
		return fmt.Errorf("bring the cancel request of job %s to its machine: %w", request.JobID, err)
	}
	return nil
}
