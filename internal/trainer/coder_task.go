package trainer

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
)

// writeCoderTask adds coder_task_description.md, which stands alone, and makes the coder handoff around it.
func writeCoderTask(run *engine.Run, out *engine.Outcome, c *commander) (contract.CoderHandoff, error) {
	handoff := contract.NewCoderHandoff()
	handoff.CodeSaveDir, handoff.TrainerWorkdir, handoff.Workdir = run.CodeSaveDir, run.Workdir, run.Workdir
	task := renderCoderTask(run, c)
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

// renderCoderTask is coder_task_description.md: what must change and why, with every open mark of the run.
func renderCoderTask(run *engine.Run, c *commander) []byte {
	var m markdown
	m.line("# Coder task: make %s able to do this training run", code(c.view.Entry))
	m.line("\nGoal: %s", cellText(run.Handoff.StepGoal))
	m.line("\nThe repository is %s, the script %s. Everything below is part of this task; nothing else needs to be read.", code(run.Roots.Rel(c.view.Root)), code(c.view.Entry))
	m.heading(2, "Changes")
	m.list("", c.changes)
	m.heading(2, "What the script takes today")
	var rows [][]string
	for _, a := range c.view.script().Arguments {
		rows = append(rows, []string{code(a.Name), show(a.Default), a.Role, a.Help})
	}
	m.table("No arguments.", []string{"argument", "default", "meaning", "help"}, rows)
	m.heading(2, "Data")
	m.line("- id: %s", code(c.manifest.Schema.ID))
	m.line("- target: %s (%s)", code(c.manifest.Schema.Target.Name), c.manifest.Schema.Target.Type)
	m.line("- features: %s", strings.Join(c.manifest.Schema.Features, ", "))
	for _, f := range c.manifest.Files {
		if f.Part != "" {
			m.line("- %s part: %s", f.Part, code(c.run.Dir.Abs(f.Path)))
		}
	}
	m.heading(2, "Values")
	rows = nil
	for _, spec := range leaves {
		leaf := c.plan.Leaves[spec.path]
		rows = append(rows, []string{spec.path, show(leaf.Value), leaf.Status})
	}
	m.table("", []string{"field", "value", "status"}, rows)
	m.heading(2, "What the script must leave")
	m.list("", []string{"`outputs/metrics.jsonl`: one JSON object a line: time, step, epoch, split, name, value", "`outputs/predictions-<split>.jsonl`: id, target, prediction",
		"`checkpoints/…` with a `.complete.json` marker (sha256, bytes, step, epoch, holds)", "exit status 0 done, 75 interrupted after saving, 78 wrong configuration, 65 non-finite loss"})
	m.heading(2, "MISSING, INFERRED, ASSUMPTION")
	var open []string
	for _, spec := range leaves {
		if leaf := c.plan.Leaves[spec.path]; leaf.Status != evidence.Confirmed {
			open = append(open, leaf.Status+": "+spec.path+" = "+show(leaf.Value)+" ("+leaf.Why+")")
		}
	}
	for _, f := range c.facts {
		if f.InForce && slices.Contains([]string{evidence.Missing, evidence.Inferred, evidence.Assumption}, f.Status) {
			open = append(open, f.Status+": "+f.Field+" = "+show(f.Value)+" ("+f.Why+")")
		}
	}
	m.list("None.", open)
	m.heading(2, "Done when")
	m.list("The script compiles, `--help` names the new arguments, and the trainer's phase 4 passes.", run.Handoff.CompletionCriteria)
	return []byte(m.String())
}
