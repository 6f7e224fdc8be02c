// Command conformance is a server for the official MCP conformance suite: trainwright's own HTTP layers, resources and
// skills, and beside them the tools, prompts and resources that the suite asks every implementation to have. It is for
// tests; nothing of it is in the binary that is shipped.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/rs/zerolog"

	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/skill"
	"github.com/trainwright/trainwright/resources"
	"github.com/trainwright/trainwright/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: conformance WORKSPACE")
		os.Exit(2)
	}
	web, listener, err := open(os.Args[1], zerolog.New(os.Stderr))
	if err == nil {
		fmt.Printf("http://%s/mcp\n", listener.Addr())
		err = web.Serve(ctx, listener)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// open makes the server of a workspace, and a listener on a free port of the loopback.
func open(workspace string, log zerolog.Logger) (*server.HTTP, net.Listener, error) {
	roots, err := rundir.NewRoots(workspace, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	library := resources.Skills(resources.SkillPlaces{Workspace: roots.Workspace(), Now: time.Now})
	source := &resources.Source{Roots: roots, Library: library, Canonical: func(string) []string { return nil }}
	s := server.New(server.Options{
		Version: "conformance", Resources: fixtures{source}, Skills: func() (*skill.Library, error) { return library, nil }, Log: log,
		Features: []mcpserver.ServerOption{
			mcpserver.WithToolCapabilities(true), mcpserver.WithPromptCapabilities(true), mcpserver.WithElicitation(),
			mcpserver.WithPromptCompletionProvider(&mcpserver.DefaultPromptCompletionProvider{}), // the fixture has prompts of its own
		},
		Extend: extend,
	})
	listener, err := server.ListenHTTP("127.0.0.1:0", "")
	if err != nil {
		return nil, nil, err
	}
	return server.NewHTTP(s, server.HTTPOptions{}), listener, nil
}

func extend(s *server.Server, m *mcpserver.MCPServer) {
	m.EnableSampling()
	addContent(m)
	addSessionTools(s, m)
	addInputTools(m)
	addChanges(s, m)
	addPrompts(m)
	addResources(m)
}
