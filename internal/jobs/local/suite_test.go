//go:build linux

package local

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/suite"
)

// constructor makes this package's runtimes for the suite, and for the tests that only this runtime has.
var constructor = suite.Constructor{
	New: func(m suite.Machine) jobs.Runtime {
		environ := m.Environ
		if environ != nil {
			environ = append(environ, quietRace)
		} else {
			environ = testEnviron()
		}
		return New(Options{Now: m.Now, Environ: environ})
	},
	Submitter: func(folder string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], submitArg, folder)
		cmd.Env = testEnviron()
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return cmd
	},
}

func TestSuite(t *testing.T) { suite.Run(t, constructor) }
