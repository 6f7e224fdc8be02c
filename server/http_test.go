package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/tools"
)

// site is an HTTP server on a port of its own, and a client of it.
type site struct {
	t       *testing.T
	address string
	log     *safeBuffer
	stop    context.CancelFunc
	done    chan error
	http    *HTTP
}

func open(t *testing.T, o HTTPOptions, offered ...tools.Tool) *site {
	t.Helper()
	s, log := newServer(offered...)
	return openOn(t, o, s, log)
}

func openOn(t *testing.T, o HTTPOptions, s *Server, log *safeBuffer) *site {
	t.Helper()
	listener, err := ListenHTTP("127.0.0.1:0", o.Token)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	w := &site{t: t, address: listener.Addr().String(), log: log, stop: stop, done: make(chan error, 1), http: NewHTTP(s, o)}
	go func() { w.done <- w.http.Serve(ctx, listener) }()
	t.Cleanup(stop)
	return w
}

// answer is what came back of one request. Messages are those of an event stream, or the one body.
type answer struct {
	status   int
	header   http.Header
	messages []json.RawMessage
	body     string
}

func (a answer) last() reply {
	var r reply
	if len(a.messages) > 0 {
		_ = json.Unmarshal(a.messages[len(a.messages)-1], &r) // a test that looks at it sees that it is empty
	}
	return r
}

// request makes a POST to the endpoint; header pairs come behind the body.
func (w *site) request(ctx context.Context, body string, header ...string) *http.Request {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.address+endpointPath, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	return r
}

func (w *site) do(r *http.Request) answer {
	w.t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Errorf("%s: %v", r.Method, err)
		return answer{}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Errorf("%s: %v", r.Method, err)
	}
	a := answer{status: response.StatusCode, header: response.Header, body: string(body)}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		if json.Valid(body) {
			a.messages = []json.RawMessage{bytes.TrimSpace(body)}
		}
		return a
	}
	for line := range strings.Lines(a.body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			a.messages = append(a.messages, json.RawMessage(strings.TrimSpace(data)))
		}
	}
	return a
}

func (w *site) post(body string, header ...string) answer {
	w.t.Helper()
	return w.do(w.request(w.t.Context(), body, header...))
}

const initializeLine = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// session opens a session and gives the header that names it.
func (w *site) session() []string {
	w.t.Helper()
	id := w.post(initializeLine).header.Get("Mcp-Session-Id")
	if id == "" {
		w.t.Fatal("initialize gives no session")
	}
	return []string{"Mcp-Session-Id", id}
}

// modern is a message of the protocol without sessions and its headers.
func modern(id any, method, name string, params map[string]any) (string, []string) {
	meta := map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{}, "progressToken": fmt.Sprint("p", id)}
	sent := map[string]any{"_meta": meta}
	for key, value := range params {
		sent[key] = value
	}
	encoded, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": sent})
	header := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name != "" {
		header = append(header, "Mcp-Name", name)
	}
	return string(encoded), header
}

// An answer over HTTP is, byte for byte, the answer over stdio: the same transcripts hold for both.
func TestTranscriptsHoldOverHTTPToo(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			archive := txtar.Parse(text)
			w := open(t, HTTPOptions{}, echo)
			header := w.session()
			var got strings.Builder
			for line := range strings.Lines(string(archive.Files[0].Data)) {
				message, fault := peek([]byte(line))
				if fault != nil {
					t.Fatal(fault.Message)
				}
				a := w.post(line, headersFor(line, message, header)...)
				if id := a.header.Get("Mcp-Session-Id"); id != "" {
					header = []string{"Mcp-Session-Id", id}
				}
				if !message.isRequest() {
					if a.status != http.StatusAccepted {
						t.Errorf("a notification is answered with %d", a.status)
					}
					continue
				}
				if len(a.messages) != 1 {
					t.Fatalf("%s: %d %s", line, a.status, a.body)
				}
				got.Write(pretty(t, append(a.messages[0], '\n')))
			}
			incident := regexp.MustCompile(`incident id\d+`) // a request over HTTP has an id of its own already
			want := incident.ReplaceAllString(string(archive.Files[1].Data), "incident ID")
			if diff := cmp.Diff(want, incident.ReplaceAllString(got.String(), "incident ID")); diff != "" {
				t.Errorf("%s (-stdio +http):\n%s", archive.Comment, diff)
			}
		})
	}
}

