package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"
)

// queuedEvents is how many notifications of one request may wait for a slow client; more are dropped, the next progress
// replaces them.
const queuedEvents = 256

// frameHead is how mcp-go begins an event of a stream.
const frameHead = "event: message\ndata: "

// exchange is one HTTP request and its answer. It stands between mcp-go and the connection: notifications of a call are
// written here, in order and before the answer, where mcp-go hands them to whatever stream of the session looks first
// and loses those sent just before the end; errors are amended as on stdio; and a stream that is silent gets signs of
// life.
type exchange struct {
	http    *HTTP
	writer  http.ResponseWriter
	control *http.ResponseController
	id      string // of the call, in the log and in incidents
	began   time.Time
	remote  string
	verb    string
	path    string
	streams bool        // the client takes an event stream
	header  http.Header // what mcp-go sets; it knows nothing of the lock

	client  string   // the session, if there is one
	message envelope // of a POST
	raw     []byte
	modern  bool
	out     *outcome
	amends  bool // the answer is that of a message
	listen  bool // this is a stream of a session

	queue   chan []byte
	halt    chan struct{} // closed when the answer comes: write what is queued, then no more
	halted  sync.Once
	drained chan struct{} // closed when that is done

	mu     sync.Mutex
	status int
	begun  bool // the header is written
	events bool // as an event stream
	done   bool // the one answer of a message is written
	bytes  int64
}

type exchangeKey struct{}

var (
	_ http.ResponseWriter = (*exchange)(nil)
	_ http.Flusher        = (*exchange)(nil)
)

func newExchange(h *HTTP, w http.ResponseWriter, r *http.Request) *exchange {
	return &exchange{
		http: h, writer: w, control: http.NewResponseController(w), id: h.server.newID(), began: h.server.now(),
		remote: r.RemoteAddr, verb: r.Method, path: r.URL.Path, out: &outcome{}, header: http.Header{},
		streams: strings.Contains(r.Header.Get("Accept"), "text/event-stream"),
	}
}

// answers makes this the answer of a message: from now on notifications can be sent.
func (x *exchange) answers(message envelope, raw []byte, modern bool) {
	x.message, x.raw, x.modern = message, raw, modern
	if !message.isRequest() {
		return
	}
	x.amends = true
	if message.Method != string(mcp.MethodInitialize) { // its answer names the session in a header, which a stream begun early would not have
		x.pump()
	}
}

// listens makes this a stream of a session.
func (x *exchange) listens() {
	x.listen = true
	x.pump()
}

func (x *exchange) pump() {
	x.queue, x.halt, x.drained = make(chan []byte, queuedEvents), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(x.drained)
		life := time.NewTicker(x.http.options.KeepAlive)
		defer life.Stop()
		for {
			select {
			case event := <-x.queue:
				x.event(event)
			case <-life.C:
				x.comment()
			case <-x.halt:
				for {
					select {
					case event := <-x.queue:
						x.event(event)
						continue
					default:
					}
					return
				}
			}
		}
	}()
}

// drain ends the pump when everything queued is written. What is sent after it is dropped.
func (x *exchange) drain() {
	if x.halt == nil {
		return
	}
	x.halted.Do(func() { close(x.halt) })
	<-x.drained
}

// notify queues a notification for this request's stream. It never blocks.
func (x *exchange) notify(method string, params map[string]any) error {
	encoded, err := json.Marshal(struct {
		JSONRPC string         `json:"jsonrpc"`
		Method  string         `json:"method"`
		Params  map[string]any `json:"params"`
	}{mcp.JSONRPC_VERSION, method, params})
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	if x.queue == nil || !x.streams {
		return fmt.Errorf("send %s: the client takes no stream", method)
	}
	select {
	case <-x.halt:
		return fmt.Errorf("send %s: the request is answered", method)
	default:
	}
	select {
	case x.queue <- encoded:
		return nil
	default:
		return fmt.Errorf("send %s: %d notifications wait already", method, queuedEvents)
	}
}

// Notify sends a notification that belongs to a request: over HTTP on the request's own stream, else to the session.
func (s *Server) Notify(ctx context.Context, method string, params map[string]any) error {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x.notify(method, params)
	}
	return s.mcp.SendNotificationToClient(ctx, method, params)
}

