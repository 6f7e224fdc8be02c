//go:build linux

package shell

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/suite"
)

// submitArg makes the test binary a process that submits a job, says its state and stays.
const submitArg = "submit-and-stay"

// wordsVariable names another shell for the suite, such as "bash" or "busybox sh".
const wordsVariable = "TRAINWRIGHT_TEST_SHELL"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == submitArg {
		submitAndStay(os.Args[2])
	}
	// The tests wait for other processes most of the time. A -parallel on the command line wins.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func submitAndStay(folder string) {
	status, err := newRuntime(suite.Machine{}).Submit(context.Background(), folder)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(status.State)
	time.Sleep(time.Minute)
	os.Exit(0)
}

func newRuntime(m suite.Machine) *Runtime {
	environ := m.Environ
	if environ == nil {
		environ = os.Environ()
	}
	return New(Options{Shell: Local{Words: strings.Fields(os.Getenv(wordsVariable)), Environ: jobs.Inherited(environ, nil)}, Now: m.Now, Environ: environ})
}

func TestSuite(t *testing.T) {
	suite.Run(t, suite.Constructor{
		New: func(m suite.Machine) jobs.Runtime { return newRuntime(m) },
		Submitter: func(folder string) *exec.Cmd {
			cmd := exec.Command(os.Args[0], submitArg, folder)
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			return cmd
		},
		Lacks: []suite.Capability{suite.Adopts},
	})
}
