//go:build linux || darwin

package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

const (
	claimWait    = 2 * time.Second        // another supervisor holds the lock for its whole life, a Cancel for an instant
	heartbeat    = 5 * time.Second        // how often state.json says that the supervisor lives
	markerEvery  = 250 * time.Millisecond // how often cancel.json is looked for
	sampleMost   = 500 * time.Millisecond // memory is sampled at doubling intervals up to this
	sampleShare  = 10                     // a sample pauses at least that many times as long as it took
	lingerGrace  = time.Second            // between SIGTERM and SIGKILL for what the command left behind
	lingerEvery  = 50 * time.Millisecond  // how often they are looked for
	killEvery    = 20 * time.Millisecond  // how often what is left is killed
	killWait     = 15 * time.Second       // how long processes may resist SIGKILL before they count as survivors
	reserveBytes = 16 << 10               // four pages: two records, twice
	recordTries  = 600                    // how often, a second apart, the exit record is tried on a full disk
)

// Supervise is the main function of the supervisor of the job in folder; its result is the exit code of the process. It
// returns at once where another supervisor has, or had, the job.
func Supervise(folder string) int {
	if os.Getenv(stageVariable) == "" {
		return detach(folder)
	}
	_ = os.Unsetenv(stageVariable) // fails only for an empty name
	if err := supervise(folder); err != nil {
		line := fmt.Sprintf("%s %v\n", time.Now().UTC().Format(time.RFC3339), err)
		if file, err := os.OpenFile(filepath.Join(folder, supervisorLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
			_, _ = file.WriteString(line) // nobody is left to tell
			_ = file.Close()
		}
		return 1
	}
	return 0
}

func supervise(folder string) error {
	request, err := jobs.ReadRequest(folder)
	if err != nil {
		return err
	}
	release, err := takeFolder(folder)
	if err != nil || release == nil {
		return err
	}
	defer release()
	s := &supervisor{folder: folder, request: request, changed: make(chan os.Signal, 1), asked: make(chan os.Signal, 4)}
	// SIGHUP is caught rather than ignored, because an ignored signal would stay ignored in the command.
	signal.Notify(s.asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	signal.Notify(s.changed, syscall.SIGCHLD)
	adoptOrphans()
	return s.run()
}

// takeFolder claims the job; release is nil where another supervisor has it, which shows as soon as that one has written its
// state.
func takeFolder(folder string) (release func(), err error) {
	for until := time.Now().Add(claimWait); time.Now().Before(until); {
		release, free, err := claim(folder, lockTry)
		if err != nil || free {
			return release, err
		}
		state, err := jobs.ReadState(folder)
		if err != nil || state != nil {
			return nil, err
		}
		exit, err := jobs.ReadExit(folder)
		if err != nil || exit != nil {
			return nil, err
		}
	}
	return nil, nil
}

// supervisor runs one job.
type supervisor struct {
	folder  string
	request jobs.Request
	state   jobs.StateFile
	changed chan os.Signal // SIGCHLD
	asked   chan os.Signal // the end was asked for

	stdout, stderr *os.File
	copyLogs       bool

	started  time.Time
	status   syscall.WaitStatus
	done     bool   // the command was reaped
	killed   bool   // a process of the job ended by SIGKILL, or with 137, before the supervisor sent any
	alone    bool   // no child is left, not even an adopted one
	reason   string // why it is being stopped; "" while nobody asked
	killAt   time.Time
	lastKill time.Time
	left     map[int]bool // processes that outlived the command
	memory   memoryKills

	peak                       int64
	beatAt, sampleAt, markerAt time.Time
	samplePause                time.Duration
	warnAt, limitAt            time.Time
}

// run takes the job through its life. From the moment state.json is written nobody else will start the command, so that
// every way out of here leaves an exit record.
func (s *supervisor) run() error {
	now := time.Now()
	ticks, _ := processStart(os.Getpid())
	host, _ := os.Hostname()
	s.state = jobs.StateFile{Site: s.request.Site, Channel: s.request.Channel, Marker: s.request.Marker, Host: host, SubmittedAt: now.UTC(),
		SupervisorPID: os.Getpid(), SupervisorTicks: ticks, BootID: bootID()}
	if err := s.beat(now); err != nil {
		return fmt.Errorf("take the job: %w", err)
	}
	if err := s.openLogs(); err != nil {
		return s.conclude(s.refused(126, err.Error()))
	}
	if cancelled, err := jobs.ReadCancel(s.folder); err == nil && cancelled != nil {
		return s.conclude(jobs.Exit{Reason: jobs.ReasonCancelled, EndedAt: now.UTC(), StartedAt: now.UTC()})
	}
	keepRoom(s.folder)
	if code, problem := s.start(); problem != "" {
		return s.conclude(s.refused(code, problem))
	}
	s.watch()
	return s.conclude(s.exit(time.Now()))
}

// openLogs opens the two logs for appending and links them into the working directory.
func (s *supervisor) openLogs() (err error) {
	flags := os.O_APPEND | os.O_CREATE | os.O_WRONLY
	if s.stdout, err = os.OpenFile(filepath.Join(s.folder, jobs.StdoutFile), flags, 0o644); err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	if s.stderr, err = os.OpenFile(filepath.Join(s.folder, jobs.StderrFile), flags, 0o644); err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	s.copyLogs = !linkLogs(s.folder, s.request)
	return nil
}

// refused is the exit record of a command that could not be started, with the reason in its stderr log.
func (s *supervisor) refused(code int, problem string) jobs.Exit {
	now := time.Now().UTC()
	if s.stderr != nil {
		_, _ = fmt.Fprintf(s.stderr, "trainwright: cannot start the command: %s\n", problem) // the exit code still says it
	}
	return jobs.Exit{Code: &code, Reason: jobs.ReasonExited, StartedAt: now, EndedAt: now}
}

// start starts the command. The problem it returns is empty where the command runs; code is what a shell would exit with.
func (s *supervisor) start() (code int, problem string) {
	if info, err := os.Stat(s.request.WorkDir); err != nil || !info.IsDir() {
		return 126, fmt.Sprintf("the working directory %s is not there", s.request.WorkDir)
	}
	environ := commandEnviron(os.Environ(), s.folder, s.request)
	path, code, problem := findCommand(s.request.Command[0], s.request.WorkDir, lookup(environ, "PATH"))
	if problem != "" {
		return code, problem
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 126, err.Error()
	}
	defer null.Close()
	s.memory = watchMemoryKills("/", os.Getenv(groupVariable))
	s.started = time.Now()
	pid, err := syscall.ForkExec(path, s.request.Command, &syscall.ProcAttr{Dir: s.request.WorkDir, Env: environ,
		Files: []uintptr{null.Fd(), s.stdout.Fd(), s.stderr.Fd()}, Sys: &syscall.SysProcAttr{Setpgid: true}})
	if err != nil {
		return startProblem(path, err)
	}
	s.state.PID, s.state.StartedAt = pid, s.started.UTC()
	s.state.StartTicks, _ = processStart(pid)
	return 0, ""
}

// keepRoom takes the space that the exit record and the verdict will need, so that a job which fills the disk does not take
// its own end with it. On a disk that is full already the record waits for space.
func keepRoom(folder string) {
	_ = os.WriteFile(filepath.Join(folder, jobs.ReserveFile), bytes.Repeat([]byte{' '}, reserveBytes), 0o644)
}

// conclude lists what the job left, then writes the exit record, trying again while the disk is full, and the verdict.
func (s *supervisor) conclude(exit jobs.Exit) error {
	for _, log := range []*os.File{s.stdout, s.stderr} {
		if log != nil {
			_ = log.Sync() // a log that can't be flushed must not keep the record from being written
		}
	}
	if s.copyLogs {
		copyLogs(s.folder, s.request)
	}
	_ = os.Remove(filepath.Join(s.folder, jobs.VerdictFile)) // what the command has put there is no verdict
	left, unlisted := jobs.WriteLeft(s.folder, s.request, time.Now())
	exit.Left = left
	reserve := filepath.Join(s.folder, jobs.ReserveFile)
	defer os.Remove(reserve)
	var err error
	for range recordTries {
		if err = rundir.WriteJSON(filepath.Join(s.folder, jobs.ExitFile), exit); err == nil {
			break
		}
		if _, gone := os.Stat(s.folder); gone != nil {
			break // nobody waits for a folder that is not there
		}
		if os.Remove(reserve) != nil { // the room is given back at once, then others may make some
			time.Sleep(time.Second)
		}
	}
	if err != nil {
		return fmt.Errorf("write the exit record: %w", err)
	}
	_, _, err = jobs.Conclude(s.folder, s.request)
	return errors.Join(unlisted, err)
}
