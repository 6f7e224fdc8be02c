package rundir

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEvents(t *testing.T) {
	d := Dir{t.TempDir()}
	if events, findings, err := d.Events(); events != nil || findings != nil || err != nil {
		t.Errorf("no file: %v, %v, %v", events, findings, err)
	}
	at := time.Date(2026, 11, 30, 13, 0, 0, 0, time.FixedZone("", 3600))
	first := Event{Time: at, Phase: "5_execution", Event: "authorised", By: "user", Detail: map[string]any{"command": "run --x <1>", "env": map[string]string{"DB_PASSWORD": "hunter2"}}}
	if err := d.AppendEvent(first); err != nil {
		t.Fatal(err)
	}
	want := `{"time":"2026-11-30T12:00:00Z","phase":"5_execution","event":"authorised","by":"user","detail":{"command":"run --x <1>","env":{"DB_PASSWORD":"*******"}}}` + "\n"
	if got := content(t, d.eventsPath()); got != want {
		t.Errorf("got  %swant %s", got, want)
	}

	put(t, d.eventsPath(), want+`not json`+"\n"+`{"time":"2026-11-30T12`)
	events, findings, err := d.Events()
	if err != nil || len(events) != 1 || !slices.Equal(codes(findings, nil), []string{"line_unreadable", "line_truncated"}) {
		t.Errorf("%v, %v, %v", events, findings, err)
	}
	if w := findings[1].Where; w.Line != 3 || w.Byte != int64(len(want)+len("not json\n")) {
		t.Errorf("truncated at %+v", w)
	}

	if err := d.AppendEvent(Event{Time: at, Event: "resumed", By: "server"}); err != nil {
		t.Fatal(err)
	}
	events, findings, err = d.Events()
	if err != nil || len(events) != 2 || events[1].Event != "resumed" || !slices.Equal(codes(findings, nil), []string{"line_unreadable", "line_unreadable"}) {
		t.Errorf("after appending to a cut line: %v, %v, %v", events, findings, err)
	}
}

func TestEventDetailIsRedactedAtAnyDepth(t *testing.T) {
	d := Dir{t.TempDir()}
	detail := map[string]any{"list": []any{"password=hunter2", 1}, "argv": []string{"--token=abcd1234efgh"}, "deep": map[string]any{"api_key": "abcd1234efgh"}}
	if err := d.AppendEvent(Event{Event: "x", Detail: detail}); err != nil {
		t.Fatal(err)
	}
	if got := content(t, d.eventsPath()); strings.Contains(got, "hunter2") || strings.Contains(got, "abcd1234") {
		t.Error(got)
	}
	if detail["list"].([]any)[0] != "password=hunter2" {
		t.Error("the caller's detail was changed")
	}
}
