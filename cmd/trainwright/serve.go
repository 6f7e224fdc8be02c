package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/skill"
	"github.com/trainwright/trainwright/prompts"
	"github.com/trainwright/trainwright/server"
	"github.com/trainwright/trainwright/tools"
)

// tokenVariable is where the token of an HTTP server may be instead of in a file.
const tokenVariable = "TRAINWRIGHT_HTTP_TOKEN"

// httpFlags are the flags of serve that are about HTTP.
type httpFlags struct {
	address, tokenFile string
	options            server.HTTPOptions
}

func serveCommand(s *settings, t terminal) *cobra.Command {
	web := &httpFlags{}
	var traceFile string
	var selection tools.Selection
	command := &cobra.Command{
		Use: "serve", Short: "Serve MCP clients over stdin and stdout, or over HTTP", Args: cobra.NoArgs,
		Long: "Serves one MCP client over stdin and stdout, until stdin ends or a signal comes. stdout carries the protocol and\n" +
			"nothing else; logs go to stderr. Jobs that were started go on after the end.\n\n" +
			"With --http ADDRESS it serves many clients over streamable HTTP at http://ADDRESS/mcp instead, and whether it is there\n" +
			"at /healthz. An address that other machines can reach needs a token, which clients send as Authorization: Bearer.",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.checkSkillFolders(); err != nil {
				return err
			}
			log, err := s.logger(t, zerolog.InfoLevel)
			if err != nil {
				return err
			}
			ctx, stop := interruptible(c.Context())
			defer stop()
			trace, end, err := openTrace(traceFile)
			if err != nil {
				return err
			}
			defer end(log)
			workspace := s.open()
			served, withheld, err := selection.Of(tools.All(workspace.deps()))
			if err != nil {
				return usageError{fmt.Errorf("--toolsets: %w", err)}
			}
			if selection.ReadOnly {
				rundir.Seal()
			}
			srv := server.New(server.Options{Version: version(), Tools: served, Withheld: withheld, Prompts: prompts.For(tools.Names(served)), Resources: workspace, Skills: workspace.skills, Log: log, Trace: trace})
			if web.address != "" {
				return web.serve(ctx, t, srv)
			}
			os.Stdout = os.Stderr // whatever a library prints must not reach the client as protocol
			return server.NewStdio(srv).Serve(ctx, t.in, t.out)
		},
	}
	flags := command.Flags()
	flags.StringVar(&traceFile, "trace", "", "append every message of the protocol to this file, one JSON object on a line, secrets masked")
	flags.StringArrayVar(&s.skillFolders, "skills", nil, "further folder of skills, or a skill's own; may be given again. The workspace's skills (.agents/skills, .claude/skills) go before these, the same folders of your home and trainwright's own after them")
	flags.BoolVar(&selection.ReadOnly, "read-only", false, "serve only the tools that change nothing, and write nothing to disk")
	flags.StringSliceVar(&selection.Toolsets, "toolsets", nil, "serve only the tools of these sets: "+strings.Join(tools.Toolsets, ", "))
	flags.StringVar(&web.address, "http", "", "serve streamable HTTP on this host:port instead of stdio; port 0 takes a free one and prints it on stderr")
	flags.StringVar(&web.tokenFile, "token-file", "", "file with the token that HTTP clients must send (or "+tokenVariable+" in the environment)")
	flags.StringSliceVar(&web.options.Hosts, "allow-host", nil, "further name under which HTTP clients reach this server; may be given again")
	flags.StringSliceVar(&web.options.Origins, "allow-origin", nil, "further web origin (https://host:port) that may send to it; may be given again")
	flags.Int64Var(&web.options.MaxBody, "max-body", 16<<20, "longest HTTP request body in bytes")
	flags.IntVar(&web.options.MaxSessions, "max-sessions", 1000, "HTTP sessions that may be open at once")
	flags.Float64Var(&web.options.Rate, "rate", 1000, "HTTP requests per second of one client")
	flags.IntVar(&web.options.Concurrent, "concurrent", 256, "unanswered HTTP requests of one client")
	return command
}

// checkSkillFolders refuses a folder of skills that is none, and makes the others absolute.
func (s *settings) checkSkillFolders() error {
	for i, folder := range s.skillFolders {
		absolute, err := filepath.Abs(folder)
		if err != nil {
			return usageError{fmt.Errorf("--skills %s: %w", folder, err)}
		}
		if info, err := os.Stat(absolute); folder == "" || err != nil || !info.IsDir() {
			return usageError{fmt.Errorf("--skills %q: there is no such folder; name one that holds skills, or a skill's own with its SKILL.md", folder)}
		}
		s.skillFolders[i] = absolute
	}
	return nil
}

// openTrace opens the file that records the protocol; without a name there is no record. What clients say is nobody
// else's to read.
func openTrace(name string) (trace *server.Trace, end func(zerolog.Logger), err error) {
	if name == "" {
		return nil, func(zerolog.Logger) {}, nil
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("--trace: %w", err)}
	}
	trace = server.NewTrace(file, time.Now)
	return trace, func(log zerolog.Logger) {
		if err := errors.Join(trace.Err(), file.Close()); err != nil {
			log.Error().Err(err).Msg("the trace is not whole")
		}
	}, nil
}

// skills gives the library of the workspace.
func (w *workspace) skills() (*skill.Library, error) {
	source, err := w.source()
	if err != nil {
		return nil, err
	}
	return source.Library, nil
}

// serve answers HTTP clients until ctx is done.
func (f *httpFlags) serve(ctx context.Context, t terminal, srv *server.Server) error {
	token, err := f.token()
	if err != nil {
		return usageError{err}
	}
	f.options.Token = token
	listener, err := server.ListenHTTP(f.address, token)
	var refused *finding.Refused
	if errors.As(err, &refused) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	announce(t, listener.Addr())
	return server.NewHTTP(srv, f.options).Serve(ctx, listener)
}

// announce says on stderr, beside the log, where clients connect.
func announce(t terminal, address net.Addr) {
	fmt.Fprintf(t.err, "trainwright serves MCP at http://%s/mcp\n", address)
}

// token reads the token from its file or the environment; both may be absent. The environment is what jobs inherit, so
// it does not stay there.
func (f *httpFlags) token() (string, error) {
	given := strings.TrimSpace(os.Getenv(tokenVariable))
	if err := os.Unsetenv(tokenVariable); err != nil {
		return "", fmt.Errorf("clear %s: %w", tokenVariable, err)
	}
	if f.tokenFile == "" {
		return given, nil
	}
	data, err := os.ReadFile(f.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fmt.Errorf("--token-file: %s is empty; make a token with: openssl rand -hex 32", f.tokenFile)
	}
	return token, nil
}
