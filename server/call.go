package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/redact"
	"github.com/trainwright/trainwright/tools"
)

// wireTool says a tool in the protocol's words, without its schemas.
func wireTool(t tools.Tool) mcp.Tool {
	a := t.Annotations
	return mcp.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description,
		Annotations: mcp.ToolAnnotation{ReadOnlyHint: &a.ReadOnly, DestructiveHint: &a.Destructive, IdempotentHint: &a.Idempotent, OpenWorldHint: &a.OpenWorld},
	}
}

// arrange is a filter that takes nothing away. It puts the tools in their own order, the one to start with first, where
// mcp-go sorts by name; and it puts the schemas in when a list is asked for, so that they are not made at start. mcp-go
// refuses to marshal a raw schema beside its own, so its own stays empty.
func (s *Server) arrange(_ context.Context, listed []mcp.Tool) []mcp.Tool {
	arranged := make([]mcp.Tool, 0, len(listed))
	for _, t := range s.tools {
		at := slices.IndexFunc(listed, func(l mcp.Tool) bool { return l.Name == t.Name })
		if at < 0 {
			continue
		}
		wire := listed[at]
		wire.InputSchema = mcp.ToolInputSchema{}
		wire.RawInputSchema, wire.RawOutputSchema = t.InputSchema(), t.OutputSchema()
		arranged = append(arranged, wire)
	}
	for _, l := range listed { // what Options.Extend added
		if _, ours := tools.Find(s.tools, l.Name); !ours {
			arranged = append(arranged, l)
		}
	}
	return arranged
}

// callTool makes mcp-go's handler of a tool: it logs the call, hands progress on, and turns what comes back into
// content. Only a panic is a protocol error; everything else is a result the agent can read.
func (s *Server) callTool(t tools.Tool) mcpserver.ToolHandlerFunc {
	return func(ctx context.Context, request mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
		id, began := s.callID(ctx), s.now()
		log := s.log.With().Str("call", id).Str("tool", t.Name).Logger()
		caller := newCaller(ctx, s, request)
		defer func() {
			caller.close()
			if p := recover(); p != nil {
				log.Error().Str("incident", id).Str("panic", scrub(fmt.Sprint(p))).Str("stack", string(debug.Stack())).Msg("panic")
				s.say(ctx, mcp.LoggingLevelError, map[string]any{"incident": id, "tool": t.Name})
				result, err = nil, errors.New(incidentText(id))
				return
			}
			took := s.now().Sub(began)
			log.Info().Dur("took", took).Bool("is_error", result.IsError).Msg("call")
			s.say(ctx, mcp.LoggingLevelInfo, map[string]any{"call": id, "tool": t.Name, "took_ms": took.Milliseconds(), "is_error": result.IsError})
		}()
		answer, err := s.carryOut(ctx, t, caller, rawArguments(request))
		var refused *finding.Refused
		var needed *inputNeeded
		switch {
		case errors.As(err, &needed):
			return s.inputRequired(request, caller, needed), nil
		case err == nil:
			return success(answer), nil
		case errors.As(err, &refused):
			return refusal(refused.Findings), nil
		}
		log.Error().Str("incident", id).Str("error", scrub(err.Error())).Msg("call failed")
		s.say(ctx, mcp.LoggingLevelError, map[string]any{"incident": id, "tool": t.Name})
		return fault(id, ctx.Err() != nil), nil
	}
}

// carryOut calls the tool, and again with the user's answer each time it asks for one. A client of 2026-07-28 asks by
// itself: there the question is the answer of this call.
func (s *Server) carryOut(ctx context.Context, t tools.Tool, c *caller, arguments json.RawMessage) (tools.Result, error) {
	for {
		result, err := t.Call(ctx, c, arguments)
		var needed *inputNeeded
		if !errors.As(err, &needed) || mcpserver.IsModernRequest(ctx) {
			return result, err
		}
		c.Progress(engine.Progress{Message: "waiting for the user's answer", Done: c.at()})
		answer, err := s.ask(ctx, needed.question)
		if err != nil {
			return tools.Result{}, err
		}
		c.answered(needed.id, answer)
	}
}