// headersFor are the headers that go with a line of a transcript.
func headersFor(line string, message envelope, session []string) []string {
	if !strings.Contains(line, `"2026-07-28"`) {
		return session
	}
	var named struct{ Params struct{ Name, URI string } }
	_ = json.Unmarshal([]byte(line), &named) // a line without a name has none
	return []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", message.Method, "Mcp-Name", named.Params.Name + named.Params.URI}
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// Who is let in, before anything of the protocol is looked at.
func TestTheDoor(t *testing.T) {
	const token = "0123456789abcdef"
	w := open(t, HTTPOptions{Token: token, Hosts: []string{"train.example"}, Origins: []string{"https://ui.example:8443"}, MaxBody: 4096})
	auth := []string{"Authorization", "Bearer " + token}
	session := append(auth, "Mcp-Session-Id", w.post(initializeLine, auth...).header.Get("Mcp-Session-Id"))
	for _, c := range []struct {
		name   string
		body   string
		header []string
		status int
	}{
		{"all is well", ping, session, 200},
		{"another name of the loopback", ping, append(session, "Host", "localhost:1"), 200},
		{"the loopback of IPv6", ping, append(session, "Host", "[::1]:1"), 200},
		{"a host that was allowed", ping, append(session, "Host", "Train.Example:443"), 200},
		{"a name bent to the loopback", ping, append(session, "Host", "evil.example"), 403},
		{"a name that only begins well", ping, append(session, "Host", "localhost.evil.example"), 403},
		{"another machine's address", ping, append(session, "Host", "10.0.0.1"), 403},
		{"a page of this machine", ping, append(session, "Origin", "http://localhost:3000"), 200},
		{"a page that was allowed", ping, append(session, "Origin", "https://ui.example:8443"), 200},
		{"a page elsewhere", ping, append(session, "Origin", "http://evil.example"), 403},
		{"the allowed page under another port", ping, append(session, "Origin", "https://ui.example"), 403},
		{"a page without an origin", ping, append(session, "Origin", "null"), 403},
		{"a page that hides its host", ping, append(session, "Origin", "http://localhost@evil.example"), 403},
		{"no token", ping, session[2:], 401},
		{"another scheme", ping, append(session, "Authorization", "Basic "+token), 401},
		{"half a token", ping, append(session, "Authorization", "Bearer "+token[:8]), 401},
		{"a token and more", ping, append(session, "Authorization", "Bearer "+token+"0"), 401},
		{"the largest body", ping + strings.Repeat(" ", 4096-len(ping)), session, 200},
		{"a larger body", ping + strings.Repeat(" ", 4097-len(ping)), session, 413},
		{"an empty body", "", session, 400},
		{"no JSON", "hello", session, 400},
		{"a batch", "[" + ping + "]", session, 400},
		{"no session", ping, auth, 400},
		{"an invented session", ping, append(auth, "Mcp-Session-Id", "mcp-session-00000000-0000-4000-8000-000000000000"), 404},
		{"a version nobody speaks", ping, append(session, "MCP-Protocol-Version", "1999-01-01"), 400},
		{"huge headers", ping, append(session, "X-Filler", strings.Repeat("x", 2*maxHeader)), 431},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := w.post(c.body, c.header...)
			if a.status != c.status {
				t.Errorf("got %d %s, want %d", a.status, a.body, c.status)
			}
			if challenge := a.header.Get("WWW-Authenticate"); (challenge != "") != (c.status == 401) {
				t.Errorf("WWW-Authenticate: %q", challenge)
			}
			if strings.Contains(a.body, token[:8]) {
				t.Error("the answer repeats the token")
			}
		})
	}
	if strings.Contains(w.log.String(), token) {
		t.Error("the log has the token")
	}
}

