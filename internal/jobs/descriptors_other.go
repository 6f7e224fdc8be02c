//go:build !unix

package jobs

// CloseOnExec has nothing to do: here a process inherits only what it is given.
func CloseOnExec() {}
