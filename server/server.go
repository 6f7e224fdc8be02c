// Package server is trainwright's MCP surface: the transports, the protocol's layers around the tools, and how results,
// errors and resources look on the wire. Everything it offers comes from packages tools and resources.
package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/rs/zerolog"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/resources"
	"github.com/trainwright/trainwright/tools"
)

// Library is what the server reads resources from.
type Library interface {
	// List gives the resources after the cursor, and the next cursor, "" at the end.
	List(ctx context.Context, cursor string) (items []resources.Item, next string, err error)
	// Read gives one resource; resources.ErrNotFound when the address names none.
	Read(ctx context.Context, uri string) (resources.Content, error)
}

// Options is what a Server is made of. Now and NewID are the clock and the source of call and incident ids; both have
// a default.
type Options struct {
	Version   string
	Tools     []tools.Tool
	Resources Library
	Log       zerolog.Logger
	Now       func() time.Time
	NewID     func() string
}

// Server answers MCP messages. It holds no state between calls but what mcp-go keeps of a session.
type Server struct {
	mcp       *mcpserver.MCPServer
	log       zerolog.Logger
	now       func() time.Time
	newID     func() string
	tools     []tools.Tool
	resources Library
}

// New builds the server. It touches no disk.
func New(o Options) *Server {
	s := &Server{log: o.Log, now: o.Now, newID: o.NewID, tools: o.Tools, resources: o.Resources}
	if s.now == nil {
		s.now = time.Now
	}
	if s.newID == nil {
		s.newID = randomID
	}
	hooks := &mcpserver.Hooks{}
	hooks.AddAfterListResources(s.listResources)
	s.mcp = mcpserver.NewMCPServer("trainwright", o.Version,
		mcpserver.WithTitle("trainwright: trains models step by step and proves what it claims"),
		mcpserver.WithInstructions(Instructions),
		mcpserver.WithToolCapabilities(false),
		mcpserver.WithResourceCapabilities(false, false),
		mcpserver.WithHooks(hooks),
		mcpserver.WithToolFilter(s.arrange),
	)
	for _, t := range o.Tools {
		s.mcp.AddTool(wireTool(t), s.callTool(t))
	}
	for _, t := range resources.Templates() {
		s.mcp.AddResourceTemplate(mcp.NewResourceTemplate(t.URITemplate, t.Name, mcp.WithTemplateDescription(t.Description)), s.readResource)
	}
	return s
}

// outcome carries out of a handler what mcp-go would flatten into an internal error.
type outcome struct {
	code int
	data any
}

type outcomeKey struct{}

// HandleMessage answers one JSON-RPC message; nil when there is nothing to answer. It is mcp-go's, with the error codes
// that mcp-go can't give from a handler and error messages that say what to do.
func (s *Server) HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage {
	out := &outcome{}
	reply := s.mcp.HandleMessage(context.WithValue(ctx, outcomeKey{}, out), message)
	failure, ok := reply.(mcp.JSONRPCError)
	if !ok {
		return reply
	}
	if out.code != 0 {
		failure.Error.Code, failure.Error.Data = out.code, out.data
		return failure
	}
	var request struct {
		Method string `json:"method"`
		Params struct {
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"params"`
	}
	_ = json.Unmarshal(message, &request) // what can't be read has been complained about already
	switch {
	case request.Method == "tools/call" && failure.Error.Code == codeInvalidParams:
		failure.Error.Message = s.unknownTool(request.Params.Name)
	case request.Method == "resources/read" && (failure.Error.Code == codeInvalidParams || failure.Error.Code == codeNotFound):
		failure.Error.Message = unknownAddress(request.Params.URI)
		failure.Error.Data = map[string]any{"uri": request.Params.URI}
	}
	return failure
}

func (s *Server) unknownTool(name string) string {
	names := make([]string, len(s.tools))
	for i, t := range s.tools {
		names[i] = t.Name
	}
	if near := finding.Nearest(name, names); near != "" {
		return fmt.Sprintf("there is no tool %q; did you mean %q? tools/list has them all", name, near)
	}
	return fmt.Sprintf("there is no tool %q; tools/list has them all, a training step starts with %q", name, "trainer")
}

// incidentText is all a client learns of a fault of ours; the log has the rest under the same id.
func incidentText(id string) string {
	return fmt.Sprintf("internal error, incident %s; the server's log on stderr has the details under this id", id)
}

// randomID gives eight hexadecimal digits.
func randomID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails: it aborts the program instead
	return hex.EncodeToString(b[:])
}