// rawArguments gives the arguments byte for byte, so that large integers survive.
func rawArguments(request mcp.CallToolRequest) json.RawMessage {
	if len(request.Params.RawArguments) > 0 {
		return request.Params.RawArguments
	}
	if request.Params.Arguments == nil {
		return json.RawMessage("{}")
	}
	encoded, err := json.Marshal(request.Params.Arguments)
	if err != nil { // it came out of JSON a moment ago
		return json.RawMessage("{}")
	}
	return encoded
}

func success(r tools.Result) *mcp.CallToolResult {
	content := []mcp.Content{mcp.NewTextContent(r.Text)}
	for _, i := range r.Images {
		content = append(content, mcp.NewImageContent(base64.StdEncoding.EncodeToString(i.Data), i.MIME))
	}
	for _, l := range r.Links {
		content = append(content, mcp.NewResourceLink(l.URI, l.Name, "", l.MIME))
	}
	return &mcp.CallToolResult{Content: content, StructuredContent: r.Structured}
}

// refusal is the result for input that can't be used.
func refusal(findings []finding.Finding) *mcp.CallToolResult {
	lines := make([]string, len(findings))
	for i, f := range findings {
		lines[i] = f.String()
	}
	return &mcp.CallToolResult{
		Content: []mcp.Content{mcp.NewTextContent(strings.Join(lines, "\n"))}, IsError: true,
		StructuredContent: map[string]any{"findings": findings},
	}
}

// fault is the result when we or the machine failed. What exactly is in the log, since it may hold what the agent
// should not see.
func fault(id string, cancelled bool) *mcp.CallToolResult {
	f := finding.Finding{Code: "internal_error", Severity: finding.Error, What: incidentText(id), Remedy: "call again; if it stays, give the incident id to the user"}
	if cancelled {
		f = finding.Finding{Code: "cancelled", Severity: finding.Error, What: "the call was cancelled before it was done (incident " + id + ")", Remedy: "call again to go on: what was committed is kept"}
	}
	return refusal([]finding.Finding{f})
}

// scrub makes text fit for the log.
func scrub(text string) string { return redact.Text(text) }

// caller hands a tool's progress to the client, if the client asked for it with a token.
type caller struct {
	ctx    context.Context
	server *Server
	token  mcp.ProgressToken

	mu         sync.Mutex
	closed     bool
	sent       float64 // the last value on the wire
	base, done float64 // what earlier units added up to, and the current unit's last value
	asked      asked
}

var _ engine.Caller = (*caller)(nil)

func newCaller(ctx context.Context, s *Server, request mcp.CallToolRequest) *caller {
	c := &caller{ctx: ctx, server: s, asked: askedOf(ctx)}
	if meta := request.Params.Meta; meta != nil {
		c.token = meta.ProgressToken
	}
	if mcpserver.IsModernRequest(ctx) {
		s.returned(request, c)
	}
	return c
}

// at is the progress that was told last.
func (c *caller) at() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// Progress queues a notification. It never blocks: what a slow client has no room for is dropped. After the answer it
// does nothing, since the protocol allows no progress then.
func (c *caller) Progress(p engine.Progress) {
	if c.token == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	params := map[string]any{"progressToken": c.token, "progress": c.advance(p.Done)}
	if total := c.base + p.Total; p.Total > 0 && total >= c.sent {
		params["total"] = total
	}
	message := p.Message
	if !strings.Contains(message, p.Phase) {
		message = p.Phase + ": " + message
	}
	if message != "" {
		params["message"] = redact.Text(message)
	}
	_ = c.server.Notify(c.ctx, "notifications/progress", params) // not owed: a full queue drops it
}

// advance gives the value to send: the protocol wants it to grow with every notification, while a tool counts a new
// unit from zero or says something new at the same place.
func (c *caller) advance(done float64) float64 {
	if done < c.done {
		c.base += c.done
	}
	c.done = done
	c.sent = max(c.base+done, c.sent+1e-3)
	return c.sent
}

// close ends the progress. It returns after the last one was queued.
func (c *caller) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}
