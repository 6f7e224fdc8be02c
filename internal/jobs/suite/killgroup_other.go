//go:build !unix

package suite

// killGroup kills the process alone: here are no groups.
func killGroup(pid int) error { return signalKill(pid) }
