package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/tools"
)

func callCommand(s *settings, t terminal) *cobra.Command {
	return &cobra.Command{
		Use: "call TOOL [JSON]", Short: "Call one tool and print its structured result", Args: cobra.RangeArgs(1, 2),
		Long: "Calls one tool in this process with the arguments JSON (\"-\" reads them from stdin, nothing means {}) and prints the\n" +
			"structured result. Exit code: 0 the tool answered, whatever the answer says; 2 the input can't be used; 1 anything else.",
		Example: "  trainwright call run_list\n  trainwright call run_status '{\"run_id\": \"r-20261130-7f3a\"}'\n  trainwright call trainer - < call.json",
		RunE: func(c *cobra.Command, args []string) error {
			log, err := s.logger(t, zerolog.WarnLevel)
			if err != nil {
				return err
			}
			all := tools.All(s.open().deps())
			tool, ok := tools.Find(all, args[0])
			if !ok {
				return usageError{unknownTool(args[0], all)}
			}
			arguments := "{}"
			if len(args) == 2 {
				arguments = args[1]
			}
			if arguments == "-" {
				read, err := io.ReadAll(t.in)
				if err != nil {
					return fmt.Errorf("read the arguments from stdin: %w", err)
				}
				arguments = string(read)
			}
			if !json.Valid([]byte(arguments)) {
				return usageError{errors.New("the arguments are no JSON; quote them for the shell, or pass them with - on stdin")}
			}
			ctx, stop := interruptible(c.Context())
			defer stop()
			result, err := tool.Call(ctx, logged{log: log}, json.RawMessage(arguments))
			if err != nil {
				return refused(t, err)
			}
			return printJSON(t.out, result.Structured)
		},
	}
}

// refused prints the findings of input that can't be used, as a client would get them; any other error goes on.
func refused(t terminal, err error) error {
	var r *finding.Refused
	if !errors.As(err, &r) {
		return err
	}
	if err := printJSON(t.out, map[string]any{"findings": r.Findings}); err != nil {
		return err
	}
	return exit(exitUnusable)
}

func unknownTool(name string, all []tools.Tool) error {
	names := tools.Names(all)
	if near := finding.Nearest(name, names); near != "" {
		return fmt.Errorf("there is no tool %q; did you mean %q?", name, near)
	}
	return fmt.Errorf("there is no tool %q; there are %s", name, strings.Join(names, ", "))
}

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// logged is a Caller who writes progress to the log.
type logged struct {
	engine.Unasked
	log zerolog.Logger
}

var _ engine.Caller = logged{}

// Progress logs the notice.
func (l logged) Progress(p engine.Progress) {
	l.log.Info().Str("phase", p.Phase).Float64("done", p.Done).Float64("total", p.Total).Msg(p.Message)
}
