package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// check refuses what can't be answered, before any log is read.
func (r LogRequest) check(folder string) error {
	refuse := func(code, field, what, expected, remedy string) error {
		return finding.Refuse(finding.Finding{Code: code, Severity: finding.Error, What: what,
			Where: &finding.Where{Field: field}, Expected: expected, Remedy: remedy})
	}
	given := 0
	for _, is := range []bool{r.Cursor != nil, r.Head != 0, r.Tail != 0} {
		if is {
			given++
		}
	}
	switch {
	case r.Stream != "" && r.Stream != StreamStdout && r.Stream != StreamStderr && r.Stream != StreamBoth:
		return refuse("stream_unknown", "stream", fmt.Sprintf("there is no stream %q", r.Stream), "stdout, stderr or both", "send one of these")
	case given > 1:
		return refuse("log_request_conflict", "cursor", "cursor, head and tail exclude each other", "at most one of them", "send the one you mean")
	case r.Head < 0 || r.Tail < 0:
		return refuse("lines_invalid", "head", "a negative number of lines", "1 or more", "send a count of lines")
	case r.Cursor != nil && *r.Cursor < 0:
		return refuse("cursor_invalid", "cursor", fmt.Sprintf("cursor %d is negative", *r.Cursor), "a byte offset from next_cursor", "send 0 for the start")
	case r.Context != nil && *r.Context < 0:
		return refuse("lines_invalid", "context", "a negative number of lines", "0 or more", "send a count of lines")
	case r.Rank != nil && r.Stream != "":
		return refuse("log_request_conflict", "rank", "a rank has a log of its own, and a stream was named too", "rank or stream", "leave stream out")
	case r.Cursor != nil && r.Stream == StreamBoth:
		return refuse("cursor_needs_stream", "stream", "a cursor belongs to one stream", "stdout or stderr", "send the stream whose next_cursor this is")
	}
	if _, err := regexp.Compile(r.Grep); err != nil {
		return refuse("grep_invalid", "grep", err.Error(), `an RE2 expression such as (?i)error|nan`,
			"escape what is meant literally with a backslash; RE2 has no look-around and no back-references")
	}
	if r.Rank != nil {
		if _, err := os.Stat(LogPath(folder, rankStream(*r.Rank))); errors.Is(err, fs.ErrNotExist) {
			return refuse("rank_unknown", "rank", fmt.Sprintf("rank %d has left no log", *r.Rank), ranksThere(folder), "send one of these, or leave rank out")
		}
	}
	return nil
}

// rankSuffix ends the name of a rank's log; before it stands its stream, such as rank-0003 (formats.md).
const rankSuffix = ".log"

func rankStream(rank int) string { return fmt.Sprintf("rank-%04d", rank) }

// ranksThere says which ranks of a job have left a log.
func ranksThere(folder string) string {
	const most = 20
	files, _ := filepath.Glob(filepath.Join(folder, "rank-*"+rankSuffix)) // fails on a bad pattern only
	var ranks []string
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "rank-"), rankSuffix)
		if rank, err := strconv.Atoi(name); err == nil && len(ranks) < most {
			ranks = append(ranks, strconv.Itoa(rank))
		}
	}
	switch {
	case len(ranks) == 0:
		return "no rank: this job has no logs by rank"
	case len(files) > most:
		return fmt.Sprintf("one of %s and %d more", strings.Join(ranks, ", "), len(files)-len(ranks))
	}
	return "one of " + strings.Join(ranks, ", ")
}
