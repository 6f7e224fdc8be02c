package local

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

//go:embed probe.py
var probeScript string

// probeLimit bounds one interpreter's answer: a cold environment on a network file system, or a machine at its limit, takes many
// seconds, and a wrong "no usable Python" stops a run.
const probeLimit = 45 * time.Second

// probe is what probe.py prints.
type probe struct {
	Version    string        `json:"version"`
	Executable string        `json:"executable"`
	Prefix     string        `json:"prefix"`
	Modules    []probeModule `json:"modules"`
	// Packages answer for the packages that were asked for, in their order.
	Packages []probePackage `json:"packages"`
	// Pip says that the interpreter has pip, Managed that the system's package manager keeps pip out (PEP 668).
	Pip     bool `json:"pip"`
	Managed bool `json:"managed"`
}

// probePackage is a distribution. The version of one that is only known by its module may be empty.
type probePackage struct {
	Name    string `json:"name"`
	Found   bool   `json:"found"`
	Version string `json:"version"`
}

type probeModule struct {
	Name    string `json:"name"`
	Found   bool   `json:"found"`
	Origin  string `json:"origin"`
	Version string `json:"version"`
	Error   string `json:"error"`
	// Shadows is where the module would come from if the script's folder did not have one of that name.
	Shadows string `json:"shadows"`
}

// probePython asks an interpreter what it is and which modules and packages it finds. Directory takes the place of the
// script's own, where Python looks first.
func probePython(ctx context.Context, python, directory string, environ, modules, packages []string) (probe, error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, python, slices.Concat([]string{"-c", probeScript}, modules, []string{"--"}, packages)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = directory, environ, &stdout, &stderr
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return probe{}, fmt.Errorf("%s did not answer within %s", python, probeLimit)
	case err != nil:
		said := strings.TrimSpace(stderr.String())
		return probe{}, fmt.Errorf("%s: %w: %s", python, err, said[strings.LastIndexByte(said, '\n')+1:])
	}
	// What a site customisation prints stands before the answer.
	answer := strings.TrimSpace(stdout.String())
	answer = answer[strings.LastIndexByte(answer, '\n')+1:]
	var out probe
	if err := json.Unmarshal([]byte(answer), &out); err != nil || out.Version == "" {
		return probe{}, fmt.Errorf("%s is no Python 3: it answered %.80q", python, answer)
	}
	return out, nil
}

func pythonNames() []string {
	if runtime.GOOS == "windows" {
		return []string{"python.exe", "python3.exe"}
	}
	return []string{"python3", "python"}
}

// environmentPython is the interpreter of a virtual or conda environment.
func environmentPython(root string) string {
	if runtime.GOOS != "windows" {
		return filepath.Join(root, "bin", "python")
	}
	inScripts := filepath.Join(root, "Scripts", "python.exe")
	if _, err := os.Stat(inScripts); err == nil {
		return inScripts
	}
	return filepath.Join(root, "python.exe")
}

// onPath is the first executable file of that name, "" where there is none.
func onPath(name, path string) string {
	for _, directory := range filepath.SplitList(path) {
		file := filepath.Join(directory, name)
		info, err := os.Stat(file)
		if err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) && filepath.IsAbs(file) {
			return file
		}
	}
	return ""
}

// try asks the interpreter at a place. Found on PATH it may be a shim that chooses by directory; then the interpreter behind
// it is what is kept, so that the job gets the one that was looked at.
func (r *Runtime) try(ctx context.Context, projectRoot string, at candidate) (jobs.Python, error) {
	directory := ""
	if info, err := os.Stat(projectRoot); err == nil && info.IsDir() {
		directory = projectRoot
	}
	answer, err := probePython(ctx, at.path, directory, r.environ, nil, nil)
	if err != nil {
		return jobs.Python{}, err
	}
	python := jobs.Python{Path: at.path, Version: answer.Version, Prefix: answer.Prefix, Why: at.why}
	if strings.HasSuffix(at.why, " on PATH") && filepath.IsAbs(answer.Executable) {
		python.Path = answer.Executable
	}
	return python, nil
}

// ChoosePython is the interpreter for a project, with the reason in Why: the one that was asked for (a path, a name on PATH
// or an environment's folder), else the project's own environment (.venv, venv, pixi's, conda's), else the active one, else
// python3 on PATH, else /usr/bin/python3. One that was asked for and does not answer is refused with python_missing; another one is passed over with
// the warning python_unusable, and a project whose own environment was declared but never made is told as
// environment_not_built. projectRoot may be empty.
func (r *Runtime) ChoosePython(ctx context.Context, projectRoot, asked string) (jobs.Python, []finding.Finding, error) {
	if asked != "" {
		python, err := r.try(ctx, projectRoot, candidate{path: r.resolve(projectRoot, asked), why: "asked for"})
		if err != nil {
			return jobs.Python{}, nil, finding.Refuse(pythonMissing(asked, err.Error()))
		}
		return python, nil, nil
	}
	var passed []finding.Finding
	for _, at := range r.candidates(projectRoot) {
		if _, err := os.Lstat(at.path); err != nil {
			continue
		}
		python, err := r.try(ctx, projectRoot, at)
		if err == nil {
			return python, append(passed, notBuilt(projectRoot, python)...), nil
		}
		if ctx.Err() != nil {
			return jobs.Python{}, passed, ctx.Err()
		}
		passed = append(passed, finding.Finding{Code: "python_unusable", Severity: finding.Warning,
			What:  fmt.Sprintf("%s was passed over: %v", at.why, err),
			Where: &finding.Where{Path: at.path}, Expected: "a Python 3 that starts", Remedy: "repair or remove this environment"})
	}
	return jobs.Python{}, passed, finding.Refuse(append([]finding.Finding{pythonMissing("", "no interpreter answered")}, passed...)...)
}

// resolve is the file that an asked interpreter names.
func (r *Runtime) resolve(projectRoot, asked string) string {
	if !strings.ContainsAny(asked, `/\`) {
		if path := onPath(asked, lookup(r.environ, "PATH")); path != "" {
			return path
		}
	}
	path := asked
	if !filepath.IsAbs(path) {
		path = filepath.Join(projectRoot, path)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return environmentPython(path)
	}
	return path
}

func pythonMissing(asked, why string) finding.Finding {
	f := finding.Finding{Code: "python_missing", Severity: finding.Error, What: "there is no usable Python: " + why,
		Expected: "a Python 3 interpreter that starts", Remedy: "name one in launch.environment.python, or install python3"}
	if asked != "" {
		f.Where = &finding.Where{Field: "launch.environment.python", Path: asked}
	}
	return f
}
