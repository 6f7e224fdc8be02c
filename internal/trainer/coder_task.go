package trainer

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
)

// writeCoderTask adds coder_task_description.md, which stands alone, and makes the coder handoff around it. Written is code
// that was sent for the repository.
func writeCoderTask(run *engine.Run, out *engine.Outcome, c *commander, written []CodeFile) (contract.CoderHandoff, error) {
	handoff := contract.NewCoderHandoff()
	handoff.CodeSaveDir, handoff.TrainerWorkdir, handoff.Workdir = run.CodeSaveDir, run.Workdir, run.Workdir
	task := renderCoderTask(run, c, written)
	out.AddText(coderFile, task)
	handoff.TaskDescriptionPath, handoff.TaskDescriptionContent = coderFile, string(task)
	for _, part := range []struct {
		name          string
		path, content *string
	}{
		{captureFile, &handoff.SourceCapturePath, &handoff.SourceCaptureContent},
		{knowledgeFile, &handoff.TrainingKnowledgePath, &handoff.TrainingKnowledgeContent},
		{dataPlanFile, &handoff.DataPreparationPlanPath, &handoff.DataPreparationPlanContent},
		{dataManifestFile, &handoff.DataManifestPath, &handoff.DataManifestContent},
		{planText, &handoff.TrainingPlanPath, &handoff.TrainingPlanContent},
	} {
		data, err := os.ReadFile(run.File(part.name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return handoff, err
		}
		*part.path, *part.content = part.name, string(data)
	}
	handoff.RequiredOutputs = expected(run.Handoff, c.outputs)
	handoff.ValidationCriteria = run.Handoff.CompletionCriteria
	return handoff, nil
}

// renderCoderTask is coder_task_description.md: what must change and why, with every open mark of the run. It stands alone:
// what it speaks of is in it.
func renderCoderTask(run *engine.Run, c *commander, written []CodeFile) []byte {
	var m markdown
	m.line("# Coder task: make %s able to do this training run", code(orUnknown(c.view.Entry)))
	m.line("\nGoal: %s", oneLine(run.Handoff.StepGoal))
	if goal := run.Handoff.TaskContext.UserGoal; goal != "" {
		m.line("\nWhat the user wants: %s", oneLine(goal))
	}
	m.line("\nThe repository is %s, the script %s. Everything below is part of this task; nothing else needs to be read.", code(run.Roots.Rel(c.view.Root)), code(orUnknown(c.view.Entry)))
	m.heading(2, "Changes")
	m.list("", c.changes)
	m.heading(2, "Constraints")
	m.list("None were given.", run.Handoff.TaskContext.Constraints)
	c.renderArguments(&m)
	renderCode(&m, written)
	m.heading(2, "Data")
	m.line("- id: %s", code(c.manifest.Schema.ID))
	m.line("- target: %s (%s%s)", code(c.manifest.Schema.Target.Name), c.manifest.Schema.Target.Type, unitText(c.manifest.Schema.Target.Unit))
	m.line("- features: %s", strings.Join(c.manifest.Schema.Features, ", "))
	m.line("- split: %s", c.manifest.SplitStrategy)
	for _, f := range c.manifest.Files {
		m.line("- %s: %s", cmp.Or(f.Part, "whole table"), code(c.run.Dir.Abs(f.Path)))
	}
	m.heading(2, "Values")
	var rows [][]string
	for _, spec := range leaves {
		leaf := c.plan.Leaves[spec.path]
		rows = append(rows, []string{spec.path, show(leaf.Value), leaf.Status})
	}
	m.table("", []string{"field", "value", "status"}, rows)
	m.heading(2, "What the script must leave")
	m.list("", []string{"`outputs/metrics.jsonl`: one JSON object a line: time, step, epoch, split, name, value", "`outputs/predictions-<split>.jsonl`: id, target, prediction",
		"`checkpoints/…` with a `.complete.json` marker (sha256, bytes, step, epoch, holds)", "exit status 0 done, 75 interrupted after saving, 78 wrong configuration, 65 non-finite loss"})
	m.heading(2, "MISSING, INFERRED, ASSUMPTION")
	m.list("None.", c.openMarks())
	m.heading(2, "Done when")
	m.list("", append([]string{"the script compiles, `--help` names the new arguments, and it trains one epoch on a few rows"}, run.Handoff.CompletionCriteria...))
	return []byte(m.String())
}

func (c *commander) renderArguments(m *markdown) {
	m.heading(2, "What the script takes today")
	var rows [][]string
	if script := c.view.script(); script != nil {
		for _, a := range script.Arguments {
			rows = append(rows, []string{code(a.Name), show(a.Default), a.Role, a.Help})
		}
	}
	m.table("No arguments.", []string{"argument", "default", "meaning", "help"}, rows)
}

// renderCode shows the files that were sent for the repository.
func renderCode(m *markdown, written []CodeFile) {
	if len(written) == 0 {
		return
	}
	m.heading(2, "Code that was written for this task")
	for _, file := range written {
		fence := "```"
		for strings.Contains(file.Content, fence) {
			fence += "`"
		}
		m.line("%s:\n\n%s\n%s\n%s\n", code(file.Path), fence, strings.TrimRight(file.Content, "\n"), fence)
	}
}

// openMarks are all values of the run that nobody has confirmed.
func (c *commander) openMarks() []string {
	var open []string
	mark := func(status, name string, value any, why string) {
		if slices.Contains([]string{evidence.Missing, evidence.Inferred, evidence.Assumption}, status) {
			open = append(open, fmt.Sprintf("%s: %s = %s%s", status, name, show(value), suffix(": ", oneLine(why))))
		}
	}
	for _, spec := range leaves {
		leaf := c.plan.Leaves[spec.path]
		mark(leaf.Status, spec.path, leaf.Value, leaf.Why)
	}
	mark(c.plan.Role.Status, "checkpoint role", c.plan.Role.Value, c.plan.Role.Why)
	mark(c.plan.Success.Status, "success criteria", c.plan.Success.Value, c.plan.Success.Why)
	for _, f := range c.facts {
		if f.InForce {
			mark(f.Status, f.Field, f.Value, f.Why+suffix("; to be verified: ", f.VerifyLater))
		}
	}
	for _, row := range [][2]string{{"sampling", c.manifest.Sampling}, {"normalization", c.manifest.Normalization}, {"augmentation", c.manifest.Augmentation}, {"collate or batching", c.manifest.CollateOrBatching}} {
		if status, why, marked := strings.Cut(row[1], ": "); marked {
			mark(status, row[0], nil, why)
		}
	}
	for _, e := range c.plan.RunnerContract {
		mark(e.Status, e.Function, nil, "in "+strings.TrimPrefix(e.In, evidence.Missing+": "))
	}
	return open
}

// oneLine folds white space; nothing is cut.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
