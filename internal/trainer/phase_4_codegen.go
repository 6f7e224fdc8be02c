package trainer

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/launch"
	"github.com/trainwright/trainwright/internal/project"
	"github.com/trainwright/trainwright/internal/rundir"
)

// CodegenInput is the section of phase_4_codegen.
type CodegenInput struct {
	Generate   bool           `json:"generate,omitempty" jsonschema_description:"Ask for code although the project has an entry point; the answer says which files to send."`
	Files      []CodeFile     `json:"files,omitempty" jsonschema_description:"Files to write into code_save_dir."`
	Entrypoint string         `json:"entrypoint,omitempty" jsonschema_description:"Which of the files trains, relative to code_save_dir."`
	Arguments  map[string]any `json:"arguments,omitempty" jsonschema_description:"Values for arguments of the script that nothing else sets, by name."`
	LandIn     string         `json:"land_in,omitempty" jsonschema:"enum=code_save_dir,enum=repository" jsonschema_description:"repository is the coder's work."`
	Smoke      string         `json:"smoke,omitempty" jsonschema:"enum=run,enum=skip" jsonschema_description:"skip leaves out the run of one epoch on a few rows."`
	engine.EditedInput
}

// CodeFile is a file that the agent sends: path relative to code_save_dir.
type CodeFile struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// codegen is phase 4: prefer the project's own entry point, write what the run sets beside it, review the code, check that
// it takes its arguments, and try it on a few rows.
type codegen struct{ t *Trainer }

func (codegen) Name() string { return contract.PhaseCodegen }
func (codegen) Tool() string { return "phase_4_codegen" }

// Run does phase 4.
func (p codegen) Run(ctx context.Context, step *engine.Step) (engine.Outcome, error) {
	if adopts(step.Run.Handoff) {
		return skipped(step, "the run was started elsewhere: no code is made")
	}
	var out engine.Outcome
	c, given, err := p.open(step)
	if err != nil {
		return out, err
	}
	written, err := p.land(ctx, step, &out, c, given)
	if err != nil {
		return out, err
	}
	native := len(given.Files) == 0
	if given.LandIn == "repository" {
		return out, p.handToCoder(&out, step, c, given)
	}
	if c.view.script() == nil || (given.Generate && native) {
		p.askForCode(&out, step)
		return out, keepAnswers(&out, step, p.Name(), given)
	}
	if native {
		if _, err := step.Track(c.view.path()); err != nil {
			return out, err
		}
	}
	c.extra = given.Arguments
	c.build()
	overrides, err := c.writeOverride()
	if err != nil {
		out.Findings = append(out.Findings, refusalOf(err)...)
		out.Decide()
		return out, notRefused(err)
	}
	out.Outputs = append(written, overrides...)
	out.Findings = append(out.Findings, c.findings...)
	out.Needs = append(out.Needs, c.needs...)
	made, read, err := p.check(ctx, step, &out, c, native, written)
	if err != nil {
		return out, err
	}
	if err := out.AddFile(codegenFile, made); err != nil {
		return out, err
	}
	if err := p.gate(step, &out, c, native); err != nil {
		return out, err
	}
	out.Summary = fmt.Sprintf("command ready: %s", cellText(launch.Join(made.Command)))
	if at := slices.IndexFunc(out.Findings, func(f finding.Finding) bool { return f.Severity == finding.Error }); at >= 0 {
		out.Summary = out.Findings[at].What
		if out.Next == nil && len(out.Needs) == 0 {
			p.askForRepair(&out, step, made, out.Findings[at])
		}
		return out, nil
	}
	if err := keepAnswers(&out, step, p.Name(), given); err != nil || !out.Gate.Passed || !runs(step.Run.Handoff) {
		return out, err
	}
	err = p.smoke(ctx, step, &out, c, made, read, given)
	out.Decide()
	return out, err
}

// open reads what the phases before found and what the agent has contributed to this one.
func (codegen) open(step *engine.Step) (*commander, CodegenInput, error) {
	c := &commander{run: step.Run}
	var given CodegenInput
	for name, v := range map[string]any{factsFile: &c.facts, projectFile: &c.view, dataManifestFile: &c.manifest, planFile: &c.plan} {
		if err := step.ReadJSON(name, v); err != nil {
			return c, given, err
		}
	}
	if err := stored(step, contract.PhaseCodegen, &given); err != nil {
		return c, given, err
	}
	return c, given, brought(step, &given)
}

