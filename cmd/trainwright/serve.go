package main

import (
	"os"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/trainwright/trainwright/server"
	"github.com/trainwright/trainwright/tools"
)

func serveCommand(s *settings, t terminal) *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Serve an MCP client over stdin and stdout", Args: cobra.NoArgs,
		Long: "Serves one MCP client over stdin and stdout, until stdin ends or a signal comes. stdout carries the protocol and\n" +
			"nothing else; logs go to stderr. Jobs that were started go on after the end.",
		RunE: func(c *cobra.Command, _ []string) error {
			log, err := s.logger(t, zerolog.InfoLevel)
			if err != nil {
				return err
			}
			ctx, stop := interruptible(c.Context())
			defer stop()
			workspace := s.open()
			srv := server.New(server.Options{Version: version(), Tools: tools.All(workspace.deps()), Resources: workspace, Log: log})
			os.Stdout = os.Stderr // whatever a library prints must not reach the client as protocol
			return server.NewStdio(srv).Serve(ctx, t.in, t.out)
		},
	}
}
