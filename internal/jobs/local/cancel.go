package local

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Cancel ends the job and waits for its exit record, at most the job's grace and 10 s. A job that has ended answers its
// state with the note already_finished, one that does not end in time its state with the warning cancel_pending: the
// request stays on file and is carried out.
func (r *Runtime) Cancel(ctx context.Context, folder string) (jobs.Status, error) {
	if err := rundir.MayWrite(); err != nil {
		return jobs.Status{}, err
	}
	folder, request, err := open(folder)
	if err != nil {
		return jobs.Status{}, err
	}
	defer r.left(ctx, folder)
	if status, done, err := jobs.Ended(folder, request); done || err != nil {
		status.Findings = append(status.Findings, jobs.AlreadyFinished(folder, request))
		return status, err
	}
	if err := unsupported(); err != nil {
		return jobs.Status{}, err
	}
	// On a full disk the request can't be left; the signal that follows is enough for a supervisor on this host.
	unasked := jobs.AskForEnd(folder, jobs.CancelRequest{At: r.now().UTC(), By: "trainwright on " + r.host})
	signalled := false
	ended, err := jobs.Await(ctx, request.Grace()+endWait, func() (bool, error) {
		if exit, err := jobs.ReadExit(folder); exit != nil || err != nil {
			return exit != nil, err
		}
		return false, r.press(ctx, folder, request, &signalled)
	})
	if err != nil {
		return jobs.Status{}, err
	}
	if !ended && unasked != nil {
		return jobs.Status{}, unasked
	}
	status, err := r.status(folder, request)
	if err == nil && !ended {
		status.Findings = append(status.Findings, jobs.CancelPending(folder, request))
	}
	return status, err
}

// left waits for the supervisor of a job that has ended, which puts the verdict beside the exit record and goes: what comes
// after a cancel may take the folder away. It is a matter of milliseconds, and given up after leaveWait.
func (r *Runtime) left(ctx context.Context, folder string) {
	state, err := jobs.ReadState(folder)
	if err != nil || state == nil || state.BootID != r.bootID || r.machine(folder).Elsewhere(*state) {
		return
	}
	if exit, err := jobs.ReadExit(folder); exit == nil || err != nil {
		return // it is still at work
	}
	_, _ = jobs.Await(ctx, leaveWait, func() (bool, error) { return !r.runs(state.SupervisorPID, state.SupervisorTicks), nil })
}

// press brings the end nearer: it wakes a living supervisor once, and does the work of one that is gone or never was.
func (r *Runtime) press(ctx context.Context, folder string, request jobs.Request, signalled *bool) error {
	state, err := jobs.ReadState(folder)
	if err != nil {
		return err
	}
	switch {
	case state == nil:
		return r.cancelUnstarted(folder, request)
	case r.machine(folder).Elsewhere(*state):
		return nil // its supervisor looks for the request
	case state.BootID != r.bootID:
		return r.recordCancelled(folder, request, *state)
	case r.runs(state.SupervisorPID, state.SupervisorTicks):
		if !*signalled {
			*signalled = true
			terminate(state.SupervisorPID)
		}
		return nil
	}
	r.endOrphans(ctx, folder, *state, request.Grace())
	return r.recordCancelled(folder, request, *state)
}

// lockTry is how long Cancel waits for the folder's lock before it looks again.
const lockTry = 100 * time.Millisecond

// cancelUnstarted takes the folder before any supervisor does. Where one is just starting it finds the request by itself.
func (r *Runtime) cancelUnstarted(folder string, request jobs.Request) error {
	release, free, err := claim(folder, lockTry)
	if err != nil || !free {
		return err
	}
	defer release()
	now := r.now().UTC()
	return writeExit(folder, request, jobs.Exit{Reason: jobs.ReasonCancelled, StartedAt: now, EndedAt: now})
}

// recordCancelled writes the exit record that the supervisor can't write any more. The exit status of the command is lost.
func (r *Runtime) recordCancelled(folder string, request jobs.Request, state jobs.StateFile) error {
	release, err := lockFolder(folder, lockTry)
	if err != nil || release == nil {
		return err
	}
	defer release()
	if exit, err := jobs.ReadExit(folder); exit != nil || err != nil {
		return err
	}
	now, started := r.now().UTC(), state.StartedAt
	if started.IsZero() {
		started = state.SubmittedAt
	}
	return writeExit(folder, request, jobs.Exit{Reason: jobs.ReasonCancelled, StartedAt: started, EndedAt: now, Seconds: now.Sub(started).Seconds(),
		PeakRSSBytes: state.PeakRSSBytes})
}

// writeExit does what the supervisor's conclude does, without a second try.
func writeExit(folder string, request jobs.Request, exit jobs.Exit) error {
	exit.Left, _ = jobs.WriteLeft(folder, request, exit.EndedAt) // the exit record is needed whether or not there is a list
	if err := rundir.WriteJSON(filepath.Join(folder, jobs.ExitFile), exit); err != nil {
		return fmt.Errorf("write the exit record: %w", err)
	}
	return nil
}

// claim takes the folder of a job that nobody has started: free is false where someone else holds it, or held it and left
// the job started or ended.
func claim(folder string, wait time.Duration) (release func(), free bool, err error) {
	release, err = lockFolder(folder, wait)
	if err != nil || release == nil {
		return nil, false, err
	}
	state, err := jobs.ReadState(folder)
	if err == nil && state == nil {
		var exit *jobs.Exit
		if exit, err = jobs.ReadExit(folder); err == nil && exit == nil {
			return release, true, nil
		}
	}
	release()
	return nil, false, err
}

// lockFolder is the lock that a supervisor holds for its whole life; nil where it is taken.
func lockFolder(folder string, wait time.Duration) (release func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	unlock, err := rundir.Lock(ctx, filepath.Join(folder, "supervisor.lock"))
	switch {
	case err == nil:
		return unlock, nil
	case ctx.Err() != nil:
		return nil, nil
	}
	return nil, fmt.Errorf("claim the job: %w", err)
}
