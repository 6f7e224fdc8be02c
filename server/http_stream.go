package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// What an exchange writes, and in which order: everything that is queued comes before the answer.

// queuedEvents is how many notifications of one request may wait for a slow client; more are dropped, the next progress
// replaces them.
const queuedEvents = 256

// frameHead is how mcp-go begins an event of a stream.
const frameHead = "event: message\ndata: "

// pump writes what is queued, in a goroutine of its own, and shows signs of life.
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
	return x.queued(method, encoded)
}

// queued queues a message for this request's stream. It never blocks.
func (x *exchange) queued(method string, encoded []byte) error {
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
