// Package coder lands changes in an existing repository: whole files, or edits that search and replace. Each change names what it
// was made against; either all of them are there afterwards or none, what was there before is kept, and nothing is staged or
// committed.
package coder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Skill is the execution_skill of a handoff for the coder.
const Skill = "onescience-coder"

// The files of a run of the coder.
const (
	diffFile      = "changes.diff"
	landingsDir   = "landings"
	phaseName     = "land"
	journalFile   = "journal.json"
	resultSummary = "landing.json" // the newest landing: the files with their hashes before and after
)

// Input is what the coder takes beside the handoff.
type Input struct {
	Changes Changes `json:"changes,omitzero"`
}

// Changes are made together or not at all.
type Changes struct {
	Repository string `json:"repository,omitempty" jsonschema_description:"Folder of the repository; inputs.model.code_path, else the workspace, when left out."`
	Files      []File `json:"files,omitempty" jsonschema_description:"Whole files."`
	Edits      []Edit `json:"edits,omitempty" jsonschema_description:"Passages to replace, in this order."`
	DryRun     bool   `json:"dry_run,omitempty" jsonschema_description:"Show the difference and write nothing."`
}

// File is a file as it is to be.
type File struct {
	Path    string `json:"path" jsonschema_description:"Relative to the repository."`
	Content string `json:"content"`
	Base    string `json:"base,omitempty" jsonschema_description:"sha256 of the file it replaces; new for one that must not exist."`
}

// Edit replaces a passage of a file.
type Edit struct {
	Path       string `json:"path"`
	Search     string `json:"search" jsonschema_description:"Verbatim passage, long enough to stand once."`
	Replace    string `json:"replace"`
	Occurrence int    `json:"occurrence,omitempty" jsonschema_description:"Which of several, from 1."`
	Base       string `json:"base,omitempty" jsonschema_description:"sha256 of the file that was read."`
}

// Coder lands changes. It holds no state of a run.
type Coder struct {
	Engine *engine.Engine
	skill  *engine.Skill
	// write commits one file; tests make it fail.
	write func(path string, data []byte) error
}

// New registers the coder's skill with an engine.
func New(e *engine.Engine) *Coder {
	c := &Coder{Engine: e, write: writeFile}
	c.skill = &engine.Skill{Name: Skill, Walker: "coder", Phases: []engine.Phase{land{c}}, Last: func(contract.StepHandoff) string { return phaseName },
		Canonical: []string{contract.FileStepHandoff, diffFile, resultSummary, contract.FileExecutionResult, contract.FileRunManifest},
		Artifacts: func(run *engine.Run) map[string]string {
			return map[string]string{"diff": run.File(diffFile), "landing": run.File(resultSummary), "trainer_workdir": run.Workdir}
		}}
	e.Skills[Skill] = c.skill
	return c
}

// Run lands the changes of a call.
func (c *Coder) Run(ctx context.Context, caller engine.Caller, call contract.Call, _ Input) (engine.Envelope, error) {
	if h := call.Handoff; h != nil && call.Request != "" && h.StepID == contract.FromRequest(call.Request).StepID {
		own := *h
		own.ExecutionSkill = Skill // words alone were made a handoff, which is the trainer's unless someone says otherwise
		call.Handoff = &own
	}
	return c.Engine.RunPhase(ctx, caller, c.skill, phaseName, call)
}

// land is the one phase of the coder.
type land struct{ c *Coder }

func (land) Name() string { return phaseName }
func (land) Tool() string { return "coder" }

// Run finishes what a crash cut short, then lands the changes of this call.
func (p land) Run(ctx context.Context, step *engine.Step) (engine.Outcome, error) {
	var out engine.Outcome
	if _, err := step.Track(contract.FileStepHandoff); err != nil {
		return out, err
	}
	var in Input
	if len(step.Section) > 0 {
		if _, err := contract.Decode(step.Section, &in); err != nil {
			return out, err
		}
	}
	unlock, err := lockRepositories(ctx, step.Run.Roots)
	if err != nil {
		return out, err
	}
	defer unlock()
	recovered, err := p.c.recover(step.Run)
	if err != nil {
		return out, err
	}
	out.Findings = append(out.Findings, recovered...)
	if len(in.Changes.Files)+len(in.Changes.Edits) == 0 {
		return p.nothing(out, step), nil
	}
	root, err := repository(step.Run, in.Changes.Repository)
	if err != nil {
		return refused(out, err)
	}
	asked, err := contract.Canonical(in.Changes)
	if err != nil {
		return out, err
	}
	if holds(step.Run, rundir.HashBytes(asked)) {
		return p.landedBefore(out, step, root)
	}
	set, err := workOut(step.Run.Roots, root, in.Changes)
	if err != nil {
		return refused(out, err)
	}
	set.asked = rundir.HashBytes(asked)
	out.Findings = append(out.Findings, set.notes...)
	out.Findings = append(out.Findings, surroundings(ctx, root, set)...)
	out.Findings = append(out.Findings, syntax(ctx, set)...)
	if finding.Has(out.Findings, finding.Error) {
		out.Summary = "nothing was changed"
		out.Decide()
		return out, nil
	}
	return p.finish(out, step, set, in.Changes.DryRun)
}

