package jobs

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func request(id string) Request {
	return Request{JobID: id, RunID: "r-1", Attempt: 1, Command: []string{"python3", "train.py", "--note", "it's <new>"},
		Env: map[string]string{"OMP_NUM_THREADS": "2"}, WorkDir: "/w/code", Resources: Resources{CPUs: 2, TimeLimit: "00:30:00"},
		GraceSeconds: 20, ExpectedOutputs: []string{"outputs/metrics.jsonl"}, Marker: "tw-1", CreatedAt: noon}
}

func refusedCodes(err error) []string {
	var refused *finding.Refused
	var out []string
	if errors.As(err, &refused) {
		for _, f := range refused.Findings {
			out = append(out, f.Code)
		}
	}
	return out
}

func TestCreate(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "jobs", "j-1")
	if err := Create(folder, request("j-1")); err != nil {
		t.Fatal(err)
	}
	read, err := ReadRequest(folder)
	if diff := cmp.Diff(request("j-1"), read); err != nil || diff != "" {
		t.Errorf("%v, read back: %s", err, diff)
	}
	before, err := os.ReadFile(filepath.Join(folder, RequestFile))
	if err != nil || !strings.Contains(string(before), "it's <new>") || !strings.HasSuffix(string(before), "}\n") {
		t.Errorf("request.json: %v\n%s", err, before)
	}

	again := request("j-1")
	again.CreatedAt = noon.Add(time.Hour)
	if err := Create(folder, again); err != nil {
		t.Errorf("the same again: %v", err)
	}
	again.Command, again.Env = []string{"python3", "other.py"}, nil
	err = Create(folder, again)
	if got := refusedCodes(err); !slices.Equal(got, []string{"job_exists_differs"}) || !strings.Contains(err.Error(), "another command, env") {
		t.Errorf("another request: %v", err)
	}
	if after, _ := os.ReadFile(filepath.Join(folder, RequestFile)); string(after) != string(before) {
		t.Errorf("request.json was changed to\n%s", after)
	}
}

// A crash after script.sh leaves a folder without a request; the next call completes it.
func TestCreateCompletesWhatACrashLeft(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "j-1")
	if err := Create(folder, request("j-1")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(folder, RequestFile)); err != nil {
		t.Fatal(err)
	}
	changed := request("j-1")
	changed.Command = []string{"python3", "second.py"}
	if err := Create(folder, changed); err != nil {
		t.Fatal(err)
	}
	if script, _ := os.ReadFile(filepath.Join(folder, ScriptFile)); !strings.Contains(string(script), "second.py") {
		t.Errorf("script.sh is from the first call:\n%s", script)
	}
}

func TestConcurrentCreatesKeepOneRequest(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "j-1")
	errs := make([]error, 6)
	var all sync.WaitGroup
	for i := range errs {
		req := request("j-1")
		req.Attempt = 1 + i%2
		all.Go(func() { errs[i] = Create(folder, req) })
	}
	all.Wait()
	read, err := ReadRequest(folder)
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range errs {
		if won := read.Attempt == 1+i%2; won != (err == nil) {
			t.Errorf("call %d, attempt %d, stored %d: %v", i, 1+i%2, read.Attempt, err)
		}
	}
}

func TestRequestKeepsUnknownFields(t *testing.T) {
	const text = `{"job_id":"j-1","command":["a"],"work_dir":"/w","resources":{},"created_at":"2026-11-30T12:00:00Z","account":"<abc>","gres":{"z":1,"a":[2]}}`
	var req Request
	if err := json.Unmarshal([]byte(text), &req); err != nil {
		t.Fatal(err)
	}
	out, err := encode(req)
	if err != nil || string(out) != text {
		t.Errorf("%v\ngot  %s\nwant %s", err, out, text)
	}
}

// requestFields must name each field of Request, or a known one would be kept as unknown.
func TestRequestFieldsAreComplete(t *testing.T) {
	full := request("j-1")
	full.PassEnv, full.WallTimeSeconds, full.Site, full.Channel, full.SubmittedBy, full.Task = []string{"A"}, 1, "s", "c", "b", "t"
	full.Watch, full.Basis = []string{"/w/code"}, "sha256:0"
	all, err := fields(full)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(requestFields) {
		t.Errorf("%d fields are written, %d are known", len(all), len(requestFields))
	}
	for name := range all {
		if !slices.Contains(requestFields, name) {
			t.Errorf("%s is not known", name)
		}
	}
}

func TestCreateRefusals(t *testing.T) {
	cases := map[string]struct {
		amend func(*Request)
		codes []string
	}{
		"relative watch":       {func(r *Request) { r.Watch = []string{"/w/code", "outputs"} }, []string{"watch_invalid"}},
		"watch with a newline": {func(r *Request) { r.Watch = []string{"/w/a\nb"} }, []string{"watch_invalid"}},
		"id with a slash":      {func(r *Request) { r.JobID = "../j" }, []string{"job_id_invalid"}},
		"id of another":        {func(r *Request) { r.JobID = "j-2" }, []string{"job_id_invalid"}},
		"no command":           {func(r *Request) { r.Command = nil }, []string{"command_missing"}},
		"NUL":                  {func(r *Request) { r.Command = []string{"a", "b\x00c"} }, []string{"command_invalid"}},
		"relative work_dir":    {func(r *Request) { r.WorkDir = "code" }, []string{"work_dir_invalid"}},
		"time limit":           {func(r *Request) { r.Resources.TimeLimit = "90 minutes" }, []string{"time_limit_invalid"}},
		"negative":             {func(r *Request) { r.Resources.MemoryMB = -1 }, []string{"resources_invalid"}},
		"variable name":        {func(r *Request) { r.Env = map[string]string{"A-B": "1"} }, []string{"env_invalid"}},
		"secret by name": {func(r *Request) {
			r.Env = map[string]string{"WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567"}
		}, []string{"secret_in_request"}},
		"secret by its look": {func(r *Request) { r.Env = map[string]string{"ARGS": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"} }, []string{"secret_in_request"}},
		"no secret":          {func(r *Request) { r.Env = map[string]string{"TOKENIZERS_PARALLELISM": "false", "MAX_TOKENS": "512"} }, nil},
		"several at once":    {func(r *Request) { r.Command, r.WorkDir = nil, "" }, []string{"command_missing", "work_dir_invalid"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := request("j-1")
			c.amend(&req)
			folder := filepath.Join(t.TempDir(), "j-1")
			if got := refusedCodes(Create(folder, req)); !slices.Equal(got, c.codes) {
				t.Errorf("refused with %v, want %v", got, c.codes)
			}
			if _, err := os.Stat(folder); c.codes != nil && err == nil {
				t.Error("a refused request left a folder")
			}
		})
	}
}

func TestScript(t *testing.T) {
	req := request("j-1")
	req.PassEnv = []string{"HUB_TOKEN"}
	req.Command = append(req.Command, "--password", "hunter2hunter2", "")
	const want = `#!/bin/sh
# Job j-1 of run r-1, rendered from request.json, which is what the supervisor reads.
# To run it by hand: sh script.sh
# Wall time 30m0s, not enforced when run by hand.
# Needs from your environment: HUB_TOKEN
# A value is masked with '*' here.
cd /w/code || exit 126
export OMP_NUM_THREADS=2
exec python3 train.py --note 'it'\''s <new>' --password ************** ''
`
	if diff := cmp.Diff(want, Script(req)); diff != "" {
		t.Error(diff)
	}
	if got := NewStatus("/f", req).Command; got[5] != "**************" || got[1] != "train.py" {
		t.Errorf("the status shows %q", got)
	}
}

func TestLimits(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "00:30:00": 30 * time.Minute, "100:00:01": 100*time.Hour + time.Second, "2-01:00:00": 49 * time.Hour} {
		if got, err := ParseTimeLimit(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"30", "30:00", "00:61:00", "1h", "-1:00:00", "00:00:00 "} {
		if _, err := ParseTimeLimit(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	for _, c := range []struct {
		wall, grace  int
		limit        string
		warning, end time.Duration
	}{
		{0, 30, "", 0, 0},
		{100, 30, "00:10:00", 70 * time.Second, 100 * time.Second},
		{0, 30, "00:10:00", 570 * time.Second, 600 * time.Second},
		{100, 0, "", 100 * time.Second, 105 * time.Second},
		{10, 30, "", 10 * time.Second, 15 * time.Second},
	} {
		warning, end := Request{WallTimeSeconds: c.wall, GraceSeconds: c.grace, Resources: Resources{TimeLimit: c.limit}}.Warning()
		if warning != c.warning || end != c.end {
			t.Errorf("%+v: %v, %v", c, warning, end)
		}
	}
}

func TestListAndFind(t *testing.T) {
	runs, loose := t.TempDir(), t.TempDir()
	for i, folder := range []string{filepath.Join(runs, "j-1"), filepath.Join(loose, "j-2"), filepath.Join(runs, "j-3")} {
		req := request(filepath.Base(folder))
		req.CreatedAt = noon.Add(time.Duration(i) * time.Minute)
		if err := Create(folder, req); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{"broken/request.json": "{", "unfinished/script.sh": "", "stray": ""} {
		path = filepath.Join(loose, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	roots := []string{runs, loose, filepath.Join(runs, "missing"), runs + "/"}
	entries, findings := List(roots)
	var ids []string
	for _, entry := range entries {
		ids = append(ids, entry.JobID)
	}
	if !slices.Equal(ids, []string{"j-3", "j-2", "j-1"}) {
		t.Errorf("listed %v", ids)
	}
	if len(findings) != 1 || findings[0].Code != "job_unreadable" {
		t.Errorf("findings %v", findings)
	}
	if folder, err := Find(roots, "j-2"); err != nil || folder != filepath.Join(loose, "j-2") {
		t.Errorf("found %s, %v", folder, err)
	}
	for _, id := range []string{"j-9", "../j-1", "", "unfinished"} {
		_, err := Find(roots, id)
		if got := refusedCodes(err); !slices.Equal(got, []string{"job_unknown"}) || !strings.Contains(err.Error(), "one of j-3, j-2, j-1") {
			t.Errorf("%q: %v", id, err)
		}
	}
}
