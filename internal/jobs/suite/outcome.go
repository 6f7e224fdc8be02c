package suite

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
)

// outcomes are jobs that end by themselves.
func outcomes(t *testing.T, c Constructor) {
	type want struct{ state, reason, code, signal, cause, stdout, stderr string }
	for name, try := range map[string]struct {
		command []string
		amend   func(*jobs.Request)
		want    want
	}{
		"success": {command: Shell("echo out; echo err >&2"),
			want: want{state: "succeeded", reason: "exited", code: "0", stdout: "out\n", stderr: "err\n"}},
		"output without a newline": {command: Shell("printf unfinished; printf also >&2"),
			want: want{state: "succeeded", reason: "exited", code: "0", stdout: "unfinished", stderr: "also"}},
		"failure": {command: Shell("echo broken >&2; exit 3"),
			want: want{state: "failed", reason: "exited", code: "3", cause: "command_failed", stderr: "broken\n"}},
		"signal": {command: Shell("kill -KILL $$"),
			want: want{state: "failed", reason: "signalled", signal: "SIGKILL", cause: "killed_by_signal"}},
		"another signal": {command: Shell("kill -TERM $$"),
			want: want{state: "failed", reason: "signalled", signal: "SIGTERM", cause: "killed_by_signal"}},
		"the code of a shell whose child was killed": {command: Shell("sh -c 'kill -KILL $$'; exit $?"),
			want: want{state: "failed", reason: "exited", code: "137", cause: "killed_by_signal"}},
		// A shell has what it starts in the background ignore it, and a launcher that interrupts its workers would wait forever.
		"interrupts are not ignored": {command: Shell("kill -INT $$; echo survived"),
			want: want{state: "failed", reason: "signalled", signal: "SIGINT", cause: "killed_by_signal"}},
		"command not found": {command: []string{"no-such-program-xyz"},
			want: want{state: "failed", reason: "exited", code: "127", cause: "command_not_found", stderr: "no-such-program-xyz: command not found"}},
		"path not found": {command: []string{"/no/such/program"},
			want: want{state: "failed", reason: "exited", code: "127", cause: "command_not_found", stderr: "/no/such/program: no such file"}},
		"not executable": {command: []string{"./plain.sh"}, amend: WithFile("plain.sh", "echo no\n", 0o644),
			want: want{state: "failed", reason: "exited", code: "126", cause: "command_not_executable", stderr: "permission denied"}},
		"working directory missing": {command: Shell("echo no"), amend: func(r *jobs.Request) { r.WorkDir = "/no/such/directory" },
			want: want{state: "failed", reason: "exited", code: "126", cause: "command_not_executable", stderr: "working directory /no/such/directory"}},
		"relative to the working directory": {command: []string{"./train.sh"}, amend: WithFile("train.sh", "#!/bin/sh\necho trained\n", 0o755),
			want: want{state: "succeeded", reason: "exited", code: "0", stdout: "trained\n"}},
		"found on the PATH of the request": {command: []string{"train-xyz"}, amend: onItsPath("train-xyz"),
			want: want{state: "succeeded", reason: "exited", code: "0", stdout: "trained\n"}},
		"expected output missing": {command: Shell("true"), amend: func(r *jobs.Request) { r.ExpectedOutputs = []string{"outputs/metrics.jsonl"} },
			want: want{state: "failed", reason: "exited", code: "0", cause: "expected_output_missing"}},
		"expected outputs there": {command: Shell("mkdir -p outputs; echo 1 >outputs/metrics.jsonl"),
			amend: func(r *jobs.Request) { r.ExpectedOutputs = []string{"outputs/metrics.jsonl"} },
			want:  want{state: "succeeded", reason: "exited", code: "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var amend []func(*jobs.Request)
			if try.amend != nil {
				amend = append(amend, try.amend)
			}
			j := NewJob(t, c, try.command, amend...)
			status := j.Run()
			got := want{state: status.State, reason: status.Exit.Reason, code: CodeOf(*status.Exit), signal: signalOf(*status.Exit),
				cause: CauseCode(status), stdout: try.want.stdout, stderr: try.want.stderr}
			if got != try.want {
				t.Errorf("got %+v\nwant %+v", got, try.want)
			}
			if out := j.Read(jobs.StdoutFile); out != try.want.stdout {
				t.Errorf("stdout %q, want %q", out, try.want.stdout)
			}
			if out := j.Read(jobs.StderrFile); !strings.Contains(out, try.want.stderr) {
				t.Errorf("stderr %q, want %q in it", out, try.want.stderr)
			}
			if verdict, err := jobs.ReadVerdict(j.Folder); err != nil || verdict == nil || verdict.State != try.want.state || len(verdict.Evidence) == 0 {
				t.Errorf("verdict.json: %+v, %v", verdict, err)
			}
			if exit := status.Exit; exit.EndedAt.Before(exit.StartedAt) || time.Since(exit.StartedAt) > time.Minute {
				t.Errorf("ran from %s to %s", exit.StartedAt, exit.EndedAt)
			}
			j.logsAreLinked(try.want.stdout)
		})
	}
}

