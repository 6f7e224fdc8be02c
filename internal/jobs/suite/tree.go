package suite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/jobs"
)

// descendants: whatever the command leaves is ended with it, wherever it hides, and does not hold the job up.
func descendants(t *testing.T, c Constructor) {
	for name, try := range map[string]struct {
		script string
		cancel bool
		needs  Capability
	}{
		"orphan that holds stdout":                     {script: "sleep 60 & echo ready"},
		"own session":                                  {script: "setsid sleep 60 & sleep 0.2; echo ready"},
		"own session, when cancelled":                  {script: "setsid sleep 60 & setsid sh -c 'setsid sleep 60 & sleep 60' & echo ready; sleep 60", cancel: true},
		"daemon whose parent is gone":                  {script: "(setsid sh -c 'sleep 60 & exit 0' &) ; sleep 0.2; echo ready"},
		"one that ignores the warning":                 {script: `setsid sh -c "trap '' TERM; while :; do sleep 1; done" & sleep 0.2; echo ready`},
		"one that starts another and ends":             {script: `setsid sh -c 'trap "setsid sleep 60 & exit" TERM; while :; do sleep 0.05; done' & sleep 0.2; echo ready`},
		"without its mark, for a while":                {script: "env -i setsid sleep 61.25 & " + twoBeats + "echo ready"},
		"without its mark, in a session that was seen": {script: "env -i setsid sh -c '(sleep 61.25 &) ; exec sleep 62' & " + twoBeats + "kill $!; echo ready"},
		"without its mark, at once":                    {script: "(env -i setsid sleep 61.25 &); echo ready", needs: Adopts},
	} {
		if try.needs != "" && !c.has(try.needs) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The seconds of the sleep that carries no mark name the job instead.
			unmarked := "61." + strings.Map(digit, filepath.Base(t.TempDir())+name)
			j := NewJob(t, c, Shell(strings.ReplaceAll(try.script, "61.25", unmarked)))
			j.Submit()
			j.says("ready", 1)
			var status jobs.Status
			if try.cancel {
				status = j.Cancel()
			} else {
				status = j.Finished()
				if status.State != jobs.StateSucceeded || status.Exit.LeftBehind == 0 {
					t.Errorf("state %s, %d left behind", status.State, status.Exit.LeftBehind)
				}
			}
			if len(status.Exit.Survivors) > 0 {
				t.Errorf("survivors %v", status.Exit.Survivors)
			}
			if status.Seconds > 40 {
				t.Errorf("took %.1f s", status.Seconds)
			}
			if left := append(marked(j.Folder), holding("cmdline", unmarked)...); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}

// twoBeats waits until the supervisor has written its heartbeat twice more. Between two of them it looks at the job's processes.
const twoBeats = `beat() { grep heartbeat_at "${TRAINWRIGHT_JOB_DIR}/state.json"; }
for n in 1 2; do was=$(beat); while [ "$(beat)" = "$was" ]; do sleep 0.1; done; done
`

// digit makes a digit of any character.
func digit(r rune) rune { return '0' + r%10 }

// launcherScript starts workers as PyTorch's elastic launcher does, each in a session of its own
// (torch/distributed/elastic/multiprocessing/subprocess_handler: start_new_session=True). The workers ignore SIGTERM, as one
// does that hangs in a collective operation.
const launcherScript = `import os, subprocess, sys, time
worker = """import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
assert os.getsid(0) == os.getpid()
os.write(1, b"worker\\n")
time.sleep(600)
"""
workers = [subprocess.Popen([sys.executable, "-S", "-c", worker], start_new_session=True, env={**os.environ, "LOCAL_RANK": str(rank)}) for rank in range(3)]
while not os.path.exists("crash"):
    time.sleep(0.02)
os._exit(7)
`

// launcher: workers in sessions of their own end with their launcher, however that ends.
func launcher(t *testing.T, c Constructor) {
	for name, try := range map[string]struct {
		end  func(*Job) jobs.Status
		wall int
		want string
	}{
		"cancelled":     {want: jobs.StateCancelled, end: (*Job).Cancel},
		"wall time":     {want: jobs.StateTimeout, wall: 2, end: (*Job).Finished},
		"launcher died": {want: jobs.StateFailed, end: func(j *Job) jobs.Status { j.touch("crash"); return j.Finished() }},
		"launcher was killed": {want: jobs.StateFailed, end: func(j *Job) jobs.Status {
			kill(j.t, j.State().PID)
			return j.Finished()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := NewJob(t, c, []string{"python3", "-S", "launch.py"}, WithFile("launch.py", launcherScript, 0o644),
				func(r *jobs.Request) { r.WallTimeSeconds = try.wall })
			j.Submit()
			if try.wall == 0 {
				j.says("worker", 3)
				if got := len(marked(j.Folder)); got < 4 {
					t.Errorf("%d processes of the job run, want the launcher and three workers", got)
				}
			}
			status := try.end(j)
			if status.State != try.want {
				t.Errorf("state %s, want %s", status.State, try.want)
			}
			if try.want == jobs.StateFailed && status.Exit.LeftBehind < 3 {
				t.Errorf("%d left behind, want three workers", status.Exit.LeftBehind)
			}
			if left := marked(j.Folder); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}