// callID names a call in the log: over HTTP the request has a name already.
func (s *Server) callID(ctx context.Context) string {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x.id
	}
	return s.newID()
}

// Header is the header to be. It counts when an answer is written; a stream that a notification begins has its own.
func (x *exchange) Header() http.Header { return x.header }

// WriteHeader keeps the status until there is something to write, since what is written may change it.
func (x *exchange) WriteHeader(status int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.status == 0 {
		x.status = status
	}
}

// Flush hands on what is written, and the header of a stream before its first event.
func (x *exchange) Flush() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.status != 0 {
		x.take()
		x.begin()
	}
	x.flush()
}

// Write takes what mcp-go writes, one whole message at a time: an event of a stream, or the one answer.
func (x *exchange) Write(p []byte) (int, error) {
	payload, framed := bytes.CutPrefix(p, []byte(frameHead))
	payload = bytes.TrimSpace(payload)
	switch {
	case !x.amends || !json.Valid(payload):
		return len(p), x.plain(p)
	case framed && saysMethod(payload): // a request to the client, or a notification of the session
		return len(p), x.event(payload)
	}
	x.drain()
	return len(p), x.answer(x.amend(payload), framed)
}

// saysMethod tells a request or notification from an answer. mcp-go puts the method before the params.
func saysMethod(payload []byte) bool {
	var message struct {
		Method string `json:"method"`
	}
	return bytes.Contains(payload[:min(len(payload), 256)], []byte(`"method":"`)) && json.Unmarshal(payload, &message) == nil && message.Method != ""
}

// amend does for an answer of mcp-go what Server.HandleMessage does on stdio.
func (x *exchange) amend(payload []byte) []byte {
	var failure mcp.JSONRPCError
	if !bytes.Contains(payload[:min(len(payload), 1024)], []byte(`"error":{`)) || json.Unmarshal(payload, &failure) != nil || failure.Error.Code == 0 {
		return payload
	}
	reply := x.http.server.amend(context.WithValue(context.Background(), exchangeKey{}, x), x.raw, x.out, failure)
	encoded, err := json.Marshal(reply)
	if err != nil {
		x.http.log.Error().Str("incident", x.id).Err(err).Msg("an answer can't be encoded")
		return (&rpcError{ID: x.message.ID, Code: codeInternal, Message: incidentText(x.id)}).encode()
	}
	if amended, still := reply.(mcp.JSONRPCError); x.modern {
		x.mu.Lock()
		x.status = http.StatusOK
		if still {
			x.status = statusOf(amended.Error.Code)
		}
		x.mu.Unlock()
	}
	return encoded
}

// statusOf is the HTTP status that protocol 2026-07-28 has for an error.
func statusOf(code int) int {
	switch code {
	case codeMethodNotFound:
		return http.StatusNotFound
	case codeParse, codeInvalidRequest, codeInvalidParams, mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.UNSUPPORTED_PROTOCOL_VERSION:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// answer writes the one answer of a message, as the last event if there is a stream.
func (x *exchange) answer(payload []byte, framed bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.done = true
	if framed || x.events {
		err := x.frame(payload)
		x.flush()
		return err
	}
	x.take()
	x.http.server.trace.record(x.named(), fromServer, payload)
	return x.write(append(payload, '\n'))
}

// named is who this is for, in a trace.
func (x *exchange) named() string {
	if x.client == "" {
		return x.id
	}
	return x.client
}

// unanswered says that a request was given up without an answer.
func (x *exchange) unanswered() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.amends && !x.done
}

// event writes an event of the stream, which it begins if need be.
func (x *exchange) event(payload []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := x.frame(payload)
	x.flush()
	return err
}

// comment is a sign of life on a stream. A call that takes long begins its stream with it, so that nothing on the way
// thinks that nobody answers.
func (x *exchange) comment() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.begun && !x.events && !x.listen || !x.begun && x.listen || !x.streams {
		return
	}
	if !x.listen {
		x.beginEvents()
	}
	_ = x.write([]byte(": still here\n\n")) // a client that is gone ends the request's context
	x.flush()
}

// plain writes what needs no amending.
func (x *exchange) plain(p []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.take()
	return x.write(p)
}

// The rest is called with the lock held; take, on the goroutine that sets the header.