// land writes the agent's files into code_save_dir and makes their script the one that is run.
func (p codegen) land(ctx context.Context, step *engine.Step, out *engine.Outcome, c *commander, given CodegenInput) ([]string, error) {
	if len(given.Files) == 0 || given.LandIn == "repository" {
		return nil, nil
	}
	run := step.Run
	var written []string
	for i, file := range given.Files {
		abs, refused := landing(run, file.Path)
		for _, f := range refused {
			if f.Where == nil || f.Where.Path == "" {
				f.Where = &finding.Where{Field: fmt.Sprintf("files[%d].path", i)}
			}
			out.Findings = append(out.Findings, f)
		}
		if len(refused) > 0 {
			continue
		}
		if err := rundir.WriteFile(abs, []byte(file.Content)); err != nil {
			return nil, err
		}
		written = append(written, abs)
	}
	if finding.Has(out.Findings, finding.Error) {
		return written, nil
	}
	scan, found, err := project.Scan(ctx, run.CodeSaveDir, project.Options{Entrypoint: given.Entrypoint, GitCeiling: run.CodeSaveDir})
	out.Findings = append(out.Findings, found...)
	if err != nil {
		return written, err
	}
	entry := filepath.ToSlash(filepath.Clean(given.Entrypoint))
	if given.Entrypoint == "" && len(scan.Entrypoints) > 0 {
		entry = scan.Entrypoints[0].Path
	}
	c.view = projectView{Root: scan.Root, Entry: entry, Entrypoints: scan.Entrypoints, Configs: scan.Configs, Dependencies: scan.Dependencies, Traps: scan.Traps}
	if c.view.script() == nil {
		out.Findings = append(out.Findings, finding.Finding{Code: "file_missing", Severity: finding.Error, What: fmt.Sprintf("the entry point %q is not among the files", given.Entrypoint),
			Where: &finding.Where{Field: "entrypoint"}, Expected: "one of the files sent", Remedy: "name it in entrypoint"})
	}
	return written, nil
}

// landing is where a file of the agent's is written, or why it is not.
func landing(run *engine.Run, name string) (string, []finding.Finding) {
	refuse := func(code, what, expected, remedy string) (string, []finding.Finding) {
		return "", []finding.Finding{{Code: code, Severity: finding.Error, What: what, Expected: expected, Remedy: remedy}}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return refuse("path_outside_roots", name+" leads out of code_save_dir", "a path relative to code_save_dir", "send it again with such a path")
	}
	if evidenceName(name) {
		return refuse("evidence_in_advance", name+" is a name of run evidence: only the job may write it", "code and configuration", "leave it out")
	}
	if first, _, nested := strings.Cut(filepath.ToSlash(filepath.Clean(name)), "/"); nested && slices.Contains(reservedFolders, first) {
		return refuse("path_reserved", first+"/ of code_save_dir is written by trainwright and the job", "code elsewhere in code_save_dir", "send it again under another path")
	}
	abs, err := run.Roots.Writable(filepath.Join(run.CodeSaveDir, filepath.FromSlash(name)))
	if err == nil {
		err = own(run, abs)
	}
	if err != nil {
		return "", refusalOf(err)
	}
	return abs, nil
}

// reservedFolders of code_save_dir hold what trainwright and the job write.
var reservedFolders = []string{"data", "config", "outputs", "checkpoints", "logs"}

// evidenceName says whether a path is one that only a run may write (contracts.md, phase 4).
func evidenceName(name string) bool {
	base := path.Base(filepath.ToSlash(name))
	return slices.Contains(contract.RunEvidenceFiles, base) || strings.HasPrefix(base, "predictions-") || strings.HasSuffix(base, ".complete.json") ||
		strings.HasPrefix(filepath.ToSlash(filepath.Clean(name)), "checkpoints/")
}

// askForCode answers that code is needed from the agent.
func (p codegen) askForCode(out *engine.Outcome, step *engine.Step) {
	f := finding.Finding{Code: "code_needed", Severity: finding.Error, What: "there is no training script to run", Expected: "files with a script that takes its data and output folder as arguments",
		Remedy: "send files and entrypoint; formats.md says what a training script leaves"}
	out.Findings = append(out.Findings, f)
	out.Check("entrypoint", false, f.What)
	out.Needs = append(out.Needs, engine.Need{Field: "files", Why: "gate of phase 4: a script that can be run", WhereToLook: []string{step.Run.File(planText)}, Candidates: []string{}})
	out.Blockers = []string{"files"}
	out.Decide()
	out.Next = &engine.NextCall{Tool: p.Tool(), Arguments: map[string]any{"run_id": step.Run.ID, "files": []any{map[string]any{"path": "train.py", "content": "<code>"}}, "entrypoint": "train.py"}}
	out.Summary = f.What
}

