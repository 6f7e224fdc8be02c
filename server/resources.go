package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/trainwright/trainwright/resources"
)

// codeNotFound is the protocol's own code for an unknown resource up to 2025-11-25; 2026-07-28 says -32602 instead.
const codeNotFound = mcp.RESOURCE_NOT_FOUND

// listResources fills the list, which mcp-go keeps as a fixed table, from what is there now: runs come and go.
func (s *Server) listResources(ctx context.Context, _ any, request *mcp.ListResourcesRequest, result *mcp.ListResourcesResult) {
	cursor := ""
	if decoded, err := base64.StdEncoding.DecodeString(string(request.Params.Cursor)); err == nil { // mcp-go refused another
		cursor = string(decoded)
	}
	items, next, err := s.resources.List(ctx, cursor)
	if err != nil {
		s.log.Error().Str("error", scrub(err.Error())).Msg("list resources")
	}
	result.Resources = make([]mcp.Resource, 0, len(items))
	for _, item := range items {
		r := mcp.NewResource(item.URI, item.Name, mcp.WithResourceDescription(item.Description), mcp.WithMIMEType(item.MIME))
		r.Title = item.Title
		if item.Title != "" && path.Base(item.URI) == manifestFile { // the skills extension wants the name of the skill here
			r.Name = item.Title
		}
		if item.Size >= 0 {
			size := item.Size
			r.Size = &size
		}
		result.Resources = append(result.Resources, r)
	}
	if next != "" {
		result.NextCursor = mcp.Cursor(base64.StdEncoding.EncodeToString([]byte(next)))
	}
}

// readResource answers one address of any scheme.
func (s *Server) readResource(ctx context.Context, request mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	uri := request.Params.URI
	c, err := s.resources.Read(ctx, uri)
	if errors.Is(err, resources.ErrNotFound) {
		SetErrorCode(ctx, notFoundCode(ctx), map[string]any{"uri": uri})
		return nil, err
	}
	if errors.Is(err, resources.ErrInvalid) {
		SetErrorCode(ctx, codeInvalidParams, map[string]any{"uri": uri})
		return nil, err
	}
	if err != nil {
		incident := s.callID(ctx)
		s.log.Error().Str("incident", incident).Str("uri", uri).Str("error", scrub(err.Error())).Msg("read resource")
		return nil, errors.New(incidentText(incident))
	}
	return wireContent(c), nil
}

// wireContent says a content in the protocol's words. A cut one says so in _meta and, for readers of text, in a
// second part.
func wireContent(c resources.Content) []mcp.ResourceContents {
	var meta map[string]any
	if c.Cut {
		cut := map[string]any{"offset": c.Offset, "shown_bytes": c.Shown, "total_bytes": c.Total, "note": c.Note}
		if c.Rest != "" {
			cut["rest"] = c.Rest
		}
		meta = map[string]any{"trainwright/cut": cut}
	}
	var parts []mcp.ResourceContents
	if c.Binary {
		parts = append(parts, mcp.BlobResourceContents{URI: c.URI, MIMEType: c.MIME, Meta: meta, Blob: base64.StdEncoding.EncodeToString(c.Blob)})
	} else {
		parts = append(parts, mcp.TextResourceContents{URI: c.URI, MIMEType: c.MIME, Meta: meta, Text: c.Text})
	}
	if c.Cut {
		parts = append(parts, mcp.TextResourceContents{URI: c.URI, MIMEType: "text/plain", Text: c.Note})
	}
	return parts
}

// notFoundCode is the code of the protocol version that the request is made in, as mcp-go itself chooses it.
func notFoundCode(ctx context.Context) int {
	if mcp.IsModernProtocol(mcpserver.RequestProtocolVersion(ctx)) {
		return codeInvalidParams
	}
	return codeNotFound
}

func unknownAddress(uri string) string {
	return fmt.Sprintf("no resource at %q; addresses are workspace:///<path>, run://<run_id>/<artifact>, job://<job_id> and skill://<name>/SKILL.md, percent-encoded; resources/list has them", uri)
}

// completion completes the arguments of the templates for mcp-go.
type completion struct {
	server *Server
	Completer
}

// mostValues is how many values the protocol lets one completion have.
const mostValues = 100

// CompleteResourceArgument answers completion/complete. A fault of the disk is an incident, as everywhere.
func (c completion) CompleteResourceArgument(ctx context.Context, uri string, argument mcp.CompleteArgument, known mcp.CompleteContext) (*mcp.Completion, error) {
	values, err := c.Complete(ctx, uri, argument.Name, argument.Value, known.Arguments)
	if err != nil {
		incident := c.server.callID(ctx)
		c.server.log.Error().Str("incident", incident).Str("template", uri).Str("error", scrub(err.Error())).Msg("complete an argument")
		return nil, errors.New(incidentText(incident))
	}
	shown := values[:min(len(values), mostValues)]
	return &mcp.Completion{Values: shown, Total: len(values), HasMore: len(shown) < len(values)}, nil
}
