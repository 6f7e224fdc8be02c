package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// SuperviseArg is the hidden first argument that makes the binary a supervisor; the job's folder is the second.
const SuperviseArg = "supervise"

// Options are what a Runtime takes from outside; the zero value is right for the binary.
type Options struct {
	// Executable is started as "Executable supervise <folder>". Default: /proc/self/exe on Linux, which still works after an
	// upgrade has replaced the file, elsewhere os.Executable.
	Executable string
	// Host and BootID name this machine and its boot; defaults: what the system says.
	Host, BootID string
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Environ is what jobs inherit, less secrets. Default: os.Environ.
	Environ []string
	// Workspace is the directory whose disk and whose Python Discover looks at. Default: the current directory.
	Workspace string
}

// Runtime runs jobs on this machine.
type Runtime struct {
	executable   string
	host, bootID string
	now          func() time.Time
	environ      []string
	workspace    string
}

var _ jobs.Runtime = (*Runtime)(nil)

// New makes a Runtime.
func New(options Options) *Runtime {
	r := &Runtime{executable: options.Executable, host: options.Host, bootID: options.BootID, now: options.Now,
		environ: options.Environ, workspace: options.Workspace}
	if r.executable == "" {
		r.executable = ownExecutable()
	}
	if r.host == "" {
		r.host, _ = os.Hostname() // without a name every job counts as this host's
	}
	if r.bootID == "" {
		r.bootID = bootID()
	}
	if r.now == nil {
		r.now = time.Now
	}
	if r.environ == nil {
		r.environ = os.Environ()
	}
	if r.workspace == "" {
		r.workspace = "."
	}
	return r
}

func ownExecutable() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// supervisorLog is where a supervisor writes what it can tell nobody else; the file exists only where it had to.
const supervisorLog = "supervisor.log"

// stageVariable marks the second of the two processes that a launch takes.
const stageVariable = "TRAINWRIGHT_SUPERVISE_STAGE"

// startWait bounds Submit's wait for the supervisor's first word, endWait what Cancel waits beyond the grace, leaveWait what it
// waits after that for the supervisor to go.
const (
	startWait = 45 * time.Second
	endWait   = 10 * time.Second
	leaveWait = 2 * time.Second
)

// Submit starts the job in folder and waits until its command runs or has ended. It may be called again at any time, by any
// process: a job that a supervisor has taken is never started a second time.
func (r *Runtime) Submit(ctx context.Context, folder string) (jobs.Status, error) {
	if err := rundir.MayWrite(); err != nil {
		return jobs.Status{}, err
	}
	folder, request, err := open(folder)
	if err != nil {
		return jobs.Status{}, err
	}
	if err := unsupported(); err != nil {
		return jobs.Status{}, err
	}
	state, err := jobs.ReadState(folder)
	if err != nil {
		return jobs.Status{}, err
	}
	exit, err := jobs.ReadExit(folder)
	if err != nil {
		return jobs.Status{}, err
	}
	if state == nil && exit == nil {
		if err := r.launch(ctx, folder, request); err != nil {
			return jobs.Status{}, err
		}
	}
	started := func() (bool, error) {
		state, err := jobs.ReadState(folder)
		if err != nil {
			return false, err
		}
		exit, err := jobs.ReadExit(folder)
		return exit != nil || state != nil && (state.PID > 0 || !r.runs(state.SupervisorPID, state.SupervisorTicks)), err
	}
	reported, err := jobs.Await(ctx, startWait, started)
	if err != nil {
		return jobs.Status{}, err
	}
	if !reported {
		return jobs.Status{}, fmt.Errorf("the supervisor of job %s did not report within %s: see %s and submit again, which is safe",
			request.JobID, startWait, filepath.Join(folder, supervisorLog))
	}
	return r.status(folder, request)
}

// open reads the request of the job in folder and makes the folder absolute.
func open(folder string) (string, jobs.Request, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", jobs.Request{}, fmt.Errorf("find the job's folder: %w", err)
	}
	request, err := jobs.ReadRequest(folder)
	return folder, request, err
}

// Status says where each job stands. Jobs that have ended are answered from their verdict; for the others the processes
// that their state names are looked at.
func (r *Runtime) Status(ctx context.Context, folders []string) ([]jobs.Status, error) {
	out := make([]jobs.Status, len(folders))
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(folders)) { // most of it is waiting for small files
		all.Go(func() {
			for at := next.Add(1) - 1; at < int64(len(folders)) && ctx.Err() == nil; at = next.Add(1) - 1 {
				out[at] = r.look(folders[at])
			}
		})
	}
	all.Wait()
	return out, ctx.Err()
}

// look is the status of one job; one that can't be judged is unknown with a cause.
func (r *Runtime) look(folder string) jobs.Status {
	folder, request, err := open(folder)
	var status jobs.Status
	if err == nil {
		status, err = r.status(folder, request)
	}
	if err != nil {
		return jobs.Unreadable(folder, request, err)
	}
	return status
}
