package local

import (
	"os"

	"github.com/trainwright/trainwright/internal/jobs"
)

// status fuses the job's records with the processes they name.
func (r *Runtime) status(folder string, request jobs.Request) (jobs.Status, error) {
	if status, done, err := jobs.Ended(folder, request); done || err != nil {
		return status, err
	}
	state, err := jobs.ReadState(folder)
	if err != nil {
		return jobs.Status{}, err
	}
	if state == nil {
		return jobs.NotStarted(folder, request), nil
	}
	status := jobs.Underway(folder, request, *state, r.machine(folder))
	if status.State == jobs.StateRunning || status.State == jobs.StateQueued {
		return status, nil
	}
	// The supervisor may have written the record and left between the two looks.
	if last, done, err := jobs.Ended(folder, request); done || err != nil {
		return last, err
	}
	return status, nil
}

// machine is this machine now, for the job in folder.
func (r *Runtime) machine(folder string) jobs.Machine {
	return jobs.Machine{Host: r.host, BootID: r.bootID, Now: r.now(), Alive: r.runs, Left: func() bool { return len(marked(folder)) > 0 }}
}

// runs reports whether the process with this pid is still the one that started at these ticks. A zombie is dead.
func (r *Runtime) runs(pid int, ticks uint64) bool {
	if pid <= 0 || pid == os.Getpid() {
		return false
	}
	started, alive := processStart(pid)
	return alive && started == ticks
}
