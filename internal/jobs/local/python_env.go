package local

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

// The kinds of an Environment.
const (
	KindVenv   = "venv"
	KindUV     = "uv"
	KindConda  = "conda"
	KindPixi   = "pixi"
	KindSystem = "system"
)

// Environment is a place where a Python was looked for. Problem says why it is not used, or is empty.
type Environment struct {
	Kind    string `json:"kind"`
	Path    string `json:"path"`
	Version string `json:"version,omitempty"`
	Why     string `json:"why"`
	Chosen  bool   `json:"chosen,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// candidate is a place where an interpreter may be.
type candidate struct{ kind, path, why string }

// candidates lists the places for a project in the order in which they are preferred: its own environments, the active
// one, what is on PATH, the system's.
func (r *Runtime) candidates(projectRoot string) []candidate {
	var out []candidate
	if projectRoot != "" {
		out = r.ownEnvironments(projectRoot)
	}
	for _, variable := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if root := lookup(r.environ, variable); root != "" {
			out = append(out, candidate{environmentKind(root), environmentPython(root), "the active environment, " + variable})
		}
	}
	for _, name := range pythonNames() {
		if path := onPath(name, lookup(r.environ, "PATH")); path != "" {
			out = append(out, candidate{KindSystem, path, name + " on PATH"})
			break
		}
	}
	if runtime.GOOS != "windows" {
		out = append(out, candidate{KindSystem, "/usr/bin/python3", "the system's"})
	}
	return out
}

// ownEnvironments are those inside the project, and the conda environment that its environment.yml names.
func (r *Runtime) ownEnvironments(projectRoot string) []candidate {
	var out []candidate
	for _, name := range []string{".venv", "venv"} {
		root := filepath.Join(projectRoot, name)
		why := "the project's " + name
		kind := environmentKind(root)
		if kind == KindUV {
			why += ", made by uv"
		}
		out = append(out, candidate{kind, environmentPython(root), why})
	}
	out = append(out, candidate{KindPixi, environmentPython(filepath.Join(projectRoot, ".pixi", "envs", "default")), "the project's pixi environment, default"})
	for _, name := range []string{".conda", "env", ".env"} {
		if root := filepath.Join(projectRoot, name); environmentKind(root) == KindConda {
			out = append(out, candidate{KindConda, environmentPython(root), "the project's conda environment, " + name})
		}
	}
	if file, name := condaName(projectRoot); name != "" {
		for _, base := range r.condaBases() {
			out = append(out, candidate{KindConda, environmentPython(filepath.Join(base, "envs", name)), fmt.Sprintf("the conda environment %s that the project's %s names", name, file)})
		}
	}
	return out
}

// environmentKind tells by what a tool leaves in an environment: conda a conda-meta, uv a key in pyvenv.cfg.
func environmentKind(root string) string {
	if info, err := os.Stat(filepath.Join(root, "conda-meta")); err == nil && info.IsDir() {
		return KindConda
	}
	if data, err := os.ReadFile(filepath.Join(root, "pyvenv.cfg")); err == nil && uvKey.Match(data) {
		return KindUV
	}
	return KindVenv
}

var (
	uvKey    = regexp.MustCompile(`(?m)^uv\s*=`)
	condaKey = regexp.MustCompile(`(?m)^name\s*:\s*["']?([A-Za-z0-9._-]+)["']?\s*(?:#.*)?$`)
)

// condaName is the environment that a project's environment.yml names.
func condaName(projectRoot string) (file, name string) {
	for _, file := range []string{"environment.yml", "environment.yaml"} {
		data, err := os.ReadFile(filepath.Join(projectRoot, file))
		if err != nil {
			continue
		}
		if match := condaKey.FindSubmatch(data); match != nil {
			return file, string(match[1])
		}
	}
	return "", ""
}

// condaBases are the folders that hold named conda environments: where conda or mamba say they are, else where their
// installers put them.
func (r *Runtime) condaBases() []string {
	var out []string
	if exe := lookup(r.environ, "CONDA_EXE"); exe != "" {
		out = append(out, filepath.Dir(filepath.Dir(exe)))
	}
	if base := lookup(r.environ, "MAMBA_ROOT_PREFIX"); base != "" {
		out = append(out, base)
	}
	if home := cmp.Or(lookup(r.environ, "HOME"), lookup(r.environ, "USERPROFILE")); home != "" {
		for _, name := range []string{"miniconda3", "miniforge3", "mambaforge", "anaconda3", "micromamba", ".conda"} {
			out = append(out, filepath.Join(home, name))
		}
	}
	return out
}

// Environ is the environment in which interpreters are asked. Jobs inherit it without what looks like a secret.
func (r *Runtime) Environ() []string { return slices.Clone(r.environ) }

// declared are the files by which a project says that an environment should be made for it, with the command that does.
var declared = []struct{ file, command string }{
	{"uv.lock", "uv sync"},
	{"pixi.lock", "pixi install"},
	{"pixi.toml", "pixi install"},
	{"environment.yml", "conda env create -f environment.yml"},
	{"environment.yaml", "conda env create -f environment.yaml"},
}

// notBuilt warns where the project declares an environment and another one than its own was taken.
func notBuilt(projectRoot string, taken jobs.Python) []finding.Finding {
	if projectRoot == "" || strings.HasPrefix(taken.Why, "the project's ") || strings.HasPrefix(taken.Why, "the conda environment ") {
		return nil
	}
	for _, d := range declared {
		file := filepath.Join(projectRoot, d.file)
		if _, err := os.Stat(file); err != nil {
			continue
		}
		return []finding.Finding{{Code: "environment_not_built", Severity: finding.Warning,
			What:  fmt.Sprintf("%s declares an environment that is not there; %s is taken instead (%s)", d.file, taken.Path, taken.Why),
			Where: &finding.Where{Path: file}, Expected: "the project's own environment", Remedy: d.command + ", if that is authorised, or name the interpreter in launch.environment.python"}}
	}
	return nil
}

// pythons lists every interpreter that answers, the preferred one first, each once, and every place that was looked at.
func (r *Runtime) pythons(ctx context.Context) ([]jobs.Python, []Environment, []finding.Finding) {
	pythons, places := []jobs.Python{}, []Environment{}
	seen, taken := map[string]bool{}, map[string]bool{}
	for _, at := range r.candidates(r.workspace) {
		if _, err := os.Lstat(at.path); err != nil || seen[at.path] {
			continue
		}
		seen[at.path] = true
		place := Environment{Kind: at.kind, Path: at.path, Why: at.why}
		python, err := r.try(ctx, r.workspace, at)
		switch {
		case err != nil:
			place.Problem = err.Error()
		case taken[python.Path]:
			place.Version, place.Problem = python.Version, "the same interpreter as one above"
		default:
			place.Version, place.Chosen, taken[python.Path] = python.Version, len(pythons) == 0, true
			pythons = append(pythons, python)
		}
		places = append(places, place)
	}
	if len(pythons) > 0 {
		return pythons, places, notBuilt(r.workspace, pythons[0])
	}
	missing := pythonMissing("", "no interpreter answered")
	missing.Severity = finding.Warning
	return pythons, places, []finding.Finding{missing}
}
