package clients

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// Scope says for whom an entry is: one project, or everything that a user opens.
type Scope string

// The two scopes.
const (
	Project Scope = "project"
	User    Scope = "user"
)

// Client is a program that starts MCP servers.
type Client struct {
	Name    string // as on the command line
	Title   string
	Default Scope // User where the client starts servers in the folder it is opened in, else Project

	format format
	spot   spot
	files  func(System, Scope, string) []string // candidates, the one to create last
	entry  func(Server, Scope) members
	editor bool // it starts servers in no folder of the user's: one has to be named
	note   map[Scope]string
}

// System is where the files of the user lie: OS as in runtime.GOOS, the home folder, and the environment.
type System struct {
	OS, Home string
	Getenv   func(string) string
}

// Server is what a client is to start: Command serve, with --workspace and --policy where they are given. Name is the
// entry's; Workspace and Policy are absolute paths or empty.
type Server struct {
	Name, Command, Workspace, Policy string
}

// longestWait is how long a tool call may take in the entries of clients that would give up earlier: trainwright waits at
// most 600 s for a job, and needs some time to answer.
const longestWait = 660 // seconds

const trusted = "Gemini CLI starts servers only in folders that it trusts"

// all lists the clients in the order in which they are named.
var all = []Client{
	{
		Name: "claude-code", Title: "Claude Code", Default: User, format: jsonFormat, spot: spot{keys: []string{"mcpServers"}, strict: true},
		files: func(s System, scope Scope, project string) []string {
			if scope == Project {
				return []string{filepath.Join(project, ".mcp.json")}
			}
			return []string{filepath.Join(s.folder("CLAUDE_CONFIG_DIR", s.Home), ".claude.json")}
		},
		entry: typed, note: map[Scope]string{Project: "Claude Code asks once before it starts a server of .mcp.json"},
	},
	{
		Name: "codex", Title: "Codex", Default: User, format: tomlFormat, spot: spot{keys: []string{"mcp_servers"}},
		files: func(s System, scope Scope, project string) []string {
			if scope == Project {
				return []string{filepath.Join(project, ".codex", "config.toml")}
			}
			return []string{filepath.Join(s.folder("CODEX_HOME", filepath.Join(s.Home, ".codex")), "config.toml")}
		},
		// tool_timeout_sec is 60 where it is not given.
		entry: func(s Server, scope Scope) members {
			return append(plain(s, scope), member{"tool_timeout_sec", longestWait})
		},
		note: map[Scope]string{Project: "Codex reads .codex/config.toml only in projects that it trusts"},
	},
	{
		Name: "gemini", Title: "Gemini CLI", Default: User, format: jsonFormat, spot: spot{keys: []string{"mcpServers"}},
		files: func(s System, scope Scope, project string) []string {
			if scope == Project {
				return []string{filepath.Join(project, ".gemini", "settings.json")}
			}
			return []string{filepath.Join(s.folder("GEMINI_CLI_HOME", s.Home), ".gemini", "settings.json")}
		},
		// timeout is in milliseconds, and 600000 where it is not given.
		entry: func(s Server, scope Scope) members {
			return append(plain(s, scope), member{"timeout", longestWait * 1000})
		},
		note: map[Scope]string{Project: trusted, User: trusted},
	},
	{
		Name: "opencode", Title: "OpenCode", Default: User, format: jsonFormat, spot: spot{keys: []string{"mcp"}, schema: "https://opencode.ai/config.json"},
		files: func(s System, scope Scope, project string) []string {
			if scope == User {
				project = filepath.Join(s.configHome(), "opencode")
			}
			return []string{filepath.Join(project, "opencode.jsonc"), filepath.Join(project, "opencode.json")}
		},
		// timeout is in milliseconds. It is for requests too, and shorter where it is not given.
		entry: func(s Server, _ Scope) members {
			command := append([]string{s.Command}, s.arguments()...)
			return members{{"type", "local"}, {"command", command}, {"timeout", longestWait * 1000}}
		},
	},
	{
		Name: "vscode", Title: "Visual Studio Code", Default: Project, format: jsonFormat, spot: spot{keys: []string{"servers"}}, editor: true,
		files: func(s System, scope Scope, project string) []string {
			if scope == Project {
				return []string{filepath.Join(project, ".vscode", "mcp.json")}
			}
			return []string{filepath.Join(s.applicationData(), "Code", "User", "mcp.json")}
		},
		entry: typed, note: map[Scope]string{User: "this is the default profile's; other profiles have a mcp.json of their own"},
	},
	{
		Name: "cursor", Title: "Cursor", Default: Project, format: jsonFormat, spot: spot{keys: []string{"mcpServers"}}, editor: true,
		files: func(s System, scope Scope, project string) []string {
			if scope == User {
				project = s.Home
			}
			return []string{filepath.Join(project, ".cursor", "mcp.json")}
		},
		entry: typed,
	},
}

// Names gives the names of the clients.
func Names() []string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.Name
	}
	return names
}

// Find gives the client of a name; an unknown one is refused (client_unknown) with the names there are.
func Find(name string) (Client, error) {
	i := slices.IndexFunc(all, func(c Client) bool { return c.Name == name })
	if i >= 0 {
		return all[i], nil
	}
	remedy := "use one of these names"
	if near := finding.Nearest(name, Names()); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near)
	}
	return Client{}, refuse("client_unknown", fmt.Sprintf("there is no client %q", name), "", strings.Join(Names(), ", "), remedy)
}

// Note is what a user should know of the scope; empty where there is nothing to say.
func (c Client) Note(scope Scope) string { return c.note[scope] }

// arguments are those of the command: serve and what it needs.
func (s Server) arguments() []string {
	arguments := []string{"serve"}
	if s.Workspace != "" {
		arguments = append(arguments, "--workspace", s.Workspace)
	}
	if s.Policy != "" {
		arguments = append(arguments, "--policy", s.Policy)
	}
	return arguments
}

func plain(s Server, _ Scope) members {
	return members{{"command", s.Command}, {"args", s.arguments()}}
}

func typed(s Server, scope Scope) members {
	return append(members{{"type", "stdio"}}, plain(s, scope)...)
}

// folder is the one that the environment names, else the usual one.
func (s System) folder(variable, usual string) string {
	if named := s.Getenv(variable); filepath.IsAbs(named) {
		return named
	}
	return usual
}

// configHome is where programs that follow the XDG Base Directory Specification keep their configuration.
func (s System) configHome() string {
	return s.folder("XDG_CONFIG_HOME", filepath.Join(s.Home, ".config"))
}

// applicationData is the folder in which Electron programs keep theirs.
func (s System) applicationData() string {
	switch s.OS {
	case "windows":
		return s.folder("APPDATA", filepath.Join(s.Home, "AppData", "Roaming"))
	case "darwin":
		return filepath.Join(s.Home, "Library", "Application Support")
	}
	return s.configHome()
}

func refuse(code, what, path, expected, remedy string) error {
	f := finding.Finding{Code: code, Severity: finding.Error, What: what, Expected: expected, Remedy: remedy}
	if path != "" {
		f.Where = &finding.Where{Path: path}
	}
	return finding.Refuse(f)
}
