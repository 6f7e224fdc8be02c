//go:build linux

package local

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/suite"
)

// submitArg makes the test binary a process that submits a job, says its state and stays.
const submitArg = "submit-and-stay"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 {
		switch os.Args[1] {
		case SuperviseArg:
			os.Exit(Supervise(os.Args[2]))
		case submitArg:
			submitAndStay(os.Args[2])
		}
	}
	// The tests wait for other processes most of the time. A -parallel on the command line wins.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func submitAndStay(folder string) {
	status, err := New(Options{Environ: testEnviron()}).Submit(context.Background(), folder)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(status.State)
	time.Sleep(time.Minute)
	os.Exit(0)
}

// quietRace keeps the race detector from waiting a second at the end of each process.
const quietRace = "GORACE=atexit_sleep_ms=0"

func testEnviron() []string { return append(os.Environ(), quietRace) }

func newRuntime() *Runtime { return New(Options{Environ: testEnviron()}) }

// newJob creates a job of this runtime.
func newJob(t *testing.T, command []string, amend ...func(*jobs.Request)) *suite.Job {
	t.Helper()
	return suite.NewJob(t, constructor, command, amend...)
}

func codes(findings []finding.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Code)
	}
	return out
}

func wantCode(t *testing.T, findings []finding.Finding, code string) {
	t.Helper()
	if !slices.Contains(codes(findings), code) {
		t.Errorf("findings %v, want %s among them", codes(findings), code)
	}
}

func refusedWith(err error) []string {
	var refused *finding.Refused
	if errors.As(err, &refused) {
		return codes(refused.Findings)
	}
	return nil
}