func TestOtherMethodsAndPaths(t *testing.T) {
	w := open(t, HTTPOptions{Token: "0123456789abcdef"})
	for _, c := range []struct {
		method, path, token string
		status              int
	}{
		{"GET", healthPath, "", 200},
		{"GET", endpointPath, "", 401},
		{"GET", endpointPath, "0123456789abcdef", 400},
		{"DELETE", endpointPath, "0123456789abcdef", 400},
		{"PUT", endpointPath, "0123456789abcdef", 405},
		{"GET", "/", "", 404},
		{"GET", "/mcp/../healthz", "", 404},
	} {
		r := w.request(t.Context(), "")
		r.Method, r.URL.Path = c.method, c.path
		r.Header.Set("Authorization", "Bearer "+c.token)
		if a := w.do(r); a.status != c.status {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.body)
		}
	}
}

// An address that other machines reach is not opened without a token.
func TestAPublicAddressNeedsAToken(t *testing.T) {
	for _, c := range []struct{ address, token, code string }{
		{"0.0.0.0:0", "", "http_public_without_token"},
		{":0", "", "http_public_without_token"},
		{"[::]:0", "", "http_public_without_token"},
		{"192.0.2.1:0", "", "http_public_without_token"},
		{"example.org:0", "", "http_public_without_token"},
		{"127.0.0.1", "", "http_address_invalid"},
		{"127.0.0.1:http", "", "http_address_invalid"},
		{"127.0.0.1:65536", "", "http_address_invalid"},
		{"127.0.0.1:0", "short", "http_token_weak"},
		{"192.0.2.1:1", "0123456789abcdef", "http_address_unusable"},
	} {
		listener, err := ListenHTTP(c.address, c.token)
		if err == nil {
			_ = listener.Close()
		}
		if got := codeOf(err); got != c.code {
			t.Errorf("%s: %q, %v", c.address, got, err)
		}
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0", "127.8.8.8:0"} {
		listener, err := ListenHTTP(address, "")
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		_ = listener.Close()
	}
}

func codeOf(err error) string {
	refused, ok := err.(*finding.Refused)
	if !ok {
		return ""
	}
	return refused.Findings[0].Code
}

func counting() tools.Tool {
	return tool("counts", func(_ context.Context, c engine.Caller, _ json.RawMessage) (tools.Result, error) {
		for i := 1; i <= 3; i++ {
			c.Progress(engine.Progress{Phase: "x", Message: "m", Done: float64(i), Total: 3})
		}
		return tools.Result{Structured: map[string]any{"ok": true}}, nil
	})
}

// mcp-go puts notifications of a session into one queue, from which every request of the session takes: they reach the
// wrong stream, and those sent just before an answer are lost.
func TestProgressComesOnItsOwnStreamInOrderAndBeforeTheAnswer(t *testing.T) {
	w := open(t, HTTPOptions{}, counting())
	session := w.session()
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 25 {
				id := worker*1000 + i
				body, header := callLine(id, "counts"), session
				if worker%2 == 0 {
					body, header = modern(id, "tools/call", "counts", map[string]any{"name": "counts", "arguments": map[string]any{}})
				}
				a := w.post(body, header...)
				if len(a.messages) != 4 {
					t.Errorf("call %d: %d messages: %s", id, len(a.messages), a.body)
					return
				}
				for at, message := range a.messages[:3] {
					var r reply
					if err := json.Unmarshal(message, &r); err != nil || r.Method != "notifications/progress" || r.Params["progress"] != float64(at+1) || r.Params["progressToken"] != fmt.Sprint("p", id) {
						t.Errorf("call %d: message %d is %s", id, at, message)
					}
				}
				if r := a.last(); string(r.ID) != fmt.Sprint(id) || !strings.Contains(string(r.Result), `"ok":true`) {
					t.Errorf("call %d: %+v", id, r)
				}
			}
		})
	}
	all.Wait()
}

// A client that takes no stream gets the answer alone.
func TestWithoutAStreamThereIsNoProgress(t *testing.T) {
	w := open(t, HTTPOptions{}, counting())
	a := w.post(callLine(1, "counts"), append(w.session(), "Accept", "application/json")...)
	if len(a.messages) != 1 || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") || !strings.Contains(a.body, `"ok":true`) {
		t.Errorf("%s %s", a.header.Get("Content-Type"), a.body)
	}
}