func (x *exchange) take() {
	if !x.begun {
		maps.Copy(x.writer.Header(), x.header)
	}
}

func (x *exchange) frame(payload []byte) error {
	x.http.server.trace.record(x.named(), fromServer, payload)
	x.beginEvents()
	return x.write([]byte(frameHead + string(payload) + "\n\n"))
}

func (x *exchange) beginEvents() {
	if !x.begun {
		header := x.writer.Header()
		header.Set("Content-Type", "text/event-stream")
		header.Set("Cache-Control", "no-cache")
		header.Set("X-Accel-Buffering", "no") // proxies that collect would hold progress back
		header.Del("Content-Length")
		x.status = http.StatusOK
	}
	x.events = true
}

func (x *exchange) write(p []byte) error {
	_ = x.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer of a test can
	defer func() { _ = x.control.SetWriteDeadline(time.Time{}) }()
	x.begin()
	n, err := x.writer.Write(p)
	x.bytes += int64(n)
	if err != nil {
		return fmt.Errorf("write to the client: %w", err)
	}
	return nil
}

func (x *exchange) begin() {
	if x.begun {
		return
	}
	x.begun = true
	if x.status == 0 {
		x.status = http.StatusOK
	}
	x.writer.Header().Set("X-Content-Type-Options", "nosniff")
	x.writer.WriteHeader(x.status)
}

func (x *exchange) flush() {
	if x.begun {
		_ = x.control.Flush() // a client that is gone ends the request's context
	}
}

// refuse answers before the protocol does.
func (x *exchange) refuse(no *refused) {
	header := x.Header()
	if no.retry > 0 {
		header.Set("Retry-After", strconv.Itoa(int(no.retry.Seconds())))
	}
	if no.realm != "" {
		header.Set("WWW-Authenticate", no.realm)
	}
	if no.code == 0 {
		no.code = codeInvalidRequest
	}
	header.Set("Content-Type", "application/json")
	x.WriteHeader(no.status)
	if x.amends || x.path == endpointPath && x.verb == http.MethodPost {
		x.http.server.trace.record(x.named(), fromServer, (&rpcError{ID: no.id, Code: no.code, Message: no.text}).encode())
	}
	_ = x.plain(append((&rpcError{ID: no.id, Code: no.code, Message: no.text}).encode(), '\n')) // a client that is gone needs no answer
}

// end finishes the answer and logs it. A panic becomes an internal error with an incident id, as on stdio.
func (x *exchange) end() {
	if p := recover(); p != nil {
		x.http.log.Error().Str("incident", x.id).Str("method", x.message.Method).Str("panic", scrub(fmt.Sprint(p))).Str("stack", string(debug.Stack())).Msg("panic")
		x.drain()
		x.crashed()
	}
	x.drain()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.status != 0 {
		x.take()
		x.begin()
	}
	level := zerolog.InfoLevel
	if x.path == healthPath {
		level = zerolog.DebugLevel
	}
	x.http.log.WithLevel(level).Str("call", x.id).Str("verb", x.verb).Str("path", scrub(x.path)).Str("method", scrub(x.message.Method)).Int("status", x.status).
		Int64("bytes", x.bytes).Bool("stream", x.events).Str("remote", x.remote).Dur("took", x.http.server.now().Sub(x.began)).Msg("request")
}

func (x *exchange) crashed() {
	x.mu.Lock()
	begun, events := x.begun, x.events
	x.mu.Unlock()
	text := (&rpcError{ID: x.message.ID, Code: codeInternal, Message: incidentText(x.id)}).encode()
	switch {
	case events:
		_ = x.event(text)
	case !begun:
		x.mu.Lock()
		x.status = http.StatusOK
		x.mu.Unlock()
		x.Header().Set("Content-Type", "application/json")
		_ = x.plain(append(text, '\n'))
	}
}

// discarded takes the answer of a request that we made ourselves.
type discarded struct{}

// Header is a header nobody reads.
func (discarded) Header() http.Header { return http.Header{} }

// WriteHeader does nothing.
func (discarded) WriteHeader(int) {}

// Write does nothing.
func (discarded) Write(p []byte) (int, error) { return len(p), nil }

// Flush does nothing.
func (discarded) Flush() {}

// CanStream says no.
func (discarded) CanStream() bool { return false }
