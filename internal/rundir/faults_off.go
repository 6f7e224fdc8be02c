//go:build !faults

package rundir

// faults ends the process at a chosen point of a commit, in tests only: see faults_on.go.
type faults struct{}

func newFaults(string) faults { return faults{} }

func (faults) at(string) {}

func (faults) committed() {}
