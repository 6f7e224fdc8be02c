package review

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/pyprobe"
)

// The probe reads the files of a project (modules.py) and what stands in each (reader.py).
//
//go:embed reader.py
var reader string

//go:embed modules.py
var modules string

// Limits of one review. A project that goes beyond them is reviewed in part, and the checks say so.
const (
	MaxFiles = 400
	MaxBytes = 8 << 20
	limit    = 2 * time.Minute
)

// shown is how many findings of one class are told; the last one counts the rest.
const shown = 5

// Spec is what is reviewed.
type Spec struct {
	// Python is the interpreter, started as `python -I -c`: without the user's site and without the project on its path.
	Python string
	// Entry is the script, absolute. Its imports start in its folder.
	Entry string
	// Root is the project's folder: modules outside of it and of Entry's folder are not read.
	Root string
	// Passed are the options that the run passes to the script: what stands as their default is not used.
	Passed []string
	// Data are the files that hold the data before it was split, absolute: a script that names one reads more than its part.
	Data []string
	// NoNetwork says that the network was refused, so that a download is an error.
	NoNetwork bool
	// Installed says for each module whether the interpreter that will run finds it, with a reason where it does not. Nil
	// leaves out what is no module of the project: the job runs elsewhere.
	Installed func(ctx context.Context, modules []string) (missing map[string]string, err error)
	// Lenient makes a module that is not installed a warning: nothing is going to run here.
	Lenient bool
}

// Check is one class of what was looked for. Why says how, and what was left out.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Why  string `json:"why"`
}

// Report is what a review came to. Files are those that were read, absolute, the entry first. Modules are those that the
// script can't do without and that are no part of the project: imported whenever it runs, outside of functions and branches.
// They are empty where the script changes sys.path, and nobody can say where it finds them.
type Report struct {
	By       string            `json:"by"`
	Files    []string          `json:"files"`
	Modules  []string          `json:"modules"`
	Checks   []Check           `json:"checks"`
	Findings []finding.Finding `json:"findings"`
}

// place is where the probe found something.
type place struct {
	Path   string `json:"path"`
	Line   int    `json:"line"`
	Text   string `json:"text"`
	Call   string `json:"call"`
	Module string `json:"module"`
	What   string `json:"what"`
	Why    string `json:"why"`
	Lazy   bool   `json:"lazy"`
	// Library is random, numpy, torch or tensorflow.
	Library string `json:"library"`
}

func (p place) where() *finding.Where { return &finding.Where{Path: p.Path, Line: p.Line} }

// answer is what the probe prints.
type answer struct {
	Version    string   `json:"version"`
	Files      []string `json:"files"`
	LeftOut    []string `json:"left_out"`
	Syntax     []place  `json:"syntax"`
	External   []place  `json:"external"`
	Unresolved []place  `json:"unresolved"`
	SysPath    []place  `json:"sys_path"`
	Absolute   []place  `json:"absolute"`
	Downloads  []place  `json:"downloads"`
	Random     []place  `json:"random"`
	Data       []place  `json:"data"`
	Seeds      []string `json:"seeds"`
}

// Script reviews the script and every module of its project that it imports, directly or not. It runs none of them. The
// findings are does_not_compile, import_unresolved, absolute_path, data_named, hidden_download and randomness_unseeded; an interpreter
// that does not answer is compile_unchecked. The error is only for a ctx that ended, or what Installed failed with.
func Script(ctx context.Context, spec Spec) (Report, error) { return script(ctx, spec, shown) }

func script(ctx context.Context, spec Spec, shown int) (Report, error) {
	said, err := ask(ctx, spec)
	if ctx.Err() != nil {
		return Report{}, ctx.Err()
	}
	if err != nil {
		return Report{Checks: []Check{{Name: "compiles", Why: "the interpreter could not read the script"}}, Findings: []finding.Finding{{Code: "compile_unchecked", Severity: finding.Error,
			What: err.Error(), Where: &finding.Where{Path: spec.Entry}, Expected: "an interpreter that works", Remedy: "name one in environment_requirements.python"}}}, nil
	}
	r := reviewer{spec: spec, said: said, shown: shown, report: Report{By: fmt.Sprintf("ast of %s (Python %s)", spec.Python, said.Version), Files: said.Files}}
	r.syntax()
	if len(said.Syntax) > 0 {
		return r.report, nil
	}
	if err := r.imports(ctx); err != nil {
		return r.report, err
	}
	r.absolute()
	r.data()
	r.downloads()
	r.randomness()
	return r.report, nil
}

func ask(ctx context.Context, spec Spec) (answer, error) {
	roots := []string{filepath.Dir(spec.Entry)}
	top := spec.Root
	if top == "" {
		top = roots[0]
	}
	passed := spec.Passed
	if passed == nil {
		passed = []string{}
	}
	question := map[string]any{"entry": spec.Entry, "roots": roots, "top": top, "max_files": MaxFiles, "max_bytes": MaxBytes, "passed": passed, "data": append([]string{}, spec.Data...)}
	var said answer
	err := pyprobe.Ask(ctx, spec.Python, reader+modules, question, limit, &said)
	return said, err
}
