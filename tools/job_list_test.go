package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/jobs"
)

func TestJobListPages(t *testing.T) {
	dir, all := workspaceTools(t)
	for i := range 5 {
		layJob(t, dir, fmt.Sprintf("j-%d", i), "")
	}
	queued := filepath.Join(dir, ".onescience", "jobs", "j-new")
	at := time.Date(2026, 11, 30, 13, 0, 0, 0, time.UTC)
	command := []string{"python3", "train.py", "--api-key", "abcd1234efgh", strings.Repeat("é", 200)}
	if err := jobs.Create(queued, jobs.Request{JobID: "j-new", Command: command, WorkDir: dir, CreatedAt: at}); err != nil {
		t.Fatal(err)
	}
	page, err := call[JobListOutput](t, all, "job_list", `{"limit": 4}`)
	if err != nil || page.Total != 6 || len(page.Jobs) != 4 || page.NextCursor == "" || page.NextCall == nil {
		t.Fatalf("%+v, %v", page, err)
	}
	first := page.Jobs[0]
	if first.JobID != "j-new" || first.State != jobs.StateQueued || first.CreatedAt != "2026-11-30T13:00:00Z" || strings.Contains(first.Command, "1234") || len([]rune(first.Command)) != 100 {
		t.Errorf("%+v", first)
	}
	if r := page.Jobs[1]; r.State != jobs.StateFailed || r.RunID != "r-1" || r.Seconds != 1 || r.Cause == "" {
		t.Errorf("%+v", r)
	}
	next, err := json.Marshal(page.NextCall.Arguments)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := call[JobListOutput](t, all, page.NextCall.Tool, string(next))
	if err != nil || len(rest.Jobs) != 2 || rest.NextCursor != "" || rest.NextCall != nil || rest.Jobs[0].JobID == page.Jobs[3].JobID {
		t.Errorf("%+v, %v", rest, err)
	}
	failed, err := call[JobListOutput](t, all, "job_list", `{"state": "failed", "limit": 3}`)
	if err != nil || len(failed.Jobs) != 3 || failed.NextCall == nil || failed.NextCall.Arguments["state"] != "failed" {
		t.Errorf("%+v, %v", failed, err)
	}
	last, err := call[JobListOutput](t, all, "job_list", `{"state": "failed", "cursor": "`+failed.NextCursor+`"}`)
	if err != nil || len(last.Jobs) != 2 || last.NextCall != nil {
		t.Errorf("%+v, %v", last, err)
	}
}

func TestJobListRefusals(t *testing.T) {
	dir, all := workspaceTools(t)
	for arguments, code := range map[string]string{`{"cursor": "j-none"}`: "cursor_unknown"} {
		if _, err := call[JobListOutput](t, all, "job_list", arguments); !refusedWith(err, code) {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	if _, err := call[JobListOutput](t, all, "job_list", `{"state": "done"}`); err == nil {
		t.Error("a state that does not exist is accepted")
	}
	broken := filepath.Join(dir, ".onescience", "jobs", "j-broken")
	if err := os.MkdirAll(broken, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, jobs.RequestFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := call[JobListOutput](t, all, "job_list", `{}`)
	if err != nil || len(got.Jobs) != 0 || len(got.Findings) != 1 || got.Findings[0].Code != "job_unreadable" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestJobLogsGrepAndTheWayToTheRest(t *testing.T) {
	dir, all := workspaceTools(t)
	var log strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&log, "step %04d loss 0.25\n", i)
	}
	layJob(t, dir, "j-1", log.String())
	matches, arguments := 0, `{"job_id": "j-1", "stream": "stdout", "grep": "[05] loss", "max_tokens": 1000}`
	for range 100 {
		got, err := call[JobLogsOutput](t, all, "job_logs", arguments)
		if err != nil || len(got.Streams) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		matches += got.Streams[0].Matches
		if got.NextCall == nil {
			break
		}
		next, err := json.Marshal(got.NextCall.Arguments)
		if err != nil {
			t.Fatal(err)
		}
		arguments = string(next)
	}
	if matches != 400 {
		t.Errorf("%d matches", matches)
	}
	// The lines before a tail that was too long are one call away.
	tail, err := call[JobLogsOutput](t, all, "job_logs", `{"job_id": "j-1", "stream": "stdout", "tail": 500, "max_tokens": 100}`)
	if err != nil || tail.NextCall == nil || tail.NextCall.Arguments["cursor"] != float64(1500*20) {
		t.Errorf("%+v, %v", tail.NextCall, err)
	}
	// Errors first: stderr stands before stdout.
	both, err := call[JobLogsOutput](t, all, "job_logs", `{"job_id": "j-1"}`)
	if err != nil || both.Streams[0].Stream != jobs.StreamStderr || len(both.Streams[0].Errors) != 1 || both.Streams[0].Errors[0].Text != "ValueError: no" {
		t.Errorf("%+v, %v", both.Streams, err)
	}
	for arguments, code := range map[string]string{
		`{"job_id": "j-1", "grep": "("}`:                   "grep_invalid",
		`{"job_id": "j-1", "rank": 2}`:                     "rank_unknown",
		`{"job_id": "j-1", "rank": 2, "stream": "stdout"}`: "log_request_conflict",
	} {
		if _, err := call[JobLogsOutput](t, all, "job_logs", arguments); !refusedWith(err, code) {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".onescience", "jobs", "j-1", "rank-0002.log"), []byte("rank 2 here\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	rank, err := call[JobLogsOutput](t, all, "job_logs", `{"job_id": "j-1", "rank": "2"}`)
	if err != nil || rank.Streams[0].Text != "rank 2 here\n" {
		t.Errorf("%+v, %v", rank, err)
	}
}
