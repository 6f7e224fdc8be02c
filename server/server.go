// Package server is trainwright's MCP surface: the transports, the protocol's layers around the tools, and how results,
// errors and resources look on the wire. Everything it offers comes from packages tools and resources.
package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/rs/zerolog"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/skill"
	"github.com/trainwright/trainwright/prompts"
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

// Completer is a Library that also completes the arguments of its templates.
type Completer interface {
	Complete(ctx context.Context, template, argument, written string, known map[string]string) ([]string, error)
}

// Options is what a Server is made of. Now and NewID are the clock and the source of call and incident ids; both have
// a default. Skills gives the library that the skills extension publishes; without it the extension is not offered.
// Features and Extend add to what mcp-go is made of: the fixture of the conformance suite needs tools that no client
// of ours should see, served through the same layers.
type Options struct {
	Version   string
	Tools     []tools.Tool
	Resources Library
	Skills    func() (*skill.Library, error)
	Log       zerolog.Logger
	Now       func() time.Time
	NewID     func() string
	Features  []mcpserver.ServerOption
	Extend    func(*Server, *mcpserver.MCPServer)
	// Trace records the protocol; none by default.
	Trace *Trace
	// Poll is the time between two looks at what clients have subscribed to; a second by default.
	Poll time.Duration
	// Withheld are tools that are not served, by name, each with the reason.
	Withheld map[string]string
	// Prompts are the prompts to offer; all of them by default.
	Prompts []prompts.Prompt
	// AskWait is how long a user may take to answer a question; five minutes by default.
	AskWait time.Duration
}

// Server answers MCP messages. It holds no state between calls but what mcp-go keeps of a session.
type Server struct {
	mcp       *mcpserver.MCPServer
	log       zerolog.Logger
	now       func() time.Time
	newID     func() string
	tools     []tools.Tool
	resources Library
	skills    func() (*skill.Library, error)
	watch     *watcher
	trace     *Trace
	outbox    outbox
	withheld  map[string]string
	prompts   []prompts.Prompt
	askWait   time.Duration
	sealKey   func() []byte
}

// New builds the server. It touches no disk.
func New(o Options) *Server {
	s := &Server{log: o.Log, now: o.Now, newID: o.NewID, tools: o.Tools, resources: o.Resources, skills: o.Skills, trace: o.Trace, withheld: o.Withheld, prompts: o.Prompts, askWait: o.AskWait, sealKey: sync.OnceValue(newSealKey)}
	if s.now == nil {
		s.now = time.Now
	}
	if s.prompts == nil {
		s.prompts = prompts.All()
	}
	if s.askWait <= 0 {
		s.askWait = askPatience
	}
	if s.newID == nil {
		s.newID = randomID
	}
	s.watch = newWatcher(o.Resources, o.Poll, o.Log)
	hooks := &mcpserver.Hooks{}
	hooks.AddAfterListResources(s.listResources)
	features := []mcpserver.ServerOption{
		mcpserver.WithTitle("trainwright: trains models step by step and proves what it claims"),
		mcpserver.WithInstructions(Instructions),
		mcpserver.WithToolCapabilities(false),
		mcpserver.WithResourceCapabilities(true, true),
		mcpserver.WithLogging(),
		mcpserver.WithHooks(hooks),
		mcpserver.WithToolFilter(s.arrange),
		mcpserver.WithPromptCapabilities(false),
		mcpserver.WithPromptFilter(arrangePrompts),
		mcpserver.WithCompletions(),
		mcpserver.WithPromptCompletionProvider(completer{s}),
		mcpserver.WithResourceCompletionProvider(completer{s}),
	}
	if s.skills != nil {
		features = append(features, mcpserver.WithExtensions(map[string]any{skillsExtension: map[string]any{"directoryRead": true}}))
	}
	s.mcp = mcpserver.NewMCPServer("trainwright", o.Version, append(features, o.Features...)...)
	for _, t := range o.Tools {
		s.mcp.AddTool(wireTool(t), s.callTool(t))
	}
	s.addPrompts()
	for _, t := range resources.Templates() {
		template := mcp.NewResourceTemplate(t.URITemplate, t.Name, mcp.WithTemplateDescription(t.Description))
		template.MIMEType = t.MIME
		s.mcp.AddResourceTemplate(template, s.readResource)
	}
	if o.Extend != nil {
		o.Extend(s, s.mcp)
	}
	return s
}

// outcome carries out of a handler what mcp-go would flatten into an internal error.
type outcome struct {
	code int
	data any
}

type outcomeKey struct{}

// SetErrorCode gives the error that a handler is about to return its code and data, where mcp-go knows but the one of
// an internal error.
func SetErrorCode(ctx context.Context, code int, data any) {
	if out, ok := ctx.Value(outcomeKey{}).(*outcome); ok {
		out.code, out.data = code, data
	}
}

// HandleMessage answers one JSON-RPC message; nil when there is nothing to answer. It is mcp-go's, with what amend
// makes of its errors. Over HTTP mcp-go calls itself, and an exchange amends what it writes.
func (s *Server) HandleMessage(ctx context.Context, message json.RawMessage) mcp.JSONRPCMessage {
	out := &outcome{}
	reply := s.mcp.HandleMessage(context.WithValue(ctx, outcomeKey{}, out), message)
	failure, ok := reply.(mcp.JSONRPCError)
	if !ok {
		return reply
	}
	return s.amend(ctx, message, out, failure)
}

// amend turns an error of mcp-go into what we answer: the error codes that mcp-go can't give from a handler, messages
// that say what to do, and the results of the methods that mcp-go does not know. It refuses those last of all, so that
// session, version and headers have been checked when they come here.
func (s *Server) amend(ctx context.Context, message json.RawMessage, out *outcome, failure mcp.JSONRPCError) mcp.JSONRPCMessage {
	if out.code != 0 {
		failure.Error.Code, failure.Error.Data = out.code, out.data
		return failure
	}
	if failure.Error.Code == codeMethodNotFound {
		return s.extension(ctx, message, failure)
	}
	var request struct {
		Method string `json:"method"`
		Params struct {
			Name   string `json:"name"`
			URI    string `json:"uri"`
			Cursor string `json:"cursor"`
			Level  string `json:"level"`
		} `json:"params"`
	}
	_ = json.Unmarshal(message, &request) // what can't be read has been complained about already
	missing := strings.Contains(failure.Error.Message, "not found")
	switch {
	case request.Method == "tools/call" && failure.Error.Code == codeInvalidParams && missing:
		failure.Error.Message = s.unknownTool(request.Params.Name)
	case strings.HasSuffix(request.Method, "/list") && request.Params.Cursor != "" && failure.Error.Code == codeInvalidParams:
		failure.Error.Message = unknownCursor(request.Params.Cursor)
	case request.Method == "logging/setLevel" && failure.Error.Code == codeInvalidParams:
		failure.Error.Message = unknownLevel(request.Params.Level)
	case request.Method == "prompts/get" && failure.Error.Code == codeInvalidParams && missing:
		failure.Error.Message = s.unknownPrompt(request.Params.Name)
	case request.Method == "resources/read" && (failure.Error.Code == codeInvalidParams || failure.Error.Code == codeNotFound) && missing:
		failure.Error.Message = unknownAddress(request.Params.URI)
		failure.Error.Data = map[string]any{"uri": request.Params.URI}
	}
	return failure
}

func (s *Server) unknownTool(name string) string {
	if why := s.withheld[name]; why != "" {
		return fmt.Sprintf("tool %q is not served: %s", name, why)
	}
	if near := finding.Nearest(name, tools.Names(s.tools)); near != "" {
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
