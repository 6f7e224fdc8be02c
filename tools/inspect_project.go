package tools

import (
	"context"
	"fmt"
	"path"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/project"
	"github.com/trainwright/trainwright/internal/rundir"
)

// InspectProjectInput asks what a code tree says.
type InspectProjectInput struct {
	Path string `json:"path,omitempty" jsonschema_description:"A folder, or the script itself; the workspace when left out."`
}

// InspectProjectOutput is what a scan of the tree found, without running any of it. Paths are relative to root.
type InspectProjectOutput struct {
	Root         string            `json:"root"`
	Entrypoints  []EntrypointView  `json:"entrypoints"` // best first
	Configs      []ConfigView      `json:"configs"`
	Dependencies []string          `json:"dependencies"`
	DataFiles    []string          `json:"data_files"`
	Checkpoints  []string          `json:"checkpoints"`
	Docs         []string          `json:"docs"`
	Traps        []project.Trap    `json:"traps"`
	ReadBy       string            `json:"read_by"`            // "syntax tree (Python 3.11)", or "text: " and why
	Settings     []SettingView     `json:"settings,omitempty"` // what the best script fixes in its text
	Launches     []LaunchView      `json:"launches,omitempty"` // command lines that start it
	Commit       string            `json:"commit,omitempty"`   // with " and changes" where tracked files differ from it
	Findings     []finding.Finding `json:"findings"`
	NextCall     *engine.NextCall  `json:"next_call,omitempty"`
}

// EntrypointView is a script that could start a training, why, and what it takes.
type EntrypointView struct {
	Path      string         `json:"path"`
	Reasons   []string       `json:"reasons"`
	Arguments []ArgumentView `json:"arguments,omitempty"`
}

// ArgumentView is one argument of a script: Role is the field of a training request that it carries, Line where it stands.
type ArgumentView struct {
	Name     string `json:"name"`
	Default  any    `json:"default,omitempty"`
	Required bool   `json:"required,omitempty"`
	Role     string `json:"role,omitempty"`
	Line     int    `json:"line"`
}

// ConfigView is a configuration file and those of its values whose meaning for a training is known.
type ConfigView struct {
	Path   string         `json:"path"`
	Values map[string]any `json:"values,omitempty"` // those that mean something here
	Others []string       `json:"others,omitempty"` // the keys of the others
}

// SettingView is a value that no argument can change, and where it stands.
type SettingView struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
	Role  string `json:"role"`
	At    string `json:"at"`
}

// LaunchView is a launch line, and where it stands.
type LaunchView struct {
	Line      string `json:"line"`
	At        string `json:"at"`
	WorldSize int    `json:"world_size,omitempty"`
}

const (
	shownEntrypoints = 5
	shownFiles       = 40
)

// inspectProject is the tool inspect_project.
func inspectProject(deps Deps) Tool {
	return typedTool("inspect_project",
		"Reads a code tree without running it: scripts that could train, ranked with reasons, their options (argparse, click, typer, Hydra, dataclasses, …) and fixed values, launch lines, configurations, dependencies, data files, checkpoints, git state, and traps such as a silent resume.",
		Annotations{ReadOnly: true, Idempotent: true},
		func(ctx context.Context, _ engine.Caller, in InspectProjectInput) (InspectProjectOutput, error) {
			e, err := deps.engine()
			if err != nil {
				return InspectProjectOutput{}, err
			}
			return projectAt(ctx, e.Roots, in.Path)
		},
		more[InspectProjectOutput]{toolset: SetWorkspace, rest: "name a folder further down", text: projectText, schema: brief[InspectProjectOutput]("entrypoints", "settings", "launches", "configs", "traps")})
}

