package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/rs/zerolog"
)

// Where the HTTP server answers.
const (
	endpointPath = "/mcp"
	healthPath   = "/healthz"
)

// The bounds in time. A stream may be silent for as long as it likes; only what should be quick has a limit.
const (
	writeTimeout  = 30 * time.Second // for the client to take one piece of an answer
	idleTimeout   = 2 * time.Minute  // of a connection between two requests
	callGrace     = 2 * time.Second  // for calls in flight when the server stops
	cancelledWait = 2 * time.Second  // for them after they were cancelled
	sweepEvery    = 30 * time.Second // between two looks for idle sessions
)

// maxHeader is the bound on all headers of a request, in bytes.
const maxHeader = 64 << 10

// HTTPOptions say what an HTTP server lets in. The zero value of each has a default.
type HTTPOptions struct {
	// Token is what a client must send as a bearer token; empty lets everyone in who reaches the address.
	Token string
	// Hosts and Origins are allowed in the headers of these names beside those of the loopback. An origin is scheme,
	// host and port.
	Hosts, Origins []string
	// MaxBody is the longest request body in bytes.
	MaxBody int64
	// MaxSessions is how many sessions of the protocols before 2026-07-28 may be open, SessionIdle after which time
	// without a request or a stream one is closed.
	MaxSessions int
	SessionIdle time.Duration
	// Rate is how many requests a client may send per second in the long run, Concurrent how many it may have
	// unanswered. A client is a session, or else the address it comes from.
	Rate       float64
	Concurrent int
	// Patience is how long a client may take to send the headers of a request, and again to send its body.
	Patience time.Duration
	// KeepAlive is the time between two signs of life on a stream, and before the first one of a call.
	KeepAlive time.Duration
}

func (o HTTPOptions) withDefaults() HTTPOptions {
	if o.MaxBody <= 0 {
		o.MaxBody = maxLine
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = 1000
	}
	if o.SessionIdle <= 0 {
		o.SessionIdle = time.Hour
	}
	if o.Rate <= 0 {
		o.Rate = 1000
	}
	if o.Concurrent <= 0 {
		o.Concurrent = 256
	}
	if o.Patience <= 0 {
		o.Patience = 15 * time.Second
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = 15 * time.Second
	}
	return o
}

// HTTP serves many clients over streamable HTTP, in the protocols with sessions and the one without. It is mcp-go's
// transport with layers around it: who may come in, how much, how long; and every request has an exchange, which writes
// what mcp-go would lose, reorder or say badly.
type HTTP struct {
	server   *Server
	log      zerolog.Logger
	options  HTTPOptions
	inner    *mcpserver.StreamableHTTPServer
	sessions *sessions
	clients  *clients
	public   bool // the address is reachable from other machines

	stopping context.Context // done when no further stream may be held open
	stop     context.CancelFunc
	aborting context.Context // done when calls in flight are cancelled
	abort    context.CancelFunc
}

// NewHTTP prepares to serve s over HTTP.
func NewHTTP(s *Server, o HTTPOptions) *HTTP {
	h := &HTTP{server: s, log: s.log, options: o.withDefaults()}
	h.sessions = newSessions(h.options.MaxSessions, s.now, s.watch.drop)
	h.clients = newClients(h.options.Rate, h.options.Concurrent, s.now)
	h.inner = mcpserver.NewStreamableHTTPServer(s.mcp,
		mcpserver.WithSessionIdManager(h.sessions),
		mcpserver.WithDisableLocalhostProtection(true), // admit does more
		mcpserver.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)),
	)
	h.stopping, h.stop = context.WithCancel(context.Background())
	h.aborting, h.abort = context.WithCancel(context.Background())
	return h
}

// Serve answers on the listener until ctx is done. It then ends within five seconds, with whatever clients do: streams
// are closed at once, calls may finish for two seconds and are cancelled after them. It closes the listener. An HTTP
// serves once.
func (h *HTTP) Serve(ctx context.Context, listener net.Listener) error {
	h.public = !isLoopback(listener.Addr().String())
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: h.options.Patience, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // what clients break is no fault of ours
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	sweep := time.NewTicker(min(sweepEvery, h.options.SessionIdle))
	defer sweep.Stop()
	for {
		select {
		case err := <-failed:
			h.stop()
			h.abort()
			return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
		case <-sweep.C:
			for _, id := range h.sessions.idle(h.options.SessionIdle) {
				h.forget(id)
			}
		case <-ctx.Done():
			return h.shutdown(server)
		}
	}
}

