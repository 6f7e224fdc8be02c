package project

import "time"

// Limits of a scan, used where Options leaves them at zero.
const (
	DefaultMaxFiles        = 20_000
	DefaultMaxBytes        = 256 << 20
	DefaultGitBudget       = 2 * time.Second
	maxReadBytes     int64 = 4 << 20  // a script, requirements file or document larger than this is not parsed
	maxConfigBytes   int64 = 1 << 20  // a larger JSON or YAML file is data, not configuration
	maxHashBytes     int64 = 32 << 20 // larger files are listed without their hash: hashing them is a job's work
)

// Options bounds a scan. The zero value is a good one.
type Options struct {
	Entrypoint string        // the script the caller named, relative to the root (an absolute path inside it is taken too)
	MaxFiles   int           // files listed at most, DefaultMaxFiles if zero
	MaxBytes   int64         // bytes hashed and bytes parsed at most, each over all files, DefaultMaxBytes if zero
	GitCeiling string        // topmost folder in which a repository is looked for; empty: up to the top of the file system
	Python     string        // interpreter that parses scripts; python3 of PATH if empty, none where it is "none"
	GitBudget  time.Duration // how long the state of the work tree may take, DefaultGitBudget if zero
}

// Place is a byte range of a file: Path is relative to the tree's root with slashes, Line is the physical line of Start
// counted from 1, and the text is content[Start:End].
type Place struct {
	Path  string `json:"path"`
	Line  int    `json:"line"`
	Start int    `json:"start"`
	End   int    `json:"end"`
}

// Tree is what a code tree says. All lists are in a fixed order, so that the same tree gives the same scan.
type Tree struct {
	Root         string       `json:"root"`
	Files        []File       `json:"files"`
	Entrypoints  []Entrypoint `json:"entrypoints"` // best first
	Configs      []Config     `json:"configs"`
	Dependencies []Dependency `json:"dependencies"`
	Git          *Git         `json:"git,omitempty"` // nil: no repository
	Docs         []string     `json:"docs"`
	DataFiles    []string     `json:"data_files"`
	Checkpoints  []string     `json:"checkpoints"`
	Traps        []Trap       `json:"traps"`
	Settings     []Setting    `json:"settings"` // what scripts fix in their text and a role is known for
	Launches     []Launch     `json:"launches"` // command lines that start a script
	ReadBy       string       `json:"read_by"`  // how Python was read: "syntax tree (Python 3.11)", or "text: " and why
}

// The kinds of a File.
const (
	KindPython     = "python"
	KindConfig     = "config"
	KindDoc        = "doc"
	KindData       = "data"
	KindCheckpoint = "checkpoint"
	KindShell      = "shell"
	KindOther      = "other"
)

// File is one file of the tree. SHA256 is "sha256:<64 hex>", or empty for a file above 32 MiB or beyond Options.MaxBytes.
type File struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	Kind   string `json:"kind"`
}

// Entrypoint is a script that could start a training run. Score orders them and means nothing beside that; Reasons say
// what it is made of.
type Entrypoint struct {
	Path        string       `json:"path"`
	Score       float64      `json:"score"`
	Reasons     []string     `json:"reasons"`
	Arguments   []Argument   `json:"arguments"`
	Functions   []string     `json:"functions"` // top-level def names
	Definitions []Definition `json:"definitions"`
	HasMain     bool         `json:"has_main"` // if __name__ == "__main__"
	Imports     []string     `json:"imports"`  // top-level module names, sorted
	Hydra       *Hydra       `json:"hydra,omitempty"`
}

// Definition is a def or class at the top level of a script; its quote is the header line.
type Definition struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"` // function|class
	Place Place  `json:"place"`
}

