package shell

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/jobs"
)

// underway is a job that a runner took and that has no exit record; at is its place in the answer.
type underway struct {
	folder  string
	request jobs.Request
	state   jobs.StateFile
	at      int
}

// look is what the machine says of a job.
type look struct {
	host, bootID              string
	supervisor, command, left bool
}

// batch bounds how many jobs one script is asked about: 131072 bytes may be one argument, some megabytes all of them.
const batch = 500

// Status says where each job stands. Jobs that have ended are answered from their verdict; the machine is asked about all
// others in one call for each 500.
func (r *Runtime) Status(ctx context.Context, folders []string) ([]jobs.Status, error) {
	out := make([]jobs.Status, len(folders))
	var open []underway
	for i, folder := range folders {
		folder, request, err := r.open(ctx, folder)
		var job *underway
		if err == nil {
			out[i], job, err = settled(folder, request)
		}
		if err != nil {
			out[i] = jobs.Unreadable(folder, request, err)
		}
		if job != nil {
			job.at = i
			open = append(open, *job)
		}
	}
	for len(open) > 0 {
		some := open[:min(len(open), batch)]
		open = open[len(some):]
		looks, err := r.look(ctx, some)
		if err != nil {
			return nil, err
		}
		for i, job := range some {
			if out[job.at], err = r.judge(ctx, job, looks[i]); err != nil {
				out[job.at] = jobs.Unreadable(job.folder, job.request, err)
			}
		}
	}
	return out, ctx.Err()
}

// one is the status of one job.
func (r *Runtime) one(ctx context.Context, folder string, request jobs.Request) (jobs.Status, error) {
	status, job, err := settled(folder, request)
	if job == nil || err != nil {
		return status, err
	}
	looks, err := r.look(ctx, []underway{*job})
	if err != nil {
		return jobs.Status{}, err
	}
	return r.judge(ctx, *job, looks[0])
}

// settled is the status of a job that the records alone tell; another is underway.
func settled(folder string, request jobs.Request) (jobs.Status, *underway, error) {
	if status, done, err := jobs.Ended(folder, request); done || err != nil {
		return status, nil, err
	}
	state, err := jobs.ReadState(folder)
	if state == nil || err != nil {
		return jobs.NotStarted(folder, request), nil, err
	}
	return jobs.Status{}, &underway{folder: folder, request: request, state: *state}, nil
}

// judge fuses the state of a job with what its machine says.
func (r *Runtime) judge(ctx context.Context, job underway, seen look) (jobs.Status, error) {
	status := jobs.Underway(job.folder, job.request, job.state, jobs.Machine{Host: seen.host, BootID: seen.bootID, Now: r.now(),
		Alive: func(pid int, _ uint64) bool {
			return pid > 0 && (pid == job.state.SupervisorPID && seen.supervisor || pid == job.state.PID && seen.command)
		},
		Left: func() bool { return seen.left }})
	if status.State == jobs.StateRunning || status.State == jobs.StateQueued {
		return status, nil
	}
	// The runner may have written the record and left between the two looks.
	if err := r.shell.Pull(ctx, job.folder); err != nil {
		return status, err
	}
	if last, done, err := jobs.Ended(job.folder, job.request); done || err != nil {
		return last, err
	}
	return status, nil
}

// look asks the machine which processes of these jobs are alive.
func (r *Runtime) look(ctx context.Context, some []underway) ([]look, error) {
	args := make([]string, 0, 5*len(some))
	for _, job := range some {
		there, err := r.shell.Push(ctx, job.folder)
		if err != nil {
			return nil, fmt.Errorf("find job %s on its machine: %w", job.request.JobID, err)
		}
		args = append(args, there, strconv.Itoa(job.state.SupervisorPID), strconv.FormatUint(job.state.SupervisorTicks, 10),
			strconv.Itoa(job.state.PID), strconv.FormatUint(job.state.StartTicks, 10))
	}
	said, err := r.shell.Run(ctx, jobs.RunnerLook(), nil, args)
	if err != nil {
		return nil, fmt.Errorf("look at the jobs' processes: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(said), "\n"), "\n")
	if len(lines) != 2+len(some) {
		return nil, fmt.Errorf("look at the jobs' processes: %d lines for %d jobs: %.200q", len(lines), len(some), said)
	}
	looks := make([]look, len(some))
	for i, line := range lines[2:] {
		flags := strings.Fields(line)
		if len(flags) != 3 {
			return nil, fmt.Errorf("look at the jobs' processes: %q where three flags were expected", line)
		}
		looks[i] = look{host: lines[0], bootID: lines[1], supervisor: flags[0] == "1", command: flags[1] == "1", left: flags[2] == "1"}
	}
	return looks, nil
}
