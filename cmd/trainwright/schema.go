package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/tools"
)

func schemaCommand(s *settings, t terminal) *cobra.Command {
	return &cobra.Command{
		Use: "schema [NAME]", Short: "Print the JSON Schema of step_handoff, execution_result or a tool's arguments", Args: cobra.MaximumNArgs(1),
		Long: "Prints the JSON Schema of step_handoff, of execution_result, or of the arguments of the tool NAME. Without NAME it\n" +
			"prints the names there are.",
		RunE: func(_ *cobra.Command, args []string) error {
			all := tools.All(s.open().deps())
			if len(args) == 0 {
				names := []string{"step_handoff", "execution_result"}
				for _, tool := range all {
					names = append(names, tool.Name)
				}
				_, err := fmt.Fprintln(t.out, strings.Join(names, "\n"))
				return err
			}
			schema, err := schemaOf(args[0], all)
			if err != nil {
				return err
			}
			return printJSON(t.out, schema)
		},
	}
}

func schemaOf(name string, all []tools.Tool) (json.RawMessage, error) {
	switch name {
	case "step_handoff":
		return contract.Schema(new(contract.StepHandoff))
	case "execution_result":
		return contract.Schema(new(contract.ExecutionResult))
	}
	tool, ok := tools.Find(all, name)
	if !ok {
		return nil, usageError{unknownTool(name, append([]tools.Tool{{Name: "step_handoff"}, {Name: "execution_result"}}, all...))}
	}
	return tool.InputSchema(), nil
}
