package tools

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/trainwright/trainwright/internal/diagnose"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/trainer"
)

// JobStatusInput asks for jobs.
type JobStatusInput struct {
	JobIDs []string `json:"job_ids" jsonschema:"required" jsonschema_description:"The jobs, as run.job.job_id of an answer names them."`
	JobID  string   `json:"job_id,omitempty" jsonschema:"-"` // one of them; what the other job tools take
}

// JobStatusOutput tells where jobs stand, in the order they were asked for. A job that is not known is left out and is a
// finding.
type JobStatusOutput struct {
	Jobs     []jobs.Status     `json:"jobs"`
	Findings []finding.Finding `json:"findings"`
	NextCall *engine.NextCall  `json:"next_call,omitempty"`
}

// jobStatus is the tool job_status.
func jobStatus(deps Deps) Tool {
	return typedTool("job_status",
		"Tells where jobs stand, each with the evidence for it: running, succeeded, failed with its cause, cancelled, timeout or unknown. Jobs outlive the session.",
		Annotations{ReadOnly: true, Idempotent: true},
		func(ctx context.Context, _ engine.Caller, in JobStatusInput) (JobStatusOutput, error) {
			out := JobStatusOutput{Jobs: []jobs.Status{}, Findings: []finding.Finding{}}
			if in.JobID != "" {
				in.JobIDs = append(in.JobIDs, in.JobID)
			}
			if len(in.JobIDs) == 0 {
				return out, missing("job_ids", `a list such as ["j-…"]`, "run_status names a run's job in run.job.job_id")
			}
			t, err := deps.Trainer()
			if err != nil {
				return out, err
			}
			folders, unknown, err := jobFolders(t, in.JobIDs)
			if err != nil {
				return out, err
			}
			if len(folders) == 0 {
				return out, finding.Refuse(unknown...)
			}
			statuses, err := t.Runtime.Status(ctx, folders)
			if err != nil {
				return out, err
			}
			out.Jobs, out.Findings = statuses, append(out.Findings, unknown...)
			for i := range statuses {
				out.Findings = append(out.Findings, shorten(&statuses[i])...)
			}
			out.NextCall = goOn(statuses)
			return out, nil
		},
		more[JobStatusOutput]{toolset: SetRuntime, rest: "ask for fewer job_ids in one call; job_logs has the logs", text: func(o JobStatusOutput) string {
			return jobLines(o.Jobs)
		}})
}

// jobFolders finds the folders of jobs. Ids that are not known come back as findings.
func jobFolders(t *trainer.Trainer, ids []string) (folders []string, unknown []finding.Finding, err error) {
	roots, err := t.JobRoots()
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		folder, err := jobs.Find(roots, id)
		var refused *finding.Refused
		if errors.As(err, &refused) {
			unknown = append(unknown, refused.Findings...)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		folders = append(folders, folder)
	}
	return folders, unknown, nil
}

// jobFolder finds the folder of one job.
func jobFolder(t *trainer.Trainer, id string) (string, error) {
	if id == "" {
		return "", missing("job_id", "the id of a job", "run_status names a run's job in run.job.job_id")
	}
	folders, unknown, err := jobFolders(t, []string{id})
	if err != nil {
		return "", err
	}
	if len(folders) == 0 {
		return "", finding.Refuse(unknown...)
	}
	return folders[0], nil
}

// The bytes of a command, and of one word of it, that an answer shows.
const (
	commandShown = 600
	wordShown    = 200
)

// shorten cuts the command of a job and says how to read what a cut line of its log holds.
func shorten(status *jobs.Status) []finding.Finding {
	room := commandShown
	for i, word := range status.Command {
		if len(word) > wordShown {
			word = strings.ToValidUTF8(word[:wordShown], "") + "…"
		}
		if room -= len(word); room < 0 {
			more := fmt.Sprintf("… %d more words in %s", len(status.Command)-i, filepath.Join(status.Folder, jobs.RequestFile))
			status.Command = append(status.Command[:i:i], more)
			break
		}
		status.Command[i] = word
	}
	if status.Cause == nil || status.Cause.Evidence == nil || !status.Cause.Evidence.Cut() {
		return nil
	}
	line := status.Cause.Evidence
	return []finding.Finding{{Code: "line_cut", Severity: finding.Note, What: fmt.Sprintf("the line that says why job %s failed is cut", status.JobID),
		Where: &finding.Where{Path: line.Path, Line: line.Line, Byte: line.Byte}, Remedy: "for all of it: job_logs " + logFrom(status.JobID, *line)}}
}

// rankLog is the name of a rank's log (formats.md); the number without its leading zeros is the rank.
var rankLog = regexp.MustCompile(`^rank-0*(\d+)\.log$`)

// logFrom is the arguments of the call of job_logs that begins with a line.
func logFrom(id string, line diagnose.Line) string {
	stream := `"stream": "stdout"`
	if match := rankLog.FindStringSubmatch(filepath.Base(line.Path)); match != nil {
		stream = `"rank": ` + match[1]
	} else if filepath.Base(line.Path) == jobs.StderrFile {
		stream = `"stream": "stderr"`
	}
	return fmt.Sprintf(`{"job_id": %q, %s, "cursor": %d}`, id, stream, line.Byte)
}

// goOn is the call that leads on where all jobs belong to one run, or where it is one job of the runtime tool.
func goOn(statuses []jobs.Status) *engine.NextCall {
	if len(statuses) == 1 && statuses[0].RunID == "" {
		arguments := map[string]any{"job_id": statuses[0].JobID}
		if !jobs.Over(statuses[0].State) {
			arguments["wait_seconds"] = 300
		}
		return &engine.NextCall{Tool: "runtime", Arguments: arguments}
	}
	run, over := "", true
	for _, s := range statuses {
		if s.RunID == "" || (run != "" && s.RunID != run) {
			return nil
		}
		run, over = s.RunID, over && jobs.Terminal(s.State)
	}
	if run == "" {
		return nil
	}
	arguments := map[string]any{"run_id": run}
	if !over {
		arguments["wait_seconds"] = 300
	}
	return &engine.NextCall{Tool: "trainer", Arguments: arguments}
}

func jobLines(statuses []jobs.Status) string {
	lines := make([]string, len(statuses))
	for i, s := range statuses {
		lines[i] = fmt.Sprintf("%s %s after %.1f s", s.JobID, s.State, s.Seconds)
		if s.Cause != nil {
			lines[i] += ": " + s.Cause.What
			if line := s.Cause.Evidence; line != nil {
				lines[i] += fmt.Sprintf("\n%s:%d: %s", filepath.Base(line.Path), line.Line, line.Text)
			}
			if s.Cause.Remedy != "" {
				lines[i] += "\n" + s.Cause.Remedy
			}
		}
	}
	return strings.Join(lines, "\n")
}