// projectAt scans the folder at a path within the roots.
func projectAt(ctx context.Context, roots *rundir.Roots, at string) (InspectProjectOutput, error) {
	out := InspectProjectOutput{Entrypoints: []EntrypointView{}, Configs: []ConfigView{}, Dependencies: []string{}, Findings: []finding.Finding{}}
	if at == "" {
		at = "."
	}
	root, err := roots.Readable(at)
	if err != nil {
		return out, err
	}
	tree, found, err := project.Scan(ctx, root, project.Options{GitCeiling: roots.Workspace()})
	if err != nil {
		return out, err
	}
	out.Root, out.Findings = roots.Rel(tree.Root), append(out.Findings, found...)
	out.DataFiles, out.Checkpoints, out.Docs = some(tree.DataFiles), some(tree.Checkpoints), some(tree.Docs)
	out.Traps = append([]project.Trap{}, tree.Traps...)
	for _, e := range tree.Entrypoints[:min(len(tree.Entrypoints), shownEntrypoints)] {
		out.Entrypoints = append(out.Entrypoints, entrypointView(e))
	}
	out.ReadBy = tree.ReadBy
	if len(tree.Entrypoints) > 0 {
		best := tree.Entrypoints[0].Path
		for _, s := range tree.SettingsOf(best, "") {
			if len(out.Settings) < shownFiles {
				out.Settings = append(out.Settings, SettingView{Name: s.Name, Value: s.Value, Role: s.Role, At: fmt.Sprintf("%s:%d", s.Place.Path, s.Place.Line)})
			}
		}
		for _, l := range tree.LaunchesOf(best) {
			if len(out.Launches) < shownEntrypoints {
				out.Launches = append(out.Launches, LaunchView{Line: l.Quote, At: fmt.Sprintf("%s:%d", l.Place.Path, l.Place.Line), WorldSize: l.WorldSize})
			}
		}
	}
	for _, c := range tree.Configs {
		out.Configs = append(out.Configs, configView(c))
	}
	for _, d := range tree.Dependencies {
		said := d.Name + d.Constraint
		if d.Imported {
			said += " (imported, declared nowhere)"
		}
		out.Dependencies = append(out.Dependencies, said)
	}
	if tree.Git != nil {
		if out.Commit = tree.Git.Commit; tree.Git.Dirty {
			out.Commit += " and changes"
		}
	}
	out.NextCall = projectCall(out, tree)
	return out, nil
}

func entrypointView(e project.Entrypoint) EntrypointView {
	view := EntrypointView{Path: e.Path, Reasons: e.Reasons}
	for _, a := range e.Arguments {
		shown := ArgumentView{Name: a.Name, Default: a.Default, Required: a.Required, Role: a.Role, Line: a.Place.Line}
		if a.Default == nil && a.DefaultText != "" && a.DefaultText != "None" {
			shown.Default = a.DefaultText
		}
		view.Arguments = append(view.Arguments, shown)
	}
	return view
}

func configView(c project.Config) ConfigView {
	view := ConfigView{Path: c.Path}
	for _, v := range c.Values {
		if v.Role == "" {
			view.Others = append(view.Others, v.Key)
			continue
		}
		if view.Values == nil {
			view.Values = map[string]any{}
		}
		view.Values[v.Key] = v.Value
	}
	if view.Others != nil {
		view.Others = some(view.Others)
	}
	return view
}

// projectCall is the call that starts a step with what is certain: a script that is clearly the best, and the one data file.
func projectCall(out InspectProjectOutput, tree *project.Tree) *engine.NextCall {
	if len(tree.Entrypoints) == 0 || len(tree.Entrypoints) > 1 && tree.Entrypoints[0].Score <= tree.Entrypoints[1].Score {
		return nil
	}
	inputs := map[string]any{"model": map[string]any{"code_path": out.Root, "training_entrypoint": tree.Entrypoints[0].Path}}
	if len(tree.DataFiles) == 1 {
		inputs["data"] = map[string]any{"train_source": path.Join(out.Root, tree.DataFiles[0])}
	}
	return trainCall(inputs)
}

// some is the first of a list, with a last entry that says how many more there are.
func some(list []string) []string {
	if len(list) <= shownFiles {
		return append([]string{}, list...)
	}
	return append(append([]string{}, list[:shownFiles]...), fmt.Sprintf("… %d more", len(list)-shownFiles))
}

func projectText(out InspectProjectOutput) string {
	best := "no script that trains"
	if len(out.Entrypoints) > 0 {
		best = out.Entrypoints[0].Path + " looks like the script that trains"
	}
	return fmt.Sprintf("%s: %s, %d data files", out.Root, best, len(out.DataFiles))
}
