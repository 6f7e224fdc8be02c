package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainwright/trainwright/internal/clients"
)

// placement is what install and uninstall have in common.
type placement struct {
	project, user, print bool
	name                 string
}

func (p *placement) flags(c *cobra.Command) {
	c.Flags().BoolVar(&p.project, "project", false, "in the project's own configuration: that of --workspace, else of the current directory")
	c.Flags().BoolVar(&p.user, "user", false, "in the user's configuration, for everything that is opened")
	c.Flags().BoolVar(&p.print, "print", false, "show what would change, and change nothing")
	c.Flags().StringVar(&p.name, "name", "trainwright", "the entry's name")
	c.ValidArgs = clients.Names()
}

// target is whose configuration is meant: that of the flags, else the client's usual one.
func (p *placement) target(c clients.Client, workspace string) (clients.Target, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return clients.Target{}, fmt.Errorf("find the home folder: %w", err)
	}
	at := clients.Target{System: clients.System{OS: runtime.GOOS, Home: home, Getenv: os.Getenv}, Scope: c.Default}
	switch {
	case p.project && p.user:
		return at, usageError{errors.New("--project and --user exclude each other")}
	case p.project:
		at.Scope = clients.Project
	case p.user:
		at.Scope = clients.User
	}
	at.Project, err = filepath.Abs(workspace) // "" is the current directory
	return at, err
}

// scopes says which scope each client has where none is given.
func scopes() string {
	var user, project []string
	for _, name := range clients.Names() {
		if c, err := clients.Find(name); err == nil && c.Default == clients.User {
			user = append(user, name)
		} else {
			project = append(project, name)
		}
	}
	return fmt.Sprintf("Without --project and --user it is the user's configuration for %s, which start servers in the folder\nthey are opened in, and the project's for %s.",
		strings.Join(user, ", "), strings.Join(project, ", "))
}

func installCommand(s *settings, t terminal) *cobra.Command {
	var where placement
	var command string
	var force bool
	c := &cobra.Command{
		Use: "install CLIENT", Short: "Add trainwright to the configuration of an MCP client", Args: cobra.ExactArgs(1),
		Long: "Writes into the client's own configuration that it starts trainwright serve: CLIENT is one of\n" + strings.Join(clients.Names(), ", ") + ".\n" + scopes() + "\n\n" +
			"Nothing else in the file changes, comments and order included. What was there is kept beside it, in FILE" + clients.BackupSuffix + ".\n" +
			"With --user, --workspace FOLDER is passed to serve; without it serve works in the folder the client starts it in.\n\n" +
			"Exit code: 0 it is there now (or was already), 1 another entry of that name is there and was left, 2 the configuration\n" +
			"can't be read or may not be written.",
		Example: "  trainwright install claude-code\n  trainwright install vscode --print\n  trainwright install cursor --user --workspace ~/models",
		RunE: func(c *cobra.Command, args []string) error {
			client, err := clients.Find(args[0])
			if err != nil {
				return unusable(err)
			}
			at, err := where.target(client, s.workspace)
			if err != nil {
				return err
			}
			server, err := s.served(where.name, command, at)
			if err != nil {
				return err
			}
			change, err := client.Install(at, server, force)
			if err != nil {
				return unusable(err)
			}
			return where.make(t, client, at.Scope, change)
		},
	}
	where.flags(c)
	c.Flags().StringVar(&command, "command", "", "the program that the client starts (default: the absolute path of this one)")
	c.Flags().BoolVar(&force, "force", false, "replace an entry of that name that says something else")
	return c
}

func uninstallCommand(s *settings, t terminal) *cobra.Command {
	var where placement
	c := &cobra.Command{
		Use: "uninstall CLIENT", Short: "Take trainwright out of the configuration of an MCP client", Args: cobra.ExactArgs(1),
		Long: "Takes the entry out that trainwright install has written: CLIENT is one of\n" + strings.Join(clients.Names(), ", ") + ".\n" + scopes() + "\n\n" +
			"A file that nobody changed since is as it was before, byte for byte, and one that was made for the entry is removed.\n\n" +
			"Exit code: 0 it is not there any more (or was not), 2 the configuration can't be read or may not be written.",
		Example: "  trainwright uninstall claude-code",
		RunE: func(c *cobra.Command, args []string) error {
			client, err := clients.Find(args[0])
			if err != nil {
				return unusable(err)
			}
			at, err := where.target(client, s.workspace)
			if err != nil {
				return err
			}
			change, err := client.Uninstall(at, where.name)
			if err != nil {
				return unusable(err)
			}
			return where.make(t, client, at.Scope, change)
		},
	}
	where.flags(c)
	return c
}

// served is what the client is to start. Paths become absolute, since the client may start it anywhere; a program
// without a separator is looked for by the client.
func (s *settings) served(name, command string, at clients.Target) (clients.Server, error) {
	server := clients.Server{Name: name, Command: command}
	var err error
	switch {
	case command == "":
		server.Command, err = os.Executable()
		if strings.Contains(server.Command, "go-build") { // the program of go run is gone when the client looks for it
			return server, usageError{fmt.Errorf("%s is a temporary program: build it (make build) and install with that one, or name it with --command", server.Command)}
		}
	case strings.ContainsAny(command, `/\`):
		server.Command, err = filepath.Abs(command)
	}
	if err != nil {
		return server, fmt.Errorf("find the program: %w", err)
	}
	if at.Scope == clients.User && s.workspace != "" {
		server.Workspace = at.Project
	}
	if s.policy != "" {
		server.Policy, err = filepath.Abs(s.policy)
	}
	return server, err
}

// make makes the change, or shows it, and says what came of it.
func (p *placement) make(t terminal, client clients.Client, scope clients.Scope, change clients.Change) error {
	entry := fmt.Sprintf("%s in %s (%s scope): %s", p.name, client.Title, scope, change.Path)
	say := func(format string, args ...any) error {
		_, err := fmt.Fprintf(t.out, format+"\n", args...)
		return err
	}
	switch {
	case change.Action == clients.Already:
		return say("already installed: %s", entry)
	case change.Action == clients.Absent:
		return say("not installed: %s", entry)
	case change.Action == clients.Differs:
		if err := say("%s\n%s", entry, change.Diff); err != nil {
			return err
		}
		return fmt.Errorf("an entry %s is there already and says something else; nothing was changed: --force replaces it, --name adds another one", p.name)
	case p.print:
		return say("would %s %s\n%s", change.Action, entry, change.Diff)
	}
	if err := change.Write(); err != nil {
		return unusable(err)
	}
	past := map[clients.Action]string{clients.Add: "added", clients.Replace: "replaced", clients.Remove: "removed", clients.Delete: "removed, with the file that held nothing else"}
	if err := say("%s: %s", past[change.Action], entry); err != nil {
		return err
	}
	if backup := change.Backup(); backup != "" {
		if err := say("as it was before: %s", backup); err != nil {
			return err
		}
	}
	if note := client.Note(scope); note != "" && (change.Action == clients.Add || change.Action == clients.Replace) {
		return say("note: %s", note)
	}
	return nil
}