// askForRepair answers that the code has to be repaired first: the agent's own files are sent again, the project's script is
// repaired where it lies. Calling again unchanged would only say the same.
func (p codegen) askForRepair(out *engine.Outcome, step *engine.Step, made Codegen, because finding.Finding) {
	need := engine.Need{Field: "code", Why: because.What, WhereToLook: []string{made.Entrypoint}, Candidates: []string{}}
	if because.Where != nil {
		need.WhereToLook = []string{because.Where.String()}
	}
	out.Next = &engine.NextCall{} // the repair comes first
	if !made.Native {
		need.Field = "files"
		rel, err := filepath.Rel(step.Run.CodeSaveDir, made.Entrypoint)
		if err != nil {
			rel = filepath.Base(made.Entrypoint)
		}
		out.Next = &engine.NextCall{Tool: p.Tool(), Arguments: map[string]any{"run_id": step.Run.ID, "files": []any{map[string]any{"path": filepath.ToSlash(rel), "content": "<the repaired code>"}}}}
	}
	out.Needs = append(out.Needs, need)
	out.Blockers = append(out.Blockers, need.Field)
}

// handToCoder writes the task by which code lands in a repository: that is the coder's work, and nothing is written there.
func (p codegen) handToCoder(out *engine.Outcome, step *engine.Step, c *commander, given CodegenInput) error {
	for _, file := range given.Files {
		c.changes = append(c.changes, fmt.Sprintf("write %s in the repository, with the content below", code(file.Path)))
	}
	if len(c.changes) == 0 {
		c.changes = []string{"write a training script in the repository that takes its data, its output folder and the values below as arguments"}
	}
	f := finding.Finding{Code: "coder_needed", Severity: finding.Error, What: "landing code in a repository is the coder's work", Where: &finding.Where{Field: "land_in"}, Expected: "land_in code_save_dir",
		Remedy: "land them with the tool coder, then go on with this run; or send the files again without land_in"}
	out.Findings = append(out.Findings, f)
	out.Check("entrypoint", false, f.What)
	out.Blockers = []string{coderFile + ": " + strings.Join(c.changes, "; ")}
	out.Decide()
	out.Next = &engine.NextCall{Tool: "coder", Arguments: coderCall(step.Run, c.view, given.Files)}
	out.Summary = f.What
	handoff, err := writeCoderTask(step.Run, out, c, given.Files)
	if err != nil {
		return err
	}
	return out.AddFile(coderHandoffFile, handoff)
}

// coderCall is the call by which files land in the repository, each against the bytes that are there now, or the script is edited.
func coderCall(run *engine.Run, view projectView, files []CodeFile) map[string]any {
	root := cmp.Or(view.Root, run.Roots.Workspace())
	changes := map[string]any{"repository": run.Roots.Rel(root)}
	for _, file := range files {
		base := "new"
		if sha, _, err := rundir.HashFile(filepath.Join(root, filepath.FromSlash(file.Path))); err == nil {
			base = sha
		}
		list, _ := changes["files"].([]any)
		changes["files"] = append(list, map[string]any{"path": file.Path, "content": "<the code that was sent for it>", "base": base})
	}
	if len(files) == 0 {
		changes["edits"] = []any{map[string]any{"path": cmp.Or(view.Entry, "<script>"), "search": "<passage>", "replace": "<passage>"}}
	}
	return map[string]any{"step_handoff": map[string]any{"step_id": run.Handoff.StepID, "execution_skill": contract.CoderNextAction, "step_goal": "land code for " + run.ID}, "changes": changes}
}

