package local

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	pep440 "github.com/aquasecurity/go-pep440-version"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

// required is one entry of Packages, taken apart.
type required struct {
	text       string // as it was given
	name       string
	specifiers string // such as ">=2.0,<3", empty for any version
}

// requirementForm is PEP 508 with a name, extras, specifiers (in brackets or not) or a direct reference, and a condition.
var requirementForm = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[A-Za-z0-9,._\s-]*\])?\s*(@\s*[A-Za-z0-9:/._+@%-]+|\(?[<>=!~][A-Za-z0-9<>=!~,.*+\s-]*\)?)?\s*(;.*)?$`)

// condaPin is conda's single "=", which pins the first parts of a version.
var condaPin = regexp.MustCompile(`^=([0-9][0-9.]*)$`)

// distributionOf names the distributions that are often called by another name.
var distributionOf = map[string]string{"pytorch": "torch"}

// requirements takes Packages apart. What they say of Python itself is judged here; what can't be judged is a warning.
func (p *preflight) requirements(python jobs.Python) []required {
	var wanted []required
	for _, text := range p.spec.Packages {
		m := requirementForm.FindStringSubmatch(strings.TrimSpace(text))
		switch {
		case m == nil:
			p.unchecked(text, "it is no requirement of one package")
			continue
		case m[3] != "":
			p.unchecked(text, "it holds under a condition only")
			continue
		}
		r := required{text: strings.TrimSpace(text), name: m[1]}
		if !strings.HasPrefix(m[2], "@") { // of a direct reference the presence is all that can be seen
			r.specifiers = strings.Trim(strings.TrimSpace(m[2]), "()")
		}
		if pin := condaPin.FindStringSubmatch(r.specifiers); pin != nil {
			r.specifiers = "==" + pin[1] + ".*"
			r.text = r.name + r.specifiers
		}
		if strings.EqualFold(r.name, "python") {
			p.pythonItself(r, python)
			continue
		}
		if known := distributionOf[strings.ToLower(r.name)]; known != "" {
			r.text, r.name = known+strings.TrimPrefix(r.text, m[1]), known
		}
		wanted = append(wanted, r)
	}
	return wanted
}

func (p *preflight) unchecked(text, why string) {
	p.bad("package:"+text, finding.Finding{Code: "package_unchecked", Severity: finding.Warning, What: fmt.Sprintf("the requirement %q was not checked: %s", text, why),
		Where: &finding.Where{Field: packagesField}, Expected: `such as "torch>=2.0"`, Remedy: "go on, or write it so"})
}

const packagesField = "step_handoff.inputs.runtime.package_requirements"

func (p *preflight) pythonItself(r required, python jobs.Python) {
	if ok, why := satisfies(python.Version, r.specifiers); ok {
		p.good("package:"+r.text, "%s is Python %s", python.Path, python.Version)
	} else if why != "" {
		p.unchecked(r.text, why)
	} else {
		p.bad("package:"+r.text, finding.Finding{Code: "python_version_unsatisfied", What: fmt.Sprintf("%s is Python %s, and %s is required", python.Path, python.Version, r.text),
			Where: &finding.Where{Path: python.Path, Field: packagesField}, Expected: r.text, Remedy: "name an interpreter of such a version in launch.environment.python"})
	}
}

// satisfies compares a version with specifiers (PEP 440). A why says that they can't be compared.
func satisfies(version, specifiers string) (ok bool, why string) {
	if specifiers == "" {
		return true, ""
	}
	if version == "" {
		return false, "the installed version is not known"
	}
	set, err := pep440.NewSpecifiers(specifiers, pep440.WithPreRelease(true)) // what is installed was chosen by someone
	if err != nil {
		return false, "its version can't be read"
	}
	v, err := pep440.Parse(version)
	if err != nil {
		return false, "the installed version " + version + " can't be read"
	}
	return set.Check(v), ""
}

// packages compares what is installed with what is required. All that lacks is one finding with the one command that would
// install it: that is the user's to run.
func (p *preflight) packages(r *Runtime, python jobs.Python, wanted []required, answer probe) {
	var lacking, install []string
	for i, w := range wanted {
		has := answer.Packages[i]
		ok, why := satisfies(has.Version, w.specifiers)
		switch {
		case has.Found && ok:
			p.good("package:"+w.text, "%s", strings.TrimSpace(has.Name+" "+has.Version))
		case has.Found && why != "":
			p.unchecked(w.text, why)
		case has.Found:
			lacking, install = append(lacking, fmt.Sprintf("%s (%s is installed)", w.text, has.Version)), append(install, w.text)
		default:
			lacking, install = append(lacking, w.text), append(install, w.text)
		}
	}
	if len(lacking) == 0 {
		return
	}
	command, then := installCommand(r, python, install, answer)
	p.bad("packages", finding.Finding{Code: "package_missing", What: python.Path + " lacks " + strings.Join(lacking, ", ") + "; nothing was installed",
		Where: &finding.Where{Path: python.Path, Field: packagesField}, Expected: "the packages in " + answer.Prefix,
		Remedy: "ask the user to run `" + command + "`" + then + "; or name an interpreter that has them in launch.environment.python"})
}

// installCommand is the line that installs the packages into the interpreter's environment, and what follows then. An
// interpreter that belongs to the system gets an environment of its own, in the working folder.
func installCommand(r *Runtime, python jobs.Python, packages []string, answer probe) (command, then string) {
	quoted := make([]string, len(packages))
	for i, text := range packages {
		quoted[i] = "'" + text + "'" // requirementForm lets no quote through
	}
	list := strings.Join(quoted, " ")
	switch path := quotedPath(python.Path); {
	case answer.Managed:
		own := filepath.Join(".venv", "bin", "python")
		return path + " -m venv .venv && " + own + " -m pip install " + list, " in the working folder and send launch.environment.python " + own
	case answer.Pip:
		return path + " -m pip install " + list, ""
	case onPath("uv", lookup(r.environ, "PATH")) != "":
		return "uv pip install --python " + path + " " + list, ""
	default:
		return path + " -m ensurepip && " + path + " -m pip install " + list, ""
	}
}

func quotedPath(path string) string {
	if strings.ContainsAny(path, " '\"\\$`()&;") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// command looks for the program as the supervisor will.
func (p *preflight) command(r *Runtime) {
	if p.spec.Command == "" {
		return
	}
	file := p.spec.Command
	if strings.ContainsAny(file, `/\`) {
		file = p.path(file)
	} else {
		file = onPath(file, lookup(p.environ(r), "PATH"))
	}
	info, err := os.Stat(file)
	if err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
		p.good("command", "%s, %d bytes", file, info.Size())
		return
	}
	p.bad("command", finding.Finding{Code: "command_not_found", What: fmt.Sprintf("there is no program %s that can be started", p.spec.Command), Where: &finding.Where{Path: p.spec.Command, Field: "launch.command"},
		Expected: "a program on PATH, or a path from the working folder " + p.spec.WorkDir, Remedy: "correct launch.command, or send the program's absolute path"})
}