// Argument is one option of a script: an argparse declaration, and where the syntax tree was read those of click, typer, absl, fire and
// parsed dataclasses. Default holds a literal as Go sees it (nil, bool, int64, float64, string, []any),
// after the conversion argparse itself makes of a text default with type=int or float. A default that is no literal has
// Default nil, HasDefault true and its source in DefaultText. A flag whose action implies its default (store_true) has
// HasDefault true and DefaultText empty.
type Argument struct {
	Flags        []string `json:"flags"` // "--learning-rate", "-l"; a positional: its name
	Name         string   `json:"name"`  // the first long flag with its dashes, else the first flag, or the positional's name
	Dest         string   `json:"dest"`
	Type         string   `json:"type,omitempty"`   // source text of type=
	Action       string   `json:"action,omitempty"` // source text of action=, without quotes
	Default      any      `json:"default,omitempty"`
	HasDefault   bool     `json:"has_default"`
	DefaultText  string   `json:"default_text,omitempty"`
	DefaultPlace *Place   `json:"default_place,omitempty"` // where the default is written when that is outside the call: a constant, set_defaults
	DefaultQuote string   `json:"default_quote,omitempty"` // the text at DefaultPlace
	Required     bool     `json:"required"`
	Positional   bool     `json:"positional"`
	IsFlag       bool     `json:"is_flag"` // takes no value
	Choices      []any    `json:"choices,omitempty"`
	Nargs        string   `json:"nargs,omitempty"`
	Help         string   `json:"help,omitempty"`
	Subcommand   string   `json:"subcommand,omitempty"` // of add_parser("…"), where the declaration belongs to one
	Role         string   `json:"role,omitempty"`       // see roles.go
	RoleReason   string   `json:"role_reason,omitempty"`
	Place        Place    `json:"place"`
	Quote        string   `json:"quote"` // verbatim text of the call, over as many lines as it takes
}

// Config is a JSON, YAML or TOML file that is read as configuration.
type Config struct {
	Path   string        `json:"path"`
	Format string        `json:"format"` // json|yaml|toml
	Values []ConfigValue `json:"values"`
}

// ConfigValue is a leaf: a scalar or a list of scalars. Key is dotted, list positions are numbers ("stages.0.lr"); in a
// file of several YAML documents the later ones begin with their number ("1.lr"). Value follows YAML as Python's loaders
// read it: yes and no are booleans.
type ConfigValue struct {
	Key        string `json:"key"`
	Value      any    `json:"value"`
	Role       string `json:"role,omitempty"`
	RoleReason string `json:"role_reason,omitempty"`
	Include    bool   `json:"include,omitempty"` // the value is the name of a file whose values stand here
	Place      Place  `json:"place"`
	Quote      string `json:"quote"` // verbatim, from the key to the end of the value's line, at most 400 bytes
}

// Dependency is a package the project says it needs, or imports without saying so (then Constraint is empty, Imported
// is true and Name is the module's).
type Dependency struct {
	Name       string `json:"name"`
	Constraint string `json:"constraint"`
	Imported   bool   `json:"imported,omitempty"`
	Place      Place  `json:"place"`
}

// Git is the state of the repository that holds the tree. Dirty means that a tracked file differs from the commit, as in
// `git describe --dirty`; untracked files are listed beside it. Paths are relative to Git.Root. A repository that can't be
// read, or whose state was not found out in time, says so in Error and leaves the rest as far as it was known.
type Git struct {
	Root      string   `json:"root"`
	Commit    string   `json:"commit,omitempty"`
	Branch    string   `json:"branch,omitempty"` // empty when HEAD is detached
	Dirty     bool     `json:"dirty"`
	Modified  []string `json:"modified"`
	Untracked []string `json:"untracked"`
	Error     string   `json:"error,omitempty"`
}

// The kinds of a Trap.
const (
	TrapSilentResume = "silent_resume"       // an existing checkpoint is loaded although nobody asked to resume
	TrapInventedData = "invented_data"       // a missing file is replaced by random values
	TrapYAMLText     = "yaml_number_is_text" // PyYAML reads 1e-3 as the text "1e-3"
)

// Trap is a place that does something else than its reader expects.
type Trap struct {
	Kind  string `json:"kind"`
	What  string `json:"what"`
	Place Place  `json:"place"`
}

// Entrypoint returns the entry point at path (relative to the root, slashes), or nil.
func (s *Tree) Entrypoint(path string) *Entrypoint {
	for i := range s.Entrypoints {
		if s.Entrypoints[i].Path == path {
			return &s.Entrypoints[i]
		}
	}
	return nil
}
