package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/skill"
)

func skillsCommand(t terminal) *cobra.Command {
	c := &cobra.Command{
		Use: "skills", Short: "Check skills", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(validateCommand(t))
	return c
}

func validateCommand(t terminal) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "validate FOLDER...", Short: "Check skills by the Agent Skills standard",
		Args: usable(cobra.MinimumNArgs(1)),
		Long: "Checks each skill, a folder with a SKILL.md, by the rules of the Agent Skills standard, as skills-ref validate does. Warns of\n" +
			fmt.Sprintf("descriptions over %d characters, and of skills whose descriptions have more than %d together: clients drop\n", skill.LongDescription, skill.DescriptionBudget) +
			"some of those from what the agent sees.\n\n" +
			"Exit code: 0 all are valid, also with warnings; 1 one is not; 2 the command line can't be used.",
		Example: "  trainwright skills validate .agents/skills/*",
		RunE: func(_ *cobra.Command, args []string) error {
			verdicts := make([]skill.Verdict, len(args))
			valid := true
			for i, path := range args {
				verdicts[i] = skill.Check(path)
				valid = valid && verdicts[i].Valid
			}
			if err := tell(t, verdicts, skill.Budget(verdicts), asJSON); err != nil {
				return err
			}
			if !valid {
				return exit(exitFailed)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the verdicts as JSON")
	return c
}

// usable makes of a wrong number of arguments a command line that can't be used.
func usable(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usageError{fmt.Errorf("%w; usage: %s", err, c.UseLine())}
		}
		return nil
	}
}

// tell prints the verdicts, and what is to be said of all together.
func tell(t terminal, verdicts []skill.Verdict, together []finding.Finding, asJSON bool) error {
	if asJSON {
		if together == nil {
			together = []finding.Finding{}
		}
		return printJSON(t.out, map[string]any{"skills": verdicts, "findings": together})
	}
	for _, v := range verdicts {
		word := "valid"
		if !v.Valid {
			word = "INVALID"
		}
		if _, err := fmt.Fprintf(t.out, "%s: %s\n", v.Path, word); err != nil {
			return err
		}
		for _, f := range v.Findings {
			if _, err := fmt.Fprintf(t.out, "  %s: %s\n", f.Severity, f); err != nil {
				return err
			}
		}
	}
	for _, f := range together {
		if _, err := fmt.Fprintf(t.out, "%s: %s\n", f.Severity, f); err != nil {
			return err
		}
	}
	return nil
}
