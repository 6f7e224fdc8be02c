package jobs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/redact"
)

// The streams of a log request.
const (
	StreamStdout = "stdout"
	StreamStderr = "stderr"
	StreamBoth   = "both"
)

const (
	defaultTail   = 100
	defaultTokens = 4000
	maxTokens     = 20000 // clients cut a tool's answer at 25,000
	bytesPerToken = 4
)

// LogRequest asks for a part of a job's log. At most one of Cursor, Head and Tail is given; none means the last 100 lines,
// or with Grep the first matches.
type LogRequest struct {
	// Stream is stdout, stderr or both; "" means stdout with a cursor and both without.
	Stream string `json:"stream,omitempty"`
	// Rank asks for the log of one rank of a distributed job in place of a stream.
	Rank *int `json:"rank,omitempty"`
	// Cursor is a byte offset of the raw file: read on from there.
	Cursor *int64 `json:"cursor,omitempty"`
	// Head and Tail count lines from the start and from the end.
	Head int `json:"head,omitempty"`
	Tail int `json:"tail,omitempty"`
	// Grep is an RE2 expression. The text is then the lines that match it as they are shown, each behind its byte offset and
	// a colon, with the lines around them behind offset and dash, and "--" between those that are not neighbours. Head and
	// Tail count matches. What is masked can't be searched.
	Grep string `json:"grep,omitempty"`
	// Context is how many lines around a match are shown; nil means 2.
	Context *int `json:"context,omitempty"`
	// MaxTokens bounds the text of all slices together, at 4 bytes a token; 0 means 4000, at most 20,000.
	MaxTokens int `json:"max_tokens,omitempty"`
	// KeepRepeats shows lines that follow their like; else four and more become one line and their count.
	KeepRepeats bool `json:"-"`

	searchMost int64 // bytes that Grep searches; 0 is grepMost
}

// LogSlice is a part of one stream, rendered as a terminal would show it, secrets masked, valid UTF-8. Start and End are the
// raw bytes [Start, End) it was rendered from; consecutive slices by NextCursor meet without gap or overlap, and where the
// log is plain text without repeated lines their Text is those bytes.
type LogSlice struct {
	// Stream is stdout, stderr, or the name of a rank's log such as rank-0003.
	Stream string `json:"stream"`
	// Errors are lines near the end that tell of a failure; only in a view of the tail.
	Errors []LogLine `json:"errors,omitempty"`
	Text   string    `json:"text"`
	// Matches counts the matches of Grep that Text shows.
	Matches int   `json:"matches,omitempty"`
	Start   int64 `json:"start"`
	End     int64 `json:"end"`
	// Size is the length of the raw file when it was read.
	Size       int64 `json:"size"`
	NextCursor int64 `json:"next_cursor"`
	// More says that bytes follow at NextCursor.
	More bool `json:"more"`
	// Cut is what was asked for and left out, nil where nothing was.
	Cut      *Cut              `json:"cut,omitempty"`
	Findings []finding.Finding `json:"findings,omitempty"`
}

// LogLine is one line of a log. Byte is the offset of its first occurrence, Times how often it was found.
type LogLine struct {
	Byte  int64  `json:"byte"`
	Text  string `json:"text"`
	Times int    `json:"times"`
}

// Cut is a range of raw bytes that was left out. Reading with cursor From gives it.
type Cut struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Why  string `json:"why"`
}

// ReadLog reads the part of the job's log that req names, one slice for each stream. It reads only the bytes it needs: the
// tail of a large log costs the same as that of a small one. A log that is not there yet is an empty slice with a note. Where
// both streams are read, one with errors comes first.
func ReadLog(folder string, req LogRequest) ([]LogSlice, error) {
	if err := req.check(folder); err != nil {
		return nil, err
	}
	budget := budgetBytes(req.MaxTokens)
	switch {
	case req.Rank != nil:
		slice, err := readStream(folder, rankStream(*req.Rank), req, budget)
		return []LogSlice{slice}, err
	case req.Stream == StreamStdout || req.Stream == StreamStderr:
		slice, err := readStream(folder, req.Stream, req, budget)
		return []LogSlice{slice}, err
	case req.Stream == "" && req.Cursor != nil:
		slice, err := readStream(folder, StreamStdout, req, budget)
		return []LogSlice{slice}, err
	}
	return readBoth(folder, req, budget)
}

