package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/resources"
	"github.com/trainwright/trainwright/tools"
)

const deadline = 20 * time.Second

// shelf is a Library of fixed contents.
type shelf map[string]resources.Content

func (s shelf) List(context.Context, string) ([]resources.Item, string, error) {
	return []resources.Item{{URI: "skill://demo/SKILL.md", Name: "demo/SKILL.md", MIME: "text/markdown", Size: 3}}, "", nil
}

func (s shelf) Read(_ context.Context, uri string) (resources.Content, error) {
	if uri == "run://broken/x" {
		return resources.Content{}, errors.New("disk says no: token=sk-secret")
	}
	if strings.HasPrefix(uri, "run://range/") {
		return resources.Content{}, fmt.Errorf("%w: offset is no number", resources.ErrInvalid)
	}
	c, ok := s[uri]
	if !ok {
		return c, fmt.Errorf("%s: %w", uri, resources.ErrNotFound)
	}
	return c, nil
}

func schema(properties string) tools.Schema {
	return func() json.RawMessage { return json.RawMessage(`{"type":"object","properties":{` + properties + `}}`) }
}

type toolFunc = func(context.Context, engine.Caller, json.RawMessage) (tools.Result, error)

func tool(name string, f toolFunc) tools.Tool {
	return tools.Tool{Name: name, Title: name, Description: "A test tool.", InputSchema: schema(""), OutputSchema: schema(""), Call: f}
}

// peer is a client at the other end of two real pipes.
type peer struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	log  *safeBuffer
	done chan error
	stop context.CancelFunc
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// newServer builds a server over a shelf, whose log can be looked at.
func newServer(offered ...tools.Tool) (*Server, *safeBuffer) {
	return newServerOver(shelf{
		"skill://demo/SKILL.md": {URI: "skill://demo/SKILL.md", MIME: "text/markdown", Text: "# x", Total: 3},
		"workspace:///big.csv?offset=0&limit=2": {URI: "workspace:///big.csv?offset=0&limit=2", MIME: "text/csv", Text: "a,", Shown: 2, Total: 9, Cut: true,
			Note: "[cut: …]", Rest: "workspace:///big.csv?offset=2"},
		"workspace:///": {URI: "workspace:///", MIME: "application/json", Text: "{}", Shown: 2, Total: 2},
		"job://j-1":     {URI: "job://j-1", MIME: "application/json", Text: "{}", Shown: 2, Total: 2},
	}, offered...)
}

func newServerOver(library Library, offered ...tools.Tool) (*Server, *safeBuffer) {
	var ids atomic.Int64
	log := &safeBuffer{}
	return New(Options{Version: "test", Tools: offered, Resources: library, Skills: demoSkills, Log: zerolog.New(log), Poll: time.Millisecond,
		NewID: func() string { return fmt.Sprintf("id%04d", ids.Add(1)) }}), log
}

func connect(t *testing.T, offered ...tools.Tool) *peer {
	t.Helper()
	s, log := newServer(offered...)
	return connectTo(t, s, log)
}

func connectTo(t *testing.T, s *Server, log *safeBuffer) *peer {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	p := &peer{t: t, in: inW, out: bufio.NewReaderSize(outR, 1<<20), log: log, done: make(chan error, 1), stop: stop}
	go func() {
		p.done <- NewStdio(s).Serve(ctx, inR, outW)
		_ = outW.Close()
	}()
	t.Cleanup(func() { stop(); _ = inW.Close(); _ = outR.Close() })
	return p
}

func (p *peer) send(lines ...string) {
	p.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(p.in, l+"\n"); err != nil {
			p.t.Fatalf("send: %v", err)
		}
	}
}

type reply struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params map[string]any  `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

func (p *peer) next() reply {
	p.t.Helper()
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.t.Fatalf("read: %v", err)
	}
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		p.t.Fatalf("stdout carries something else than the protocol: %q", line)
	}
	return r
}

func (p *peer) initialize() {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if r := p.next(); r.Error != nil {
		p.t.Fatalf("initialize: %+v", r.Error)
	}
}

func callLine(id int, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{},"_meta":{"progressToken":"p%d"}}}`, id, tool, id)
}

