//go:build linux

package local

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/jobs"
)

func TestOutcome(t *testing.T) {
	type want struct {
		state, reason, code, signal, cause string
		stdout, stderr                     string // substrings
	}
	cases := map[string]struct {
		command []string
		amend   func(*jobs.Request)
		want    want
	}{
		"no interpreter line": {command: []string{"./plain.sh"}, amend: withFile("plain.sh", "echo no\n", 0o755),
			want: want{state: "failed", reason: "exited", code: "126", cause: "command_not_executable", stderr: "#!"}},
		"interpreter missing": {command: []string{"./train.sh"}, amend: withFile("train.sh", "#!/no/such/interpreter\n", 0o755),
			want: want{state: "failed", reason: "exited", code: "127", cause: "command_not_found", stderr: "interpreter"}},
		"directory": {command: []string{"/"},
			want: want{state: "failed", reason: "exited", code: "126", cause: "command_not_executable", stderr: "is a directory"}},
		"python exception": {command: []string{"python3", "train.py"}, amend: withFile("train.py", "def load():\n    raise KeyError('eval_loss')\n\nload()\n", 0o644),
			want: want{state: "failed", reason: "exited", code: "1", cause: "python_exception", stderr: "KeyError: 'eval_loss'"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var amend []func(*jobs.Request)
			if c.amend != nil {
				amend = append(amend, c.amend)
			}
			j := newJob(t, c.command, amend...)
			status := j.run()
			if status.Exit == nil {
				t.Fatal("a finished job without an exit record")
			}
			got := want{state: status.State, reason: status.Exit.Reason, cause: causeCode(status), stdout: c.want.stdout, stderr: c.want.stderr}
			if status.Exit.Code != nil {
				got.code = strconv.Itoa(*status.Exit.Code)
			}
			if status.Exit.Signal != nil {
				got.signal = *status.Exit.Signal
			}
			if got != c.want {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
			if out := j.read(jobs.StdoutFile); !strings.Contains(out, c.want.stdout) {
				t.Errorf("stdout %q, want %q in it", out, c.want.stdout)
			}
			if out := j.read(jobs.StderrFile); !strings.Contains(out, c.want.stderr) {
				t.Errorf("stderr %q, want %q in it", out, c.want.stderr)
			}
			if verdict, err := jobs.ReadVerdict(j.folder); err != nil || verdict == nil || verdict.State != c.want.state || len(verdict.Evidence) == 0 {
				t.Errorf("verdict.json: %+v, %v", verdict, err)
			}
		})
	}
}

func withFile(name, content string, mode os.FileMode) func(*jobs.Request) {
	return func(r *jobs.Request) {
		if err := os.WriteFile(filepath.Join(r.WorkDir, name), []byte(content), mode); err != nil {
			panic(err)
		}
	}
}

// A user's own line is what the cause points to.
func TestCausePointsToTheUsersLine(t *testing.T) {
	t.Parallel()
	j := newJob(t, []string{"python3", "train.py"}, withFile("train.py", "import json\njson.loads('{')\n", 0o644))
	cause := j.run().Cause
	want := filepath.Join(j.request.WorkDir, "train.py")
	if cause == nil || cause.Where == nil || cause.Where.Path != want || cause.Where.Line != 2 {
		t.Errorf("cause %+v, want it at %s:2", cause, want)
	}
}

// A log that something else put there is not overwritten, and copies are made where links are impossible.
func TestLogCopies(t *testing.T) {
	folder, workDir := t.TempDir(), t.TempDir()
	request := jobs.Request{JobID: "j-1", WorkDir: workDir}
	for path, text := range map[string]string{filepath.Join(folder, jobs.StdoutFile): "out", filepath.Join(folder, jobs.StderrFile): "err",
		filepath.Join(workDir, "logs", "j-1.out"): "kept"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	copyLogs(folder, request)
	for name, want := range map[string]string{"j-1.out": "kept", "j-1.err": "err"} {
		if got, err := os.ReadFile(filepath.Join(workDir, "logs", name)); err != nil || string(got) != want {
			t.Errorf("logs/%s: %q, %v, want %q", name, got, err, want)
		}
	}
}

// ru_maxrss of a child shows the peak of the process that forked it; the record must not.
func TestPeakMemoryIsTheTreesOwn(t *testing.T) {
	t.Parallel()
	small := newJob(t, shell("sleep 0.3"))
	if peak := small.run().Exit.PeakRSSBytes; peak <= 0 || peak > 16<<20 {
		t.Errorf("a shell and a sleep took %d bytes", peak)
	}
}
