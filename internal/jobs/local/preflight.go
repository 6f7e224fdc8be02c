package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

// PreflightSpec is what a job needs before it may start. Empty fields are not checked; relative paths start at WorkDir.
type PreflightSpec struct {
	// Command is the program, the first word of the argv: a name on PATH or a path.
	Command string
	// Python is the interpreter that will run, as ChoosePython takes it. It is looked for when it is named, when there are
	// Imports or Packages, or when the entry point is a .py file.
	Python     string
	WorkDir    string
	Entrypoint string
	// Imports are modules that the interpreter must find; they are not imported.
	Imports []string
	// Packages are requirements such as "torch>=2.0" that the interpreter must satisfy (PEP 508); "python>=3.10" speaks of
	// itself. One with a condition is not checked.
	Packages []string
	// Inputs must exist and be readable; a directory must be listable.
	Inputs []string
	// OutputDir must be writable; where it is not there yet, its nearest parent must be.
	OutputDir string
	// NeedDiskMB is what the job writes beside its checkpoints, of which KeptCheckpoints of CheckpointMB each are on the disk
	// at once. A checkpoint that is being written stands beside the ones that are kept.
	NeedDiskMB, CheckpointMB int64
	KeptCheckpoints          int
	Resources                jobs.Resources
	// MemoryEstimateMB and GPUMemoryEstimateMB are what the plan expects the job to hold; being an estimate, a figure beyond
	// what there is warns and stops nothing.
	MemoryEstimateMB, GPUMemoryEstimateMB int64
	// Checkpoints are files or folders that the job starts from: they must be readable and not empty.
	Checkpoints []string
	// Env is what the job adds to its environment, such as PYTHONPATH.
	Env map[string]string
	// PassEnv are the variables that pass although they look like secrets.
	PassEnv []string
}

// Report is what a preflight saw.
type Report struct {
	OK     bool         `json:"ok"`
	Checks []Check      `json:"checks"`
	Python *jobs.Python `json:"python,omitempty"`
}

