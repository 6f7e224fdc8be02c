package review

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// reviewer turns what the probe saw into checks and findings.
type reviewer struct {
	spec   Spec
	said   answer
	shown  int
	report Report
}

// check adds a class with its findings. More than a few are counted in the last one.
func (r *reviewer) check(name, why string, found []finding.Finding) {
	if len(found) > r.shown {
		rest := len(found) - r.shown
		found = found[:r.shown]
		found[r.shown-1].What += fmt.Sprintf("; %d more like it", rest)
	}
	r.report.Checks = append(r.report.Checks, Check{Name: name, OK: !finding.Has(found, finding.Error), Why: why})
	r.report.Findings = append(r.report.Findings, found...)
}

func (r *reviewer) syntax() {
	why := fmt.Sprintf("%d files read with the %s", len(r.said.Files), r.report.By)
	if n := len(r.said.LeftOut); n > 0 {
		why += fmt.Sprintf("; %d left out, beyond %d files or %d MiB, such as %s", n, MaxFiles, MaxBytes>>20, r.said.LeftOut[0])
	}
	var found []finding.Finding
	for _, p := range r.said.Syntax {
		found = append(found, finding.Finding{Code: "does_not_compile", Severity: finding.Error, What: p.What, Where: p.where(),
			Expected: "code that compiles", Remedy: "correct the line, then call phase_4_codegen again"})
	}
	r.check("compiles", why, found)
}

// imports tells of modules that the job would not find. What stands in a function may never be needed, and is a warning.
func (r *reviewer) imports(ctx context.Context) error {
	var found []finding.Finding
	unresolved := func(p place, why, remedy string, lenient bool) {
		f := finding.Finding{Code: "import_unresolved", Severity: finding.Error, What: fmt.Sprintf("%s can't be imported: %s", p.Module, why), Where: p.where(),
			Expected: "a module of the project, of Python's own library or of the interpreter that will run", Remedy: remedy}
		if p.Lazy || lenient {
			f.Severity = finding.Warning
		}
		found = append(found, f)
	}
	for _, p := range r.said.Unresolved {
		unresolved(p, p.Why, "correct the import or add the file", false)
	}
	modules := distinct(r.said.External)
	why := fmt.Sprintf("modules of the project and of Python; %d others", len(modules))
	for _, p := range firsts(r.said.External) {
		if !p.Lazy && p.Text == "" && len(r.said.SysPath) == 0 {
			r.report.Modules = append(r.report.Modules, p.Module)
		}
	}
	switch {
	case r.spec.Installed == nil:
		why += " not looked for: the job runs elsewhere"
	case len(r.said.SysPath) > 0 && len(modules) > 0:
		at := r.said.SysPath[0]
		why += fmt.Sprintf(" not looked for: %s:%d changes sys.path", at.Path, at.Line)
	case len(modules) > 0:
		missing, err := r.spec.Installed(ctx, modules)
		if err != nil {
			return err
		}
		for _, p := range firsts(r.said.External) {
			if why, is := missing[p.Module]; is {
				if p.Text != "" { // a folder of the project has the name of the package and lacks the module
					p.Module, why = p.Text, p.Why
				}
				unresolved(p, why, "install it in the environment of that interpreter, if that is authorised, or name an interpreter that has it in environment_requirements.python", r.spec.Lenient)
			}
		}
		why += " looked for in " + r.spec.Python
	}
	r.check("imports_resolve", why, found)
	return nil
}

func distinct(places []place) []string {
	var out []string
	for _, p := range firsts(places) {
		out = append(out, p.Module)
	}
	return out
}

// firsts are the places of each module that weigh most: one at the top of a file, else the first in a function.
func firsts(places []place) []place {
	var out []place
	for _, p := range places {
		at := slices.IndexFunc(out, func(o place) bool { return o.Module == p.Module })
		switch {
		case at < 0:
			out = append(out, p)
		case out[at].Lazy && !p.Lazy:
			out[at] = p
		}
	}
	return out
}

func (r *reviewer) absolute() {
	var found []finding.Finding
	for _, p := range r.said.Absolute {
		found = append(found, finding.Finding{Code: "absolute_path", Severity: finding.Warning, What: fmt.Sprintf("%.120q is a path of one machine", p.Text), Where: p.where(),
			Expected: "a path from an argument or relative to the script", Remedy: "take it from an argument; a job elsewhere, or a rerun, does not find it"})
	}
	r.check("no_absolute_paths", "texts outside of docstrings, messages and defaults that the run replaces", found)
}

// data tells of code that names the data as a whole although the run passes parts of it.
func (r *reviewer) data() {
	if len(r.spec.Data) == 0 {
		return
	}
	var found []finding.Finding
	for _, p := range r.said.Data {
		found = append(found, finding.Finding{Code: "data_named", Severity: finding.Warning, What: fmt.Sprintf("%.120q names the data before it was split: what reads it sees rows of every part", p.Text), Where: p.where(),
			Expected: "the parts that the run passes as arguments", Remedy: "read only what the arguments name; if it is read for something else, say so in the report"})
	}
	r.check("no_data_beside_the_parts", "texts that name a file of the data itself", found)
}

func (r *reviewer) downloads() {
	severity := finding.Warning
	if r.spec.NoNetwork {
		severity = finding.Error
	}
	var found []finding.Finding
	for _, p := range r.said.Downloads {
		found = append(found, finding.Finding{Code: "hidden_download", Severity: severity, What: p.Call + " fetches over the network while it trains", Where: p.where(),
			Expected: "data and weights that are there before the job starts", Remedy: "fetch it beforehand and pass its path, or put it behind an option named like --download; the user has to allow network"})
	}
	r.check("no_hidden_downloads", "calls that fetch, and commands that do", found)
}

// randomness tells of libraries that draw numbers and that nothing seeds, each with the first place.
func (r *reviewer) randomness() {
	if len(r.said.LeftOut) > 0 {
		r.check("randomness_seeded", "not judged: not every module was read, and a seed may be set in the rest", nil)
		return
	}
	var found []finding.Finding
	if !slices.Contains(r.said.Seeds, "all") {
		told := slices.Clone(r.said.Seeds)
		for _, p := range r.said.Random {
			if slices.Contains(told, p.Library) {
				continue
			}
			told = append(told, p.Library)
			found = append(found, finding.Finding{Code: "randomness_unseeded", Severity: finding.Warning, What: fmt.Sprintf("%s draws from %s, and nothing seeds it", p.Call, p.Library), Where: p.where(),
				Expected: "the same numbers from the same seed", Remedy: seedOf[p.Library] + " with the seed of the plan before it"})
		}
	}
	why := "nothing draws random numbers without a generator of its own"
	if len(r.said.Seeds) > 0 {
		why = "seeded: " + strings.Join(r.said.Seeds, ", ")
	}
	r.check("randomness_seeded", why, found)
}

// seedOf is the call that seeds a library.
var seedOf = map[string]string{"random": "call random.seed", "numpy": "call numpy.random.seed, or pass random_state,", "torch": "call torch.manual_seed", "tensorflow": "call tensorflow.random.set_seed"}
