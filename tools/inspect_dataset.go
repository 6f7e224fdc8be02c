package tools

import (
	"context"
	"fmt"
	"slices"

	"github.com/trainwright/trainwright/internal/dataset"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// InspectDatasetInput asks what a table holds.
type InspectDatasetInput struct {
	Path     string `json:"path" jsonschema:"required" jsonschema_description:"A CSV, TSV, JSON Lines, JSON or Parquet file."`
	Target   string `json:"target,omitempty" jsonschema_description:"The column to predict: what is wrong with it is told too."`
	MaxBytes int64  `json:"max_bytes,omitempty" jsonschema_description:"Read no further than this; 1 GiB when left out."`
}

// InspectDatasetOutput is the profile of a table, cut to what an agent decides by. Columns stand in the file's order.
type InspectDatasetOutput struct {
	Path       string             `json:"path"`
	Bytes      int64              `json:"bytes"`
	SHA256     string             `json:"sha256,omitempty"` // empty where the file was not read whole
	Format     dataset.Format     `json:"format"`
	Coverage   dataset.Coverage   `json:"coverage"`
	Columns    []ColumnView       `json:"columns"`
	Duplicates dataset.Duplicates `json:"duplicates"`
	BadRows    []dataset.BadRow   `json:"bad_rows,omitempty"` // the first few ragged records
	BadTotal   int64              `json:"bad_total,omitempty"`
	Findings   []finding.Finding  `json:"findings"`
	NextCall   *engine.NextCall   `json:"next_call,omitempty"`
}

// ColumnView is one column in short. Mean, Std and Quantiles are of its finite numbers.
type ColumnView struct {
	Name            string               `json:"name"`
	Type            string               `json:"type"`
	Missing         int64                `json:"missing,omitempty"`
	Distinct        int64                `json:"distinct"`
	DistinctAtLeast bool                 `json:"distinct_at_least,omitempty"`
	Min             *float64             `json:"min,omitempty"`
	Median          *float64             `json:"median,omitempty"`
	MedianFrom      int64                `json:"median_from,omitempty"` // set where the median is that of a sample of so many values
	Max             *float64             `json:"max,omitempty"`
	Mean            *float64             `json:"mean,omitempty"`
	Std             *float64             `json:"std,omitempty"`
	Decimal         string               `json:"decimal,omitempty"`
	Dates           *dataset.Dates       `json:"dates,omitempty"` // of a column of dates, in place of Top
	Top             []dataset.ValueCount `json:"top,omitempty"`   // of columns that hold no numbers
	Bad             []dataset.BadValue   `json:"bad,omitempty"`   // the first values that do not fit the type
	BadTotal        int64                `json:"bad_total,omitempty"`
}

const (
	datasetBytes = 1 << 30 // read by one call unless it says otherwise: some ten seconds
	shownTop     = 3
	shownBad     = 3
)

// inspectDataset is the tool inspect_dataset.
func inspectDataset(deps Deps) Tool {
	return typedTool("inspect_dataset",
		"Profiles a table (CSV, TSV, JSON Lines, JSON, Parquet; gzip) before anything is decided about it: how it is written, each column's type, range, missing and odd values with line and byte, duplicate rows, ragged rows, and how much was read.",
		Annotations{ReadOnly: true, Idempotent: true},
		func(ctx context.Context, _ engine.Caller, in InspectDatasetInput) (InspectDatasetOutput, error) {
			if in.Path == "" {
				return InspectDatasetOutput{}, missing("path", "a path relative to the workspace", "name the data file")
			}
			e, err := deps.engine()
			if err != nil {
				return InspectDatasetOutput{}, err
			}
			return datasetAt(ctx, e.Roots, in)
		},
		more[InspectDatasetOutput]{toolset: SetWorkspace, rest: "the whole profile is in data_profile.json of a run, after phase_2_data_and_split", text: datasetText,
			schema: brief[InspectDatasetOutput]("columns", "bad_rows", "format", "duplicates")})
}

// datasetAt profiles the file at a path within the roots.
func datasetAt(ctx context.Context, roots *rundir.Roots, in InspectDatasetInput) (InspectDatasetOutput, error) {
	out := InspectDatasetOutput{Columns: []ColumnView{}, Findings: []finding.Finding{}}
	path, err := roots.Readable(in.Path)
	if err != nil {
		return out, err
	}
	limit := in.MaxBytes
	if limit <= 0 {
		limit = datasetBytes
	}
	profile, found, err := dataset.ProfileTable(ctx, path, dataset.ProfileOptions{Target: in.Target, MaxBytes: limit})
	if err != nil {
		return out, err
	}
	out.Path, out.Format, out.Coverage, out.Duplicates = roots.Rel(path), profile.Format, profile.Coverage, profile.Duplicates
	out.BadRows, out.BadTotal, out.Findings = profile.Bad, profile.BadTotal, append(out.Findings, found...)
	if len(profile.Files) > 0 {
		out.Bytes, out.SHA256 = profile.Files[0].Bytes, profile.Files[0].SHA256
	}
	for _, name := range profile.Order {
		out.Columns = append(out.Columns, columnView(profile.Columns[name]))
	}
	if in.Target != "" && slices.Contains(profile.Order, in.Target) {
		out.NextCall = trainCall(map[string]any{"data": map[string]any{"train_source": out.Path, "domain_metadata": map[string]any{"target": in.Target}}})
	}
	return out, nil
}

func columnView(c *dataset.Column) ColumnView {
	view := ColumnView{Name: c.Name, Type: c.Type, Missing: c.Missing, Distinct: c.Distinct, DistinctAtLeast: c.DistinctAtLeast,
		Min: c.Min, Max: c.Max, Mean: c.Mean, Std: c.Std, Bad: c.Bad[:min(len(c.Bad), shownBad)], BadTotal: c.BadTotal}
	if median, ok := c.Quantiles["0.5"]; ok {
		view.Median, view.MedianFrom = &median, c.QuantilesFrom
	}
	view.Decimal = c.Decimal
	switch {
	case c.Type == dataset.TypeDate:
		view.Dates = c.Dates
	case c.Numbers == 0:
		view.Top = c.Top[:min(len(c.Top), shownTop)]
	}
	return view
}

func datasetText(out InspectDatasetOutput) string {
	rows := fmt.Sprintf("%d rows", out.Coverage.Rows)
	if !out.Coverage.Whole {
		rows = fmt.Sprintf("%d rows read", out.Coverage.RowsRead)
	}
	return fmt.Sprintf("%s: %s, %d columns, %d findings", out.Path, rows, len(out.Columns), len(out.Findings))
}