// A call that is silent for long shows signs of life, which no client takes for a message.
func TestALongCallShowsSignsOfLife(t *testing.T) {
	release := make(chan struct{})
	w := open(t, HTTPOptions{KeepAlive: 5 * time.Millisecond}, tool("slow", func(context.Context, engine.Caller, json.RawMessage) (tools.Result, error) {
		<-release
		return tools.Result{Structured: map[string]any{"ok": true}}, nil
	}), tool("fails", func(context.Context, engine.Caller, json.RawMessage) (tools.Result, error) {
		<-release
		panic("late")
	}))
	session := w.session()
	for _, name := range []string{"slow", "fails"} {
		response, err := http.DefaultClient.Do(w.request(t.Context(), callLine(1, name), session...))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		lines := bufio.NewReader(response.Body)
		for range 3 {
			if line, err := lines.ReadString('\n'); err != nil || line != ": still here\n" {
				t.Fatalf("%q, %v", line, err)
			}
			_, _ = lines.ReadString('\n') // the empty line behind it
		}
		release <- struct{}{}
		rest, err := io.ReadAll(lines)
		want := map[string]string{"slow": `"ok":true`, "fails": `"code":-32603`}[name]
		if err != nil || !strings.Contains(string(rest), want) {
			t.Errorf("%s: %q, %v", name, rest, err)
		}
	}
}

// Errors keep their HTTP status in the protocol that has one for each, after their code was corrected.
func TestErrorsOfTheModernProtocolHaveTheirStatus(t *testing.T) {
	w := open(t, HTTPOptions{}, echo)
	for _, c := range []struct {
		method, name string
		params       map[string]any
		status, code int
	}{
		{"resources/read", "skill://none/SKILL.md", map[string]any{"uri": "skill://none/SKILL.md"}, 400, -32602},
		{"tools/call", "none", map[string]any{"name": "none"}, 400, -32602},
		{"skills/get", "skill://none/SKILL.md", map[string]any{"uri": "skill://none/SKILL.md"}, 400, -32602},
		{"skills/list", "", nil, 200, 0},
		{"resources/directory/read", "skill://demo", map[string]any{"uri": "skill://demo"}, 200, 0},
		{"skills/none", "", nil, 404, -32601},
	} {
		body, header := modern(1, c.method, c.name, c.params)
		a := w.post(body, header...)
		code := 0
		if e := a.last().Error; e != nil {
			code = e.Code
		}
		if a.status != c.status || code != c.code {
			t.Errorf("%s: %d %s", c.method, a.status, a.body)
		}
	}
	body, header := modern(1, "skills/list", "", nil)
	for name, wrong := range map[string][]string{"another method in the header": {"Mcp-Method", "tools/list"}, "no method in the header": {"Mcp-Method", ""}, "another version in the header": {"MCP-Protocol-Version", "2025-11-25"}} {
		if a := w.post(body, append(header, wrong...)...); a.status != 400 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// In the protocol without sessions an id is not unique: cancelling by it would end the call of someone else.
func TestNobodyCancelsTheCallOfAnother(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	w := open(t, HTTPOptions{}, tool("waits", func(ctx context.Context, _ engine.Caller, _ json.RawMessage) (tools.Result, error) {
		close(entered)
		select {
		case <-release:
		case <-ctx.Done():
		}
		return tools.Result{Structured: map[string]any{"cancelled": ctx.Err() != nil}}, nil
	}))
	got := make(chan answer, 1)
	body, header := modern(7, "tools/call", "waits", map[string]any{"name": "waits", "arguments": map[string]any{}})
	go func() { got <- w.post(body, header...) }()
	<-entered
	notification, header := modern(nil, "notifications/cancelled", "", map[string]any{"requestId": 7})
	if a := w.post(strings.Replace(notification, `"id":null,`, "", 1), header...); a.status != http.StatusAccepted {
		t.Errorf("%d %s", a.status, a.body)
	}
	close(release)
	if a := <-got; !strings.Contains(a.body, `"cancelled":false`) {
		t.Error(a.body)
	}
}

// In a session a cancellation reaches the call, and closing the stream does so everywhere.
func TestCancellationOverHTTP(t *testing.T) {
	entered, saw := make(chan struct{}, 1), make(chan struct{}, 1)
	w := open(t, HTTPOptions{}, tool("waits", func(ctx context.Context, _ engine.Caller, _ json.RawMessage) (tools.Result, error) {
		entered <- struct{}{}
		<-ctx.Done()
		saw <- struct{}{}
		return tools.Result{}, ctx.Err()
	}))
	session := w.session()
	answered := make(chan struct{}, 1)
	go func() {
		w.post(callLine(1, "waits"), session...)
		answered <- struct{}{}
	}()
	<-entered
	w.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, session...)
	within(t, saw, "the cancellation did not reach the call")
	within(t, answered, "the cancelled call is never answered") // or its goroutine would outlive the test

	ctx, leave := context.WithCancel(t.Context())
	go func() {
		response, err := http.DefaultClient.Do(w.request(ctx, callLine(2, "waits"), session...))
		if err == nil {
			_ = response.Body.Close()
		}
	}()
	<-entered
	leave()
	within(t, saw, "a client that leaves does not end its call")
}

func within(t *testing.T, signal <-chan struct{}, otherwise string) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(deadline):
		t.Fatal(otherwise)
	}
}

