//go:build unix

package suite

import "syscall"

// killGroup kills the process group that pid leads: a server and what it has just started.
func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }
