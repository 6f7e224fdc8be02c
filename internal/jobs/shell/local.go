package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
)

// Shell is a machine that runs POSIX shell.
type Shell interface {
	// Run gives script to a shell, with args as $1 and so on and env ("NAME=value") added to the machine's environment, and
	// answers what it wrote to stdout. Another exit status than 0 is an error that holds its stderr.
	Run(ctx context.Context, script string, env, args []string) ([]byte, error)
	// Push brings these files of a job's folder to the machine and answers the folder's path there, also for no files.
	Push(ctx context.Context, folder string, names ...string) (there string, err error)
	// Pull brings the records and logs of a job back into folder.
	Pull(ctx context.Context, folder string) error
}

// Local is this machine.
type Local struct {
	// Words start the shell; default: sh. Such as "busybox", "sh".
	Words []string
	// Environ is what the shell and the jobs inherit, usually jobs.Inherited(os.Environ(), nil), which leaves secrets out.
	Environ []string
}

var _ Shell = Local{}

// runDelay bounds how long Run waits for the end of a pipe after the end of the shell.
const runDelay = 5 * time.Second

// Run implements Shell.
func (l Local) Run(ctx context.Context, script string, env, args []string) ([]byte, error) {
	words := l.Words
	if len(words) == 0 {
		words = []string{"sh"}
	}
	argv := append(append([]string{}, words[1:]...), "-c", script, "trainwright")
	cmd := exec.CommandContext(ctx, words[0], append(argv, args...)...)
	cmd.Env = append(append(append([]string{}, l.Environ...), env...), "TRAINWRIGHT_SHELL="+strings.Join(words, " "))
	cmd.Dir = "/"
	cmd.WaitDelay = runDelay
	jobs.CloseOnExec() // sh itself can only close descriptors below 10
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("run a script with %s: %w", strings.Join(words, " "), errors.Join(err, errorText(said.String())))
	}
	return out.Bytes(), nil
}

func errorText(said string) error {
	if said = strings.TrimSpace(said); said == "" {
		return nil
	}
	return errors.New(said)
}

// Push implements Shell: the folder is there already.
func (l Local) Push(_ context.Context, folder string, _ ...string) (string, error) {
	return folder, nil
}

// Pull implements Shell.
func (l Local) Pull(context.Context, string) error { return nil }
