package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/diagnose"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// answerMost is 1,500 tokens at four bytes a token: what one answer about a job that failed may take, its text included.
const answerMost = 6000

const samplesFolder = "../internal/diagnose/testdata"

// failure is a real log and the exit code of the job that wrote it.
type failure struct {
	name string
	code int
}

// failures are the samples of package diagnose.
func failures(t *testing.T) []failure {
	t.Helper()
	var out []failure
	for _, folder := range []string{"made", "slurm"} {
		recorded, err := os.ReadFile(filepath.Join(samplesFolder, folder, "exits"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(recorded)) {
			sample := failure{}
			if _, err := fmt.Sscan(line, &sample.name, &sample.code); err != nil {
				t.Fatalf("%s/exits: %q: %v", folder, line, err)
			}
			sample.name = folder + "/" + sample.name
			out = append(out, sample)
		}
	}
	return out
}

// lay makes a job that failed so.
func (f failure) lay(t *testing.T, dir, id string) {
	t.Helper()
	layJob(t, dir, id, "")
	folder := filepath.Join(dir, ".onescience", "jobs", id)
	for ending, log := range map[string]string{".out": jobs.StdoutFile, ".err": jobs.StderrFile} {
		text, err := os.ReadFile(filepath.Join(samplesFolder, filepath.FromSlash(f.name)+ending))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, log), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	exit, err := jobs.ReadExit(folder)
	if err != nil {
		t.Fatal(err)
	}
	exit.Code = &f.code
	endJob(t, folder, *exit)
}

// One answer of job_status says why a job failed, shows the line that says so and what to do, however it failed, and costs
// little.
func TestJobStatusTellsEveryFailureBriefly(t *testing.T) {
	dir, all := workspaceTools(t)
	tool, _ := Find(all, "job_status")
	longest := 0
	for i, sample := range failures(t) {
		id := fmt.Sprintf("j-%d", i)
		sample.lay(t, dir, id)
		result, err := tool.Call(t.Context(), engine.Silent, json.RawMessage(`{"job_ids": ["`+id+`"]}`))
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(result.Structured)
		if err != nil {
			t.Fatal(err)
		}
		var answer JobStatusOutput
		if err := json.Unmarshal(encoded, &answer); err != nil {
			t.Fatal(err)
		}
		bytes := len(encoded) + len(result.Text)
		longest = max(longest, bytes)
		if bytes > answerMost {
			t.Errorf("%s: %d bytes\n%s", sample.name, bytes, encoded)
		}
		job := answer.Jobs[0]
		if job.State != jobs.StateFailed || job.Cause == nil {
			t.Fatalf("%s: %s", sample.name, encoded)
		}
		cause := job.Cause
		if cause.Code == "" || cause.What == "" || cause.Remedy == "" || cause.Category == "" || !strings.Contains(result.Text, cause.What) {
			t.Errorf("%s says too little: %s\n%s", sample.name, encoded, result.Text)
		}
		// Only the job whose logs are empty has no line to show.
		logged := !strings.HasSuffix(sample.name, "/timeout_command")
		if logged != (cause.Evidence != nil && cause.Evidence.Text != "" && cause.Evidence.Line > 0) {
			t.Errorf("%s: evidence %+v", sample.name, cause.Evidence)
		}
	}
	t.Logf("the longest answer has %d bytes", longest)
}

// However long a job's line and command are, the answer stays short, and says how to read what it left out.
func TestJobStatusCutsLongLinesAndCommands(t *testing.T) {
	dir, all := workspaceTools(t)
	line := "ValueError: " + strings.Repeat("0123456789", 3000)
	layJob(t, dir, "j-1", "")
	folder := filepath.Join(dir, ".onescience", "jobs", "j-1")
	log := "Traceback (most recent call last):\n  File \"/srv/train.py\", line 4, in <module>\n    main()\n" + line + "\n"
	if err := os.WriteFile(filepath.Join(folder, jobs.StderrFile), []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	request, err := jobs.ReadRequest(folder)
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		request.Command = append(request.Command, "--option", strings.Repeat("größe", 100))
	}
	if err := rundir.WriteJSON(filepath.Join(folder, jobs.RequestFile), request); err != nil {
		t.Fatal(err)
	}
	tool, _ := Find(all, "job_status")
	result, err := tool.Call(t.Context(), engine.Silent, json.RawMessage(`{"job_ids": ["j-1"]}`))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(result.Structured)
	if err != nil {
		t.Fatal(err)
	}
	if bytes := len(encoded) + len(result.Text); bytes > answerMost {
		t.Errorf("%d bytes", bytes)
	}
	var answer JobStatusOutput
	if err := json.Unmarshal(encoded, &answer); err != nil {
		t.Fatal(err)
	}
	command := answer.Jobs[0].Command
	if last := command[len(command)-1]; command[0] != "python3" || !strings.Contains(last, "more words in") || !strings.Contains(last, jobs.RequestFile) {
		t.Errorf("command %q", command)
	}
	if len(answer.Findings) != 1 || answer.Findings[0].Code != "line_cut" {
		t.Fatalf("findings %+v", answer.Findings)
	}
	// The remedy is a call as it is: it reads on where the line begins.
	_, arguments, _ := strings.Cut(answer.Findings[0].Remedy, "job_logs ")
	rest, err := call[JobLogsOutput](t, all, "job_logs", arguments)
	if err != nil || len(rest.Streams) != 1 || !strings.HasPrefix(rest.Streams[0].Text, line[:5000]) {
		t.Errorf("%s: %v", arguments, err)
	}
}

func TestLogFrom(t *testing.T) {
	for path, want := range map[string]string{
		"/j/stderr.log":    `{"job_id": "j-1", "stream": "stderr", "cursor": 7}`,
		"/j/stdout.log":    `{"job_id": "j-1", "stream": "stdout", "cursor": 7}`,
		"/j/rank-0003.log": `{"job_id": "j-1", "rank": 3, "cursor": 7}`,
		"/j/rank-0000.log": `{"job_id": "j-1", "rank": 0, "cursor": 7}`,
	} {
		if got := logFrom("j-1", diagnose.Line{Path: path, Byte: 7}); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
