package suite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/jobs"
)

// memoryKill: a job is said to have run out of memory where the kernel counted a kill in its control group and one of its
// processes was killed, and nothing is claimed for one of the two alone. The group is a folder here, and the command plays
// the kernel.
func memoryKill(t *testing.T, c Constructor) {
	const count = "echo 'oom_kill 3' >$GROUP/memory.events; "
	for name, try := range map[string]struct {
		script, events string // "": no file
		cause          string
		told           bool
	}{
		"killed for memory":               {count + "kill -KILL $$", "low 0\noom 1\noom_kill 2\n", "out_of_memory", true},
		"a child was, and the shell says": {count + "sh -c 'kill -KILL $$'; exit $?", "oom_kill 0\n", "out_of_memory", true},
		"killed by somebody":              {"kill -KILL $$", "oom_kill 2\n", "killed_by_signal", false},
		"another of the group was":        {count + "exit 3", "oom_kill 2\n", "command_failed", false},
		"the group can't be read":         {count + "kill -KILL $$", "", "killed_by_signal", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := t.TempDir()
			if try.events != "" {
				if err := os.WriteFile(filepath.Join(group, "memory.events"), []byte(try.events), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			j := NewJob(t, c, Shell(strings.ReplaceAll(try.script, "$GROUP", group)))
			j.Runtime = c.New(Machine{Environ: append(os.Environ(), "TRAINWRIGHT_CGROUP="+group)})
			status := j.Run()
			if status.State != jobs.StateFailed || CauseCode(status) != try.cause {
				t.Errorf("%s, cause %s; want %s", status.State, CauseCode(status), try.cause)
			}
			if told := status.Exit.OutOfMemory; (told != "") != try.told || try.told && (!strings.Contains(told, group) || !strings.Contains(status.Cause.What, told)) {
				t.Errorf("recorded %q; cause %+v", told, status.Cause)
			}
		})
	}
}
