//go:build linux || darwin

package local

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// watch returns when the command and everything it started is gone, or can't be ended.
func (s *supervisor) watch() {
	limits, end := s.request.Warning()
	if end > 0 {
		s.warnAt, s.limitAt = s.started.Add(limits), s.started.Add(end)
	}
	s.samplePause = 20 * time.Millisecond
	s.left = map[int]bool{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	_ = s.beat(s.started) // the next beat tries again
	for {
		asked := false
		select {
		case <-s.changed:
		case <-timer.C:
		case got := <-s.asked:
			asked = got != syscall.SIGHUP
		}
		now := time.Now()
		s.reap()
		s.look(now, asked)
		if s.over(now) {
			return
		}
		timer.Reset(time.Until(s.next(now)))
	}
}

// look does what is due at this moment.
func (s *supervisor) look(now time.Time, asked bool) {
	if !s.done && now.After(s.markerAt) {
		s.markerAt = now.Add(markerEvery)
		if _, err := os.Stat(filepath.Join(s.folder, jobs.CancelFile)); err == nil {
			asked = true
		}
	}
	switch {
	case asked && !s.done:
		s.stop(jobs.ReasonCancelled, now.Add(s.request.Grace()))
	case !s.warnAt.IsZero() && now.After(s.warnAt) && !s.done:
		s.stop(jobs.ReasonWallTime, s.limitAt)
	}
	if !s.done && now.After(s.sampleAt) {
		s.sample()
	}
	if now.Sub(s.beatAt) >= heartbeat {
		_ = s.beat(now) // a full disk; the next beat tries again
	}
	if !s.killAt.IsZero() && !now.Before(s.killAt) {
		s.kill(now)
	}
}

// stop asks the whole tree to end and sets when it will be made to. The first reason stays.
func (s *supervisor) stop(reason string, killAt time.Time) {
	if s.reason != "" {
		return
	}
	s.reason, s.killAt = reason, killAt
	s.signal(syscall.SIGTERM)
}

// over reports whether nothing of the job is left: the kernel says that there is no child. The list of processes alone
// would not do, since one that is started by another which then ends can slip through while the list is read. When the
// command has ended by itself, what it left behind is asked to end here for the first time.
func (s *supervisor) over(now time.Time) bool {
	if !s.done {
		return false
	}
	alive := descendants(os.Getpid())
	if s.alone && len(alive) == 0 {
		return true
	}
	if s.killAt.IsZero() {
		s.killAt = now.Add(lingerGrace)
		for _, pid := range alive {
			s.left[pid] = true
		}
		s.signal(syscall.SIGTERM)
	}
	return now.Sub(s.killAt) > killWait
}

// kill ends everything that is left, again and again, since what dies may have started something just before.
func (s *supervisor) kill(now time.Time) {
	if now.Sub(s.lastKill) < killEvery {
		return
	}
	s.lastKill = now
	s.signal(syscall.SIGKILL)
}

// signal reaches the command's process group and every descendant, those in sessions of their own included. A process that
// is gone by now can't be signalled, which is what was wanted.
func (s *supervisor) signal(sig syscall.Signal) {
	if !s.done {
		_ = syscall.Kill(s.state.PID, sig)
	}
	for _, pid := range descendants(os.Getpid()) {
		if pid != s.state.PID {
			_ = syscall.Kill(pid, sig)
		}
	}
}

// next is when something is due.
func (s *supervisor) next(now time.Time) time.Time {
	next := now.Add(markerEvery)
	switch {
	case !s.killAt.IsZero() && !now.Before(s.killAt):
		return now.Add(killEvery)
	case s.done:
		next = now.Add(lingerEvery)
	}
	for _, due := range []time.Time{s.sampleAt, s.warnAt, s.killAt} {
		if due.After(now) && due.Before(next) {
			next = due
		}
	}
	return next.Add(time.Millisecond)
}

// reap waits for every child that has ended: the command and the orphans that the supervisor has adopted. It is the only
// place that waits, because a wait for any child takes the status from whoever waits for one.
func (s *supervisor) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 || err != nil {
			s.alone = err == syscall.ECHILD
			return
		}
		if s.lastKill.IsZero() && (status.Signal() == syscall.SIGKILL || status.ExitStatus() == 128+int(syscall.SIGKILL)) {
			s.killed = true
		}
		if pid == s.state.PID && !s.done {
			s.status, s.done = status, true
		}
	}
}

// sample takes the memory of the tree. Short jobs are looked at often; where a look takes long, because there are many pages,
// the next one is put off, so that looking does not slow the training.
func (s *supervisor) sample() {
	tree := descendants(os.Getpid())
	before := time.Now()
	s.peak = max(s.peak, treeMemory(tree))
	after := time.Now()
	s.sampleAt = after.Add(max(s.samplePause, sampleShare*after.Sub(before)))
	s.samplePause = min(2*s.samplePause, sampleMost)
}

// beat writes state.json.
func (s *supervisor) beat(now time.Time) error {
	s.beatAt = now
	s.state.HeartbeatAt, s.state.PeakRSSBytes = now.UTC(), s.peak
	return rundir.WriteJSON(filepath.Join(s.folder, jobs.StateName), s.state)
}

// exit is the record of how it ended.
func (s *supervisor) exit(now time.Time) jobs.Exit {
	exit := jobs.Exit{StartedAt: s.started.UTC(), EndedAt: now.UTC(), Seconds: now.Sub(s.started).Seconds(), PeakRSSBytes: s.peak,
		Reason: s.reason, LeftBehind: len(s.left)}
	reason := jobs.ReasonExited
	if s.status.Signaled() {
		name := unix.SignalName(s.status.Signal())
		exit.Signal, reason = &name, jobs.ReasonSignalled
	} else {
		code := s.status.ExitStatus()
		exit.Code = &code
	}
	if exit.Reason == "" {
		exit.Reason = reason
	}
	if s.killed {
		exit.OutOfMemory = s.memory.rose()
	}
	if alive := descendants(os.Getpid()); len(alive) > 0 {
		exit.Survivors = alive
	}
	return exit
}
