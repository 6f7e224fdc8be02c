package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"
)

const (
	// maxRunning bounds the requests that are worked on at once; the others wait in their own goroutines.
	maxRunning = 64
	// maxPending bounds the requests that were read and not answered. Beyond it the reader stops, and the client feels
	// it as a full pipe.
	maxPending = 1024
	// finishGrace is what calls in flight get to finish by themselves when the client closes its end: a client that
	// pipes one request in and closes still reads its answer.
	finishGrace = 400 * time.Millisecond
	// cancelGrace is what they get after their context was cancelled. Together with finishGrace and the last flush it
	// stays under the second in which a client expects the process to be gone.
	cancelGrace = 300 * time.Millisecond
	flushGrace  = 100 * time.Millisecond
	// maxParked is how many goroutines wait for the next request. One whose stack has grown to what a request needs
	// answers a fifth faster than a new one.
	maxParked = 8
)

// Stdio serves one client over a pair of streams. It replaces mcp-go's own stdio server, which loses or reorders
// notifications that are sent just before a response, blocks behind five slow calls, and waits at the end of input for
// handlers that ignore their context. Only one Stdio may run on a Server at a time.
type Stdio struct {
	server  *Server
	log     zerolog.Logger
	session *session

	out     chan []byte
	closing chan struct{} // closed when nobody waits for answers any more
	running chan struct{}
	pending chan struct{}
	calls   sync.WaitGroup
	next    chan func() // to a goroutine that is parked
	parked  atomic.Int32

	mu       sync.Mutex
	inFlight map[string]*call
	ended    bool // no further call may start
}

// call is a request that was read and not answered yet.
type call struct {
	cancel    context.CancelFunc
	cancelled bool // by the client, which then expects no answer
}

// NewStdio prepares to serve s over a pair of streams.
func NewStdio(s *Server) *Stdio {
	t := &Stdio{
		server: s, log: s.log, session: newSession("stdio"),
		out: make(chan []byte, maxRunning), closing: make(chan struct{}),
		running: make(chan struct{}, maxRunning), pending: make(chan struct{}, maxPending),
		next: make(chan func()), inFlight: map[string]*call{},
	}
	t.session.send = t.send
	return t
}

// Serve reads messages from in and answers on out until in ends, ctx is done, or out can't be written any more. It
// returns within a second of the end even if a handler ignores its context; such a handler keeps its goroutine, and
// the process is expected to exit. Only a failing out is an error.
func (t *Stdio) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := t.server.mcp.RegisterSession(ctx, t.session); err != nil {
		return fmt.Errorf("register the stdio session: %w", err)
	}
	defer t.server.mcp.UnregisterSession(context.WithoutCancel(ctx), t.session.id)
	defer t.server.watch.drop(t.session.id)
	ctx = t.server.mcp.WithContext(ctx, t.session)

	written := make(chan error, 1)
	go func() { written <- t.write(out, cancel) }()
	ended := make(chan error, 1)
	go func() { ended <- t.read(ctx, in) }()

	select {
	case err := <-ended:
		t.log.Debug().AnErr("cause", err).Msg("client closed its end")
		t.wait(finishGrace)
	case <-ctx.Done():
	}
	cancel(context.Canceled)
	t.wait(cancelGrace)
	close(t.closing)
	select {
	case err := <-written:
		return err
	case <-time.After(flushGrace):
		t.log.Warn().Msg("the client does not read its answers; leaving without them")
		return nil
	}
}