// readBoth shares the budget: what one stream does not need, the other may use.
func readBoth(folder string, req LogRequest, budget int) ([]LogSlice, error) {
	stdout, err := readStream(folder, StreamStdout, req, budget/2)
	if err != nil {
		return nil, err
	}
	stderr, err := readStream(folder, StreamStderr, req, budget-stdout.shown())
	if err != nil {
		return nil, err
	}
	if stdout.Cut != nil && stderr.shown() < budget/2 {
		if stdout, err = readStream(folder, StreamStdout, req, budget-stderr.shown()); err != nil {
			return nil, err
		}
	}
	if len(stderr.Errors) > 0 && len(stdout.Errors) == 0 {
		return []LogSlice{stderr, stdout}, nil
	}
	return []LogSlice{stdout, stderr}, nil
}

// shown is how many bytes of the budget a slice has used.
func (s LogSlice) shown() int { return len(s.Text) + sizeOf(s.Errors) }

func budgetBytes(tokens int) int {
	if tokens <= 0 {
		tokens = defaultTokens
	}
	return min(tokens, maxTokens) * bytesPerToken
}

// LogPath is the file of a stream, or of a rank's log such as rank-0003, in the job's folder.
func LogPath(folder, stream string) string {
	switch stream {
	case StreamStdout:
		return filepath.Join(folder, StdoutFile)
	case StreamStderr:
		return filepath.Join(folder, StderrFile)
	}
	return filepath.Join(folder, stream+rankSuffix)
}

func readStream(folder, stream string, req LogRequest, budget int) (LogSlice, error) {
	path := LogPath(folder, stream)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return LogSlice{Stream: stream, Findings: []finding.Finding{{Code: "log_not_there_yet", Severity: finding.Note,
			What: "the job has not written to this stream", Where: &finding.Where{Path: path},
			Remedy: "ask again when it runs; job_status says why it does not"}}}, nil
	}
	if err != nil {
		return LogSlice{}, fmt.Errorf("open the log: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return LogSlice{}, fmt.Errorf("look at the log: %w", err)
	}
	slice, err := sliceLog(file, info.Size(), req, budget)
	if err != nil {
		return LogSlice{}, fmt.Errorf("read the log %s: %w", path, err)
	}
	slice.Stream = stream
	return slice, nil
}

// sliceLog reads the requested part of a log of the given size.
func sliceLog(log io.ReaderAt, size int64, req LogRequest, budget int) (LogSlice, error) {
	if req.Grep != "" {
		return grep(log, size, req, budget)
	}
	switch {
	case req.Cursor != nil && *req.Cursor > size:
		return pastEnd(size, *req.Cursor), nil
	case req.Cursor != nil:
		return forward(log, size, *req.Cursor, shape{budget: budget, fold: !req.KeepRepeats})
	case req.Head > 0:
		return forward(log, size, 0, shape{lines: req.Head, budget: budget, fold: !req.KeepRepeats})
	}
	found, err := errorLines(log, size, budget/4)
	if err != nil {
		return LogSlice{}, err
	}
	lines := req.Tail
	if lines == 0 {
		lines = defaultTail
	}
	slice, err := tail(log, size, shape{lines: lines, budget: budget - sizeOf(found), fold: !req.KeepRepeats})
	slice.Errors = found
	return slice, err
}

func pastEnd(size, cursor int64) LogSlice {
	return LogSlice{Start: size, End: size, Size: size, NextCursor: size, Findings: []finding.Finding{{Code: "cursor_past_end",
		Severity: finding.Warning, What: fmt.Sprintf("cursor %d lies behind the end of the log at %d", cursor, size),
		Where: &finding.Where{Field: "cursor"}, Expected: "a next_cursor of this stream", Remedy: fmt.Sprintf("read on from %d", size)}}}
}

// redactAround is how many bytes on either side of a slice are looked at when secrets are masked, so that one which the
// slice cuts in two is found whole. A PEM private key of 4096 bits takes 3.2 kB.
const redactAround = 8 << 10

// readRange is the raw bytes [from, to) with secrets masked; masking keeps the length, so offsets stay those of the file.
func readRange(log io.ReaderAt, size, from, to int64) ([]byte, error) {
	low, high := max(0, from-redactAround), min(size, to+redactAround)
	raw := make([]byte, high-low)
	n, err := log.ReadAt(raw, low)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	masked := redact.Bytes(raw[:n])
	return masked[min(from-low, int64(n)):min(to-low, int64(n))], nil
}
