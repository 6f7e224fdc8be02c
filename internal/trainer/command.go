package trainer

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/project"
)

// Passed is one argument of the command: what is passed, for which field of the training request, and how sure that is.
type Passed struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Field  string `json:"field"`
	Status string `json:"status"`
	Fact   string `json:"fact,omitempty"`
}

// Codegen is codegen.json: the entry point, the command that starts it, and what was checked. Paths are absolute; the
// command's first word is the interpreter. Outputs are globs relative to code_save_dir.
type Codegen struct {
	Entrypoint    string   `json:"entrypoint"`
	Root          string   `json:"root"`
	Native        bool     `json:"native"`
	Python        string   `json:"python"`
	PythonWhy     string   `json:"python_why"`
	Command       []string `json:"command"`
	Arguments     []Passed `json:"arguments"`
	Override      string   `json:"override"`
	Outputs       []string `json:"outputs"`
	CheckpointDir string   `json:"checkpoint_dir"`
	OutputDir     string   `json:"output_dir"`
	Imports       []string `json:"imports"`
	Files         []string `json:"files"`
}

// commander works out what is passed to the script.
type commander struct {
	run       *engine.Run
	view      projectView
	plan      Plan
	facts     []evidence.Fact
	manifest  contract.DataManifest
	extra     map[string]any // arguments that the agent names itself
	unused    map[string]any // those that no argument of the script has taken yet
	passed    []Passed
	outputs   []string
	outDir    string
	ckptDir   string
	needs     []engine.Need
	changes   []string // what the repository would have to change
	findings  []finding.Finding
	positions []Passed
}

// build fills every argument that trainwright knows a value for.
func (c *commander) build() {
	script := c.view.script()
	if script == nil {
		return
	}
	c.unused = maps.Clone(c.extra)
	for i := range script.Arguments {
		a := &script.Arguments[i]
		if p, ok := c.value(a); ok {
			p.Name = a.Name
			if a.Positional {
				c.positions = append(c.positions, p)
			} else {
				c.passed = append(c.passed, p)
			}
			continue
		}
		if a.Required || (a.Positional && a.Nargs != "?" && a.Nargs != "*") {
			c.needs = append(c.needs, engine.Need{Field: "arguments." + a.Name, Why: fmt.Sprintf("gate of phase 4: %s demands %s", c.view.Entry, a.Name),
				WhereToLook: []string{fmt.Sprintf("%s:%d", a.Place.Path, a.Place.Line)}, Candidates: []string{}})
		}
	}
	c.passUnlisted()
	c.checkParts()
	c.checkParameters()
}

// passUnlisted passes arguments that the agent names and that reading the script did not find, such as those it declares
// in a loop; --help tells later whether it takes them. One that is named like a place gets trainwright's own value.
func (c *commander) passUnlisted() {
	for _, name := range slices.Sorted(maps.Keys(c.unused)) {
		if !strings.HasPrefix(name, "-") {
			c.findings = append(c.findings, finding.Finding{Code: "argument_unknown_to_script", Severity: finding.Error, What: fmt.Sprintf("%s has no argument %q", c.view.Entry, name),
				Where: &finding.Where{Field: "arguments." + name}, Expected: "an argument of the script, with its dashes", Remedy: "correct the name"})
			continue
		}
		a := &project.Argument{Name: name, Dest: strings.TrimLeft(name, "-"), Role: project.RoleOf(name)}
		if part := c.namedPart(text(c.extra[name])); part != "" && a.Role == "" {
			a.Role = "data." + part + "_source"
			if p, ok := c.placeValue(a); ok {
				p.Name = name
				c.passed = append(c.passed, p)
				continue
			}
		}
		if p, ok := c.value(a); ok {
			p.Name = name
			c.passed = append(c.passed, p)
		}
	}
}

// namedPart is the part of the data that a value of the agent's means: by its name, or by the file that holds it.
func (c *commander) namedPart(value string) string {
	for _, part := range partNames {
		file := c.part(part)
		if value != "" && file != "" && (value == part || value == file || filepath.Base(value) == filepath.Base(file)) {
			return part
		}
	}
	return ""
}

// value is what an argument gets, when anything is known for it. What the agent names itself comes last: it fills what
// is open, and never replaces data, folders or settled values.
func (c *commander) value(a *project.Argument) (Passed, bool) {
	p, known := c.settledValue(a)
	for _, key := range []string{a.Name, a.Dest, strings.TrimLeft(a.Name, "-")} {
		v, given := c.extra[key]
		if !given {
			continue
		}
		delete(c.unused, key)
		if known && !sameNumber(v, p.Value) {
			c.findings = append(c.findings, finding.Finding{Code: "argument_settled", Severity: finding.Error, What: fmt.Sprintf("%s is %s by %s; the call says %s", a.Name, show(p.Value), p.Field, show(v)),
				Where: &finding.Where{Field: "arguments." + a.Name}, Expected: "values for arguments that nothing else sets", Remedy: "leave it out; settle the value in its own phase"})
		}
		if !known {
			return Passed{Value: v, Field: "arguments." + a.Name, Status: evidence.Assumption}, true
		}
	}
	return p, known
}

