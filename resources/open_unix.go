//go:build unix

package resources

import "syscall"

// withoutWaiting opens a named pipe without waiting for its writer, should one have taken the place of a file.
const withoutWaiting = syscall.O_NONBLOCK