func (p *peer) ended(within time.Duration) {
	p.t.Helper()
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Errorf("Serve: %v", err)
		}
	case <-time.After(within):
		p.t.Fatalf("still serving after %v", within)
	}
}

func TestToolsAreListedInTheirOwnOrderAndMadeLate(t *testing.T) {
	made := false
	late := tool("trainer", nil)
	late.InputSchema = func() json.RawMessage { made = true; return schema("")() }
	p := connect(t, late, tool("a_later_one", nil), tool("b", nil))
	p.initialize()
	if made {
		t.Error("a schema was made before it was asked for")
	}
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(p.next().Result, &list); err != nil || len(list.Tools) != 3 || list.Tools[0].Name != "trainer" || list.Tools[1].Name != "a_later_one" {
		t.Errorf("%+v, %v", list, err)
	}
}

// mcp-go's own stdio server loses or reorders these in more than half of the calls.
func TestNotificationsComeBeforeTheirResponse(t *testing.T) {
	p := connect(t, tool("late", func(_ context.Context, c engine.Caller, _ json.RawMessage) (tools.Result, error) {
		for i := 1; i <= 3; i++ {
			c.Progress(engine.Progress{Phase: "x", Message: "m", Done: float64(i), Total: 3})
		}
		return tools.Result{Structured: map[string]any{}}, nil
	}))
	p.initialize()
	for i := 1; i <= 1000; i++ {
		p.send(callLine(i, "late"))
		for want := 1.0; want <= 3; want++ {
			r := p.next()
			if r.Method != "notifications/progress" || r.Params["progress"] != want || r.Params["progressToken"] != fmt.Sprintf("p%d", i) || r.Params["message"] != "x: m" {
				t.Fatalf("call %d: got %+v, want progress %v", i, r, want)
			}
		}
		if r := p.next(); string(r.ID) != fmt.Sprint(i) || r.Error != nil {
			t.Fatalf("call %d: got %+v", i, r)
		}
	}
}

func TestProgressGrowsAndEndsWithTheCall(t *testing.T) {
	var kept engine.Caller
	p := connect(t, tool("units", func(_ context.Context, c engine.Caller, _ json.RawMessage) (tools.Result, error) {
		kept = c
		for _, done := range []float64{1, 2, 0, 0, 1} {
			c.Progress(engine.Progress{Message: "m", Done: done})
		}
		return tools.Result{Structured: map[string]any{}}, nil
	}))
	p.initialize()
	p.send(callLine(1, "units"))
	last := 0.0
	for range 5 {
		r := p.next()
		got, _ := r.Params["progress"].(float64)
		if got <= last {
			t.Errorf("progress %v after %v", got, last)
		}
		last = got
	}
	p.next()
	kept.Progress(engine.Progress{Message: "too late", Done: 99})
	p.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if r := p.next(); string(r.ID) != "2" {
		t.Errorf("progress after the answer: %+v", r)
	}
}

func stuck(entered chan<- struct{}) tools.Tool {
	return tool("stuck", func(context.Context, engine.Caller, json.RawMessage) (tools.Result, error) {
		entered <- struct{}{}
		select {} // ignores its context
	})
}

func TestEndOfInputEndsWithinASecondDespiteAStuckCall(t *testing.T) {
	entered := make(chan struct{}, 1)
	p := connect(t, stuck(entered))
	p.initialize()
	p.send(callLine(1, "stuck"))
	<-entered
	began := time.Now()
	_ = p.in.Close()
	p.ended(time.Second)
	t.Logf("ended after %v", time.Since(began))
}

func TestEndOfInputLetsAQuickCallAnswer(t *testing.T) {
	p := connect(t, tool("quick", func(ctx context.Context, _ engine.Caller, _ json.RawMessage) (tools.Result, error) {
		select {
		case <-time.After(50 * time.Millisecond):
			return tools.Result{Structured: map[string]any{"ok": true}}, nil
		case <-ctx.Done():
			return tools.Result{}, ctx.Err()
		}
	}))
	go func() {
		_, _ = io.WriteString(p.in, callLine(1, "quick")) // no newline at the end either
		_ = p.in.Close()
	}()
	if r := p.next(); !strings.Contains(string(r.Result), `"ok":true`) {
		t.Errorf("got %s %+v", r.Result, r.Error)
	}
	p.ended(time.Second)
}