// logsAreLinked checks that the logs are found under the working directory too, where there is one.
func (j *Job) logsAreLinked(stdout string) {
	j.t.Helper()
	exit, err := jobs.ReadExit(j.Folder)
	if err != nil || exit.Code != nil && (*exit.Code == 126 || *exit.Code == 127) {
		return
	}
	if got, err := os.ReadFile(filepath.Join(j.Request.WorkDir, "logs", j.Request.JobID+".out")); err != nil || string(got) != stdout {
		j.t.Errorf("logs/%s.out: %q, %v; want %q", j.Request.JobID, got, err, stdout)
	}
}

// WithFile puts a file into the working directory of the job.
func WithFile(name, content string, mode os.FileMode) func(*jobs.Request) {
	return func(r *jobs.Request) {
		if err := os.WriteFile(filepath.Join(r.WorkDir, name), []byte(content), mode); err != nil {
			panic(err)
		}
	}
}

// onItsPath makes a program in a directory that is all of the job's PATH.
func onItsPath(name string) func(*jobs.Request) {
	return func(r *jobs.Request) {
		WithFile(name, "#!/bin/sh\necho trained\n", 0o755)(r)
		r.Env = map[string]string{"PATH": r.WorkDir}
	}
}

// environment: a job inherits what its submitter has, without secrets that it does not name.
func environment(t *testing.T, c Constructor) {
	j := NewJob(t, c, Shell("env"), func(r *jobs.Request) {
		r.Env = map[string]string{"OMP_NUM_THREADS": "2", "LANG": "C", "QUOTED": `it's "$HOME" \ *`}
		r.PassEnv = []string{"HUB_TOKEN"}
	})
	j.Runtime = c.New(Machine{Environ: append(os.Environ(), "LANG=en", "KEPT=yes", "TRAINWRIGHT_FAULT=1:before_temp",
		"OPENAI_API_KEY=aVeryLongValue1234567890", "HUB_TOKEN=anotherLongValue1234567890", "state=kept", "pid=kept")})
	j.Run()
	env := strings.Split(strings.TrimSpace(j.Read(jobs.StdoutFile)), "\n")
	for name, want := range map[string]string{"OMP_NUM_THREADS": "2", "LANG": "C", "QUOTED": `it's "$HOME" \ *`, "KEPT": "yes", "TRAINWRIGHT_FAULT": "",
		"OPENAI_API_KEY": "", "HUB_TOKEN": "anotherLongValue1234567890", "PYTHONUNBUFFERED": "1", "state": "kept", "pid": "kept",
		"TRAINWRIGHT_JOB_ID": "j-1", "TRAINWRIGHT_RUN_ID": "r-1", "TRAINWRIGHT_JOB_DIR": j.Folder} {
		at := slices.IndexFunc(env, func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
		got := ""
		if at >= 0 {
			got = strings.TrimPrefix(env[at], name+"=")
		}
		if got != want {
			t.Errorf("%s=%q, want %q", name, got, want)
		}
	}
	entries, err := os.ReadDir(j.Folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(j.Folder, entry.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the supervisor tidies up after the exit record
			t.Error(err)
		}
		if entry.Name() != jobs.StdoutFile && bytes.Contains(data, []byte("anotherLongValue")) {
			t.Errorf("a secret reached %s", entry.Name())
		}
	}
}

// arguments reach the command as they are.
func arguments(t *testing.T, c Constructor) {
	words := []string{"it's", "two\nlines\n", "", "$HOME `id` \"\\", "-n", "*", "a=b", "größe", "%s\\n"}
	j := NewJob(t, c, append(Shell(`for word; do printf '<%s>' "$word"; done`), append([]string{"sh"}, words...)...))
	j.Run()
	if got, want := j.Read(jobs.StdoutFile), "<"+strings.Join(words, "><")+">"; got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// unknown: a folder without a job is refused, and said to be unknown where others are asked for beside it.
func unknown(t *testing.T, c Constructor) {
	r := c.New(Machine{})
	folder := t.TempDir()
	if _, err := r.Submit(context.Background(), folder); !refusedWith(err, "job_unknown") {
		t.Errorf("submit of an empty folder: %v", err)
	}
	if _, err := r.Cancel(context.Background(), folder); !refusedWith(err, "job_unknown") {
		t.Errorf("cancel of an empty folder: %v", err)
	}
	j := NewJob(t, c, Shell("exit 0"))
	j.Run()
	all, err := r.Status(context.Background(), []string{folder, j.Folder, folder})
	if err != nil || len(all) != 3 {
		t.Fatalf("status: %v, %d answers", err, len(all))
	}
	for i, want := range []string{jobs.StateUnknown, jobs.StateSucceeded, jobs.StateUnknown} {
		if all[i].State != want || want == jobs.StateUnknown && CauseCode(all[i]) != "job_unreadable" {
			t.Errorf("answer %d: %s, cause %q; want %s", i, all[i].State, CauseCode(all[i]), want)
		}
	}
}
