package server

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/trainwright/trainwright/prompts"
	"github.com/trainwright/trainwright/tools"
)

const (
	// maxValues is how many values one completion may have, by the protocol.
	maxValues = 100
	// maxCompletionPages bounds how far the list of resources is read for a completion.
	maxCompletionPages = 20
)

// Complete gives the values of a kind (tools.RunIDs, …) that fit what was typed so far, the likeliest first.
type Complete func(ctx context.Context, kind, typed string) ([]string, error)

// completer answers completion/complete, for the arguments of prompts and the variables of resource templates.
type completer struct{ s *Server }

var (
	_ mcpserver.PromptCompletionProvider   = completer{}
	_ mcpserver.ResourceCompletionProvider = completer{}
)

// CompletePromptArgument completes an argument of a prompt.
func (c completer) CompletePromptArgument(ctx context.Context, name string, argument mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	at := slices.IndexFunc(c.s.prompts, func(p prompts.Prompt) bool { return p.Name == name })
	if at < 0 {
		SetErrorCode(ctx, codeInvalidParams, nil)
		return nil, errors.New(c.s.unknownPrompt(name))
	}
	if !slices.ContainsFunc(c.s.prompts[at].Arguments, func(a prompts.Argument) bool { return a.Name == argument.Name }) {
		SetErrorCode(ctx, codeInvalidParams, nil)
		return nil, fmt.Errorf("prompt %s has no argument %q; prompts/list has its arguments", name, argument.Name)
	}
	kind := map[string]string{"run_id": tools.RunIDs, "data": tools.Paths, "code": tools.Paths}[argument.Name]
	return c.values(ctx, kind, argument.Value)
}

// CompleteResourceArgument completes a variable of a template; what stands for the ones before it is in the context.
func (c completer) CompleteResourceArgument(ctx context.Context, uri string, argument mcp.CompleteArgument, known mcp.CompleteContext) (*mcp.Completion, error) {
	scheme, rest, _ := strings.Cut(uri, "://")
	first := strings.HasPrefix(rest, "{"+argument.Name+"}")
	part, query := variable(rest, argument.Name)
	switch {
	case !part && !query:
	case query: // a number of bytes, which nobody can guess
		return cut(nil), nil
	case scheme == "run" && first:
		return c.values(ctx, tools.RunIDs, argument.Value)
	case scheme == "job" && first:
		return c.values(ctx, tools.JobIDs, argument.Value)
	case scheme == "workspace":
		return c.values(ctx, tools.Paths, argument.Value)
	case scheme == "job":
		return c.below(ctx, "job://"+known.Arguments["job_id"]+"/", argument.Value)
	case scheme == "run":
		return c.below(ctx, "run://"+known.Arguments["run_id"]+"/", argument.Value)
	case scheme == "skill" && first:
		return c.skills(ctx, argument.Value)
	case scheme == "skill":
		return c.below(ctx, "skill://"+known.Arguments["name"]+"/", argument.Value)
	}
	SetErrorCode(ctx, codeInvalidParams, nil)
	return nil, fmt.Errorf("no template %q with a variable %q; resources/templates/list has them all", uri, argument.Name)
}

// variables are the expressions of a template: {name}, {+name}, {?name,name}.
var variables = regexp.MustCompile(`\{([+?]?)([\w,]+)\}`)

// variable says whether a template has a variable of that name, as a part of the path or behind it.
func variable(template, name string) (part, query bool) {
	for _, m := range variables.FindAllStringSubmatch(template, -1) {
		if slices.Contains(strings.Split(m[2], ","), name) {
			return m[1] != "?", m[1] == "?"
		}
	}
	return false, false
}

func (c completer) values(ctx context.Context, kind, typed string) (*mcp.Completion, error) {
	if kind == "" || c.s.complete == nil {
		return cut(nil), nil
	}
	values, err := c.s.complete(ctx, kind, typed)
	if err != nil {
		return nil, c.fault(ctx, err)
	}
	return cut(values), nil
}

// below are the resources whose address begins with base and then with what was typed, without base.
func (c completer) below(ctx context.Context, base, typed string) (*mcp.Completion, error) {
	var found []string
	cursor := ""
	for range maxCompletionPages {
		items, next, err := c.s.resources.List(ctx, cursor)
		if err != nil {
			return nil, c.fault(ctx, err)
		}
		for _, item := range items {
			if rest, ok := strings.CutPrefix(item.URI, base); ok && strings.HasPrefix(rest, typed) {
				found = append(found, rest)
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	return cut(found), nil
}

func (c completer) skills(ctx context.Context, typed string) (*mcp.Completion, error) {
	if c.s.skills == nil {
		return cut(nil), nil
	}
	library, err := c.s.skills()
	if err != nil {
		return nil, c.fault(ctx, err)
	}
	var names []string
	for _, s := range library.List("") {
		if strings.HasPrefix(s.Name, typed) {
			names = append(names, s.Name)
		}
	}
	return cut(names), nil
}

// fault keeps what went wrong in the log.
func (c completer) fault(ctx context.Context, err error) error {
	incident := c.s.callID(ctx)
	c.s.log.Error().Str("incident", incident).Str("error", scrub(err.Error())).Msg("complete")
	return errors.New(incidentText(incident))
}

// cut keeps as many values as the protocol allows, and says that there are more.
func cut(values []string) *mcp.Completion {
	total := len(values)
	if values == nil {
		values = []string{}
	}
	return &mcp.Completion{Values: values[:min(total, maxValues)], Total: total, HasMore: total > maxValues}
}
