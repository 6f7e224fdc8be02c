package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/rs/zerolog"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/tools"
)

// asks are tools that ask the user: for a yes, and for one of three columns. Each answers with what it heard.
func asks(calls *atomic.Int64) []tools.Tool {
	asking := func(questions ...engine.Question) toolFunc {
		return func(ctx context.Context, c engine.Caller, _ json.RawMessage) (tools.Result, error) {
			calls.Add(1)
			heard := []map[string]any{}
			for _, q := range questions {
				a, err := engine.Ask(ctx, c, q)
				if err != nil {
					return tools.Result{}, fmt.Errorf("phase x: %w", err)
				}
				heard = append(heard, map[string]any{"reply": a.Reply, "choice": a.Choice, "by": a.By})
			}
			return tools.Result{Structured: map[string]any{"heard": heard}, Text: "done"}, nil
		}
	}
	allow := engine.Question{Field: "allow", Text: "r-1 wants: remote_submission\n  command  python3 train.py\nAllow it?"}
	column := engine.Question{Field: "target", Text: "Which column is to be predicted?", Choices: []string{"radius", "diagnosis"}}
	return []tools.Tool{tool("allow", asking(allow)), tool("column", asking(column)), tool("both", asking(allow, column))}
}

// wire is a conversation over either transport.
type wire interface {
	say(line string)
	hear() []byte
}

type piped struct{ *peer }

func (p piped) say(line string) { p.send(line) }

func (p piped) hear() []byte {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	return line
}

// webbed keeps the stream of the last request open for what comes after the client has answered.
type webbed struct {
	*site
	session []string
	open    *bufio.Reader
	stream  bool
}

func (w *webbed) say(line string) {
	message, fault := peek([]byte(line))
	if fault != nil {
		w.t.Fatal(fault.Message)
	}
	r := w.request(w.t.Context(), line, headersFor(line, message, w.session)...)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = response.Body.Close() })
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		w.session = []string{"Mcp-Session-Id", id}
	}
	if message.isRequest() {
		w.open, w.stream = bufio.NewReader(response.Body), strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
	} else if response.StatusCode != http.StatusAccepted {
		w.t.Errorf("%s: status %d", line, response.StatusCode)
	}
}

func (w *webbed) hear() []byte {
	for {
		line, err := w.open.ReadBytes('\n')
		data, framed := bytes.CutPrefix(line, []byte("data: "))
		switch {
		case err != nil:
			w.t.Fatal(err)
		case framed || !w.stream:
			return data
		}
	}
}

var (
	ourID    = regexp.MustCompile(`"id":\s?"(tw-[0-9a-f]{16})"`)
	ourState = regexp.MustCompile(`"requestState":\s?"([\w-]{60,})"`)
)

// talk plays a dialog: after each request of the client, and after each answer of it to a request of ours, one message comes.
// $ask stands for the id of our last request, $state for the state that we sent last.
func talk(t *testing.T, w wire, send string) string {
	t.Helper()
	var got strings.Builder
	asked, state := "", ""
	for line := range strings.Lines(send) {
		line = strings.NewReplacer("$ask", asked, "$state", state).Replace(strings.TrimSpace(line))
		message, fault := peek([]byte(line))
		if fault != nil {
			t.Fatal(fault.Message)
		}
		w.say(line)
		if !message.isRequest() && !message.isAnswer() {
			continue
		}
		text := string(w.hear())
		if message.Method == "initialize" {
			continue // initialize.txtar has that
		}
		if m := ourID.FindStringSubmatch(text); m != nil {
			asked = m[1]
			text = strings.ReplaceAll(text, asked, "$ask")
		}
		if m := ourState.FindStringSubmatch(text); m != nil {
			state = m[1]
			text = strings.ReplaceAll(text, state, "$state")
		}
		got.Write(pretty(t, []byte(text)))
	}
	return got.String()
}

// A dialog is a transcript in which the server asks too. Each holds over both transports.
func TestDialogs(t *testing.T) {
	files, err := filepath.Glob("testdata/dialogs/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dialogs: %v", err)
	}
	for _, file := range files {
		for _, transport := range []string{"stdio", "http"} {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+" "+transport, func(t *testing.T) {
				archive, err := txtar.ParseFile(file)
				if err != nil {
					t.Fatal(err)
				}
				var calls atomic.Int64
				var w wire = piped{connect(t, asks(&calls)...)}
				if transport == "http" {
					w = &webbed{site: open(t, HTTPOptions{}, asks(&calls)...)}
				}
				got := talk(t, w, string(archive.Files[0].Data))
				if *update && transport == "stdio" {
					archive.Files = []txtar.File{archive.Files[0], {Name: "want", Data: []byte(got)}}
					if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				if len(archive.Files) != 2 {
					t.Fatal("the dialog has no want; run the test with -update and review it")
				}
				if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", archive.Comment, diff)
				}
			})
		}
	}
}

const (
	askableLine = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`
	callAllow   = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"allow","arguments":{}}}`
)

