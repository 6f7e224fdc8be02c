package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/trainwright/trainwright/server"
)

// pause lies between two notifications, as the suite asks.
const pause = 50 * time.Millisecond

// addSessionTools adds the tools that speak to the client while they run.
func addSessionTools(s *server.Server, m *mcpserver.MCPServer) {
	m.AddTool(fixture("test_tool_with_logging"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if err := s.Notify(ctx, "notifications/message", map[string]any{"level": "info", "logger": "conformance", "data": text}); err != nil {
				return nil, err
			}
			time.Sleep(pause)
		}
		return mcp.NewToolResultText("logged"), nil
	})
	m.AddTool(fixture("test_tool_with_progress"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, at := range []int{0, 50, 100} {
			if r.Params.Meta == nil || r.Params.Meta.ProgressToken == nil {
				break
			}
			if err := s.Notify(ctx, "notifications/progress", map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": at, "total": 100}); err != nil {
				return nil, err
			}
			time.Sleep(pause)
		}
		return mcp.NewToolResultText("progressed"), nil
	})
	m.AddTool(fixture("test_sampling", mcp.WithString("prompt", mcp.Required())), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		//lint:ignore SA1019 the suite asks for it in the protocols that have it
		said, err := m.RequestSampling(ctx, mcp.CreateMessageRequest{Request: mcp.Request{Method: string(mcp.MethodSamplingCreateMessage)}, CreateMessageParams: sample(r.GetString("prompt", ""), 100)})
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return mcp.NewToolResultText(fmt.Sprintf("LLM response: %v", said.Content)), nil
	})
	text := func(description string) map[string]any {
		return map[string]any{"type": "string", "description": description}
	}
	m.AddTool(fixture("test_elicitation", mcp.WithString("message", mcp.Required())), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return elicit(ctx, m, r.GetString("message", ""), map[string]any{"username": text("User's response"), "email": text("User's email address")}, "username", "email")
	})
	m.AddTool(fixture("test_elicitation_sep1034_defaults"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return elicit(ctx, m, "Fill in what differs", map[string]any{
			"name": map[string]any{"type": "string", "default": "John Doe"}, "age": map[string]any{"type": "integer", "default": 30}, "score": map[string]any{"type": "number", "default": 95.5},
			"status": map[string]any{"type": "string", "enum": []string{"active", "inactive", "pending"}, "default": "active"}, "verified": map[string]any{"type": "boolean", "default": true}})
	})
	m.AddTool(fixture("test_elicitation_sep1330_enums"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return elicit(ctx, m, "Choose", enums())
	})
}

// enums are the five ways in which a choice can be written.
func enums() map[string]any {
	titled := []any{map[string]any{"const": "value1", "title": "First Option"}, map[string]any{"const": "value2", "title": "Second Option"}, map[string]any{"const": "value3", "title": "Third Option"}}
	plain := []string{"option1", "option2", "option3"}
	return map[string]any{
		"untitledSingle": map[string]any{"type": "string", "enum": plain},
		"titledSingle":   map[string]any{"type": "string", "oneOf": titled},
		"legacyEnum":     map[string]any{"type": "string", "enum": []string{"opt1", "opt2", "opt3"}, "enumNames": []string{"Option One", "Option Two", "Option Three"}},
		"untitledMulti":  map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": plain}},
		"titledMulti":    map[string]any{"type": "array", "items": map[string]any{"anyOf": titled}},
	}
}

// elicit asks the user in the way of the protocols with sessions.
func elicit(ctx context.Context, m *mcpserver.MCPServer, message string, properties map[string]any, required ...string) (*mcp.CallToolResult, error) {
	schema := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	said, err := m.RequestElicitation(ctx, mcp.ElicitationRequest{Request: mcp.Request{Method: string(mcp.MethodElicitationCreate)}, Params: mcp.ElicitationParams{Message: message, RequestedSchema: schema}})
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	return mcp.NewToolResultText(fmt.Sprintf("User response: action=%s, content=%v", said.Action, said.Content)), nil
}

var errNeedsSampling = errors.New("the client has not declared sampling")

// addChanges adds the tools by which the suite looks at the protocol without sessions: what a request may rely on, what
// its stream may carry, and what a subscription hears of.
func addChanges(s *server.Server, m *mcpserver.MCPServer) {
	m.AddTool(fixture("test_missing_capability"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if capabilities(ctx).Sampling == nil {
			server.SetErrorCode(ctx, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, map[string]any{"requiredCapabilities": map[string]any{"sampling": map[string]any{}}})
			return nil, errNeedsSampling
		}
		return mcp.NewToolResultText("sampling is there"), nil
	})
	m.AddTool(fixture("test_logging_tool"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if info := mcpserver.RequestProtocolInfoFromContext(ctx); info != nil && info.LogLevel != "" {
			if err := s.Notify(ctx, "notifications/message", map[string]any{"level": info.LogLevel, "data": "as asked"}); err != nil {
				return nil, err
			}
		}
		return mcp.NewToolResultText("done"), nil
	})
	m.AddTool(fixture("test_streaming_elicitation"), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if said, ok := field(r.Params.InputResponses, "user_name", "name"); ok {
			return mcp.NewToolResultText("Hello, " + said), nil
		}
		return mcpserver.NewInputRequestBuilder("").Elicit("user_name", ask("What is your name?", "name", "string")).ToolResult(), nil
	})
	var count atomic.Int64
	m.AddTool(fixture("test_trigger_tool_change"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		m.AddTool(fixture(fmt.Sprintf("test_added_%d", count.Add(1))), done)
		return mcp.NewToolResultText("added a tool"), nil
	})
	m.AddTool(fixture("test_trigger_prompt_change"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		m.AddPrompt(mcp.NewPrompt(fmt.Sprintf("test_added_%d", count.Add(1)), mcp.WithPromptDescription("Added by a tool.")), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
		return mcp.NewToolResultText("added a prompt"), nil
	})
}
