//go:build faults

package rundir

import (
	"fmt"
	"os"
	"sync/atomic"
)

// faults ends the process at a chosen point of a commit. TRAINWRIGHT_FAULT=<k>:<point> kills it at that point of its k-th
// WriteFile, counted from 1; TRAINWRIGHT_FAULT_LOG=<file> gets a line "<k> <path>" for each commit, so that a test knows
// how many there are.
type faults struct {
	k    int64
	path string
}

var commits atomic.Int64

func newFaults(path string) faults { return faults{commits.Add(1), path} }

func (f faults) at(point string) {
	if os.Getenv("TRAINWRIGHT_FAULT") != fmt.Sprintf("%d:%s", f.k, point) {
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {} // until the signal arrives
}

func (f faults) committed() {
	name := os.Getenv("TRAINWRIGHT_FAULT_LOG")
	if name == "" {
		return
	}
	log, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer log.Close()
	if _, err := fmt.Fprintf(log, "%d %s\n", f.k, f.path); err != nil {
		panic(err)
	}
}