// settledValue is what the data manifest, the run's folders, the plan or a fact give an argument.
func (c *commander) settledValue(a *project.Argument) (Passed, bool) {
	if p, ok := c.placeValue(a); ok {
		return p, true
	}
	for _, spec := range leaves {
		if spec.field == a.Role && a.Role != "" {
			leaf := c.plan.Leaves[spec.path]
			return Passed{Value: leaf.Value, Field: a.Role, Status: leaf.Status, Fact: leaf.Fact}, leaf.Value != nil
		}
	}
	field := a.Role
	if field == "" {
		field = "training.extra." + strings.ReplaceAll(a.Dest, "-", "_")
	}
	if f := holding(c.facts, field); f != nil && f.Status == evidence.Confirmed && isFact(field) && !strings.HasSuffix(field, "_source") && field != "data.source" {
		value := f.Value
		if strings.HasPrefix(field, "checkpoint.") {
			value = c.absolute(text(f.Value))
		}
		return Passed{Value: value, Field: field, Status: f.Status, Fact: f.ID}, true
	}
	return Passed{}, false
}

func (c *commander) absolute(path string) string {
	if abs, err := locate(c.run, c.view.Root, path); err == nil {
		return abs
	}
	return path
}

// placeValue fills the arguments that say where things are read and written. Their values are trainwright's own
// (CONFIRMED by the data manifest or by being the run's folders).
func (c *commander) placeValue(a *project.Argument) (Passed, bool) {
	own := func(path string) (Passed, bool) {
		return Passed{Value: path, Field: a.Role, Status: evidence.Confirmed}, path != ""
	}
	switch a.Role {
	case "data.train_source":
		return own(c.part("train"))
	case "data.val_source":
		return own(c.part("val"))
	case "data.test_source":
		return own(c.part("test"))
	case "data.source":
		return own(c.whole())
	case "data.dir":
		if train := c.part("train"); train != "" {
			return own(filepath.Dir(train))
		}
	case "data.target":
		return own(c.manifest.Schema.Target.Name)
	case "data.id":
		if id := c.manifest.Schema.ID; id != "" && !strings.HasPrefix(id, "row-") {
			return own(id)
		}
		return Passed{}, false
	case "output.dir":
		c.outDir = filepath.Join(c.run.CodeSaveDir, "outputs")
		c.outputs = append(c.outputs, "outputs/*")
		return own(c.outDir)
	case "output.metrics":
		c.outputs = append(c.outputs, "outputs/metrics.jsonl")
		return own(filepath.Join(c.run.CodeSaveDir, "outputs", "metrics.jsonl"))
	case "output.predictions":
		c.outputs = append(c.outputs, "outputs/predictions-test.jsonl")
		return own(filepath.Join(c.run.CodeSaveDir, "outputs", "predictions-test.jsonl"))
	case "output.summary":
		return own(filepath.Join(c.run.CodeSaveDir, "outputs", "summary.json"))
	case "output.log_dir":
		return own(filepath.Join(c.run.CodeSaveDir, "outputs", "logs"))
	case "checkpoint.dir":
		c.ckptDir = filepath.Join(c.run.CodeSaveDir, "checkpoints")
		c.outputs = append(c.outputs, "checkpoints/*")
		return own(c.ckptDir)
	}
	return Passed{}, false
}

// part is the absolute path of the file that the script reads for a part.
func (c *commander) part(name string) string {
	for _, f := range c.manifest.Files {
		if f.Part == name {
			return c.run.Dir.Abs(f.Path)
		}
	}
	return ""
}

// whole is the one file of a script that splits it itself.
func (c *commander) whole() string {
	if c.manifest.TrainSource == "" {
		return ""
	}
	return c.run.Dir.Abs(c.manifest.TrainSource)
}

// checkParts notices a split that the script has no way to receive: the repository would have to change.
func (c *commander) checkParts() {
	for _, part := range []string{"train", "val", "test"} {
		role := "data." + part + "_source"
		if c.part(part) == "" || c.view.argument(role) != nil || c.carries(role) || c.view.argument("data.dir") != nil || (part == "train" && c.view.argument("data.source") != nil) {
			continue
		}
		// Without the part the script would judge itself on rows it has trained on, or not at all.
		c.changes = append(c.changes, fmt.Sprintf("%s must take the %s part as a file of its own (an argument such as --%s-data)", c.view.Entry, part, part))
		c.findings = append(c.findings, finding.Finding{Code: "part_not_taken", Severity: finding.Error, What: fmt.Sprintf("no argument for the %s part was found in the text of %s", part, c.view.Entry),
			Where: &finding.Where{Path: c.view.path()}, Expected: "an argument such as --" + part + "-data", Remedy: fmt.Sprintf("where the script has one all the same: phase_4_codegen {\"run_id\": %q, \"arguments\": {\"--its-name\": %q}}; else hand coder_task_description.md to the coder", c.run.ID, part)})
	}
}

