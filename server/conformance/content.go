package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/trainwright/trainwright/resources"
)

// A picture of one pixel and a sound of no length.
const (
	pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	sound = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
)

// addContent adds the tools that answer with each kind of content.
func addContent(m *mcpserver.MCPServer) {
	embedded := func(uri, mime, text string) mcp.Content {
		return mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: uri, MIMEType: mime, Text: text})
	}
	for name, content := range map[string][]mcp.Content{
		"test_simple_text":            {mcp.NewTextContent("This is a simple text response for testing.")},
		"test_image_content":          {mcp.NewImageContent(pixel, "image/png")},
		"test_audio_content":          {mcp.NewAudioContent(sound, "audio/wav")},
		"test_embedded_resource":      {embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")},
		"test_multiple_content_types": {mcp.NewTextContent("Multiple content types test:"), mcp.NewImageContent(pixel, "image/png"), embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`)},
	} {
		m.AddTool(fixture(name), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: content}, nil
		})
	}
	m.AddTool(fixture("test_error_handling"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("This tool intentionally returns an error for testing"), nil
	})
	m.AddTool(fixture("test_custom_header", mcp.WithString("region", func(s map[string]any) { s["x-mcp-header"] = "Region" })), done)
	m.AddTool(mcp.NewToolWithRawSchema("json_schema_2020_12_tool", "Has a schema of every kind of keyword.", json.RawMessage(schema2020)), done)
}

// schema2020 is the schema that the suite wants to see again in tools/list.
const schema2020 = `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
 "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
 "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}, "contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}},
 "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
 "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]}, "then": {"required": ["phone"]}, "else": {"required": ["email"]},
 "additionalProperties": false}`

func fixture(name string, options ...mcp.ToolOption) mcp.Tool {
	return mcp.NewTool(name, append(options, mcp.WithDescription("A fixture of the conformance suite."))...)
}

func done(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText("done"), nil
}

// fixtures are trainwright's resources and the suite's own.
type fixtures struct{ *resources.Source }

var suiteResources = []resources.Item{
	{URI: "test://static-text", Name: "static-text", Description: "A static text.", MIME: "text/plain", Size: -1},
	{URI: "test://static-binary", Name: "static-binary", Description: "A static picture.", MIME: "image/png", Size: -1},
	{URI: "test://watched-resource", Name: "watched-resource", Description: "A text to subscribe to.", MIME: "text/plain", Size: -1},
}

// List puts the suite's resources behind those of the workspace.
func (f fixtures) List(ctx context.Context, cursor string) ([]resources.Item, string, error) {
	items, next, err := f.Source.List(ctx, cursor)
	if next == "" {
		items = append(items, suiteResources...)
	}
	return items, next, err
}

// Read knows the suite's resources too: what can be subscribed to is what can be read here.
func (f fixtures) Read(ctx context.Context, uri string) (resources.Content, error) {
	for _, item := range suiteResources {
		if item.URI == uri {
			return resources.Content{URI: uri, MIME: item.MIME}, nil
		}
	}
	return f.Source.Read(ctx, uri)
}

func addResources(m *mcpserver.MCPServer) {
	text := func(_ context.Context, request mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: request.Params.URI, MIMEType: "text/plain", Text: "This is the content of the static text resource."}}, nil
	}
	picture := func(_ context.Context, request mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.BlobResourceContents{URI: request.Params.URI, MIMEType: "image/png", Blob: pixel}}, nil
	}
	for _, item := range suiteResources {
		read := text
		if item.MIME == "image/png" {
			read = picture
		}
		m.AddResource(mcp.NewResource(item.URI, item.Name, mcp.WithMIMEType(item.MIME)), read)
	}
	m.AddResourceTemplate(mcp.NewResourceTemplate("test://template/{id}/data", "template", mcp.WithTemplateMIMEType("application/json")),
		func(_ context.Context, request mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(request.Params.URI, "test://template/"), "/data")
			encoded, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
			if err != nil {
				return nil, err
			}
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: request.Params.URI, MIMEType: "application/json", Text: string(encoded)}}, nil
		})
}

func addPrompts(m *mcpserver.MCPServer) {
	says := func(content ...mcp.Content) (*mcp.GetPromptResult, error) {
		result := &mcp.GetPromptResult{}
		for _, c := range content {
			result.Messages = append(result.Messages, mcp.PromptMessage{Role: mcp.RoleUser, Content: c})
		}
		return result, nil
	}
	required := func(name string) mcp.PromptOption {
		return mcp.WithArgument(name, mcp.ArgumentDescription("An argument."), mcp.RequiredArgument())
	}
	described := mcp.WithPromptDescription("A fixture of the conformance suite.")
	m.AddPrompt(mcp.NewPrompt("test_simple_prompt", described), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return says(mcp.NewTextContent("This is a simple prompt for testing."))
	})
	m.AddPrompt(mcp.NewPrompt("test_prompt_with_arguments", described, required("arg1"), required("arg2")), func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return says(mcp.NewTextContent(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", r.Params.Arguments["arg1"], r.Params.Arguments["arg2"])))
	})
	m.AddPrompt(mcp.NewPrompt("test_prompt_with_embedded_resource", described, required("resourceUri")), func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return says(mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: r.Params.Arguments["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}),
			mcp.NewTextContent("Please process the embedded resource above."))
	})
	m.AddPrompt(mcp.NewPrompt("test_prompt_with_image", described), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return says(mcp.NewImageContent(pixel, "image/png"), mcp.NewTextContent("Please analyze the image above."))
	})
	m.AddPrompt(mcp.NewPrompt("test_input_required_result_prompt", described), func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		answer := mcpserver.ElicitationResponse(r.Params.InputResponses, "user_context")
		if answer == nil {
			return mcpserver.NewInputRequestBuilder("").Elicit("user_context", ask("What context should the prompt use?", "context", "string")).PromptResult(), nil
		}
		return says(mcp.NewTextContent(fmt.Sprintf("Use this context: %v", answer.Content)))
	})
}
