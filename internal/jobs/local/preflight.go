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
	// Python is the interpreter that will run, as ChoosePython takes it. It is looked for when it is named, when there are
	// Imports, or when the entry point is a .py file.
	Python     string
	WorkDir    string
	Entrypoint string
	// Imports are modules that the interpreter must find; they are not imported.
	Imports []string
	// Inputs must exist and be readable; a directory must be listable.
	Inputs []string
	// OutputDir must be writable; where it is not there yet, its nearest parent must be.
	OutputDir  string
	NeedDiskMB int64
	Resources  jobs.Resources
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
	p.entrypoint()
	if spec.Python != "" || len(spec.Imports) > 0 || strings.HasSuffix(spec.Entrypoint, ".py") {
		if python, ok := p.python(ctx, r); ok {
			p.imports(ctx, r, python)
		}
	}
	p.inputs()
	p.output()
	p.resources(ctx, r)
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

func (p *preflight) imports(ctx context.Context, r *Runtime, python jobs.Python) {
	if len(p.spec.Imports) == 0 {
		return
	}
	directory := p.spec.WorkDir
	if p.spec.Entrypoint != "" {
		directory = existing(filepath.Dir(p.path(p.spec.Entrypoint)))
	}
	environ := commandEnviron(scrub(r.environ, p.spec.PassEnv), "", jobs.Request{Env: p.spec.Env})
	answer, err := probePython(ctx, python.Path, directory, environ, p.spec.Imports)
	if err != nil {
		p.bad("imports", pythonMissing(p.spec.Python, err.Error()))
		return
	}
	for _, module := range answer.Modules {
		name := "import:" + module.Name
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

// resources compares what is asked for with what the machine has.
func (p *preflight) resources(ctx context.Context, r *Runtime) {
	need := p.spec.Resources
	exceeded := func(name, code, unit string, asked, has int64) {
		switch {
		case asked == 0:
		case asked > has:
			p.bad(name, finding.Finding{Code: code, What: fmt.Sprintf("the job asks for %d %s and this machine has %d", asked, unit, has),
				Where: &finding.Where{Field: "resources." + name}, Expected: fmt.Sprintf("at most %d", has), Remedy: "ask for less or run on another site"})
		default:
			p.good(name, "%d of %d %s", asked, has, unit)
		}
	}
	exceeded("nodes", "nodes_exceeded", "nodes", int64(need.Nodes), 1)
	exceeded("cpus", "cpus_exceeded", "processors", int64(need.CPUs), int64(processors()))
	if need.GPUsPerNode > 0 {
		list, err := gpus(ctx, lookup(r.environ, "PATH"))
		if err != nil {
			p.unknown("gpus_per_node", err)
		} else {
			exceeded("gpus_per_node", "gpus_exceeded", "GPUs", int64(need.GPUsPerNode), int64(len(list)))
		}
	}
	if need.MemoryMB > 0 {
		total, free, err := memory(ctx)
		switch {
		case err != nil:
			p.unknown("memory_mb", err)
		case need.MemoryMB <= total && need.MemoryMB > free:
			p.bad("memory_mb", finding.Finding{Code: "memory_low", Severity: finding.Warning,
				What:  fmt.Sprintf("the job asks for %d MiB, of which %d are free now", need.MemoryMB, free),
				Where: &finding.Where{Field: "resources.memory_mb"}, Expected: "free memory", Remedy: "end other work first, or ask for less"})
		default:
			exceeded("memory_mb", "memory_exceeded", "MiB of memory", need.MemoryMB, total)
		}
	}
	p.disk(ctx)
}

func (p *preflight) disk(ctx context.Context) {
	if p.spec.NeedDiskMB == 0 {
		return
	}
	directory := existing(p.path(p.spec.OutputDir))
	free, err := diskFree(ctx, directory)
	switch {
	case err != nil:
		p.unknown("disk", err)
	case free < p.spec.NeedDiskMB:
		p.bad("disk", finding.Finding{Code: "disk_low", What: fmt.Sprintf("the job needs %d MiB and %d are free", p.spec.NeedDiskMB, free),
			Where: &finding.Where{Path: directory}, Expected: fmt.Sprintf("%d MiB free", p.spec.NeedDiskMB), Remedy: "free space, keep fewer checkpoints or choose another directory"})
	default:
		p.good("disk", "%d MiB of %d free in %s", p.spec.NeedDiskMB, free, directory)
	}
}

// unknown records what could not be compared: no reason to stop, and said all the same.
func (p *preflight) unknown(name string, err error) {
	p.bad(name, finding.Finding{Code: "facility_unknown", Severity: finding.Warning, What: name + " can't be compared: " + err.Error(),
		Where: &finding.Where{Field: "resources." + name}, Expected: "an answer of the system", Remedy: "go on; the job fails if there is not enough"})
}