func (h *HTTP) shutdown(server *http.Server) error {
	h.stop()
	timer := time.AfterFunc(callGrace, h.abort)
	defer timer.Stop()
	defer h.abort()
	patience, cancel := context.WithTimeout(context.Background(), callGrace+cancelledWait)
	defer cancel()
	defer func() {
		for _, id := range h.sessions.all() {
			h.forget(id)
		}
	}()
	if err := server.Shutdown(patience); err != nil {
		h.log.Warn().Msg("calls ignore that they were cancelled; leaving without their answers")
		_ = server.Close() // its connections are closed by force; there is nobody to tell
	}
	return nil
}

// ServeHTTP answers one request.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newExchange(h, w, r)
	defer x.end()
	if r.ContentLength != 0 { // of a request that is refused the body is read too, by net/http, which would wait for it
		_ = x.control.SetReadDeadline(time.Now().Add(h.options.Patience)) // not every writer of a test can
	}
	if no := h.admit(r); no != nil {
		x.refuse(no)
		return
	}
	switch r.URL.Path {
	case healthPath:
		h.health(x)
		return
	case endpointPath:
	default:
		x.refuse(&refused{status: http.StatusNotFound, text: "nothing is served here; the MCP endpoint is " + endpointPath})
		return
	}
	if no := h.authorize(r); no != nil {
		x.refuse(no)
		return
	}
	leave, no := h.clients.enter(h.clientOf(r))
	if no != nil {
		x.refuse(no)
		return
	}
	defer leave()
	switch r.Method {
	case http.MethodPost:
		h.post(x, r)
	case http.MethodGet, http.MethodDelete:
		h.stream(x, r)
	default:
		x.Header().Set("Allow", "POST, GET, DELETE")
		x.refuse(&refused{status: http.StatusMethodNotAllowed, text: fmt.Sprintf("%s is not served; messages are sent with POST", r.Method)})
	}
}

