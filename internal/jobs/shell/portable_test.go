//go:build linux

package shell

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
)

// TestOtherSystems runs what differs between shells, and what differs where there is no /proc, in every shell of this machine.
// The whole suite runs in one of them with TRAINWRIGHT_TEST_SHELL="busybox sh".
func TestOtherSystems(t *testing.T) {
	for _, words := range [][]string{{"sh"}, {"bash"}, {"busybox", "sh"}} {
		if _, err := exec.LookPath(words[0]); err != nil {
			t.Logf("%s is not on this machine", words[0])
			continue
		}
		for system, environ := range map[string][]string{"": nil, " without proc": {"TRAINWRIGHT_PROC=/nonexistent"}} {
			t.Run(words[0]+system, func(t *testing.T) {
				t.Parallel()
				outcomes(t, New(Options{Shell: Local{Words: words, Environ: append(os.Environ(), environ...)}}))
			})
		}
	}
}

// outcome is how a script must end.
type outcome struct {
	script string
	wall   int
	cancel bool
	state  string
	code   int // -1: none
	signal string
}

func outcomes(t *testing.T, r *Runtime) {
	for name, want := range map[string]outcome{
		"failure":            {script: "exit 3", state: jobs.StateFailed, code: 3},
		"signal":             {script: "kill -KILL $$", state: jobs.StateFailed, code: -1, signal: "SIGKILL"},
		"orphan":             {script: "sleep 60 & echo ready", state: jobs.StateSucceeded},
		"cancel of a group":  {script: "sleep 60 & echo ready; wait", cancel: true, state: jobs.StateCancelled, code: -1, signal: "SIGTERM"},
		"warned and resists": {script: "trap '' TERM; while :; do sleep 1; done", wall: 3, state: jobs.StateTimeout, code: -1, signal: "SIGKILL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, folder := ends(t, r, want)
			code, signal := -1, ""
			if status.Exit.Code != nil {
				code = *status.Exit.Code
			}
			if status.Exit.Signal != nil {
				signal = *status.Exit.Signal
			}
			if status.State != want.state || code != want.code || signal != want.signal {
				t.Errorf("%s, code %d, signal %q; want %s, %d, %q\n%s", status.State, code, signal, want.state, want.code, want.signal, told(folder))
			}
		})
	}
}

// ends runs the script to its end.
func ends(t *testing.T, r *Runtime, script outcome) (status jobs.Status, folder string) {
	t.Helper()
	folder = create(t, jobs.Request{JobID: "j-1", Command: []string{"/bin/sh", "-c", script.script}, WallTimeSeconds: script.wall, GraceSeconds: 1})
	if _, err := r.Submit(context.Background(), folder); err != nil {
		t.Fatalf("submit: %v", err)
	}
	if script.cancel {
		prints(t, folder, "ready") // a cancel before the command has begun leaves no signal to see
		if all, err := r.Status(context.Background(), []string{folder}); err != nil || all[0].State != jobs.StateRunning {
			t.Fatalf("a supervisor at work is not seen: %+v, %v", all, err)
		}
		if _, err := r.Cancel(context.Background(), folder); err != nil {
			t.Fatalf("cancel: %v", err)
		}
	}
	if ended, err := jobs.Await(context.Background(), 30*time.Second, func() (bool, error) {
		all, err := r.Status(context.Background(), []string{folder})
		if err == nil {
			status = all[0]
		}
		return jobs.Terminal(status.State), err
	}); !ended || err != nil {
		t.Fatalf("%s, %v", status.State, err)
	}
	return status, folder
}

// told is what the job's records and its runner say, for a failure that nobody can repeat.
func told(folder string) string {
	var text strings.Builder
	files, _ := filepath.Glob(filepath.Join(folder, "*"))
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && filepath.Base(file) != jobs.RunnerFile {
			fmt.Fprintf(&text, "%s: %s\n", filepath.Base(file), data)
		}
	}
	return text.String()
}

// prints waits until the job's command has written the text.
func prints(t *testing.T, folder, text string) {
	t.Helper()
	said, err := jobs.Await(context.Background(), 30*time.Second, func() (bool, error) {
		out, _ := os.ReadFile(filepath.Join(folder, "stdout.log"))
		return strings.Contains(string(out), text), nil
	})
	if !said || err != nil {
		t.Fatalf("the job never printed %q: %v", text, err)
	}
}