// coreParameters are what a user's word must reach the script for. Plain precision and a single process need no argument.
var coreParameters = []string{"training.optimizer", "training.scheduler", "training.batch_size", "training.epochs_or_steps", "training.precision", "training.distributed_mode", "training.extra.learning_rate", "training.extra.seed"}

var nothingToPass = map[string][]string{"training.precision": {"fp32", "float32", "full"}, "training.distributed_mode": {"single"}, "training.scheduler": {"none", "constant"}}

// checkParameters notices a value of the user's that nothing carries into the script: training something else than what
// was asked for, silently, is the fault this tool exists to prevent.
func (c *commander) checkParameters() {
	for _, field := range coreParameters {
		f := holding(c.facts, field)
		if f == nil || f.By != byUser || slices.Contains(nothingToPass[field], strings.ToLower(text(f.Value))) || c.carries(field) {
			continue
		}
		c.changes = append(c.changes, fmt.Sprintf("%s must take %s (asked for: %s)", c.view.Entry, field, show(f.Value)))
		c.findings = append(c.findings, finding.Finding{Code: "parameter_not_taken", Severity: finding.Error,
			What:  fmt.Sprintf("%s = %s was asked for, but nothing carries it into %s", field, show(f.Value), c.view.Entry),
			Where: &finding.Where{Path: c.view.path(), Field: field}, Expected: "an argument or configuration key for it",
			Remedy: "hand coder_task_description.md to the coder, or start a run without it"})
	}
	c.checkOthers()
}

// forUs are free parameters that trainwright itself heeds.
var forUs = []string{"training.extra.best_metric", "training.extra.best_mode", "training.extra.resume_semantics", "training.extra.world_size"}

// checkOthers tells of a free parameter of the user's without any effect, such as one with a slip of the pen.
func (c *commander) checkOthers() {
	for _, f := range c.facts {
		if !strings.HasPrefix(f.Field, "training.extra.") || f.By != byUser || slices.Contains(coreParameters, f.Field) || slices.Contains(forUs, f.Field) || c.carries(f.Field) {
			continue
		}
		var names []string
		for _, a := range c.view.script().Arguments {
			names = append(names, strings.ReplaceAll(strings.TrimLeft(a.Name, "-"), "-", "_"))
		}
		given := strings.TrimPrefix(f.Field, "training.extra.")
		remedy := "leave it out, or name the argument that takes it under arguments of phase_4_codegen"
		if near := finding.Nearest(given, names); near != "" {
			remedy = "if it means " + near + ", start the run again with that name"
		}
		c.findings = append(c.findings, finding.Finding{Code: "parameter_unused", Severity: finding.Warning, What: fmt.Sprintf("%s = %s was given and has no effect: nothing carries it into %s", given, show(f.Value), c.view.Entry),
			Where: &finding.Where{Path: c.view.path(), Field: "inputs.parameters." + given}, Expected: "a parameter that the script takes", Remedy: remedy})
	}
}

func (c *commander) carries(field string) bool {
	return slices.ContainsFunc(c.passed, func(p Passed) bool { return p.Field == field }) || slices.ContainsFunc(c.positions, func(p Passed) bool { return p.Field == field }) || c.configured(field)
}

// configured says whether a configuration file that the script reads has a key for the field.
func (c *commander) configured(field string) bool {
	if c.view.argument("config.path") == nil {
		return false
	}
	return slices.ContainsFunc(c.view.Configs, func(config project.Config) bool {
		return slices.ContainsFunc(config.Values, func(v project.ConfigValue) bool { return v.Role == field })
	})
}

// argv is the command line after the interpreter and the script.
func (c *commander) argv() []string {
	var argv []string
	for _, p := range c.passed {
		if b, ok := p.Value.(bool); ok && c.isFlag(p.Name) {
			if b {
				argv = append(argv, p.Name)
			}
			continue
		}
		if list, ok := p.Value.([]any); ok {
			argv = append(argv, p.Name)
			for _, v := range list {
				argv = append(argv, show(v))
			}
			continue
		}
		value := show(p.Value)
		if strings.HasPrefix(value, "-") {
			argv = append(argv, p.Name+"="+value)
			continue
		}
		argv = append(argv, p.Name, value)
	}
	for _, p := range c.positions {
		argv = append(argv, show(p.Value))
	}
	return argv
}

func (c *commander) isFlag(name string) bool {
	for _, a := range c.view.script().Arguments {
		if a.Name == name {
			return a.IsFlag
		}
	}
	return false
}
