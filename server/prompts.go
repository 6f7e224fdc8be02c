package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/prompts"
)

// addPrompts offers the prompts. They are the same for as long as the server runs.
func (s *Server) addPrompts() {
	for _, p := range s.prompts {
		wire := mcp.Prompt{Name: p.Name, Title: p.Title, Description: p.Description}
		for _, a := range p.Arguments {
			wire.Arguments = append(wire.Arguments, mcp.PromptArgument{Name: a.Name, Description: a.Description, Required: a.Required})
		}
		s.mcp.AddPrompt(wire, func(ctx context.Context, request mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text, err := p.Render(request.Params.Arguments)
			if err != nil {
				SetErrorCode(ctx, codeInvalidParams, nil)
				return nil, err
			}
			return &mcp.GetPromptResult{Description: p.Description, Messages: []mcp.PromptMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(text)}}}, nil
		})
	}
}

// arrangePrompts is a filter that takes nothing away: it puts the prompts in their own order.
func arrangePrompts(_ context.Context, listed []mcp.Prompt) []mcp.Prompt {
	place := func(p mcp.Prompt) int {
		if at := slices.IndexFunc(prompts.All(), func(o prompts.Prompt) bool { return o.Name == p.Name }); at >= 0 {
			return at
		}
		return len(prompts.All()) // what Options.Extend added
	}
	slices.SortStableFunc(listed, func(a, b mcp.Prompt) int { return place(a) - place(b) })
	return listed
}

var _ mcpserver.PromptFilterFunc = arrangePrompts

func (s *Server) unknownPrompt(name string) string {
	var names []string
	for _, p := range s.prompts {
		names = append(names, p.Name)
	}
	if near := finding.Nearest(name, names); near != "" {
		return fmt.Sprintf("there is no prompt %q; did you mean %q? prompts/list has them all", name, near)
	}
	return fmt.Sprintf("there is no prompt %q; prompts/list has them all", name)
}