// clientOf names who a limit is counted for.
func (h *HTTP) clientOf(r *http.Request) string {
	if id := r.Header.Get(mcpserver.HeaderKeySessionID); h.sessions.known(id) {
		return id
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// health says whether the server takes requests. It needs no token, and says nothing else.
func (h *HTTP) health(x *exchange) {
	status, text := http.StatusOK, "ok"
	if h.stopping.Err() != nil {
		status, text = http.StatusServiceUnavailable, "stopping"
	}
	x.Header().Set("Content-Type", "application/json")
	x.WriteHeader(status)
	_, _ = io.WriteString(x, `{"status":"`+text+`"}`+"\n") // a client that is gone needs no answer
}

// post takes one message.
func (h *HTTP) post(x *exchange, r *http.Request) {
	message, body, no := h.message(x, r)
	if no != nil {
		x.refuse(no)
		return
	}
	modern := isModern(r, body)
	if no := h.session(r, message.Method, modern); no != nil {
		no.id = message.ID
		x.refuse(no)
		return
	}
	if message.Method == "notifications/cancelled" && modern {
		// A request without a session is cancelled by closing its stream. mcp-go would cancel by the id alone, which
		// another client may have used too.
		x.WriteHeader(http.StatusAccepted)
		return
	}
	if message.isAnswer() && !modern && h.server.outbox.take(r.Header.Get(mcpserver.HeaderKeySessionID), message.ID, body) {
		x.WriteHeader(http.StatusAccepted)
		return
	}
	x.answers(message, body, modern)
	h.pass(x, r)
}

// message reads a request's message.
func (h *HTTP) message(x *exchange, r *http.Request) (envelope, []byte, *refused) {
	body, no := h.body(x, r)
	if no != nil {
		return envelope{}, nil, no
	}
	x.client, x.read = r.Header.Get(mcpserver.HeaderKeySessionID), true
	h.server.trace.record(x.named(), fromClient, body)
	message, fault := peek(body)
	if fault != nil {
		return message, body, &refused{status: http.StatusBadRequest, code: fault.Code, id: fault.ID, text: fault.Message}
	}
	return message, body, nil
}

// pass hands a message on to mcp-go.
func (h *HTTP) pass(x *exchange, r *http.Request) {
	ctx := context.WithValue(context.WithValue(r.Context(), exchangeKey{}, x), outcomeKey{}, x.out)
	owner := h.owner(r, x)
	stop, fault := h.server.follow(ctx, owner, x.message, x.raw, h.tellOf(r, x))
	if !x.modern && !h.sessions.known(owner) { // it ended meanwhile
		h.server.watch.drop(owner)
	}
	if fault != nil {
		no := &refused{status: http.StatusOK, code: fault.Code, id: fault.ID, text: fault.Message}
		if x.modern {
			no.status = statusOf(fault.Code)
		}
		x.refuse(no)
		return
	}
	defer stop()
	limit := h.aborting
	if x.message.Method == "subscriptions/listen" {
		limit = h.stopping
	}
	ctx, done := until(ctx, limit)
	defer done()
	h.inner.ServeHTTP(x, withBody(r.WithContext(ctx), x.raw))
	if h.aborting.Err() != nil && r.Context().Err() == nil && x.unanswered() { // mcp-go takes every end for the client's
		x.drain()
		x.Header().Set("Content-Type", "application/json")
		_ = x.answer((&rpcError{ID: x.message.ID, Code: codeInternal, Message: "the server stops; jobs go on. Connect again later and repeat the call: what was committed is kept"}).encode(), false)
	}
}

// owner names who a subscription belongs to: the session, or else the one request.
func (h *HTTP) owner(r *http.Request, x *exchange) string {
	if x.modern {
		return x.id
	}
	return r.Header.Get(mcpserver.HeaderKeySessionID)
}

// tellOf gives the way of notifications to it: the stream of the request, or one that the session listens on.
func (h *HTTP) tellOf(r *http.Request, x *exchange) tell {
	stream := func() *exchange { return x }
	if !x.modern {
		id := r.Header.Get(mcpserver.HeaderKeySessionID)
		stream = func() *exchange { return h.sessions.stream(id) }
	}
	return func(method string, params map[string]any) {
		if to := stream(); to != nil {
			_ = to.notify(method, params) // not owed: a client that is too slow reads it again by itself
		}
	}
}

// stream serves the two methods that are about a session: GET listens, DELETE ends it.
func (h *HTTP) stream(x *exchange, r *http.Request) {
	id := r.Header.Get(mcpserver.HeaderKeySessionID)
	if !mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) { // mcp-go says what replaced them there
		if no := h.session(r, r.Method, false); no != nil {
			x.refuse(no)
			return
		}
		if !h.sessions.known(id) {
			x.refuse(unknownSession())
			return
		}
	}
	ctx, done := until(context.WithValue(r.Context(), exchangeKey{}, x), h.stopping)
	defer done()
	if r.Method == http.MethodGet {
		ctx, done = until(ctx, h.sessions.life(id))
		defer done()
		x.client = id
		x.listens()
		h.sessions.listen(id, x)
		defer h.sessions.leave(id, x)
	}
	h.inner.ServeHTTP(x, r.WithContext(ctx))
}

// session refuses what names no session where one is needed, and a new one where there is no room.
func (h *HTTP) session(r *http.Request, method string, modern bool) *refused {
	id := r.Header.Get(mcpserver.HeaderKeySessionID)
	switch {
	case modern:
		return nil
	case method == string(mcp.MethodInitialize) && h.sessions.full():
		return &refused{status: http.StatusServiceUnavailable, retry: time.Minute, text: fmt.Sprintf("all %d sessions are in use; try again later, or end one with DELETE", h.options.MaxSessions)}
	case method == string(mcp.MethodInitialize):
		return nil
	case id == "":
		return &refused{status: http.StatusBadRequest, text: "the header Mcp-Session-Id is missing; send initialize first and repeat the id it answers with, or speak protocol 2026-07-28"}
	case !h.sessions.known(id):
		return unknownSession()
	}
	h.sessions.touch(id)
	return nil
}

func unknownSession() *refused {
	return &refused{status: http.StatusNotFound, text: "there is no such session; it ended or never was: send initialize for a new one"}
}

// body reads a request's body within its limits. The deadline of it is taken away when it is whole: left in place it
// would end the call that follows.
func (h *HTTP) body(x *exchange, r *http.Request) ([]byte, *refused) {
	body, err := io.ReadAll(http.MaxBytesReader(x.writer, r.Body, h.options.MaxBody))
	if err == nil {
		_ = x.control.SetReadDeadline(time.Time{})
	}
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, &refused{status: http.StatusRequestEntityTooLarge, text: fmt.Sprintf("the body is longer than the limit of %d bytes; send large content as a file path instead", long.Limit)}
	case err != nil:
		return nil, &refused{status: http.StatusBadRequest, code: codeParse, text: "the body ended before it was whole"}
	case len(body) == 0:
		return nil, &refused{status: http.StatusBadRequest, code: codeParse, text: "the body is empty; send one JSON-RPC object"}
	}
	return body, nil
}

// isModern says whether a message belongs to the protocol without sessions, by the header or by what it says itself, as
// mcp-go decides it.
func isModern(r *http.Request, body []byte) bool {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		return true
	}
	var message struct {
		Params struct {
			Meta *mcp.Meta `json:"_meta"`
		} `json:"params"`
	}
	return json.Unmarshal(body, &message) == nil && mcp.IsModernProtocol(message.Params.Meta.ProtocolVersion())
}

// until gives a context that ends with its parent or with limit.
func until(parent, limit context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	release := context.AfterFunc(limit, cancel)
	return ctx, func() { release(); cancel() }
}