func impatient(wait time.Duration, calls *atomic.Int64) (*Server, *safeBuffer) {
	log := &safeBuffer{}
	return New(Options{Version: "test", Tools: asks(calls), Resources: shelf{}, Log: zerolog.New(log), AskWait: wait}), log
}

// A user who is not there holds no call for ever: the question is withdrawn, and the tool hears that nobody answered.
func TestAQuestionThatNobodyAnswersIsWithdrawn(t *testing.T) {
	var calls atomic.Int64
	s, log := impatient(50*time.Millisecond, &calls)
	p := connectTo(t, s, log)
	p.send(askableLine)
	p.next()
	p.send(callAllow)
	asked := p.next()
	withdrawn := p.next()
	if withdrawn.Method != "notifications/cancelled" || fmt.Sprintf("%q", withdrawn.Params["requestId"]) != string(asked.ID) {
		t.Errorf("%+v after %+v", withdrawn, asked)
	}
	if r := p.next(); !strings.Contains(string(r.Result), `"reply":"ignored"`) {
		t.Errorf("%s", r.Result)
	}
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"allow":true}}}`, asked.ID), ping)
	if r := p.next(); string(r.ID) != "1" || r.Error != nil {
		t.Errorf("an answer that comes too late: %+v", r)
	}
	if calls.Load() != 2 {
		t.Errorf("the tool was called %d times", calls.Load())
	}
}

// A call that is cancelled while the user is asked ends without an answer, and the question with it.
func TestCancellingACallWithdrawsItsQuestion(t *testing.T) {
	var calls atomic.Int64
	s, log := impatient(time.Minute, &calls)
	p := connectTo(t, s, log)
	p.send(askableLine)
	p.next()
	p.send(callAllow)
	p.next()
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if r := p.next(); r.Method != "notifications/cancelled" {
		t.Errorf("%+v", r)
	}
	p.send(strings.Replace(ping, `"id":1`, `"id":2`, 1))
	r := p.next()
	for r.Method == "notifications/message" { // the log's word on the call that ended
		r = p.next()
	}
	if string(r.ID) != "2" {
		t.Errorf("the call is answered: %+v", r)
	}
	if calls.Load() != 1 {
		t.Errorf("the tool was called %d times", calls.Load())
	}
}

// The answer to a question counts from the session that was asked, and from no other that learned its id.
func TestNobodyAnswersForAnother(t *testing.T) {
	var calls atomic.Int64
	site := open(t, HTTPOptions{}, asks(&calls)...)
	user, other := &webbed{site: site}, &webbed{site: site}
	for _, w := range []*webbed{user, other} {
		w.say(askableLine)
		w.hear()
	}
	user.say(callAllow)
	id := ourID.FindSubmatch(user.hear())[1]
	yes := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"action":"accept","content":{"allow":true}}}`, id)
	no := strings.Replace(yes, `"accept"`, `"decline"`, 1)
	if a := site.post(yes, other.session...); a.status == http.StatusAccepted {
		t.Errorf("the answer of another is taken: %d", a.status)
	}
	user.say(no)
	if got := user.hear(); !bytes.Contains(got, []byte(`"reply":"declined"`)) {
		t.Errorf("%s", got)
	}
}

// An answer counts for the call that asked and as long as a user may take; the seal of another process counts for nothing.
func TestAStateCountsForItsCallAlone(t *testing.T) {
	var calls atomic.Int64
	clock := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	s := New(Options{Tools: asks(&calls), Resources: shelf{}, Log: zerolog.Nop(), Now: func() time.Time { return clock }})
	restarted := New(Options{Tools: asks(&calls), Resources: shelf{}, Log: zerolog.Nop(), Now: func() time.Time { return clock }})
	ask := func(s *Server, tool, arguments, more string) string {
		line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + more +
			`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
		b, err := json.Marshal(s.HandleMessage(t.Context(), json.RawMessage(line)))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := ask(s, "allow", `{}`, "")
	id := regexp.MustCompile(`q-[0-9a-f]{16}`).FindString(first)
	yes := `,"inputResponses":{"` + id + `":{"action":"accept","content":{"allow":true}}},"requestState":"` + ourState.FindStringSubmatch(first)[1] + `"`
	const needed, accepted = `"input_required"`, `"reply":"accepted"`
	for _, c := range []struct {
		name, want, got string
	}{
		{"the call itself", accepted, ask(s, "allow", `{}`, yes)},
		{"other arguments", needed, ask(s, "allow", `{"x":1}`, yes)},
		{"another tool with the same question", needed, ask(s, "both", `{}`, yes)},
		{"another process", needed, ask(restarted, "allow", `{}`, yes)},
		{"no state", needed, ask(s, "allow", `{}`, yes[:strings.Index(yes, `,"requestState"`)])},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%s: %s", c.name, c.got)
		}
	}
	clock = clock.Add(askPatience + time.Second)
	if got := ask(s, "allow", `{}`, yes); !strings.Contains(got, needed) {
		t.Errorf("too late: %s", got)
	}
}
