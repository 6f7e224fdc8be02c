package trainer

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/dataset"
	"github.com/trainwright/trainwright/internal/rundir"
)

// partNames in the order that people read them.
var partNames = []string{"train", "val", "test"}

// files adds the artifacts of phase 2: profile, split, manifest and plan.
func (w *dataWork) files() error {
	if w.profile != nil {
		if err := w.out.AddFile(profileFile, w.profile); err != nil {
			return err
		}
	}
	if w.split != nil {
		// split.json is written with the ids that it names.
		w.out.Outputs = append(w.out.Outputs, w.step.Run.File(splitFile))
		for _, part := range w.split.Parts {
			w.out.Outputs = append(w.out.Outputs, filepath.Join(w.step.Run.Workdir, filepath.FromSlash(part.IDsFile)))
		}
		if w.written {
			for _, path := range w.parts {
				w.out.Outputs = append(w.out.Outputs, path)
			}
		}
		slices.Sort(w.out.Outputs)
	}
	manifest, err := w.manifest()
	if err != nil {
		return err
	}
	if err := w.out.AddFile(dataManifestFile, manifest); err != nil {
		return err
	}
	w.out.AddText(dataPlanFile, w.render(manifest))
	return nil
}

// manifest is data_manifest.json. Files that the script reads have their part; the file they were cut from has none.
func (w *dataWork) manifest() (contract.DataManifest, error) {
	run, in := w.step.Run, w.step.Run.Handoff.Inputs
	m := contract.DataManifest{InputFormat: orUnknown(in.Data.InputFormat), DomainMetadata: w.domainMetadata(), Files: []contract.DataFile{},
		SplitStrategy: "unknown", Sampling: w.said(w.choice.Sampling), Normalization: w.said(w.choice.Normalization),
		Augmentation: w.said(w.choice.Augmentation), CollateOrBatching: w.said(w.choice.CollateOrBatching), OutputFiles: []string{}}
	if m.InputFormat == "unknown" && w.profile != nil {
		if m.InputFormat = w.profile.Format.Kind; m.InputFormat == "" {
			m.InputFormat = "csv"
		}
	}
	m.TrainSource, m.ValSource, m.TestSource = run.Rel(w.first()), "", ""
	if w.first() == "" {
		m.TrainSource = ""
	}
	m.Schema = contract.DataSchema{ID: w.sample.ID, Features: w.sample.Features, Target: contract.TargetColumn{Name: w.sample.Target.Name, Type: w.sample.Target.Type, Unit: w.sample.Target.Unit}}
	if w.split != nil { // what a trivial forecast is made along
		m.Schema.Time, m.Schema.Group = w.split.Time, w.split.Group
		for _, unit := range []struct {
			field, chosen string
			into          *string
		}{{"data.time", w.choice.Time, &m.Schema.Time}, {"data.group", w.choice.Group, &m.Schema.Group}} {
			if fact := holding(w.facts, unit.field); *unit.into == "" && unit.chosen != "" {
				*unit.into = unit.chosen
			} else if *unit.into == "" && fact != nil {
				*unit.into = text(fact.Value)
			}
		}
	}
	if w.profile != nil && (w.written || w.ownSplit) {
		f := w.profile.Files[0]
		m.Files = append(m.Files, contract.DataFile{Path: run.Rel(w.first()), SHA256: f.SHA256, Bytes: f.Bytes, Rows: rowsOf(w.profile.Coverage)})
	}
	if w.spec != nil {
		m.SplitStrategy = w.spec.Strategy
	}
	for _, part := range partNames {
		path := w.parts[part]
		if path == "" {
			continue
		}
		sha, bytes, err := rundir.HashFile(path)
		if err != nil {
			return m, err
		}
		file := contract.DataFile{Path: run.Rel(path), Part: part, SHA256: sha, Bytes: bytes}
		if w.split != nil {
			n := w.split.Parts[part].N
			file.Rows = &n
		}
		m.Files = append(m.Files, file)
		if w.written {
			m.OutputFiles = append(m.OutputFiles, run.Rel(path))
		}
	}
	if !w.written {
		if p := w.parts["val"]; p != "" {
			m.ValSource = run.Rel(p)
		}
		if p := w.parts["test"]; p != "" {
			m.TestSource = run.Rel(p)
		}
	}
	return m, nil
}

// said is the agent's word, else the honest default: the script decides.
func (w *dataWork) said(word string) string {
	if word != "" {
		return word
	}
	if w.view.Entry != "" {
		return "INFERRED: left to " + w.view.Entry
	}
	return "MISSING: not stated"
}

// rowsOf is how many rows a file holds, nil where that is not known.
func rowsOf(c dataset.Coverage) *int64 {
	if c.Unknown {
		return nil
	}
	return &c.Rows
}

