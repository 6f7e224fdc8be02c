package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/redact"
)

// Event is one line of events.jsonl: what happened to the run, and who did or allowed it.
type Event struct {
	Time   time.Time      `json:"time"` // UTC
	Phase  string         `json:"phase,omitempty"`
	Event  string         `json:"event"`
	By     string         `json:"by"` // server, agent, user, or a name
	Detail map[string]any `json:"detail,omitempty"`
}

func (d Dir) eventsPath() string { return filepath.Join(d.Path, "events.jsonl") }

// AppendEvent adds a line to events.jsonl and syncs it. Strings in Detail are redacted. A last line that a crash cut short
// is ended first, so that it spoils no other.
func (d Dir) AppendEvent(e Event) error {
	if err := MayWrite(); err != nil {
		return err
	}
	e.Time = e.Time.UTC()
	if e.Detail != nil {
		e.Detail, _ = redacted("", e.Detail).(map[string]any)
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return fmt.Errorf("append %s: %w", d.eventsPath(), err)
	}
	if err := makeDir(d.Path); err != nil {
		return fmt.Errorf("append %s: %w", d.eventsPath(), err)
	}
	f, err := os.OpenFile(d.eventsPath(), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("append %s: %w", d.eventsPath(), err)
	}
	text := line.Bytes()
	if cutShort(f) {
		text = append([]byte("\n"), text...)
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close(), syncDir(d.Path)); err != nil {
		return fmt.Errorf("append %s: %w", d.eventsPath(), err)
	}
	return nil
}

func cutShort(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	return last[0] != '\n'
}

// redacted walks a JSON-like value; name is the key it stands under.
func redacted(name string, v any) any {
	switch v := v.(type) {
	case string:
		return redact.Value(name, v)
	case []string:
		list := make([]string, len(v))
		for i, s := range v {
			list[i] = redact.Value(name, s)
		}
		return list
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = redacted(name, item)
		}
		return list
	case map[string]string:
		m := make(map[string]string, len(v))
		for key, s := range v {
			m[key] = redact.Value(key, s)
		}
		return m
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = redacted(key, item)
		}
		return m
	}
	return v
}

// Events reads events.jsonl. A line that can't be read is left out with a finding: line_truncated at the end, where a
// crash may have cut it short, line_unreadable elsewhere. No file is no events.
func (d Dir) Events() ([]Event, []finding.Finding, error) {
	data, err := os.ReadFile(d.eventsPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", d.eventsPath(), err)
	}
	var events []Event
	var findings []finding.Finding
	offset := 0
	for number, line := range bytes.SplitAfter(data, []byte("\n")) {
		start := offset
		offset += len(line)
		text := bytes.TrimSpace(line)
		if len(text) == 0 {
			continue
		}
		var e Event
		if err := json.Unmarshal(text, &e); err != nil {
			f := finding.Finding{Code: "line_unreadable", Severity: finding.Warning, What: "an event can't be read and is left out: " + err.Error(),
				Where: &finding.Where{Path: d.eventsPath(), Line: number + 1, Byte: int64(start)}}
			if offset == len(data) && !bytes.HasSuffix(line, []byte("\n")) {
				f.Code, f.What = "line_truncated", "the last event was cut short, most likely by a crash, and is left out"
			}
			findings = append(findings, f)
			continue
		}
		events = append(events, e)
	}
	return events, findings, nil
}
