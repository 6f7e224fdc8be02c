//go:build unix

package jobs

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// CloseOnExec keeps this process's descriptors above 2 from the processes it starts: what a client had left open in its
// server without the flag would otherwise keep that client waiting for the end of a pipe.
func CloseOnExec() {
	for _, list := range []string{"/proc/self/fd", "/dev/fd"} {
		entries, err := os.ReadDir(list)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
				unix.CloseOnExec(fd)
			}
		}
		return
	}
}