func TestPanicOverHTTPShowsAnIncidentOnly(t *testing.T) {
	w := open(t, HTTPOptions{}, tool("panics", func(context.Context, engine.Caller, json.RawMessage) (tools.Result, error) {
		panic("token=hunter2hunter2 deep")
	}))
	a := w.post(callLine(1, "panics"), w.session()...)
	e := a.last().Error
	if e == nil || e.Code != -32603 || !strings.Contains(e.Message, "incident id") || strings.Contains(a.body, "deep") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	_, incident, _ := strings.Cut(e.Message, "incident ")
	incident, _, _ = strings.Cut(incident, ";")
	if log := w.log.String(); strings.Count(log, `"`+incident+`"`) < 2 || !strings.Contains(log, "deep") || strings.Contains(log, "hunter2hunter2") {
		t.Errorf("the log lacks the incident %s: %s", incident, log)
	}
}

// The log names each request by the id that its call has, and says how long it took.
func TestRequestsAreLogged(t *testing.T) {
	w := open(t, HTTPOptions{}, echo)
	w.post(callLine(1, "echo"), w.session()...)
	var requests, calls []map[string]any
	for line := range strings.Lines(w.log.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		switch entry["message"] {
		case "request":
			requests = append(requests, entry)
		case "call":
			calls = append(calls, entry)
		}
	}
	if len(requests) != 2 || len(calls) != 1 || requests[1]["call"] != calls[0]["call"] || requests[1]["method"] != "tools/call" || requests[1]["status"] != 200.0 || requests[1]["took"] == nil {
		t.Errorf("%v %v", requests, calls)
	}
}

func TestSessionsEndAndAreBounded(t *testing.T) {
	w := open(t, HTTPOptions{MaxSessions: 2})
	first, _ := w.session(), w.session()
	full := w.post(initializeLine)
	if full.status != http.StatusServiceUnavailable || full.header.Get("Retry-After") == "" || full.last().Error == nil {
		t.Errorf("a third session: %d %s", full.status, full.body)
	}
	listening := w.request(t.Context(), "", first...)
	listening.Method = http.MethodGet
	response, err := http.DefaultClient.Do(listening)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	defer response.Body.Close()
	ending := w.request(t.Context(), "", first...)
	ending.Method = http.MethodDelete
	if a := w.do(ending); a.status != http.StatusOK {
		t.Errorf("DELETE: %d %s", a.status, a.body)
	}
	if _, err := io.ReadAll(response.Body); err != nil { // it ends with its session
		t.Error(err)
	}
	if a := w.post(ping, first...); a.status != http.StatusNotFound {
		t.Errorf("after the end: %d %s", a.status, a.body)
	}
	if a := w.post(initializeLine); a.status != http.StatusOK {
		t.Errorf("there is room again: %d %s", a.status, a.body)
	}
}

