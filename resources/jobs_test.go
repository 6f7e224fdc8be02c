package resources

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/rundir"
)

// layJob makes a job without an end; end gives it one.
func layJob(t *testing.T, s *Source, dir, id string, created time.Time) (folder string) {
	t.Helper()
	root := filepath.Join(dir, ".onescience", "jobs")
	folder = filepath.Join(root, id)
	if err := jobs.Create(folder, jobs.Request{JobID: id, RunID: "r-1", Command: []string{"python3", "train.py", "--token", "sk-abcdefghijklmnopqrstuvwxyz123456"}, WorkDir: dir, CreatedAt: created}); err != nil {
		t.Fatal(err)
	}
	s.JobRoots = func() ([]string, error) { return []string{root}, nil }
	s.JobStatus = local.New(local.Options{Workspace: dir}).Status
	return folder
}

func end(t *testing.T, folder string, code int) {
	t.Helper()
	began := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	exit := jobs.Exit{Code: &code, StartedAt: began, EndedAt: began.Add(time.Second), Seconds: 1, Reason: jobs.ReasonExited}
	if err := rundir.WriteJSON(filepath.Join(folder, jobs.ExitFile), exit); err != nil {
		t.Fatal(err)
	}
}

func TestAJob(t *testing.T) {
	s, dir := lay(t)
	folder := layJob(t, s, dir, "j-7", time.Unix(1_790_000_000, 0))
	write(t, filepath.Join(folder, "stdout.log"), []byte("epoch 1\nHF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz12345678\n"))
	write(t, filepath.Join(folder, "stderr.log"), []byte("Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nValueError: no\n"))
	write(t, filepath.Join(folder, ".env"), []byte("x"))
	end(t, folder, 1)
	c, err := s.Read(t.Context(), "job://j-7")
	if err != nil || c.MIME != mimeJSON || c.Cut {
		t.Fatalf("%+v, %v", c, err)
	}
	var got jobState
	if err := json.Unmarshal([]byte(c.Text), &got); err != nil {
		t.Fatal(err)
	}
	if got.State != jobs.StateFailed || len(got.Evidence) == 0 || got.Cause == nil || *got.Exit.Code != 1 || !strings.Contains(got.Next, `job_logs {"job_id": "j-7"}`) {
		t.Errorf("%s", c.Text)
	}
	named := map[string]string{}
	for _, f := range got.Files {
		named[f.Name] = f.URI
	}
	if named["stdout.log"] != "job://j-7/stdout.log" || named["request.json"] == "" || named[".env"] != "" {
		t.Errorf("files %v", named)
	}
	if strings.Contains(c.Text, "abcdefgh") {
		t.Errorf("a secret is shown: %s", c.Text)
	}
	c, err = s.Read(t.Context(), "job://j-7/stdout.log")
	if err != nil || !strings.HasPrefix(c.Text, "epoch 1\n") || strings.Contains(c.Text, "abcdefgh") {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = s.Read(t.Context(), "job://j-7/stdout.log?offset=6&limit=1"); err != nil || c.Text != "1" || c.Rest != "job://j-7/stdout.log?offset=7" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, uri := range []string{"job://j-8", "job://j-8/stdout.log", "job://..", "job://..%2fjobs/j-7", "job://", "job:///j-7", "job://j-7/../j-7/stdout.log", "job://j-7/..%2f..%2f..%2fsecret.txt", "job://j-7/.env", "job://j-7/none", "job://j-7//stdout.log"} {
		if c, err := s.Read(t.Context(), uri); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %+v, %v", uri, c, err)
		}
	}
	if _, err := s.Read(t.Context(), "job://j-8"); !strings.Contains(err.Error(), "one of j-7") {
		t.Errorf("the refusal does not say what there is: %v", err)
	}
	_ = os.RemoveAll(folder)
	if err := os.Symlink(t.TempDir(), folder); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "request.json"), []byte("{}"))
	if c, err := s.Read(t.Context(), "job://j-7/request.json"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a job's folder outside the workspace is read: %+v, %v", c, err)
	}
}

// What stands for a job is another thing when its state is, and the same while its seconds pass.
func TestTheVersionOfAJob(t *testing.T) {
	s, dir := lay(t)
	folder := layJob(t, s, dir, "j-7", time.Unix(1_790_000_000, 0))
	inner := s.JobStatus
	seconds := 0.0
	s.JobStatus = func(ctx context.Context, folders []string) ([]jobs.Status, error) {
		statuses, err := inner(ctx, folders)
		for i := range statuses {
			seconds++
			statuses[i].Seconds = seconds
		}
		return statuses, err
	}
	version := func() string {
		c, err := s.Read(t.Context(), "job://j-7")
		if err != nil || c.Version == "" {
			t.Fatalf("%+v, %v", c, err)
		}
		return c.Version
	}
	before := version()
	if again := version(); again != before {
		t.Errorf("%q became %q", before, again)
	}
	end(t, folder, 0)
	if after := version(); after == before {
		t.Errorf("still %q", after)
	}
}

// The list has the newest jobs.
func TestTheListHasJobs(t *testing.T) {
	s, dir := lay(t)
	for i, id := range []string{"j-1", "j-2"} {
		layJob(t, s, dir, id, time.Unix(1_790_000_000+int64(i), 0))
	}
	items, _, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, i := range items {
		if strings.HasPrefix(i.URI, "job://") {
			found = append(found, i.URI)
		}
	}
	if strings.Join(found, " ") != "job://j-2 job://j-1" {
		t.Error(found)
	}
}
