package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// Requests of ours to a client, up to protocol 2025-11-25. mcp-go's go by a counter that all sessions share, to whatever
// stream looks first; these have ids that can't be guessed, go out on the stream of the call that they belong to, and are
// answered by its session alone.

// errNoWay is the error of a request to a client that has no stream for it.
var errNoWay = errors.New("the client takes no requests in this call")

// outbox keeps the requests that wait for their client.
type outbox struct {
	mu      sync.Mutex
	waiting map[string]*waiting // by id, as JSON
}

type waiting struct {
	owner string // the session
	reply chan clientReply
}

// clientReply is what a client sent back.
type clientReply struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// put registers a request, to be taken out again by forget.
func (o *outbox) put(id, owner string) *waiting {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting == nil {
		o.waiting = map[string]*waiting{}
	}
	w := &waiting{owner: owner, reply: make(chan clientReply, 1)}
	o.waiting[id] = w
	return w
}

func (o *outbox) forget(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.waiting, id)
}

// take hands a client's answer to the request that waits for it, once. It says whether there was one of this session.
func (o *outbox) take(owner string, id json.RawMessage, message []byte) bool {
	key := string(bytes.TrimSpace(id))
	o.mu.Lock()
	w := o.waiting[key]
	if w == nil || w.owner != owner {
		o.mu.Unlock()
		return false
	}
	delete(o.waiting, key)
	o.mu.Unlock()
	var reply clientReply
	if err := json.Unmarshal(message, &reply); err != nil {
		reply = clientReply{Result: json.RawMessage("null")}
	}
	w.reply <- reply // it has room for the one
	return true
}

// request sends a request to the client of ctx and waits for the answer. One that is given up is cancelled at the client.
func (s *Server) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	session := mcpserver.ClientSessionFromContext(ctx)
	if session == nil {
		return nil, errNoWay
	}
	id := "tw-" + randomID() + randomID()
	key, _ := json.Marshal(id) // a text always encodes
	message, err := json.Marshal(map[string]any{"jsonrpc": mcp.JSONRPC_VERSION, "id": id, "method": method, "params": params})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", method, err)
	}
	w := s.outbox.put(string(key), session.SessionID())
	defer s.outbox.forget(string(key))
	if err := s.sendRequest(ctx, session, message); err != nil {
		return nil, err
	}
	select {
	case reply := <-w.reply:
		if reply.Error != nil {
			return nil, fmt.Errorf("%s: the client answers %d %s", method, reply.Error.Code, reply.Error.Message)
		}
		return reply.Result, nil
	case <-ctx.Done():
		_ = s.Notify(context.WithoutCancel(ctx), "notifications/cancelled", map[string]any{"requestId": id, "reason": "the call does not wait for it any more"}) // a client that is gone needs none
		return nil, context.Cause(ctx)
	}
}

// sendRequest writes a request on the stream of the call.
func (s *Server) sendRequest(ctx context.Context, client mcpserver.ClientSession, message []byte) error {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x.queued(string(mcp.MethodElicitationCreate), message)
	}
	if piped, ok := client.(*session); ok && piped.send != nil {
		piped.send(message)
		return nil
	}
	return errNoWay
}