// wait gives the calls in flight some time to end.
func (t *Stdio) wait(limit time.Duration) {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	done := make(chan struct{})
	go func() { t.calls.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// read takes one line after another until the stream ends.
func (t *Stdio) read(ctx context.Context, in io.Reader) error {
	source := newLines(in, maxLine)
	for {
		line, err := source.next()
		var long *overlong
		if errors.As(err, &long) {
			t.send((&rpcError{Code: codeInvalidRequest, Message: long.Error()}).encode())
			continue
		}
		if len(line) > 0 {
			t.accept(ctx, line)
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// accept decides where a message is worked on: notifications and the cheap requests whose order matters at once, the
// rest each in a goroutine of its own.
func (t *Stdio) accept(ctx context.Context, line []byte) {
	t.server.trace.record(t.session.id, fromClient, line)
	message, fault := peek(line)
	if fault != nil {
		t.send(fault.encode())
		return
	}
	switch {
	case message.isAnswer():
		if !t.server.outbox.take(t.session.id, message.ID, line) {
			t.log.Debug().Msg("an answer to nothing that was asked")
		}
	case message.Method == "notifications/cancelled":
		t.cancel(message.Params.RequestID)
	case !message.isRequest():
		t.handle(ctx, message, line)
	case message.Method == "initialize" || message.Method == "ping":
		t.send(t.handle(ctx, message, line))
	default:
		t.spawn(ctx, message, line)
	}
}

// spawn works on a request in its own goroutine. It is registered before that starts, so that a cancellation that
// follows on the next line finds it.
func (t *Stdio) spawn(ctx context.Context, message envelope, line []byte) {
	select {
	case t.pending <- struct{}{}:
	case <-ctx.Done():
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &call{cancel: cancel}
	id := string(message.ID)
	t.mu.Lock()
	if t.ended {
		t.mu.Unlock()
		cancel()
		return
	}
	t.inFlight[id] = c
	t.calls.Add(1)
	t.mu.Unlock()
	t.work(func() {
		defer t.calls.Done()
		defer func() { <-t.pending }()
		defer cancel()
		if message.Method != "subscriptions/listen" { // it lives as long as the client likes, and does nothing meanwhile
			select {
			case t.running <- struct{}{}:
				defer func() { <-t.running }()
			case <-ctx.Done():
			}
		}
		answer := t.handle(ctx, message, line)
		if !t.finish(id, c) {
			t.send(answer)
		}
	})
}

// work runs f in a goroutine of its own: a parked one if there is any, else a new one.
func (t *Stdio) work(f func()) {
	select {
	case t.next <- f:
		return
	default:
	}
	go func() {
		for {
			f()
			if t.parked.Add(1) > maxParked {
				t.parked.Add(-1)
				return
			}
			select {
			case f = <-t.next:
				t.parked.Add(-1)
			case <-t.closing:
				t.parked.Add(-1)
				return
			}
		}
	}()
}

// cancel stops a request on the client's wish. It gets no answer, as the protocol asks.
func (t *Stdio) cancel(id json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := t.inFlight[string(bytes.TrimSpace(id))]; ok {
		c.cancelled = true
		c.cancel()
	}
}

// finish forgets a request and tells whether the client cancelled it.
func (t *Stdio) finish(id string, c *call) (cancelled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inFlight[id] == c {
		delete(t.inFlight, id)
	}
	return c.cancelled
}

// handle passes a message on and encodes what comes back; nil when there is nothing to answer. A panic becomes an
// internal error with an incident id; what it said, which may be a secret, stays in the log.
func (t *Stdio) handle(ctx context.Context, message envelope, line []byte) (answer []byte) {
	defer func() {
		if p := recover(); p != nil {
			incident := t.server.newID()
			t.log.Error().Str("incident", incident).Str("method", message.Method).Str("panic", scrub(fmt.Sprint(p))).Str("stack", string(debug.Stack())).Msg("panic")
			answer = (&rpcError{ID: message.ID, Code: codeInternal, Message: incidentText(incident)}).encode()
		}
	}()
	stop, fault := t.server.follow(ctx, t.session.id, message, line, t.tell)
	if fault != nil {
		return fault.encode()
	}
	defer stop()
	reply := t.server.HandleMessage(ctx, line)
	if reply == nil {
		return nil
	}
	encoded, err := json.Marshal(reply)
	if err != nil {
		incident := t.server.newID()
		t.log.Error().Str("incident", incident).Str("method", message.Method).Err(err).Msg("an answer can't be encoded")
		return (&rpcError{ID: message.ID, Code: codeInternal, Message: incidentText(incident)}).encode()
	}
	return encoded
}

// tell queues a notification of the session; one that has no room is dropped.
func (t *Stdio) tell(method string, params map[string]any) {
	meta, _ := params["_meta"].(map[string]any)
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{Method: method, Params: mcp.NotificationParams{Meta: meta, AdditionalFields: params}}}
	select {
	case t.session.notifications <- n:
	default:
	}
}

// send queues an answer for stdout. Once nobody waits for it, it is dropped.
func (t *Stdio) send(message []byte) {
	if message == nil {
		return
	}
	select {
	case t.out <- message:
	case <-t.closing:
	}
}

// write owns out. Before each response it writes every notification that is already queued: a handler queues its
// progress before it returns, so a client sees both in that order. The first failure ends the session; what comes
// after it is taken and dropped, so that no handler hangs on it.
func (t *Stdio) write(out io.Writer, fail context.CancelCauseFunc) error {
	w := &lineWriter{w: bufio.NewWriterSize(out, 64<<10), fail: fail, record: func(message []byte) { t.server.trace.record(t.session.id, fromServer, message) }}
	for {
		select {
		case n := <-t.session.notifications:
			w.notification(n)
		case message := <-t.out:
			t.drain(w)
			w.line(message)
		case <-t.closing:
			for {
				select {
				case message := <-t.out:
					t.drain(w)
					w.line(message)
					continue
				default:
				}
				w.flush()
				return w.err
			}
		}
		if len(t.out) == 0 && len(t.session.notifications) == 0 {
			w.flush()
		}
	}
}

func (t *Stdio) drain(w *lineWriter) {
	for {
		select {
		case n := <-t.session.notifications:
			w.notification(n)
		default:
			return
		}
	}
}

// lineWriter writes one message on a line and remembers the first failure.
type lineWriter struct {
	w      *bufio.Writer
	fail   context.CancelCauseFunc
	record func(message []byte)
	err    error
}

func (l *lineWriter) notification(n mcp.JSONRPCNotification) {
	encoded, err := json.Marshal(n)
	if err != nil {
		return // a notification is never owed
	}
	l.line(encoded)
}

func (l *lineWriter) line(message []byte) {
	if l.err != nil {
		return
	}
	l.record(message)
	if _, err := l.w.Write(message); err != nil {
		l.broken(err)
		return
	}
	l.broken(l.w.WriteByte('\n'))
}

func (l *lineWriter) flush() {
	if l.err == nil {
		l.broken(l.w.Flush())
	}
}

func (l *lineWriter) broken(err error) {
	if err == nil {
		return
	}
	l.err = fmt.Errorf("write to the client: %w", err)
	l.fail(l.err)
}