func (w *dataWork) summary() string {
	if w.profile == nil && (len(w.missing) > 0 || w.first() == "") {
		return "the data is not there yet"
	}
	if w.profile == nil {
		return "the data could not be read"
	}
	text := fmt.Sprintf("%d rows, %d columns read", w.profile.Coverage.RowsRead, len(w.profile.Order))
	if w.split == nil {
		return text
	}
	var parts []string
	for _, part := range partNames {
		if p, ok := w.split.Parts[part]; ok {
			parts = append(parts, fmt.Sprintf("%s %d", part, p.N))
		}
	}
	return fmt.Sprintf("%s; %s split: %s", text, w.split.Strategy, strings.Join(parts, ", "))
}

// render is data_preparation_plan.md.
func (w *dataWork) render(manifest contract.DataManifest) []byte {
	var m markdown
	m.line("# Data preparation plan")
	m.heading(2, "Files")
	var rows [][]string
	for _, f := range manifest.Files {
		count := "—"
		if f.Rows != nil {
			count = fmt.Sprint(*f.Rows)
		}
		rows = append(rows, []string{code(f.Path), f.Part, count, fmt.Sprint(f.Bytes), shortHash(f.SHA256)})
	}
	m.table("PENDING: no data file could be read.", []string{"file", "part", "rows", "bytes", "sha256"}, rows)
	for _, path := range w.missing {
		m.line("\nPENDING: %s is not there.", code(path))
	}
	m.heading(2, "Sample contract")
	if w.profile == nil {
		m.line("MISSING: it is settled when the data is there.")
	} else {
		m.line("- id: %s", code(w.sample.ID))
		m.line("- target: %s (%s%s)", code(w.sample.Target.Name), w.sample.Target.Type, unitText(w.sample.Target.Unit))
		m.line("- features: %d columns: %s", len(w.sample.Features), cellText(strings.Join(w.sample.Features, ", ")))
		w.renderColumns(&m)
	}
	m.heading(2, "Split")
	w.renderSplit(&m)
	m.heading(2, "Preparation")
	for _, row := range [][2]string{{"sampling", manifest.Sampling}, {"normalization", manifest.Normalization}, {"augmentation", manifest.Augmentation}, {"collate or batching", manifest.CollateOrBatching}} {
		m.line("- %s: %s", row[0], row[1])
	}
	return []byte(m.String())
}

func unitText(unit string) string {
	if unit == "" {
		return ", unit not stated"
	}
	return ", " + unit
}

func (w *dataWork) renderColumns(m *markdown) {
	m.heading(3, "Columns")
	var rows [][]string
	for _, name := range w.profile.Order {
		c := w.profile.Columns[name]
		note := w.choice.Columns[name]
		rows = append(rows, []string{code(name), c.Type, fmt.Sprint(c.Missing), fmt.Sprint(c.Distinct), number(c.Min), number(c.Mean), number(c.Max), note.Unit, note.Meaning})
		if len(rows) == 60 {
			m.line("The first 60 of %d columns:\n", len(w.profile.Order))
			break
		}
	}
	m.table("None.", []string{"column", "type", "missing", "distinct", "min", "mean", "max", "unit", "meaning"}, rows)
	m.line("\n%d rows read of %d; %d are identical to an earlier one; %d are ragged.", w.profile.Coverage.RowsRead, w.profile.Coverage.Rows, w.profile.Duplicates.Rows, w.profile.BadTotal)
}

func number(v *float64) string {
	if v == nil {
		return "—"
	}
	return fmt.Sprintf("%.6g", *v)
}

func (w *dataWork) renderSplit(m *markdown) {
	switch {
	case w.spec == nil:
		m.line("MISSING: neither files, split_hint nor the script say how the data is split.")
		return
	case w.ownSplit:
		m.line("PREDEFINED: %s splits its file itself. That the parts are disjoint was not checked.", code(w.view.Entry))
		return
	case w.split == nil:
		m.line("%s; made when the data is there.", w.spec.Strategy)
		return
	}
	m.line("%s, seed %d, by %s.", w.split.Strategy, w.split.Seed, w.split.Unit)
	var rows [][]string
	for _, part := range partNames {
		if p, ok := w.split.Parts[part]; ok {
			rows = append(rows, []string{part, fmt.Sprint(p.N), code(p.IDsFile), shortHash(p.SHA256)})
		}
	}
	m.table("", []string{"part", "rows", "ids", "sha256"}, rows)
	m.heading(3, "Leakage")
	var leaks []string
	for _, l := range w.leaks {
		leaks = append(leaks, fmt.Sprintf("%s (%s): %d", l.Kind, l.Severity, l.Count))
	}
	m.list("Ids, rows and rows without id and target were compared across the parts: no overlap.", leaks)
	m.heading(3, "Statistics of the training part")
	rows = nil
	for _, name := range slices.Sorted(maps.Keys(w.split.Statistics)) {
		s := w.split.Statistics[name]
		rows = append(rows, []string{code(name), fmt.Sprintf("%.6g", s.Mean), fmt.Sprintf("%.6g", s.Std), fmt.Sprint(s.N)})
	}
	m.table("No numeric feature.", []string{"column", "mean", "std", "n"}, rows)
}
