package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/trainwright/trainwright/server"
)

// ask is a question to the user with one field to fill in.
func ask(message, field, kind string) mcp.ElicitationParams {
	return mcp.ElicitationParams{Message: message, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{field: map[string]any{"type": kind}}, "required": []string{field}}}
}

func sample(question string, tokens int) mcp.CreateMessageParams {
	return mcp.CreateMessageParams{Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(question)}}, MaxTokens: tokens}
}

// states are texts that come back from the client, signed so that a changed one is known.
type states struct{ key []byte }

func newStates() states {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: it aborts the program instead
	return states{key}
}

func (s states) sign(text string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

var errTampered = errors.New("the request state is not the one that was sent")

// check gives the error of a state that is not the signed text.
func (s states) check(ctx context.Context, got, text string) error {
	sent, _, _ := strings.Cut(got, ".")
	if sent != text || !hmac.Equal([]byte(got), []byte(s.sign(text))) {
		server.SetErrorCode(ctx, mcp.INVALID_PARAMS, nil)
		return errTampered
	}
	return nil
}

// addInputTools adds the tools that need input of the client before they can answer (SEP-2322).
func addInputTools(m *mcpserver.MCPServer) {
	signed := newStates()
	add := func(name string, call func(context.Context, mcp.MultiRoundTripParams) (*mcp.CallToolResult, error)) {
		m.AddTool(fixture(name), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return call(ctx, r.Params.MultiRoundTripParams)
		})
	}
	name := ask("What is your name?", "name", "string")
	add("test_input_required_result_elicitation", func(_ context.Context, in mcp.MultiRoundTripParams) (*mcp.CallToolResult, error) {
		if said, ok := field(in.InputResponses, "user_name", "name"); ok {
			return mcp.NewToolResultText("Hello, " + said + "!"), nil
		}
		return mcpserver.NewInputRequestBuilder("").Elicit("user_name", name).ToolResult(), nil
	})
	add("test_input_required_result_sampling", func(_ context.Context, in mcp.MultiRoundTripParams) (*mcp.CallToolResult, error) {
		if said := mcpserver.SamplingResponse(in.InputResponses, "capital_question"); said != nil {
			return mcp.NewToolResultText(fmt.Sprintf("The model says: %v", said.Content)), nil
		}
		return mcpserver.NewInputRequestBuilder("").Sample("capital_question", sample("What is the capital of France?", 100)).ToolResult(), nil
	})
	add("test_input_required_result_list_roots", func(_ context.Context, in mcp.MultiRoundTripParams) (*mcp.CallToolResult, error) {
		if said := mcpserver.RootsResponse(in.InputResponses, "client_roots"); said != nil {
			return mcp.NewToolResultText(fmt.Sprintf("Roots: %v", said.Roots)), nil
		}
		return mcpserver.NewInputRequestBuilder("").Roots("client_roots").ToolResult(), nil
	})
	for _, tool := range []string{"test_input_required_result_request_state", "test_input_required_result_tampered_state"} {
		add(tool, func(ctx context.Context, in mcp.MultiRoundTripParams) (*mcp.CallToolResult, error) {
			if in.RequestState == "" {
				return mcpserver.NewInputRequestBuilder(signed.sign("confirming")).Elicit("confirm", ask("Please confirm", "ok", "boolean")).ToolResult(), nil
			}
			if err := signed.check(ctx, in.RequestState, "confirming"); err != nil {
				return nil, err
			}
			return mcp.NewToolResultText("state-ok"), nil
		})
	}
	add("test_input_required_result_multiple_inputs", func(ctx context.Context, in mcp.MultiRoundTripParams) (*mcp.CallToolResult, error) {
		if len(in.InputResponses) < 3 {
			return mcpserver.NewInputRequestBuilder(signed.sign("asking")).Elicit("user_name", name).Sample("greeting", sample("Generate a greeting", 50)).Roots("client_roots").ToolResult(), nil
		}
		if err := signed.check(ctx, in.RequestState, "asking"); err != nil {
			return nil, err
		}
		return mcp.NewToolResultText("all answered"), nil
	})
	add("test_input_required_result_multi_round", func(ctx context.Context, in mcp.MultiRoundTripParams) (*mcp.CallToolResult, error) {
		if _, ok := mcpserver.InputResponse(in.InputResponses, "step2"); ok {
			return mcp.NewToolResultText("both answered"), signed.check(ctx, in.RequestState, "second")
		}
		if _, ok := mcpserver.InputResponse(in.InputResponses, "step1"); ok {
			if err := signed.check(ctx, in.RequestState, "first"); err != nil {
				return nil, err
			}
			return mcpserver.NewInputRequestBuilder(signed.sign("second")).Elicit("step2", ask("Step 2: What is your favorite color?", "color", "string")).ToolResult(), nil
		}
		return mcpserver.NewInputRequestBuilder(signed.sign("first")).Elicit("step1", ask("Step 1: What is your name?", "name", "string")).ToolResult(), nil
	})
	add("test_input_required_result_capabilities", func(ctx context.Context, in mcp.MultiRoundTripParams) (*mcp.CallToolResult, error) {
		return askWhatIsPossible(ctx, in, name), nil
	})
}

// field gives one field of an accepted answer of the user, as a text.
func field(responses mcp.InputResponses, id, name string) (string, bool) {
	answer := mcpserver.ElicitationResponse(responses, id)
	if answer == nil {
		return "", false
	}
	content, _ := answer.Content.(map[string]any)
	text, ok := content[name].(string)
	return text, ok
}

// askWhatIsPossible asks for what the client has said that it can do, and nothing else.
func askWhatIsPossible(ctx context.Context, in mcp.MultiRoundTripParams, name mcp.ElicitationParams) *mcp.CallToolResult {
	can := capabilities(ctx)
	if len(in.InputResponses) > 0 || can.Sampling == nil && can.Elicitation == nil {
		return mcp.NewToolResultText("nothing more to ask")
	}
	builder := mcpserver.NewInputRequestBuilder("")
	if can.Sampling != nil {
		builder.Sample("greeting", sample("Generate a greeting", 50))
	}
	if can.Elicitation != nil {
		builder.Elicit("user_name", name)
	}
	return builder.ToolResult()
}

// capabilities are those that the client declared with this very request.
func capabilities(ctx context.Context) mcp.ClientCapabilities {
	if info := mcpserver.RequestProtocolInfoFromContext(ctx); info != nil && info.ClientCapabilities != nil {
		return *info.ClientCapabilities
	}
	return mcp.ClientCapabilities{}
}