func TestCancelledContextEnds(t *testing.T) {
	entered := make(chan struct{}, 1)
	p := connect(t, stuck(entered))
	p.send(callLine(1, "stuck"))
	<-entered
	p.stop()
	p.ended(time.Second)
}

func TestLinesThatAreNoMessage(t *testing.T) {
	huge := `{"jsonrpc":"2.0","id":7,"method":"ping","x":"` + strings.Repeat("a", maxLine) + `"}`
	for _, c := range []struct {
		name, line string
		code       int
		id, says   string
	}{
		{"overlong", huge, -32600, "null", fmt.Sprintf("message of %d bytes is longer than the limit of %d bytes", len(huge), maxLine)},
		{"garbage", `hello`, -32700, "null", "not JSON"},
		{"cut off", `{"jsonrpc":"2.0","id":1,`, -32700, "null", "not JSON"},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, -32600, "null", "batch"},
		{"number", `17`, -32600, "null", "no object"},
		{"null", `null`, -32600, "null", "no object"},
		{"method is a number", `{"jsonrpc":"2.0","id":5,"method":7}`, -32600, "5", "no method"},
		{"other version", `{"jsonrpc":"1.0","id":6,"method":"ping"}`, -32600, "6", "JSON-RPC version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := connect(t)
			go func() {
				_, _ = io.WriteString(p.in, c.line+"\n\n"+`{"jsonrpc":"2.0","id":99,"method":"ping"}`+"\n")
			}()
			r := p.next()
			if r.Error == nil || r.Error.Code != c.code || string(r.ID) != c.id || !strings.Contains(r.Error.Message, c.says) {
				t.Errorf("got id %s error %+v, want %d about %q", r.ID, r.Error, c.code, c.says)
			}
			if r := p.next(); string(r.ID) != "99" || r.Error != nil {
				t.Errorf("the next line is not served: %+v", r)
			}
		})
	}
}

func TestPanicShowsAnIncidentOnly(t *testing.T) {
	p := connect(t, tool("panics", func(context.Context, engine.Caller, json.RawMessage) (tools.Result, error) {
		panic("pass=hunter2 deep")
	}))
	p.send(callLine(1, "panics"))
	r := p.next()
	if r.Error == nil || r.Error.Code != -32603 || string(r.ID) != "1" || !strings.Contains(r.Error.Message, "incident id0001") || strings.Contains(r.Error.Message, "deep") {
		t.Fatalf("got %+v", r.Error)
	}
	log := p.log.String()
	if !strings.Contains(log, "id0001") || !strings.Contains(log, "deep") || !strings.Contains(log, "stdio_test.go") {
		t.Errorf("the log lacks incident, panic or stack: %s", log)
	}
}

func TestFaultShowsAnIncidentAndRefusalItsFindings(t *testing.T) {
	p := connect(t,
		tool("faulty", func(context.Context, engine.Caller, json.RawMessage) (tools.Result, error) {
			return tools.Result{}, errors.New("open /very/private: denied")
		}),
		tool("refuses", func(context.Context, engine.Caller, json.RawMessage) (tools.Result, error) {
			return tools.Result{}, fmt.Errorf("decode: %w", finding.Refuse(finding.Finding{Code: "bad_field", Severity: finding.Error, What: "no"}))
		}))
	type body struct {
		IsError    bool `json:"isError"`
		Structured struct {
			Findings []finding.Finding `json:"findings"`
		} `json:"structuredContent"`
	}
	for name, code := range map[string]string{"faulty": "internal_error", "refuses": "bad_field"} {
		p.send(callLine(1, name))
		var got body
		if err := json.Unmarshal(p.next().Result, &got); err != nil || !got.IsError || len(got.Structured.Findings) != 1 || got.Structured.Findings[0].Code != code {
			t.Errorf("%s: got %+v (%v)", name, got, err)
		}
		if strings.Contains(got.Structured.Findings[0].What, "private") {
			t.Errorf("%s leaks its error", name)
		}
	}
	if !strings.Contains(p.log.String(), "/very/private") {
		t.Errorf("the log lacks the error")
	}
}