// nothing answers a call without changes.
func (land) nothing(out engine.Outcome, step *engine.Step) engine.Outcome {
	out.Check("changes", false, "files or edits to land")
	out.Needs = append(out.Needs, engine.Need{Field: "changes", Why: "files or edits to land", WhereToLook: []string{"inspect_project shows the repository"}, Candidates: []string{}})
	out.Next = &engine.NextCall{Tool: "coder", Arguments: map[string]any{"run_id": step.Run.ID, "changes": map[string]any{"edits": []any{map[string]any{"path": "<file>", "search": "<passage>", "replace": "<passage>"}}}}}
	out.Summary = "no change was sent"
	out.Decide()
	return out
}

// landedBefore answers the call that landed already, as it was answered: the files of the run stay.
func (land) landedBefore(out engine.Outcome, step *engine.Step, root string) (engine.Outcome, error) {
	for _, name := range []string{diffFile, resultSummary} {
		data, err := os.ReadFile(step.Run.File(name))
		if err != nil {
			return out, err
		}
		out.AddText(name, data)
	}
	out.Check("landed", true, "every change is there")
	out.Summary = filepath.Base(root) + " already holds these changes; nothing was written"
	out.Decide()
	return out, nil
}

func refused(out engine.Outcome, err error) (engine.Outcome, error) {
	findings, err := finding.Of(err)
	if err != nil {
		return out, err
	}
	out.Findings = append(out.Findings, findings...)
	out.Summary = "nothing was changed"
	out.Decide()
	return out, nil
}

// finish writes the set and tells what it did.
func (p land) finish(out engine.Outcome, step *engine.Step, set *changeSet, dry bool) (engine.Outcome, error) {
	diff := set.diff()
	out.AddText(diffFile, []byte(diff))
	if !dry {
		if err := p.c.apply(step.Run, set); err != nil {
			return refused(out, err)
		}
	}
	verb := "landed"
	if dry {
		verb = "would change"
		out.Status = contract.StatePartial
		out.Step = contract.StatusPartial
	}
	if set.unchanged() {
		verb = "already holds the change:"
	}
	if err := out.AddFile(resultSummary, set.landing(step.Run, dry)); err != nil {
		return out, err
	}
	out.Findings = append(out.Findings, finding.Finding{Code: "difference", Severity: finding.Note, What: shortDiff(diff), Where: &finding.Where{Path: step.Run.File(diffFile)},
		Remedy: "review it; nothing was staged or committed"})
	out.Check("landed", true, "every change is there, or none was asked for")
	out.Summary = fmt.Sprintf("%s %s %s", filepath.Base(set.root), verb, set.summary())
	out.Decide()
	return out, nil
}

// repository is the folder that the changes are for.
func repository(run *engine.Run, named string) (string, error) {
	if named == "" {
		named = run.Handoff.Inputs.Model.CodePath
	}
	if named == "" {
		named = "."
	}
	root, err := run.Roots.Writable(named)
	if err != nil {
		return "", err
	}
	if err := forbidden(run.Roots.Rel(root), named); err != nil {
		return "", err
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return "", finding.Refuse(finding.Finding{Code: "repository_missing", Severity: finding.Error, What: named + " is no folder", Where: &finding.Where{Field: "changes.repository", Path: root},
			Expected: "the folder of an existing repository", Remedy: "name the folder; new projects are written by phase_4_codegen"})
	}
	return root, nil
}

// maxShown is how much of a difference an answer carries; all of it is in changes.diff.
const maxShown = 3000

func shortDiff(diff string) string {
	if len(diff) <= maxShown {
		return diff
	}
	cut := strings.LastIndexByte(diff[:maxShown], '\n')
	return fmt.Sprintf("%s\n… %d more lines in %s", diff[:max(cut, 0)], strings.Count(diff[max(cut, 0):], "\n"), diffFile)
}

// inside is a file's path within the repository, refused where it leads out or to what nobody may write.
func inside(root, name string) (string, error) {
	clean := filepath.Clean(filepath.FromSlash(name))
	if filepath.IsAbs(clean) {
		if rel, err := filepath.Rel(root, clean); err == nil {
			clean = rel
		}
	}
	if strings.TrimSpace(name) == "" || !filepath.IsLocal(clean) || clean == "." {
		return "", refuse("path_outside_repository", name, fmt.Sprintf("%q does not lie in the repository", name), "a path relative to "+root, "name a file inside the repository")
	}
	return clean, nil
}

func refuse(code, path, what, expected, remedy string) error {
	return finding.Refuse(finding.Finding{Code: code, Severity: finding.Error, What: what, Where: &finding.Where{Path: path}, Expected: expected, Remedy: remedy})
}