// Check is one thing that was looked at. Evidence is what was seen, whether good or not.
type Check struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`
	Evidence string `json:"evidence"`
}

// preflight collects the checks of one spec.
type preflight struct {
	spec     PreflightSpec
	report   Report
	findings []finding.Finding
}

// Preflight looks at everything the job needs, without running any of its code, and reports all that is missing at once.
// The error is only for a ctx that ended.
func (r *Runtime) Preflight(ctx context.Context, spec PreflightSpec) (Report, []finding.Finding, error) {
	p := &preflight{spec: spec}
	p.command(r)
	p.entrypoint()
	if spec.Python != "" || len(spec.Imports)+len(spec.Packages) > 0 || strings.HasSuffix(spec.Entrypoint, ".py") {
		if python, ok := p.python(ctx, r); ok {
			p.installed(ctx, r, python)
		}
	}
	p.inputs()
	p.checkpoints()
	p.output()
	p.resources(ctx, r)
	p.estimates(ctx, r)
	p.report.OK = !finding.Has(p.findings, finding.Error)
	return p.report, p.findings, ctx.Err()
}

func (p *preflight) good(name, format string, args ...any) {
	p.report.Checks = append(p.report.Checks, Check{Name: name, OK: true, Evidence: fmt.Sprintf(format, args...)})
}

// bad records a failed check and its finding. Where a warning is enough the check itself is passed.
func (p *preflight) bad(name string, f finding.Finding) {
	if f.Severity == "" {
		f.Severity = finding.Error
	}
	p.report.Checks = append(p.report.Checks, Check{Name: name, OK: f.Severity != finding.Error, Evidence: f.What})
	p.findings = append(p.findings, f)
}

func (p *preflight) path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.spec.WorkDir, path)
}

func (p *preflight) entrypoint() {
	if p.spec.Entrypoint == "" {
		return
	}
	path := p.path(p.spec.Entrypoint)
	bytes, err := readable(path)
	if err == nil {
		if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
			err = fmt.Errorf("%s is a directory", path)
		}
	}
	if err != nil {
		p.bad("entrypoint", finding.Finding{Code: "entrypoint_missing", What: "the entry point can't be read: " + err.Error(),
			Where: &finding.Where{Path: path}, Expected: "a readable script", Remedy: "write it in phase 4 or name another entry point"})
		return
	}
	p.good("entrypoint", "%s, %d bytes", path, bytes)
}

// readable opens path and tells its size; a directory is listed.
func readable(path string) (bytes int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if info.IsDir() {
		_, err = os.ReadDir(path)
	}
	return info.Size(), err
}

func (p *preflight) python(ctx context.Context, r *Runtime) (jobs.Python, bool) {
	python, findings, err := r.ChoosePython(ctx, p.spec.WorkDir, p.spec.Python)
	p.findings = append(p.findings, findings...)
	if err != nil {
		p.bad("python", pythonMissing(p.spec.Python, err.Error()))
		return python, false
	}
	p.report.Python = &python
	p.good("python", "%s, version %s, %s", python.Path, python.Version, python.Why)
	return python, true
}

// installed asks the interpreter for the modules and packages, in the environment and the folder of the job.
func (p *preflight) installed(ctx context.Context, r *Runtime, python jobs.Python) {
	wanted := p.requirements(python)
	if len(p.spec.Imports)+len(wanted) == 0 {
		return
	}
	directory := existing(p.spec.WorkDir)
	if p.spec.Entrypoint != "" {
		directory = existing(filepath.Dir(p.path(p.spec.Entrypoint)))
	}
	names := make([]string, len(wanted))
	for i, w := range wanted {
		names[i] = w.name
	}
	answer, err := probePython(ctx, python.Path, directory, p.environ(r), p.spec.Imports, names)
	if err != nil {
		p.bad("imports", pythonMissing(p.spec.Python, err.Error()))
		return
	}
	p.imports(python, answer)
	p.packages(r, python, wanted, answer)
}

// environ is the environment that the command will have.
func (p *preflight) environ(r *Runtime) []string {
	return commandEnviron(jobs.Inherited(r.environ, p.spec.PassEnv), "", jobs.Request{Env: p.spec.Env})
}

func (p *preflight) imports(python jobs.Python, answer probe) {
	for _, module := range answer.Modules {
		name := "import:" + module.Name
		if module.Found && module.Shadows != "" {
			p.bad(name, finding.Finding{Code: "import_shadowed", Severity: finding.Warning,
				What:  fmt.Sprintf("%s would be imported from %s, which hides %s", module.Name, module.Origin, module.Shadows),
				Where: &finding.Where{Path: module.Origin, Field: module.Name}, Expected: "a name that no installed module has", Remedy: "rename the file, unless the project means its own"})
			continue
		}
		if module.Found {
			p.good(name, "%s", strings.TrimSpace(module.Name+" "+module.Version+" at "+module.Origin))
			continue
		}
		what := fmt.Sprintf("%s does not find the module %s", python.Path, module.Name)
		if module.Error != "" {
			what += ": " + module.Error
		}
		p.bad(name, finding.Finding{Code: "import_missing", What: what, Where: &finding.Where{Path: python.Path, Field: module.Name},
			Expected: "a module in " + answer.Prefix, Remedy: "install it there, if that is authorised, or name an interpreter that has it"})
	}
}

func (p *preflight) inputs() {
	for _, input := range p.spec.Inputs {
		path := p.path(input)
		bytes, err := readable(path)
		if err != nil {
			p.bad("input:"+input, finding.Finding{Code: "input_missing", What: "the input can't be read: " + err.Error(),
				Where: &finding.Where{Path: path}, Expected: "a readable file or directory", Remedy: "bring it there or correct the path"})
			continue
		}
		p.good("input:"+input, "%s, %d bytes", path, bytes)
	}
}

// output writes a probe file and removes it.
func (p *preflight) output() {
	if p.spec.OutputDir == "" {
		return
	}
	wanted := p.path(p.spec.OutputDir)
	directory := existing(wanted)
	probe, err := os.CreateTemp(directory, ".trainwright-probe-*")
	if err == nil {
		_, err = probe.WriteString("probe\n")
		if closed := probe.Close(); err == nil {
			err = closed
		}
		if removed := os.Remove(probe.Name()); err == nil {
			err = removed
		}
	}
	if err != nil {
		p.bad("output_dir", finding.Finding{Code: "output_not_writable", What: "the output directory can't be written: " + err.Error(),
			Where: &finding.Where{Path: directory}, Expected: "a directory that this user may write", Remedy: "choose another code_save_dir or change its permissions"})
		return
	}
	if directory != wanted {
		p.good("output_dir", "%s is not there yet; %s is writable", wanted, directory)
		return
	}
	p.good("output_dir", "%s is writable", directory)
}
