package trainer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/project"
	"github.com/trainwright/trainwright/internal/rundir"
)

// maxFileSources bounds how many documents, configurations and dependency files of a project are captured one by one.
const maxFileSources = 24

// maxCodeFiles bounds the project files whose change starts another job.
const maxCodeFiles = 1000

// all captures everything that the handoff and the agent name. What can't be captured is a finding.
func (c *capture) all(ctx context.Context, given AcquisitionInput) error {
	run := c.step.Run
	if err := c.add(evidence.CaptureInput{Kind: "handoff", Ref: contract.FileStepHandoff, Path: run.File(contract.FileStepHandoff)}, ""); err != nil {
		return err
	}
	source := run.Handoff.Inputs.InstructionSource
	if source.Text != "" {
		if err := c.add(evidence.CaptureInput{Kind: "text", Ref: requestSource, Text: source.Text}, "inputs.instruction_source.text"); err != nil {
			return err
		}
	}
	if source.LocalPath != "" {
		if err := c.file(source.LocalPath, "inputs.instruction_source.local_path"); err != nil {
			return err
		}
	}
	if err := c.pages(ctx, given); err != nil {
		return err
	}
	if err := c.bindings(); err != nil {
		return err
	}
	if err := c.projectSources(ctx); err != nil {
		return err
	}
	if err := c.dataAndCheckpoints(); err != nil {
		return err
	}
	for i, s := range given.Sources {
		if err := c.given(s, fmt.Sprintf("sources[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

// bindings captures the content that came along with resource bindings, and the relevant artifacts. The path of a
// binding is an identifier, never a licence to read (contracts.md).
func (c *capture) bindings() error {
	handoff := c.step.Run.Handoff
	for i, b := range handoff.ResourceBindings {
		field := fmt.Sprintf("resource_bindings[%d]", i)
		if b.Content == "" {
			c.findings = append(c.findings, finding.Finding{Code: "binding_without_content", Severity: finding.Note,
				What: fmt.Sprintf("%s came without content and was not read: its path is an identifier", b.Path), Where: &finding.Where{Field: "step_handoff." + field},
				Remedy: "add it under sources, or in relevant_artifacts, when it should be read"})
			continue
		}
		if err := c.add(evidence.CaptureInput{Kind: "text", Ref: b.Path, Text: b.Content, Note: b.Purpose}, field); err != nil {
			return err
		}
	}
	for i, path := range handoff.TaskContext.RelevantArtifacts {
		field := fmt.Sprintf("task_context.relevant_artifacts[%d]", i)
		if strings.ContainsAny(path, ":=") {
			continue // a named folder such as "trainer_workdir: runs/a"
		}
		if abs, err := locate(c.step.Run, c.root, path); err == nil {
			if info, err := os.Stat(abs); err == nil && info.IsDir() {
				continue
			}
		}
		if err := c.file(path, field); err != nil {
			return err
		}
	}
	return nil
}

// projectSources finds the project, scans it and captures the files that facts are read from.
func (c *capture) projectSources(ctx context.Context) error {
	model := c.step.Run.Handoff.Inputs.Model
	if model.CodePath == "" && model.TrainingEntrypoint == "" {
		return nil
	}
	field := "inputs.model.code_path"
	at := model.CodePath
	if at == "" {
		field, at = "inputs.model.training_entrypoint", filepath.Dir(model.TrainingEntrypoint)
	}
	root, err := c.step.Run.Roots.Readable(at)
	if err != nil {
		return c.refused(err, field)
	}
	c.step.Say(contract.PhaseInputAcquisition, "scanning %s", c.step.Run.Roots.Rel(root))
	hint := model.TrainingEntrypoint
	if model.CodePath == "" {
		hint = filepath.Base(model.TrainingEntrypoint)
	} else if rel := relative(root, c.step.Run.Roots.Workspace(), hint); rel != "" {
		hint = rel
	}
	scan, found, err := project.Scan(ctx, root, project.Options{Entrypoint: hint, GitCeiling: c.step.Run.Roots.Workspace()})
	if err != nil {
		return c.refused(err, field)
	}
	c.scan, c.root = scan, scan.Root
	c.findings = append(c.findings, found...)
	return c.captureProject(hint)
}

// relative rewrites an entry point that was named from the workspace into one relative to the project's root, where the
// project has no such file itself.
func relative(root, workspace, entry string) string {
	if entry == "" {
		return ""
	}
	if filepath.IsAbs(entry) {
		if rel, err := filepath.Rel(root, entry); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
		return ""
	}
	if _, err := os.Stat(filepath.Join(root, entry)); err == nil {
		return filepath.ToSlash(filepath.Clean(entry))
	}
	if rel, err := filepath.Rel(root, filepath.Join(workspace, entry)); err == nil && filepath.IsLocal(rel) {
		if _, err := os.Stat(filepath.Join(workspace, entry)); err == nil {
			return filepath.ToSlash(rel)
		}
	}
	return ""
}

func (c *capture) captureProject(hint string) error {
	run := c.step.Run
	switch {
	case hint != "":
		c.entry = filepath.ToSlash(filepath.Clean(hint))
		path := filepath.Join(c.root, filepath.FromSlash(c.entry))
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			c.findings = append(c.findings, missingEntry(c, path, err))
			c.entry = ""
		}
	case len(c.scan.Entrypoints) == 1 || (len(c.scan.Entrypoints) > 1 && c.scan.Entrypoints[0].Score > c.scan.Entrypoints[1].Score):
		// The project itself was named; its one best entry point is what it says, and the capture shows the reasons.
		c.entry = c.scan.Entrypoints[0].Path
	}
	paths := []string{}
	if c.entry != "" {
		paths = append(paths, c.entry)
	}
	for _, config := range c.relevantConfigs() {
		paths = append(paths, config.Path)
	}
	if launches := c.scan.LaunchesOf(c.entry); c.entry != "" && len(launches) == 1 {
		paths = append(paths, launches[0].Place.Path)
	}
	for _, s := range c.scan.SettingsOf(c.entry, c.configHint()) {
		paths = append(paths, s.Place.Path)
	}
	paths = append(paths, c.scan.Docs...)
	if c.entry == "" { // without a script that trains, the model's own code is what there is to quote
		for _, f := range c.scan.Files {
			if f.Kind == project.KindPython {
				paths = append(paths, f.Path)
			}
		}
	}
	for _, d := range c.scan.Dependencies {
		if !d.Imported {
			paths = append(paths, d.Place.Path)
		}
	}
	seen := map[string]bool{}
	for _, path := range paths {
		if seen[path] || len(seen) == maxFileSources {
			continue
		}
		seen[path] = true
		if err := c.file(filepath.Join(c.root, filepath.FromSlash(path)), "inputs.model.code_path"); err != nil {
			return err
		}
	}
	return c.addDirectory(run)
}

func missingEntry(c *capture, path string, err error) finding.Finding {
	f := finding.Finding{Code: "file_missing", Severity: finding.Error, What: "the training entry point does not exist", Where: &finding.Where{Path: path, Field: "step_handoff.inputs.model.training_entrypoint"},
		Expected: "a script inside " + c.step.Run.Roots.Rel(c.root), Remedy: "correct training_entrypoint in a new handoff"}
	if err == nil {
		f.Code, f.What = "not_a_regular_file", "the training entry point is not a file"
	}
	if len(c.scan.Entrypoints) > 0 {
		f.Remedy += "; found: " + c.scan.Entrypoints[0].Path
	}
	return f
}

// addDirectory records the project as one source: the hash of its file list without what this run writes.
func (c *capture) addDirectory(run *engine.Run) error {
	var list strings.Builder
	var bytes int64
	for _, f := range c.scan.Files {
		abs := filepath.Join(c.root, filepath.FromSlash(f.Path))
		if rundir.Inside(run.CodeSaveDir, abs) || rundir.Inside(run.Workdir, abs) {
			continue
		}
		fmt.Fprintf(&list, "%s %s\n", f.SHA256, f.Path)
		bytes += f.Bytes
	}
	source := evidence.Source{Kind: "directory", Ref: run.Roots.Rel(c.root), SHA256: rundir.HashBytes([]byte(list.String())), Bytes: bytes,
		Note: "sha256 of the list of its files with their hashes"}
	for _, s := range c.sources {
		if s.Kind == source.Kind && s.Ref == source.Ref && s.SHA256 == source.SHA256 {
			return nil
		}
	}
	source.ID, source.CapturedAt = evidence.NextSourceID(c.sources), c.step.Now().UTC()
	c.sources = append(c.sources, source)
	return nil
}

// dataAndCheckpoints hashes the data files and checkpoints that the handoff names. Missing data is pending, not an
// error: phase 2 decides.
func (c *capture) dataAndCheckpoints() error {
	in := c.step.Run.Handoff.Inputs
	for _, named := range []struct {
		kind, path, field string
		missing           finding.Severity
	}{
		{"dataset", in.Data.TrainSource, "inputs.data.train_source", finding.Warning},
		{"dataset", in.Data.ValSource, "inputs.data.val_source", finding.Warning},
		{"dataset", in.Data.TestSource, "inputs.data.test_source", finding.Warning},
		{"checkpoint", in.Checkpoint.InitCheckpoint, "inputs.checkpoint.init_checkpoint", finding.Error},
		{"checkpoint", in.Checkpoint.ResumeCheckpoint, "inputs.checkpoint.resume_checkpoint", finding.Error},
		{"checkpoint", in.Checkpoint.FinetuneCheckpoint, "inputs.checkpoint.finetune_checkpoint", finding.Error},
	} {
		if named.path == "" {
			continue
		}
		if err := c.path(named.kind, named.path, named.field, named.missing); err != nil {
			return err
		}
	}
	return nil
}

func (c *capture) given(s SourceInput, field string) error {
	switch s.Kind {
	case "text":
		return c.add(evidence.CaptureInput{Kind: "text", Ref: s.Ref, Text: s.Text, Note: s.Note}, field)
	case "file", "directory", "dataset", "checkpoint":
		return c.path(s.Kind, s.Ref, field, finding.Error)
	case evidence.KindURL:
		return nil // pages did it
	}
	return c.add(evidence.CaptureInput{Kind: s.Kind, Ref: s.Ref, Text: s.Text, Note: s.Note}, field)
}

func (c *capture) file(path, field string) error { return c.path("file", path, field, finding.Error) }

// path captures what a path leads to. missing is how much a file that is not there weighs.
func (c *capture) path(kind, path, field string, missing finding.Severity) error {
	abs, err := locate(c.step.Run, c.root, path)
	if err != nil {
		return c.refused(err, field)
	}
	info, err := os.Stat(abs)
	if errors.Is(err, fs.ErrNotExist) {
		c.findings = append(c.findings, finding.Finding{Code: "file_missing", Severity: missing, What: path + " does not exist",
			Where: &finding.Where{Path: abs, Field: "step_handoff." + field}, Expected: "a " + kind + " that can be read",
			Remedy: "correct the path, or fetch the file; paths are relative to the project or the workspace"})
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	if info.IsDir() != (kind == "directory") && kind != "checkpoint" {
		code := map[bool]string{true: "is_a_directory", false: "not_a_directory"}[info.IsDir()]
		c.findings = append(c.findings, finding.Finding{Code: code, Severity: finding.Error, What: path + " is not a " + kind,
			Where: &finding.Where{Path: abs, Field: "step_handoff." + field}, Expected: "a " + kind, Remedy: "name the file itself"})
		return nil
	}
	in := evidence.CaptureInput{Kind: kind, Ref: c.step.Run.Roots.Rel(abs), Path: abs}
	if kind == evidence.KindFile {
		c.rendered(&in, info)
	}
	return c.add(in, field)
}

// add captures and remembers which source a file is. Refusals become findings.
func (c *capture) add(in evidence.CaptureInput, field string) error {
	source, err := evidence.Capture(c.step.Run.Workdir, c.sources, in, c.step.Now().UTC())
	if err != nil {
		return c.refused(err, field)
	}
	c.sources = evidence.AddSource(c.sources, source)
	if in.Path != "" {
		c.bySource[in.Path] = source.ID
		if in.Kind != "directory" && in.Kind != "handoff" {
			c.step.TrackAs(in.Path, source.SHA256)
		}
	}
	return nil
}

// refused turns a refusal into findings at the field that caused it; other errors pass.
func (c *capture) refused(err error, field string) error {
	var refused *finding.Refused
	if !errors.As(err, &refused) {
		return err
	}
	for _, f := range refused.Findings {
		if f.Where == nil {
			f.Where = &finding.Where{}
		}
		if f.Where.Field == "" && field != "" {
			f.Where.Field = "step_handoff." + field
		}
		c.findings = append(c.findings, f)
	}
	return nil
}

// projectView is what project.json keeps of the scan: everything that later phases read.
func (c *capture) projectView() projectView {
	view := projectView{Root: c.root, Entry: c.entry, Sources: map[string]string{}}
	if c.scan == nil {
		return view
	}
	view.Docs, view.Traps, view.Git, view.Dependencies, view.Configs = c.scan.Docs, c.scan.Traps, c.scan.Git, c.scan.Dependencies, c.relevantConfigs()
	for i, e := range c.scan.Entrypoints {
		if e.Path == c.entry || i < 5 {
			view.Entrypoints = append(view.Entrypoints, e)
		}
	}
	for path, id := range c.bySource {
		view.Sources[path] = id
	}
	run := c.step.Run
	for _, f := range c.scan.Files {
		abs := filepath.Join(c.root, filepath.FromSlash(f.Path))
		if f.Kind == project.KindPython && len(view.Code) < maxCodeFiles && !rundir.Inside(run.CodeSaveDir, abs) && !rundir.Inside(run.Workdir, abs) {
			view.Code = append(view.Code, f.Path)
		}
	}
	return view
}

// projectView is project.json: the project's root and entry point (relative to it), what its scripts take, and which
// captured source each file is.
type projectView struct {
	Root         string               `json:"root"`
	Entry        string               `json:"entrypoint"`
	Entrypoints  []project.Entrypoint `json:"entrypoints"`
	Configs      []project.Config     `json:"configs"`
	Docs         []string             `json:"docs"`
	Traps        []project.Trap       `json:"traps"`
	Dependencies []project.Dependency `json:"dependencies"`
	Git          *project.Git         `json:"git"`
	Sources      map[string]string    `json:"sources"`
	// Code are the Python files of the project, which a job may import: a change of one is another job.
	Code []string `json:"code"`
}

// codePaths are the project's Python files, absolute.
func (v projectView) codePaths() []string {
	out := make([]string, 0, len(v.Code))
	for _, path := range v.Code {
		out = append(out, filepath.Join(v.Root, filepath.FromSlash(path)))
	}
	return out
}

// script is the chosen entry point, or nil.
func (v projectView) script() *project.Entrypoint {
	for i := range v.Entrypoints {
		if v.Entrypoints[i].Path == v.Entry && v.Entry != "" {
			return &v.Entrypoints[i]
		}
	}
	return nil
}

// path is the absolute path of the entry point.
func (v projectView) path() string { return filepath.Join(v.Root, filepath.FromSlash(v.Entry)) }

// argument is the script's argument with a role, or nil.
func (v projectView) argument(role string) *project.Argument {
	script := v.script()
	if script == nil {
		return nil
	}
	for i := range script.Arguments {
		if script.Arguments[i].Role == role {
			return &script.Arguments[i]
		}
	}
	return nil
}

// jsonText writes a value as it stands in the run's files: stable JSON, without HTML escapes.
func jsonText(v any) string {
	data, err := rundir.MarshalStable(v)
	var line bytes.Buffer
	if err == nil {
		err = json.Compact(&line, data)
	}
	if err != nil {
		return fmt.Sprint(v)
	}
	return line.String()
}
