//go:build faults

package rundir

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func runCommits(t *testing.T, dir string, env ...string) error {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "RUNDIR_TEST_PROCESS=commit", "RUNDIR_TEST_DIR="+dir)...)
	out, err := cmd.CombinedOutput()
	if len(out) > 0 {
		t.Logf("%s", out)
	}
	return err
}

// TestCrashAtEveryPoint kills the process before, during and after each commit: a file holds the old content or the new
// one, and running again completes the work and leaves nothing behind but temporary files that are recognised.
func TestCrashAtEveryPoint(t *testing.T) {
	log := filepath.Join(t.TempDir(), "commits")
	if err := runCommits(t, t.TempDir(), "TRAINWRIGHT_FAULT_LOG="+log); err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(content(t, log))
	if len(lines) != 6 || lines[4] != "3" || !strings.HasSuffix(lines[5], "1_training_knowledge.json") {
		t.Fatalf("log %v", lines)
	}
	for k := 1; k <= 3; k++ {
		for _, point := range []string{beforeTemp, beforeRename, afterRename} {
			t.Run(fmt.Sprintf("%d:%s", k, point), func(t *testing.T) {
				dir := t.TempDir()
				facts := put(t, filepath.Join(dir, "facts.json"), "old\n")
				record := filepath.Join(dir, "phases/1_training_knowledge.json")
				if err := runCommits(t, dir, fmt.Sprintf("TRAINWRIGHT_FAULT=%d:%s", k, point)); err == nil {
					t.Fatal("it was not killed")
				}
				want := "old\n"
				if k > 1 || point == afterRename {
					want = "new\n"
				}
				if got := content(t, facts); got != want {
					t.Errorf("facts.json holds %q, want %q", got, want)
				}
				if got, there := content(t, record), k == 3 && point == afterRename; (got == "new\n") != there || got != "" && !there {
					t.Errorf("the record holds %q", got)
				}
				if err := runCommits(t, dir); err != nil {
					t.Fatal(err)
				}
				if err := (Dir{dir}).CleanTemps(0, time.Now().Add(time.Second)); err != nil {
					t.Fatal(err)
				}
				if names := append(namesIn(dir, 9), namesIn(filepath.Dir(record), 9)...); strings.Join(names, " ") != "facts.json phases/ 1_training_knowledge.json" {
					t.Errorf("left behind %v", names)
				}
			})
		}
	}
}
