package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"
)

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
	read    bool     // a message was read
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
	case framed && (x.listen || saysMethod(payload)): // a request to the client, or a notification of the session
		return len(p), x.event(payload)
	case !x.amends || !json.Valid(payload):
		return len(p), x.plain(p)
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
	text := (&rpcError{ID: no.id, Code: no.code, Message: no.text}).encode()
	if x.read {
		x.http.server.trace.record(x.named(), fromServer, text)
	}
	_ = x.plain(append(text, '\n')) // a client that is gone needs no answer
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
