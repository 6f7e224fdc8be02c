package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/tools"
)

// readTrace gives the lines of a trace.
func readTrace(t *testing.T, text string) []Traced {
	t.Helper()
	var all []Traced
	for line := range strings.Lines(text) {
		var one Traced
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		all = append(all, one)
	}
	return all
}

func traced(out *safeBuffer) *Server {
	return New(Options{Version: "test", Tools: []tools.Tool{echo}, Resources: shelf{}, Skills: demoSkills, Log: zerolog.Nop(), NewID: func() string { return "id" },
		Trace: NewTrace(out, func() time.Time { return time.Unix(1_790_000_000, 0) })})
}

// What a client sent can be sent again from a trace, and gives the answers that stand in it.
func TestATraceCanBeReplayed(t *testing.T) {
	record := &safeBuffer{}
	p := connectTo(t, traced(record), &safeBuffer{})
	p.initialize()
	for _, line := range []string{callLine(1, "echo"), callLine(2, "none"), `{"jsonrpc":"2.0","id":3,"method":"skills/list"}`} {
		p.send(line)
		p.next()
	}
	p.send("garbage")
	p.next()
	var want []string
	again := connectTo(t, traced(&safeBuffer{}), &safeBuffer{})
	for _, one := range readTrace(t, record.String()) {
		if one.Client != "stdio" || one.At.IsZero() {
			t.Errorf("%+v", one)
		}
		var text string
		switch {
		case one.From == fromServer:
			want = append(want, string(one.Message))
			got, err := again.out.ReadBytes('\n')
			if err != nil || string(bytes.TrimSpace(got)) != string(one.Message) {
				t.Errorf("replayed: %s, traced: %s, %v", got, one.Message, err)
			}
		case json.Unmarshal(one.Message, &text) == nil:
			again.send(text)
		default:
			again.send(string(one.Message))
		}
	}
	if len(want) != 5 {
		t.Errorf("%d answers in the trace", len(want))
	}
}

// A trace is shown to others: what looks like a secret is masked, over either transport.
func TestATraceHasNoSecrets(t *testing.T) {
	const secret = "sk-abcdefghijklmnopqrstuvwxyz123456"
	record := &safeBuffer{}
	w := openOn(t, HTTPOptions{}, traced(record), &safeBuffer{})
	session := w.session()
	w.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"x":"api_key: `+secret+`"}}}`, session...)
	w.post("["+ping+"]", session...)
	all := readTrace(t, record.String())
	if len(all) != 6 || strings.Contains(record.String(), secret) {
		t.Fatalf("%d lines: %s", len(all), record)
	}
	for i, one := range all[2:] {
		if one.Client != session[1] || (one.From == fromClient) != (i%2 == 0) {
			t.Errorf("line %d: %+v", i, one)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestATraceThatCantBeWrittenEndsAlone(t *testing.T) {
	trace := NewTrace(fullDisk{}, time.Now)
	trace.record("stdio", fromClient, []byte(ping))
	trace.record("stdio", fromClient, []byte(ping))
	if err := trace.Err(); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Error(err)
	}
	var none *Trace
	none.record("stdio", fromClient, []byte(ping))
}

// A client gets the messages of the level that it asked for, before the answer that they are about, and no others.
func TestLogLevels(t *testing.T) {
	failing := tool("fails", func(context.Context, engine.Caller, json.RawMessage) (tools.Result, error) {
		return tools.Result{}, errors.New("open /very/private: denied")
	})
	setLevel := func(level string) string {
		return `{"jsonrpc":"2.0","id":9,"method":"logging/setLevel","params":{"level":"` + level + `"}}`
	}
	for _, c := range []struct {
		level, tool string
		levels      string
	}{
		{"debug", "echo", "info"}, {"info", "echo", "info"}, {"warning", "echo", ""}, {"", "echo", ""},
		{"info", "fails", "error info"}, {"", "fails", "error"}, {"critical", "fails", ""},
	} {
		t.Run(c.level+" "+c.tool, func(t *testing.T) {
			p := connect(t, echo, failing)
			p.initialize()
			w := open(t, HTTPOptions{}, echo, failing)
			session := w.session()
			if c.level != "" {
				p.send(setLevel(c.level))
				p.next()
				w.post(setLevel(c.level), session...)
			}
			p.send(callLine(1, c.tool))
			var overStdio []reply
			for {
				r := p.next()
				if overStdio = append(overStdio, r); r.Method == "" {
					break
				}
			}
			var overHTTP []reply
			for _, m := range w.post(callLine(1, c.tool), session...).messages {
				var r reply
				if err := json.Unmarshal(m, &r); err != nil {
					t.Fatal(err)
				}
				overHTTP = append(overHTTP, r)
			}
			for transport, got := range map[string][]reply{"stdio": overStdio, "http": overHTTP} {
				if levels := levelsOf(got[:len(got)-1]); levels != c.levels {
					t.Errorf("%s: got %q, want %q", transport, levels, c.levels)
				}
			}
		})
	}
}

func levelsOf(messages []reply) string {
	var levels []string
	for _, r := range messages {
		if r.Method == "notifications/message" {
			levels = append(levels, r.Params["level"].(string))
		}
	}
	return strings.Join(levels, " ")
}

// Protocol 2026-07-28 wants no message that the request itself did not ask for.
func TestLogLevelOfOneRequest(t *testing.T) {
	w := open(t, HTTPOptions{}, echo)
	body, header := modern(1, "tools/call", "echo", map[string]any{"name": "echo", "arguments": map[string]any{}})
	if a := w.post(body, header...); len(a.messages) != 1 {
		t.Errorf("unasked: %s", a.body)
	}
	body = strings.Replace(body, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"info",`, 1)
	a := w.post(body, header...)
	var r reply
	if len(a.messages) != 2 || json.Unmarshal(a.messages[0], &r) != nil || r.Method != "notifications/message" || r.Params["level"] != "info" {
		t.Errorf("asked: %s", a.body)
	}
}