func TestIdleSessionsAreFoundAndThoseWithAStreamKept(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	ended := ""
	s := newSessions(10, func() time.Time { return now }, func(id string) { ended = id })
	idle, listening, used := s.Generate(), s.Generate(), s.Generate()
	stream := &exchange{}
	s.listen(listening, stream)
	now = now.Add(time.Hour)
	s.touch(used)
	if got := s.idle(time.Hour); len(got) != 1 || got[0] != idle {
		t.Errorf("got %v, want %s", got, idle)
	}
	s.leave(listening, stream)
	now = now.Add(time.Hour)
	if got := s.idle(time.Hour); len(got) != 3 {
		t.Errorf("got %v", got)
	}
	life := s.life(used)
	if _, err := s.Terminate(used); err != nil || life.Err() == nil || s.known(used) || ended != used {
		t.Error(err, life.Err(), ended)
	}
}

func TestIdleSessionsAreClosed(t *testing.T) {
	w := open(t, HTTPOptions{SessionIdle: 20 * time.Millisecond})
	session := w.session()
	limit := time.Now().Add(deadline)
	for w.http.sessions.known(session[1]) {
		if time.Now().After(limit) {
			t.Fatal("the session is still there")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if a := w.post(ping, session...); a.status != http.StatusNotFound {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestAClientIsHeldToItsRateAndToItsOpenCalls(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	c := newClients(2, 2, func() time.Time { return now })
	enter := func(name string) (func(), int, time.Duration) {
		leave, no := c.enter(name)
		if no != nil {
			return leave, no.status, no.retry
		}
		return leave, 0, 0
	}
	leaveFirst, status, _ := enter("a")
	leaveSecond, again, _ := enter("a")
	if status != 0 || again != 0 {
		t.Fatal(status, again)
	}
	if _, status, retry := enter("a"); status != 429 || retry != time.Second {
		t.Errorf("too fast: %d after %v", status, retry)
	}
	if _, status, _ := enter("b"); status != 0 {
		t.Errorf("another client: %d", status)
	}
	now = now.Add(time.Minute)
	if _, status, _ := enter("a"); status != 429 {
		t.Errorf("a third call at once: %d", status)
	}
	leaveFirst()
	leaveSecond()
	if _, status, _ := enter("a"); status != 0 {
		t.Errorf("after the calls: %d", status)
	}
	for i := range 2 * manyClients {
		leave, _ := c.enter(fmt.Sprint("many", i))
		leave()
		now = now.Add(time.Second)
	}
	if len(c.all) > manyClients {
		t.Errorf("%d clients are remembered", len(c.all))
	}
}

func TestTooManyRequestsAreToldWhenToComeBack(t *testing.T) {
	w := open(t, HTTPOptions{Rate: 1})
	w.post(initializeLine)
	a := w.post(initializeLine)
	if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "1" || a.last().Error == nil {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
}

// The end comes within five seconds whatever clients do: streams are closed, calls that listen get to say so, and those
// that don't are left.
func TestShutdownWithClientsConnected(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the seconds that calls are given")
	}
	entered := make(chan struct{}, 2)
	w := open(t, HTTPOptions{}, stuck(entered), tool("waits", func(ctx context.Context, _ engine.Caller, _ json.RawMessage) (tools.Result, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return tools.Result{}, ctx.Err()
	}))
	session := w.session()
	get := w.request(t.Context(), "", session...)
	get.Method = http.MethodGet
	stream, err := http.DefaultClient.Do(get)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	idle, err := net.Dial("tcp", w.address) // connected, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	waiting := make(chan answer, 1)
	go func() { waiting <- w.post(callLine(1, "waits"), session...) }()
	go func() {
		response, err := http.DefaultClient.Do(w.request(t.Context(), callLine(2, "stuck"), session...))
		if err == nil {
			_ = response.Body.Close()
		}
	}()
	<-entered
	<-entered
	began := time.Now()
	w.stop()
	if _, err := io.ReadAll(stream.Body); err != nil || time.Since(began) > callGrace {
		t.Errorf("the stream ends after %v: %v", time.Since(began), err)
	}
	if a := <-waiting; a.last().Error == nil || !strings.Contains(a.body, "the server stops") {
		t.Errorf("a cancelled call: %d %s", a.status, a.body)
	}
	select {
	case err := <-w.done:
		if took := time.Since(began); err != nil || took > 5*time.Second {
			t.Errorf("ended after %v: %v", took, err)
		}
	case <-time.After(deadline):
		t.Fatal("still serving")
	}
	if _, err := net.Dial("tcp", w.address); err == nil {
		t.Error("the address is still open")
	}
}

// While the server stops it says so to whoever asks how it is on a connection that is open.
func TestHealthSaysThatItStops(t *testing.T) {
	w := open(t, HTTPOptions{})
	r := w.request(t.Context(), "")
	r.Method, r.URL.Path = http.MethodGet, healthPath
	if a := w.do(r); a.status != 200 || strings.TrimSpace(a.body) != `{"status":"ok"}` {
		t.Errorf("%d %s", a.status, a.body)
	}
	w.http.stop()
	if a := w.do(r); a.status != 503 || strings.TrimSpace(a.body) != `{"status":"stopping"}` {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Clients that come, call, cancel, leave and come again leave nothing behind.
func TestNothingIsLeftOfManyClients(t *testing.T) {
	library := newLiving()
	s, log := newServerOver(library, echo, tool("waits", func(ctx context.Context, _ engine.Caller, _ json.RawMessage) (tools.Result, error) {
		<-ctx.Done()
		return tools.Result{}, ctx.Err()
	}))
	http.DefaultClient.CloseIdleConnections()
	before := runtime.NumGoroutine()
	w := openOn(t, HTTPOptions{}, s, log)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			session := w.session()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			get := w.request(ctx, "", session...)
			get.Method = http.MethodGet
			_, end := w.stream(get)
			w.post(subscribeLine(1, "subscribe", "run://r-1/run.json"), session...)
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				if response, err := http.DefaultClient.Do(w.request(ctx, callLine(2, "waits"), session...)); err == nil {
					_ = response.Body.Close()
				}
			}()
			if a := w.post(callLine(3, "echo"), session...); a.last().Result == nil {
				t.Errorf("%d %s", a.status, a.body)
			}
			leave()
			end()
			<-gone
			if a := w.post(ping, session...); a.status != http.StatusOK {
				t.Errorf("after leaving: %d %s", a.status, a.body)
			}
		})
	}
	all.Wait()
	w.stop()
	if err := <-w.done; err != nil {
		t.Error(err)
	}
	isQuiet(t, s)
	if n := len(w.http.sessions.all()); n != 0 {
		t.Errorf("%d sessions are open", n)
	}
	http.DefaultClient.CloseIdleConnections()
	limit := time.Now().Add(deadline)
	for runtime.NumGoroutine() > before {
		if time.Now().After(limit) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, there were %d:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A client that is slow to send is cut off; one that listens and says nothing is not.
func TestSlowSendersAreCutOffAndListenersAreNot(t *testing.T) {
	const patience = 50 * time.Millisecond
	w := open(t, HTTPOptions{Patience: patience}, tool("slow", func(context.Context, engine.Caller, json.RawMessage) (tools.Result, error) {
		time.Sleep(4 * patience)
		return tools.Result{Structured: map[string]any{"ok": true}}, nil
	}))
	session := w.session()
	get := w.request(t.Context(), "", session...)
	get.Method = http.MethodGet
	_, leave := w.stream(get)
	defer leave()
	for name, sent := range map[string]string{
		"headers":                           "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Half",
		"body":                              "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"body of a request that is refused": "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
	} {
		conn, err := net.Dial("tcp", w.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(deadline)); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(conn); err != nil { // the end of the connection, not of our patience
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if a := w.post(callLine(1, "slow"), session...); !strings.Contains(a.body, `"ok":true`) {
		t.Errorf("a call longer than that: %d %s", a.status, a.body)
	}
	if w.http.sessions.stream(session[1]) == nil {
		t.Error("the stream was cut")
	}
}
