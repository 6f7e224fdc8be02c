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
	"github.com/trainwright/trainwright/resources"
)

// maxValues is how many values one completion may have, by the protocol.
const maxValues = 100

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
	switch argument.Name {
	case "run_id":
		return c.values(ctx, runTemplate, "run_id", argument.Value, nil)
	case "data", "code":
		return c.values(ctx, workspaceTemplate, "path", argument.Value, nil)
	}
	return cut(nil), nil // plain words
}

// The templates whose variables some arguments of prompts are.
const (
	runTemplate       = "run://{run_id}/{+artifact}"
	workspaceTemplate = "workspace:///{+path}"
)

// CompleteResourceArgument completes a variable of a template; what stands for the ones before it is in the context.
func (c completer) CompleteResourceArgument(ctx context.Context, uri string, argument mcp.CompleteArgument, known mcp.CompleteContext) (*mcp.Completion, error) {
	plain := func(template string) string { before, _, _ := strings.Cut(template, "{?"); return before }
	at := slices.IndexFunc(resources.Templates(), func(t resources.Template) bool { return plain(t.URITemplate) == plain(uri) })
	if at < 0 || !regexp.MustCompile(`[{,+]`+regexp.QuoteMeta(argument.Name)+`[,}]`).MatchString(uri) {
		SetErrorCode(ctx, codeInvalidParams, nil)
		return nil, fmt.Errorf("no template %q with a variable %q; resources/templates/list has them all", uri, argument.Name)
	}
	return c.values(ctx, uri, argument.Name, argument.Value, known.Arguments)
}

func (c completer) values(ctx context.Context, template, argument, typed string, known map[string]string) (*mcp.Completion, error) {
	library, ok := c.s.resources.(Completer)
	if !ok {
		return cut(nil), nil
	}
	values, err := library.Complete(ctx, template, argument, typed, known)
	if err != nil {
		return nil, c.fault(ctx, err)
	}
	return cut(values), nil
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
