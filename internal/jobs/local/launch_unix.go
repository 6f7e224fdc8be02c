//go:build linux || darwin

package local

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

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
	cmd.Env = slices.DeleteFunc(jobs.Inherited(r.environ, request.PassEnv), func(pair string) bool { return strings.HasPrefix(pair, stageVariable+"=") })
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
	jobs.CloseOnExec()
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