// check finds the interpreter, reviews the script and, where the job will run, compares the arguments with --help. It gives
// the files that the review read.
func (p codegen) check(ctx context.Context, step *engine.Step, out *engine.Outcome, c *commander, native bool, written []string) (Codegen, []string, error) {
	made := Codegen{Entrypoint: c.view.path(), Root: c.view.Root, Native: native, Arguments: append(append([]Passed{}, c.passed...), c.positions...), Override: overrideFile, Outputs: expected(step.Run.Handoff, c.outputs),
		CheckpointDir: c.ckptDir, OutputDir: c.outDir, Imports: imports(c.view), Files: []string{}}
	for _, file := range written {
		made.Files = append(made.Files, step.Run.Rel(file))
	}
	asked := text(step.Run.Handoff.Inputs.Runtime.EnvironmentRequirements["python"])
	python, found, err := p.t.Runtime.ChoosePython(ctx, c.view.Root, asked)
	out.Findings = append(out.Findings, found...)
	if err != nil {
		out.Findings = append(out.Findings, refusalOf(err)...)
		return made, nil, notRefused(err)
	}
	made.Python, made.PythonWhy = python.Path, python.Why
	made.Command = append([]string{python.Path, made.Entrypoint}, c.argv()...)
	step.Say(p.Name(), "reviewing %s", c.view.Entry)
	read, err := p.review(ctx, step, out, &made, written)
	if err != nil || hasCode(out.Findings, "does_not_compile") || hasCode(out.Findings, "compile_unchecked") {
		return made, read, err
	}
	if runs(step.Run.Handoff) && len(c.view.script().Arguments) > 0 {
		step.Say(p.Name(), "asking %s for --help", c.view.Entry)
		found := checkHelp(ctx, python.Path, made.Entrypoint, made.Arguments)
		out.Check("takes_its_arguments", len(found) == 0, "--help names every argument that is passed")
		out.Findings = append(out.Findings, found...)
	}
	return made, read, nil
}

// expected are the outputs without which the job has failed: what the script is told to write, and the files that the
// handoff requires.
func expected(h contract.StepHandoff, fromArguments []string) []string {
	out := append([]string{}, fromArguments...)
	for _, name := range h.RequiredOutputs {
		clean := filepath.ToSlash(filepath.Clean(name))
		isFile := strings.ContainsAny(clean, "/.") && !strings.Contains(clean, " ") && filepath.IsLocal(clean)
		if isFile && !slices.Contains(canonicalNames, clean) && !slices.Contains(out, clean) {
			out = append(out, clean)
		}
	}
	return out
}

// canonicalNames are trainwright's own artifacts: required of the step, not of the script.
var canonicalNames = []string{contract.FileStepHandoff, contract.FileTrainingRequest, contract.FileSourceCapture, contract.FileTrainingKnowledge, contract.FileDataPreparationPlan,
	contract.FileDataManifest, contract.FileTrainingPlan, contract.FileCoderTask, contract.FileRuntimeRequest, contract.FileRuntimeResult, contract.FileValidationReport,
	contract.FileExecutionResult, contract.FileRunManifest}

func imports(view projectView) []string {
	out := []string{}
	for _, d := range view.Dependencies {
		if d.Imported {
			out = append(out, d.Name)
		}
	}
	return out
}

// gate 4: the script compiles and takes what it is given; what the repository would have to change is written down for
// the coder. No evidence of a run may exist that the phase itself made.
func (p codegen) gate(step *engine.Step, out *engine.Outcome, c *commander, native bool) error {
	out.Check("arguments_known", len(out.Needs) == 0, "every argument that the script demands has a value")
	out.Check("no_change_needed", len(c.changes) == 0, "the script can do what is asked as it is")
	out.Decide()
	for _, n := range out.Needs {
		out.Blockers = append(out.Blockers, n.Field)
	}
	if len(c.changes) > 0 && native {
		handoff, err := writeCoderTask(step.Run, out, c, nil)
		if err != nil {
			return err
		}
		out.Blockers = append(out.Blockers, "coder_task_description.md: "+strings.Join(c.changes, "; "))
		out.Next = &engine.NextCall{Tool: "coder", Arguments: coderCall(step.Run, c.view, nil)}
		return out.AddFile(coderHandoffFile, handoff)
	}
	if len(out.Needs) > 0 {
		arguments := map[string]any{}
		for _, n := range out.Needs {
			arguments[strings.TrimPrefix(n.Field, "arguments.")] = "<value>"
		}
		out.Next = &engine.NextCall{Tool: p.Tool(), Arguments: map[string]any{"run_id": step.Run.ID, "arguments": arguments}}
	}
	return nil
}

// generatedEntrypoint is the script that phase 4 wrote, "" where the project's own is used or nothing is there yet.
func generatedEntrypoint(run *engine.Run) string {
	var made Codegen
	if err := rundir.ReadJSON(run.File(codegenFile), &made); err != nil || made.Native {
		return ""
	}
	return made.Entrypoint
}
