package trainer

import (
	"context"
	"slices"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/dataset"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/project"
)

// What the user may be asked to pick, where a gate waits for it and a few candidates are at hand. The answer goes into the
// handoff, so that it is the user's word like everything else there.

// dataFiles are the files of data around the project.
func (c *capture) dataFiles() []string {
	if tree := c.around(); tree != nil {
		return tree.DataFiles
	}
	return nil
}

// dataChoice asks for the file with the data.
func dataChoice(files []string) engine.Choice {
	return engine.Choice{Field: "data.train_source", Word: "data", Text: "Which file holds the training data?", Candidates: files,
		Put: func(h *contract.StepHandoff, picked string) { h.Inputs.Data.TrainSource = picked }}
}

// choices are those for the needs of phase 1: the file with the data first, since the columns are read from it.
func (l *ledger) choices(ctx context.Context, run *engine.Run, view projectView, needs []engine.Need) []engine.Choice {
	waits := func(field string) bool {
		return slices.ContainsFunc(needs, func(n engine.Need) bool { return n.Field == field })
	}
	switch {
	case waits("data.train_source") && view.Root != "":
		// An error here only means that there is nothing to pick from.
		if tree, _, err := project.Scan(ctx, view.Root, project.Options{}); err == nil {
			return []engine.Choice{dataChoice(tree.DataFiles)}
		}
	case waits("data.target"):
		return targetOf(ctx, run, view, l.facts)
	}
	return nil
}

// targetChoice asks for the column to predict. Without names of columns there is nothing to pick from.
func targetChoice(file string, columns []string) engine.Choice {
	return engine.Choice{Field: "data.target", Word: "target", Text: "Which column of " + file + " is to be predicted?", Candidates: columns,
		Put: func(h *contract.StepHandoff, picked string) {
			h.Inputs.Data.DomainMetadata = map[string]any{"target": picked}
		}}
}

// headerBytes is how much of a file is read for the names of its columns.
const headerBytes = 64 << 10

// targetOf is targetChoice for the data that facts name, if it is a table with a header.
func targetOf(ctx context.Context, run *engine.Run, view projectView, facts []evidence.Fact) []engine.Choice {
	for _, field := range []string{"data.train_source", "data.source"} {
		fact := holding(facts, field)
		if fact == nil {
			continue
		}
		path, err := locate(run, view.Root, text(fact.Value))
		if err != nil {
			continue // the gate of phase 2 tells why it can't be read
		}
		profile, _, err := dataset.ProfileTable(ctx, path, dataset.ProfileOptions{MaxBytes: headerBytes})
		if err == nil && profile.Format.Header {
			return []engine.Choice{targetChoice(run.Roots.Rel(path), slices.Clone(profile.Order))}
		}
	}
	return nil
}