func create(t *testing.T, request jobs.Request) (folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "jobs", request.JobID)
	request.WorkDir = t.TempDir()
	if err := jobs.Create(folder, request); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestDiscover(t *testing.T) {
	facilities, findings, err := newRuntimeHere().Discover(context.Background())
	if err != nil || len(findings) > 0 {
		t.Fatalf("%v, findings %+v", err, findings)
	}
	host, _ := os.Hostname()
	if facilities.Host != host || facilities.OS != "linux" || facilities.CPUs < 1 || facilities.MemoryTotalMB < 100 || facilities.DiskFreeMB < 1 {
		t.Errorf("%+v", facilities)
	}
}

func newRuntimeHere() *Runtime { return New(Options{Shell: Local{Environ: os.Environ()}}) }

func TestFacilitiesAreRead(t *testing.T) {
	got, err := parseFacilities("host gpu7\nos Linux\narch aarch64\ncpus 64\nmemory_total_mb 515000\ngpu 0, NVIDIA A100-SXM4-80GB, 81920, 81251, 535.104.05\n" +
		"gpu No devices were found\ngpu 1, NVIDIA, Inc. X, [N/A], [N/A], 1\npython /usr/bin/python3 3.11.2 /usr/my prefix\n")
	if err != nil || got.Host != "gpu7" || got.OS != "linux" || got.Arch != "arm64" || got.CPUs != 64 || got.MemoryTotalMB != 515000 {
		t.Errorf("%+v, %v", got, err)
	}
	if len(got.GPUs) != 1 || got.GPUs[0] != (jobs.GPU{Name: "NVIDIA A100-SXM4-80GB", MemoryTotalMB: 81920, MemoryFreeMB: 81251, Driver: "535.104.05"}) {
		t.Errorf("GPUs %+v", got.GPUs)
	}
	if len(got.Pythons) != 1 || got.Pythons[0].Prefix != "/usr/my prefix" {
		t.Errorf("pythons %+v", got.Pythons)
	}
	if _, err := parseFacilities("cpus many\n"); err == nil {
		t.Error("a garbled number was read")
	}
}

// One call of the machine answers for many jobs.
func TestStatusOfMany(t *testing.T) {
	t.Parallel()
	counted := &counting{Shell: Local{Environ: os.Environ()}}
	r := New(Options{Shell: counted})
	var folders []string
	for _, script := range []string{"sleep 60", "exit 0", "sleep 60", "exit 4"} {
		folder := create(t, jobs.Request{JobID: "j-1", Command: []string{"/bin/sh", "-c", script}, GraceSeconds: 1})
		if _, err := r.Submit(context.Background(), folder); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = r.Cancel(context.Background(), folder) })
		folders = append(folders, folder)
	}
	want := "running succeeded running failed"
	var got []string
	if ok, err := jobs.Await(context.Background(), 30*time.Second, func() (bool, error) {
		counted.runs = 0
		all, err := r.Status(context.Background(), folders)
		got = nil
		for _, status := range all {
			got = append(got, status.State)
		}
		return strings.Join(got, " ") == want, err
	}); !ok || err != nil {
		t.Fatalf("states %v, %v; want %s", got, err, want)
	}
	if counted.runs != 1 {
		t.Errorf("%d calls of the machine for one status", counted.runs)
	}
}

// counting counts the scripts that are run.
type counting struct {
	Shell
	runs int
}

func (c *counting) Run(ctx context.Context, script string, env, args []string) ([]byte, error) {
	c.runs++
	return c.Shell.Run(ctx, script, env, args)
}

func TestAFailingScriptIsAnErrorWithItsWords(t *testing.T) {
	_, err := Local{Environ: os.Environ()}.Run(context.Background(), `echo "no quota for $1" >&2; exit 9`, nil, []string{"me"})
	if err == nil || !strings.Contains(err.Error(), "no quota for me") || !strings.Contains(err.Error(), "9") {
		t.Errorf("%v", err)
	}
	if _, err := (Local{Words: []string{"no-such-shell"}}).Run(context.Background(), "true", nil, nil); err == nil {
		t.Error("a shell that is not there ran a script")
	}
}
