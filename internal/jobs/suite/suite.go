// Package suite is the behaviour that every jobs.Runtime must show: how jobs end, how they are ended, what becomes of what they
// start, and what happens to them when servers, supervisors, disks, clocks and machines fail. A runtime's test is a
// Constructor and a call of Run. The cases look at the processes of this machine through /proc, so that such a test is one
// for Linux; the runtime may have its jobs on any file system that this machine sees.
package suite

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
)

// Machine is what a case makes a runtime believe about the machine that it runs on.
type Machine struct {
	// Now is the clock; nil: the machine's.
	Now func() time.Time
	// Environ is what the submitting process has in its environment; nil: the test's.
	Environ []string
}

// Capability is something that not every runtime can do.
type Capability string

// The capabilities.
const (
	// Adopts: what a job starts stays below its supervisor, so that even a process is found which has left its parents, its
	// session and the job's mark in the environment behind. It takes a child subreaper (prctl(2)) or a cgroup.
	Adopts Capability = "adopts"
)

// Constructor makes runtimes of one kind.
type Constructor struct {
	// New makes a runtime that shares nothing with another one but the folders of the jobs, as in another process.
	New func(Machine) jobs.Runtime
	// Submitter is a process, not started yet, that submits the job in folder and then stays for a minute. When it says
	// anything on stdout, the job is submitted. It leads a process group of its own.
	Submitter func(folder string) *exec.Cmd
	// Lacks are the capabilities that runtimes of this kind do not have.
	Lacks []Capability
	// LargeBytes is how much output the case of large output writes. 0: 50 MB, or what the variable named by LargeVariable says.
	LargeBytes int64
}

// LargeVariable names the variable with the size of a large output in bytes; 1000000000 for what the design promises.
const LargeVariable = "TRAINWRIGHT_LARGE_OUTPUT_BYTES"

const largeDefault = 50_000_000

func (c Constructor) large() (int64, error) {
	if c.LargeBytes > 0 {
		return c.LargeBytes, nil
	}
	if text := os.Getenv(LargeVariable); text != "" {
		return strconv.ParseInt(text, 10, 64)
	}
	return largeDefault, nil
}

func (c Constructor) has(capability Capability) bool { return !slices.Contains(c.Lacks, capability) }

// Run runs every case, in parallel.
func Run(t *testing.T, c Constructor) {
	for _, group := range []struct {
		name string
		run  func(*testing.T, Constructor)
	}{
		{"outcome", outcomes}, {"environment", environment}, {"arguments", arguments},
		{"large output", largeOutput}, {"full disk", fullDisk},
		{"watched", watched}, {"unstarted is watched", unstartedIsWatched}, {"watched beyond the limit", watchedBeyondTheLimit},
		{"unlistable", unlistable}, {"planted records", plantedRecords}, {"memory kill", memoryKill},
		{"wall time", wallTime}, {"cancel", cancels}, {"heartbeat", heartbeat},
		{"descendants", descendants}, {"launcher", launcher},
		{"submitter", submitters}, {"two servers", twoServers}, {"descriptors", descriptors},
		{"supervisor lost", supervisorLost}, {"reboot", reboot}, {"pid reuse", pidReuse}, {"clock jump", clockJump},
		{"unknown", unknown},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			group.run(t, c)
		})
	}
}
