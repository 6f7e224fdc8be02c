//go:build linux

package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/suite"
	"github.com/trainwright/trainwright/internal/snapshot"
)

func TestOutcome(t *testing.T) {
	type want struct{ state, reason, code, cause, stderr string }
	cases := map[string]struct {
		command []string
		amend   func(*jobs.Request)
		want    want
	}{
		"no interpreter line": {command: []string{"./plain.sh"}, amend: suite.WithFile("plain.sh", "echo no\n", 0o755),
			want: want{state: "failed", reason: "exited", code: "126", cause: "command_not_executable", stderr: "#!"}},
		"interpreter missing": {command: []string{"./train.sh"}, amend: suite.WithFile("train.sh", "#!/no/such/interpreter\n", 0o755),
			want: want{state: "failed", reason: "exited", code: "127", cause: "command_not_found", stderr: "interpreter"}},
		"directory": {command: []string{"/"},
			want: want{state: "failed", reason: "exited", code: "126", cause: "command_not_executable", stderr: "is a directory"}},
		"python exception": {command: []string{"python3", "train.py"}, amend: suite.WithFile("train.py", "def load():\n    raise KeyError('eval_loss')\n\nload()\n", 0o644),
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
			status := j.Run()
			got := want{state: status.State, reason: status.Exit.Reason, code: suite.CodeOf(*status.Exit), cause: suite.CauseCode(status), stderr: c.want.stderr}
			if got != c.want {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
			if out := j.Read(jobs.StderrFile); !strings.Contains(out, c.want.stderr) {
				t.Errorf("stderr %q, want %q in it", out, c.want.stderr)
			}
			if verdict, err := jobs.ReadVerdict(j.Folder); err != nil || verdict == nil || verdict.State != c.want.state || len(verdict.Evidence) == 0 {
				t.Errorf("verdict.json: %+v, %v", verdict, err)
			}
		})
	}
}

// A user's own line is what the cause points to.
func TestCausePointsToTheUsersLine(t *testing.T) {
	t.Parallel()
	j := newJob(t, []string{"python3", "train.py"}, suite.WithFile("train.py", "import json\njson.loads('{')\n", 0o644))
	cause := j.Run().Cause
	want := filepath.Join(j.Request.WorkDir, "train.py")
	if cause == nil || cause.Where == nil || cause.Where.Path != want || cause.Where.Line != 2 {
		t.Errorf("cause %+v, want it at %s:2", cause, want)
	}
}

// A job runs copies of the code; the cause names the user's own file, the evidence stays as the interpreter printed it.
func TestCauseNamesTheOriginalOfACopy(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]struct {
		files          map[string]string
		code, at, says string
		line           int
	}{
		"exception": {files: map[string]string{"train.py": "import model\n\nmodel.fit()\n", "model.py": "def fit():\n    raise KeyError('label')\n"},
			code: "python_exception", at: "model.py", line: 2, says: "label"},
		"hidden module": {files: map[string]string{"train.py": "import queue\n\nqueue.Queue()\n", "queue.py": "\n"},
			code: "import_shadowed", at: "train.py", line: 3, says: "rename PROJECT/queue.py"},
		"name that is not there": {files: map[string]string{"train.py": "from model import fit\n", "model.py": "\n"},
			code: "import_missing", at: "train.py", line: 1, says: "(PROJECT/model.py)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			project, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			folder := filepath.Join(root, "jobs", "j-1")
			for file, text := range try.files {
				if err := os.WriteFile(filepath.Join(project, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			taken, _, err := snapshot.Take(t.Context(), snapshot.Spec{ProjectRoot: project, Entrypoint: filepath.Join(project, "train.py"), Folder: folder, Now: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			command, _, err := taken.Command([]string{"python3", "-S", "train.py"}, project)
			if err != nil {
				t.Fatal(err)
			}
			j := suite.NewJobIn(t, constructor, root, command.Argv, func(r *jobs.Request) { r.WorkDir, r.Env = project, command.Env })
			cause := j.Run().Cause
			if cause == nil || cause.Frame == nil || cause.Evidence == nil {
				t.Fatalf("cause %+v", cause)
			}
			if want := filepath.Join(project, try.at); cause.Code != try.code || cause.Where.Path != want || cause.Where.Line != try.line || cause.Frame.Path != want {
				t.Errorf("%s at %s, frame %+v; want %s at %s:%d", cause.Code, cause.Where, cause.Frame, try.code, want, try.line)
			}
			says := cause.What + " " + cause.Remedy
			if !strings.Contains(says, strings.ReplaceAll(try.says, "PROJECT", project)) || strings.Contains(says, folder) {
				t.Errorf("says %s", says)
			}
			if log := j.Read(jobs.StderrFile); !strings.HasPrefix(log[cause.Evidence.Byte:], cause.Evidence.Text) {
				t.Errorf("the evidence %q is not at byte %d", cause.Evidence.Text, cause.Evidence.Byte)
			}
		})
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
	small := newJob(t, suite.Shell("sleep 0.3"))
	if peak := small.Run().Exit.PeakRSSBytes; peak <= 0 || peak > 16<<20 {
		t.Errorf("a shell and a sleep took %d bytes", peak)
	}
}
