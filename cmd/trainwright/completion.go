package main

import (
	"github.com/spf13/cobra"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/tools"
)

// completions lets the shell complete what the workspace and the protocol know: ids of runs and jobs, states, levels.
// `trainwright completion SHELL` itself is cobra's. A workspace that can't be read completes nothing, without a word.
func (s *settings) completions(root *cobra.Command) {
	values := map[string][]string{
		"state":     {jobs.StateQueued, jobs.StateRunning, jobs.StateSucceeded, jobs.StateFailed, jobs.StateCancelled, jobs.StateTimeout, jobs.StateUnknown},
		"status":    {"success", "partial", "failed", "blocked"},
		"log-level": {"debug", "info", "warn", "error", "off"},
	}
	ids := map[string][]func() []cobra.Completion{
		"logs": {s.jobIDs}, "wait": {s.jobIDs, s.runIDs}, "rerun": {s.runIDs}, "approve": {s.runIDs, s.jobIDs},
		"call": {s.toolNames}, "schema": {s.toolNames},
	}
	for _, c := range append(root.Commands(), root) {
		for name, known := range values {
			if c.LocalFlags().Lookup(name) != nil {
				_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
			}
		}
		if sources := ids[c.Name()]; sources != nil {
			c.ValidArgsFunction = firstArgument(sources)
		}
	}
}

// firstArgument completes the first argument and no other.
func firstArgument(sources []func() []cobra.Completion) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var known []cobra.Completion
		for _, source := range sources {
			if len(args) == 0 {
				known = append(known, source()...)
			}
		}
		return known, cobra.ShellCompDirectiveNoFileComp
	}
}

func (s *settings) toolNames() []cobra.Completion {
	var known []cobra.Completion
	for _, tool := range tools.All(s.open().deps()) {
		known = append(known, tool.Name)
	}
	return known
}

func (s *settings) jobIDs() []cobra.Completion {
	work, err := s.open().trainer()
	if err != nil {
		return nil
	}
	roots, err := work.JobRoots()
	if err != nil {
		return nil
	}
	entries, _ := jobs.List(roots)
	var known []cobra.Completion
	for _, e := range entries {
		known = append(known, e.JobID)
	}
	return known
}

func (s *settings) runIDs() []cobra.Completion {
	work, err := s.open().trainer()
	if err != nil {
		return nil
	}
	entries, _, err := rundir.Index{Workspace: work.Engine.Roots.Workspace()}.List()
	if err != nil {
		return nil
	}
	var known []cobra.Completion
	for _, e := range entries {
		known = append(known, cobra.CompletionWithDesc(e.RunID, e.StepGoal))
	}
	return known
}
