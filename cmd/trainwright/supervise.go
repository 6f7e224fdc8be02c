package main

import (
	"github.com/spf13/cobra"

	"github.com/trainwright/trainwright/internal/jobs/local"
)

// superviseCommand is what the binary is started again as to watch over a job. It is not for people.
func superviseCommand() *cobra.Command {
	return &cobra.Command{
		Use: local.SuperviseArg + " FOLDER", Short: "Watch over the job in FOLDER", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if code := local.Supervise(args[0]); code != 0 {
				return exit(code)
			}
			return nil
		},
	}
}
