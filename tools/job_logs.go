package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

// JobLogsInput asks for a part of a job's log; without cursor, head and tail it is the last 100 lines.
type JobLogsInput struct {
	JobID     string `json:"job_id" jsonschema:"required" jsonschema_description:"The job."`
	Stream    string `json:"stream,omitempty" jsonschema:"enum=stdout,enum=stderr,enum=both" jsonschema_description:"Left out: both, or stdout with a cursor."`
	Cursor    *int64 `json:"cursor,omitempty" jsonschema_description:"Read on from this byte: next_cursor of the last answer."`
	Head      int    `json:"head,omitempty" jsonschema_description:"So many lines from the start."`
	Tail      int    `json:"tail,omitempty" jsonschema_description:"So many lines from the end; 100 when nothing else is asked."`
	Grep      string `json:"grep,omitempty" jsonschema_description:"RE2 expression, e.g. (?i)nan: only matching lines with byte offset and context. head and tail then count matches."`
	Rank      *int   `json:"rank,omitempty" jsonschema_description:"The log of this rank in place of a stream."`
	MaxTokens int    `json:"max_tokens,omitempty" jsonschema_description:"Bound of the text, 4000 when left out, at most 9000."`
}

// JobLogsOutput is a part of a job's log, one entry for each stream.
type JobLogsOutput struct {
	JobID    string            `json:"job_id"`
	Streams  []jobs.LogSlice   `json:"streams"`
	Findings []finding.Finding `json:"findings"`
	NextCall *engine.NextCall  `json:"next_call,omitempty"`
}

// maxLogTokens keeps the text of an answer below maxResult: a token counts four bytes.
const maxLogTokens = maxResult * 9 / 10 / 4

// jobLogs is the tool job_logs.
func jobLogs(deps Deps) Tool {
	return typedTool("job_logs",
		"Reads a job's log, errors first: its end, its start, on from a byte cursor, or what matches grep. As a terminal would show it, repeated lines folded, secrets masked; next_call gets the rest.",
		Annotations{ReadOnly: true, Idempotent: true},
		func(_ context.Context, _ engine.Caller, in JobLogsInput) (JobLogsOutput, error) {
			t, err := deps.Trainer()
			if err != nil {
				return JobLogsOutput{}, err
			}
			folder, err := jobFolder(t, in.JobID)
			if err != nil {
				return JobLogsOutput{}, err
			}
			return readLogs(folder, in)
		},
		more[JobLogsOutput]{toolset: SetRuntime, rest: "call job_logs with cursor = next_cursor", text: logText})
}

// readLogs reads as much as fits an answer. Text grows when it is quoted in JSON, and an answer that is cut afterwards
// would leave a gap before its next_cursor; so it is read again with a smaller bound.
func readLogs(folder string, in JobLogsInput) (JobLogsOutput, error) {
	bound := in.MaxTokens
	if bound <= 0 {
		bound = 4000
	}
	for bound = min(bound, maxLogTokens); ; bound = bound * 2 / 3 {
		slices, err := jobs.ReadLog(folder, jobs.LogRequest{Stream: in.Stream, Rank: in.Rank, Cursor: in.Cursor, Head: in.Head, Tail: in.Tail, Grep: in.Grep, MaxTokens: bound})
		if err != nil {
			return JobLogsOutput{}, err
		}
		out := JobLogsOutput{JobID: in.JobID, Streams: slices, Findings: []finding.Finding{}}
		out.NextCall = readOn(in, slices)
		if bound < 100 || size(out) <= maxResult {
			return out, nil
		}
	}
}

// readOn is the call for what was left out or follows: with a tail the bytes before it that were asked for, else those
// after. The other stream's own cut names its cursor.
func readOn(in JobLogsInput, slices []jobs.LogSlice) *engine.NextCall {
	for _, s := range slices {
		cursor := s.NextCursor
		switch {
		case s.Cut != nil:
			cursor = s.Cut.From
		case !s.More:
			continue
		}
		arguments := map[string]any{"job_id": in.JobID, "cursor": cursor}
		if in.Rank != nil {
			arguments["rank"] = *in.Rank
		} else {
			arguments["stream"] = s.Stream
		}
		if in.Grep != "" {
			arguments["grep"] = in.Grep
		}
		if in.MaxTokens > 0 {
			arguments["max_tokens"] = in.MaxTokens
		}
		return &engine.NextCall{Tool: "job_logs", Arguments: arguments}
	}
	return nil
}

func logText(o JobLogsOutput) string {
	lines := make([]string, len(o.Streams))
	for i, s := range o.Streams {
		lines[i] = fmt.Sprintf("%s %s: bytes %d to %d of %d", o.JobID, s.Stream, s.Start, s.End, s.Size)
		for _, e := range s.Errors {
			lines[i] += fmt.Sprintf("\nerror at byte %d: %s", e.Byte, e.Text)
		}
		if s.Text != "" {
			lines[i] += "\n" + strings.TrimRight(s.Text, "\n")
		}
	}
	return strings.Join(lines, "\n")
}
