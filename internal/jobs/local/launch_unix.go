//go:build linux || darwin

package local

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/trainwright/trainwright/internal/jobs"
)

// unsupported is nil where jobs can be run here.
func unsupported() error { return nil }

// launch starts the supervisor detached: a first process starts the second and ends, so that the supervisor is nobody's
// child. A client that ends its server by walking down the tree of processes does not find it.
func (r *Runtime) launch(ctx context.Context, folder string, request jobs.Request) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, r.executable, SuperviseArg, folder)
	cmd.Args[0] = "trainwright"
	cmd.Env = scrub(r.environ, request.PassEnv)
	cmd.Dir = "/"
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = startWait
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start the supervisor of job %s: %w: %s", request.JobID, err, strings.TrimSpace(said.String()))
	}
	return nil
}

// detach is the first process: it starts the supervisor in a session of its own, without any descriptor, and ends.
func detach(folder string) int {
	closeOnExec()
	cmd := exec.Command(ownExecutable(), SuperviseArg, folder)
	cmd.Args[0] = "trainwright"
	cmd.Env = append(os.Environ(), stageVariable+"=2")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "start the supervisor: %v\n", err)
		return 1
	}
	return 0
}

// closeOnExec keeps descriptors from the next process that this one did not open itself: what a client had left open in
// its server without the flag would otherwise keep that client waiting for the end of a pipe.
func closeOnExec() {
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
