// Command trainwright serves its tools to MCP clients and calls the same tools from a terminal.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
)

// The exit codes, as the help documents them. run maps the status of the step; every other command uses the first
// three.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUnusable = 2
	exitPartial  = 3
	exitBlocked  = 4
)

// exit is the error of a command that has said what there is to say and wants this code.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// terminal is where a command reads and writes, so that tests can look at it.
type terminal struct {
	in       io.Reader
	out, err io.Writer
}

// settings are the flags every command has.
type settings struct {
	workspace, logLevel, policy string
	skillFolders                []string // of serve
}

func main() {
	os.Exit(execute(context.Background(), terminal{os.Stdin, os.Stdout, os.Stderr}, os.Args[1:]))
}

// interruptible gives a context that ends with SIGINT or SIGTERM. Only the commands that finish something then use it:
// the supervisor of a job has its own way with signals. A reader that went away makes writes fail, instead of ending the
// process before it has told what it did; caught rather than ignored, because jobs would inherit an ignored signal.
func interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
}

// execute runs one command line and gives its exit code.
func execute(ctx context.Context, t terminal, arguments []string) int {
	root := newRoot(t)
	root.SetArgs(arguments)
	root.SetIn(t.in)
	root.SetOut(t.out)
	root.SetErr(t.err)
	err := root.ExecuteContext(ctx)
	var code exit
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintln(t.err, "trainwright:", err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUnusable
	}
	return exitFailed
}

// usageError is the error of a command line that can't be used.
type usageError struct{ error }

func newRoot(t terminal) *cobra.Command {
	s := &settings{}
	root := &cobra.Command{
		Use: "trainwright", Short: "Trains models step by step and proves what it claims",
		Long: "trainwright carries out a training step: it reads project and data, keeps a run on disk, checks each phase by a gate,\n" +
			"runs the job and derives the verdict from evidence. It serves MCP clients (serve) and the terminal (run, call).",
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.PersistentFlags().StringVar(&s.workspace, "workspace", "", "folder in which runs live and from which paths are taken (default: the current directory)")
	root.PersistentFlags().StringVar(&s.policy, "policy", "", "the user's policy.yaml (default: ~/.config/trainwright/policy.yaml where there is one)")
	root.PersistentFlags().StringVar(&s.logLevel, "log-level", "", "debug, info, warn, error or off; logs go to stderr (default: info for serve, else warn)")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(serveCommand(s, t), callCommand(s, t), runCommand(s, t), runsCommand(s, t), jobsCommand(s, t), logsCommand(s, t), waitCommand(s, t), rerunCommand(s, t), approveCommand(s, t), doctorCommand(s, t), schemaCommand(s, t), installCommand(s, t), uninstallCommand(s, t), skillsCommand(t), versionCommand(t), superviseCommand())
	s.completions(root)
	for _, c := range append(root.Commands(), root) {
		if check := c.Args; check != nil {
			c.Args = func(c *cobra.Command, args []string) error {
				if err := check(c, args); err != nil {
					return usageError{fmt.Errorf("%w; usage: %s", err, c.UseLine())}
				}
				return nil
			}
		}
	}
	return root
}

// logger writes to stderr: JSON lines, since a client's log file is read by machines.
func (s *settings) logger(t terminal, standard zerolog.Level) (zerolog.Logger, error) {
	level := standard
	if s.logLevel == "off" {
		level = zerolog.Disabled
	} else if s.logLevel != "" {
		parsed, err := zerolog.ParseLevel(s.logLevel)
		if err != nil {
			return zerolog.Nop(), usageError{fmt.Errorf("--log-level %q: use debug, info, warn, error or off", s.logLevel)}
		}
		level = parsed
	}
	zerolog.TimeFieldFormat = time.RFC3339Nano
	return zerolog.New(t.err).Level(level).With().Timestamp().Logger(), nil
}