func TestFloodIsAnsweredWholeAndPingIsNotBehindIt(t *testing.T) {
	const n = 500
	release := make(chan struct{})
	var running, most atomic.Int64
	p := connect(t, tool("slow", func(context.Context, engine.Caller, json.RawMessage) (tools.Result, error) {
		now := running.Add(1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		<-release
		running.Add(-1)
		return tools.Result{Structured: map[string]any{}}, nil
	}))
	for i := range n {
		p.send(callLine(i, "slow"))
	}
	p.send(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
	if r := p.next(); string(r.ID) != `"ping"` {
		t.Fatalf("the first answer is %s", r.ID)
	}
	close(release)
	seen := map[string]bool{}
	for range n {
		r := p.next()
		if r.Error != nil || seen[string(r.ID)] {
			t.Fatalf("got %+v", r)
		}
		seen[string(r.ID)] = true
	}
	if most.Load() > maxRunning {
		t.Errorf("%d calls ran at once, want at most %d", most.Load(), maxRunning)
	}
}

func TestCancellationReachesTheHandlerAndIsNotAnswered(t *testing.T) {
	entered, saw := make(chan struct{}, 1), make(chan struct{}, 1)
	p := connect(t, tool("waits", func(ctx context.Context, _ engine.Caller, _ json.RawMessage) (tools.Result, error) {
		entered <- struct{}{}
		<-ctx.Done()
		saw <- struct{}{}
		return tools.Result{}, ctx.Err()
	}))
	p.send(callLine(1, "waits"))
	<-entered
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"changed my mind"}}`)
	select {
	case <-saw:
	case <-time.After(deadline):
		t.Fatal("the handler's context was not cancelled")
	}
	p.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if r := p.next(); string(r.ID) != "2" {
		t.Errorf("a cancelled call was answered: %+v", r)
	}
}

// A cancellation right behind its request must find it, even before its goroutine ran.
func TestCancellationOnTheNextLine(t *testing.T) {
	p := connect(t, tool("waits", func(ctx context.Context, _ engine.Caller, _ json.RawMessage) (tools.Result, error) {
		<-ctx.Done()
		return tools.Result{}, ctx.Err()
	}))
	for i := range 200 {
		p.send(callLine(i, "waits"), fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i))
	}
	_ = p.in.Close()
	p.ended(time.Second)
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAClientThatStopsReadingEndsTheSession(t *testing.T) {
	s := New(Options{Version: "test", Resources: shelf{}, Log: zerolog.Nop()})
	in, w := io.Pipe()
	defer w.Close()
	done := make(chan error, 1)
	go func() { done <- NewStdio(s).Serve(t.Context(), in, brokenPipe{}) }()
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	select {
	case err := <-done:
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("got %v", err)
		}
	case <-time.After(deadline):
		t.Fatal("still serving")
	}
}

// A picture comes as image content in base64 beside the text and the structured content.
func TestImagesAreImageContent(t *testing.T) {
	data := []byte("\x89PNG\r\n\x1a\n\x00\xff")
	p := connect(t, tool("picture", func(context.Context, engine.Caller, json.RawMessage) (tools.Result, error) {
		return tools.Result{Structured: map[string]any{"x": 1}, Text: "one", Images: []tools.Image{{MIME: "image/png", Data: data}},
			Links: []tools.Link{{URI: "run://r-1/x.md", Name: "x.md", MIME: "text/markdown"}}}, nil
	}))
	p.initialize()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"picture","arguments":{}}}`)
	var result struct {
		Content []struct {
			Type, Text, Data, MIMEType, URI string
		}
		StructuredContent map[string]any
	}
	if err := json.Unmarshal(p.next().Result, &result); err != nil {
		t.Fatal(err)
	}
	c := result.Content
	if len(c) != 3 || c[0].Text != "one" || c[1].Type != "image" || c[1].MIMEType != "image/png" || c[2].Type != "resource_link" || result.StructuredContent["x"] != 1.0 {
		t.Fatalf("%+v", result)
	}
	if got, err := base64.StdEncoding.DecodeString(c[1].Data); err != nil || !bytes.Equal(got, data) {
		t.Errorf("data %q, %v", c[1].Data, err)
	}
}
