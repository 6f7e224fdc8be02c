package trainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/dataset"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
)

// DataAndSplitInput is the section of phase_2_data_and_split.
type DataAndSplitInput struct {
	Data DataChoice `json:"data,omitzero" jsonschema_description:"What the columns mean and how the data is split. Leave out what the handoff or the script says already."`
	engine.EditedInput
}

// DataChoice is the agent's judgement about the data.
type DataChoice struct {
	Target            string                `json:"target,omitempty" jsonschema_description:"Column to predict."`
	Features          []string              `json:"features,omitempty" jsonschema_description:"Input columns; every other column when left out."`
	ID                string                `json:"id,omitempty" jsonschema_description:"Column that identifies a row; row-<n> when left out."`
	Group             string                `json:"group,omitempty" jsonschema_description:"Column whose equal values must stay in one part: patient, station, batch."`
	Time              string                `json:"time,omitempty" jsonschema_description:"Column that orders the rows."`
	Sequence          string                `json:"sequence,omitempty" jsonschema_description:"Column of sequences, for a similarity split."`
	Columns           map[string]ColumnNote `json:"columns,omitempty" jsonschema_description:"Unit and meaning by column name."`
	Split             *SplitChoice          `json:"split,omitempty"`
	Normalization     string                `json:"normalization,omitempty"`
	Sampling          string                `json:"sampling,omitempty"`
	Augmentation      string                `json:"augmentation,omitempty"`
	CollateOrBatching string                `json:"collate_or_batching,omitempty"`
}

// ColumnNote is what a person knows of a column.
type ColumnNote struct {
	Unit    string `json:"unit,omitempty"`
	Meaning string `json:"meaning,omitempty"`
}

// SplitChoice is a split as the agent states it. Fractions sum to 1.
type SplitChoice struct {
	Strategy  string             `json:"strategy" jsonschema:"enum=random,enum=stratified,enum=group,enum=time,enum=similarity,enum=predefined"`
	Fractions map[string]float64 `json:"fractions,omitempty" jsonschema_description:"By part: train, val, test."`
	Seed      int64              `json:"seed,omitempty"`
	History   int                `json:"history,omitempty" jsonschema_description:"Time steps a sample looks back."`
	Horizon   int                `json:"horizon,omitempty" jsonschema_description:"Time steps from a sample to its target."`
	Gap       int                `json:"gap,omitempty" jsonschema_description:"Time steps left out before each cut; the horizon when left out."`
}

// dataAndSplit is phase 2: read the data whole, settle what a sample is, split it or check the split that is there, and
// fit statistics on the training part.
type dataAndSplit struct{ t *Trainer }

func (dataAndSplit) Name() string { return contract.PhaseDataAndSplit }
func (dataAndSplit) Tool() string { return "phase_2_data_and_split" }

// dataWork is the state of phase 2 while it is put together.
type dataWork struct {
	step     *engine.Step
	view     projectView
	facts    []evidence.Fact
	choice   DataChoice
	out      *engine.Outcome
	sources  map[string]string // part or "all" → absolute path of the data as it came
	missing  []string          // paths that are not there yet
	spec     *dataset.SplitSpec
	ownSplit bool // the script splits its one file itself
	hinted   bool // the split's columns are those of the user's hint
	profile  *dataset.Profile
	sample   dataset.SampleContract
	split    *dataset.Split
	parts    map[string]string // part → absolute path of the file that the script reads
	written  bool              // the parts were written by trainwright
	leaks    []dataset.Leak
}

// Run does phase 2.
func (p dataAndSplit) Run(ctx context.Context, step *engine.Step) (engine.Outcome, error) {
	var out engine.Outcome
	w := &dataWork{step: step, out: &out, sources: map[string]string{}, parts: map[string]string{}}
	var sources []evidence.Source
	for name, v := range map[string]any{factsFile: &w.facts, projectFile: &w.view, sourcesFile: &sources} {
		if err := step.ReadJSON(name, v); err != nil {
			return out, err
		}
	}
	var given DataAndSplitInput
	if err := stored(step, p.Name(), &given); err != nil {
		return out, err
	}
	if err := brought(step, &given); err != nil {
		return out, err
	}
	w.choice = given.Data
	w.locate()
	w.decideSplit()
	if len(w.missing) == 0 && w.first() != "" {
		if err := w.work(ctx); err != nil {
			return out, err
		}
	}
	p.gate(w)
	recalled, err := p.t.recallFor(ctx, step, p.Name(), "interface and usage", w.facts, sources)
	if err != nil {
		return out, err
	}
	out.Recall = recalled
	if err := w.files(); err != nil {
		return out, err
	}
	out.Summary = w.summary()
	if finding.Has(out.Findings, finding.Error) {
		return out, nil // a contribution that does not fit the data is not kept
	}
	return out, keepAnswers(&out, step, p.Name(), given)
}

// locate finds the data files that facts name. A path of the handoff is looked for in the project first, then in the
// workspace; a script's default is relative to the project.
func (w *dataWork) locate() {
	for part, field := range map[string]string{"train": "data.train_source", "val": "data.val_source", "test": "data.test_source", "all": "data.source"} {
		fact := holding(w.facts, field)
		if fact == nil {
			continue
		}
		abs, err := locate(w.step.Run, w.view.Root, text(fact.Value))
		if err != nil && fact.By == byServer {
			continue // a default that leads nowhere we may read
		}
		if err != nil {
			w.out.Findings = append(w.out.Findings, refusalOf(err)...)
			continue
		}
		info, err := os.Stat(abs)
		switch {
		case errors.Is(err, fs.ErrNotExist) && fact.By == byServer:
			// A default of the script that does not exist is no statement about this run's data.
		case errors.Is(err, fs.ErrNotExist):
			w.missing = append(w.missing, abs)
		case err == nil && info.IsDir():
			w.out.Findings = append(w.out.Findings, finding.Finding{Code: "is_a_directory", Severity: finding.Error, What: text(fact.Value) + " is a folder",
				Where: &finding.Where{Path: abs, Field: field}, Expected: "a table: CSV, TSV, JSON Lines or Parquet", Remedy: "name the file in inputs.data." + field[len("data."):]})
		default:
			w.sources[part] = abs
		}
	}
	sort.Strings(w.missing)
}

func refusalOf(err error) []finding.Finding {
	if found, _ := finding.Of(err); found != nil {
		return found
	}
	return []finding.Finding{{Code: "unreadable", Severity: finding.Error, What: err.Error()}}
}

// first is the file whose columns say what a sample is.
func (w *dataWork) first() string {
	if path := w.sources["train"]; path != "" {
		return path
	}
	return w.sources["all"]
}

// decideSplit settles where the split comes from: the agent's choice, files that the user names, the user's hint, the
// script's own files, or the script itself when it reads one file.
func (w *dataWork) decideSplit() {
	userParts := by(w.facts, "data.val_source", byUser) || by(w.facts, "data.test_source", byUser)
	hint := holding(w.facts, "data.split_hint")
	ownParts := w.sources["val"] != "" || w.sources["test"] != ""
	switch choice := w.choice.Split; {
	case choice != nil && choice.Strategy != "predefined":
		w.spec = w.chosenSplit(hint, userParts)
	case userParts || (choice != nil && ownParts):
		w.spec = &dataset.SplitSpec{Strategy: "predefined"}
	case hint != nil && text(hint.Value) != "":
		spec, found, err := dataset.ParseSplitHint(text(hint.Value))
		if err != nil {
			found = append(found, refusalOf(err)...)
		}
		w.out.Findings = append(w.out.Findings, found...)
		if !finding.Has(found, finding.Error) {
			w.spec, w.hinted = &spec, hint.By == byUser
		}
	case ownParts:
		w.spec = &dataset.SplitSpec{Strategy: "predefined"}
	case w.sources["all"] != "" || w.view.argument("data.source") != nil:
		w.spec, w.ownSplit = &dataset.SplitSpec{Strategy: "predefined"}, true
	}
	if choice := w.choice.Split; choice != nil && w.spec != nil {
		w.spec.History, w.spec.Horizon, w.spec.Gap = choice.History, choice.Horizon, choice.Gap
	}
	if w.spec != nil && w.spec.Strategy == "predefined" && !w.ownSplit {
		for _, part := range []string{"train", "val", "test"} {
			if w.sources[part] != "" {
				w.parts[part] = w.sources[part]
			}
		}
	}
}

func by(facts []evidence.Fact, field, who string) bool {
	f := holding(facts, field)
	return f != nil && f.By == who
}

// work reads the data, settles the sample, and splits.
func (w *dataWork) work(ctx context.Context) error {
	w.step.Say(contract.PhaseDataAndSplit, "reading %s", w.step.Run.Roots.Rel(w.first()))
	target, id := w.column("data.target", w.choice.Target), w.column("data.id", w.choice.ID)
	profile, found, err := dataset.ProfileTable(ctx, w.first(), dataset.ProfileOptions{Target: target, ID: id})
	if err != nil {
		w.out.Findings = append(w.out.Findings, refusalOf(err)...)
		return notRefused(err)
	}
	w.out.Findings = append(w.out.Findings, found...)
	w.profile = profile
	if sha := profile.Files[0].SHA256; sha != "" {
		w.step.TrackAs(w.first(), sha)
	} else if _, err := w.step.Track(w.first()); err != nil { // it was not read to its end: it is hashed by itself
		return err
	}
	sample, found := dataset.Contract(profile, id, target, w.features())
	w.out.Findings = append(w.out.Findings, found...)
	if target == "" {
		w.out.Findings = slices.DeleteFunc(w.out.Findings, func(f finding.Finding) bool { return f.Code == "target_unknown" })
	}
	sample.Target.Unit = w.choice.Columns[target].Unit
	if units, ok := w.step.Run.Handoff.Inputs.Data.DomainMetadata["units"].(map[string]any); ok && sample.Target.Unit == "" {
		sample.Target.Unit = text(units[target])
	}
	w.sample = sample
	w.out.Findings = onlyFeatures(w.out.Findings, sample.Features)
	w.unitConflicts()
	if finding.Has(w.out.Findings, finding.Error) || w.spec == nil || w.ownSplit || target == "" {
		return nil
	}
	return w.makeParts(ctx, id, target)
}

// column is the agent's choice where there is one, else the fact in force. A choice that contradicts the user is an
// error: the user's word holds.
func (w *dataWork) column(field, chosen string) string {
	fact := holding(w.facts, field)
	if fact == nil {
		return chosen
	}
	if chosen != "" && fact.By == byUser && text(fact.Value) != chosen {
		w.out.Findings = append(w.out.Findings, finding.Finding{Code: "contradicts_fact", Severity: finding.Error,
			What:     fmt.Sprintf("%s is %q by the user's handoff (%s), the call says %q", field, text(fact.Value), fact.ID, chosen),
			Where:    &finding.Where{Field: field},
			Expected: text(fact.Value), Remedy: "leave it out, or start a run with a handoff that says otherwise"})
	}
	if chosen != "" {
		return chosen
	}
	return text(fact.Value)
}

// features are the columns that the call names, else those that a fact in force lists; nil means all others.
func (w *dataWork) features() []string {
	if len(w.choice.Features) > 0 {
		return w.choice.Features
	}
	fact := holding(w.facts, "data.features")
	if fact == nil || fact.Status == evidence.Missing {
		return nil
	}
	var names []string
	list, _ := fact.Value.([]any)
	for _, name := range list {
		if column, ok := name.(string); ok {
			names = append(names, column)
		}
	}
	return names
}

// onlyFeatures leaves out what speaks of columns that the model does not see.
func onlyFeatures(found []finding.Finding, features []string) []finding.Finding {
	return slices.DeleteFunc(found, func(f finding.Finding) bool {
		return f.Code == "target_in_features" && f.Where != nil && !slices.Contains(features, f.Where.Field)
	})
}

func notRefused(err error) error {
	_, err = finding.Of(err)
	return err
}

// makeParts splits the file and writes the parts, or checks the parts that came.
func (w *dataWork) makeParts(ctx context.Context, id, target string) error {
	run := w.step.Run
	spec := *w.spec
	spec.ID, spec.Files = id, w.parts
	if spec.Target == "" || spec.Strategy != dataset.Stratified {
		spec.Target = target
	}
	w.units(&spec)
	if finding.Has(w.out.Findings, finding.Error) {
		return nil
	}
	split, found, err := dataset.MakeSplit(ctx, w.first(), spec, run.Workdir)
	w.out.Findings = append(w.out.Findings, found...)
	if err != nil {
		w.out.Findings = append(w.out.Findings, refusalOf(err)...)
		return notRefused(err)
	}
	if finding.Has(w.out.Findings, finding.Error) {
		return nil
	}
	w.split = split
	if spec.Strategy == "predefined" {
		for _, part := range []string{"val", "test"} {
			if path := w.parts[part]; path != "" {
				if _, err := w.step.Track(path); err != nil {
					return err
				}
			}
		}
	} else {
		if err := own(run, partTargets(run, w.first(), w.profile.Format, split)...); err != nil {
			w.out.Findings = append(w.out.Findings, refusalOf(err)...)
			return notRefused(err)
		}
		parts, found, err := dataset.WriteParts(ctx, w.first(), split, run.Workdir, filepath.Join(run.CodeSaveDir, "data"), dataset.WriteOptions{})
		w.out.Findings = append(w.out.Findings, found...)
		if err != nil {
			w.out.Findings = append(w.out.Findings, refusalOf(err)...)
			return notRefused(err)
		}
		w.parts, w.written = parts, true
	}
	w.leaks = split.Leakage
	if err := w.crossings(ctx, spec); err != nil {
		return err
	}
	if err := w.statisticsElsewhere(ctx); err != nil {
		return err
	}
	if !w.written {
		return nil
	}
	switch f := w.profile.Format; {
	case f.Packed != "" || f.Kind == dataset.KindJSON || f.Kind == dataset.KindParquet:
		w.out.Findings = append(w.out.Findings, finding.Finding{Code: "parts_are_plain_text", Severity: finding.Warning, What: fmt.Sprintf("the parts are written as %s, the source is %s", filepath.Ext(dataset.PartName(w.first(), f, "")), strings.TrimSpace(f.Packed+" "+f.Kind)),
			Where: &finding.Where{Path: w.first()}, Expected: "a script that reads such parts", Remedy: "where the script reads the source's own format only, split the file yourself and name the parts as predefined"})
	case f.Kind == "" && (f.BOM || f.Delimiter != ","):
		w.out.Findings = append(w.out.Findings, finding.Finding{Code: "csv_dialect", Severity: finding.Warning, What: fmt.Sprintf("the parts keep the file's form: delimiter %q, byte order mark %t", f.Delimiter, f.BOM),
			Where: &finding.Where{Path: w.first()}, Expected: "a script that reads this form", Remedy: "if the script misses a column, convert the file to plain comma-separated UTF-8"})
	}
	// The files that the script will read are looked at themselves, not the plan they were written from.
	w.step.Say(contract.PhaseDataAndSplit, "checking %d parts for overlap", len(w.parts))
	leaks, found, err := dataset.CheckParts(ctx, w.parts, id, target)
	if err != nil {
		w.out.Findings = append(w.out.Findings, refusalOf(err)...)
		return notRefused(err)
	}
	w.out.Findings, w.leaks = append(w.out.Findings, found...), append(w.leaks, leaks...)
	return nil
}

// partTargets are the files that the parts are written to.
func partTargets(run *engine.Run, source string, format dataset.Format, split *dataset.Split) []string {
	var out []string
	for name := range split.Parts {
		out = append(out, filepath.Join(run.CodeSaveDir, "data", dataset.PartName(source, format, name)))
	}
	slices.Sort(out)
	return out
}

// gate 2: a sample contract resolved against the file and no empty part, where the intent runs the job; data that is
// not fetched is pending, never assumed.
func (p dataAndSplit) gate(w *dataWork) {
	out := w.out
	required := lastPhase(w.step.Run.Handoff) == contract.PhaseValidation
	present := len(w.missing) == 0 && w.first() != ""
	out.Check("data_present", present || !required, "the data files are there")
	if !present {
		f := finding.Finding{Code: "data_pending", Severity: finding.Warning, What: "the data is not there yet", Expected: "a file that can be read", Remedy: "put the data in place, then call phase_2_data_and_split again"}
		if len(w.missing) > 0 {
			f.What, f.Where = fmt.Sprintf("%d data files are not there", len(w.missing)), &finding.Where{Path: w.missing[0]}
		}
		out.Findings = append(out.Findings, f)
		if required {
			out.Needs = append(out.Needs, engine.Need{Field: "data.train_source", Why: "gate of phase 2: data that is not fetched is pending", WhereToLook: append([]string{}, w.missing...), Candidates: []string{}})
		}
	}
	if present {
		target := w.sample.Target.Name != ""
		out.Check("sample_contract", (target || w.ownSplit) && !finding.Has(out.Findings, finding.Error) || !required, "id, features and target are resolved against the file")
		if !target && !w.ownSplit {
			out.Needs = append(out.Needs, engine.Need{Field: "data.target", Why: "gate of phase 2: the column to predict", WhereToLook: w.columns(), Candidates: []string{}})
			if w.profile != nil && w.profile.Format.Header {
				out.Choices = append(out.Choices, targetChoice(w.step.Run.Roots.Rel(w.first()), w.profile.Order))
			}
		}
		out.Check("split", w.spec != nil || !required, "how the data is split")
		if w.spec == nil {
			why := "gate of phase 2: neither files, split_hint nor the script say how the data is split"
			if column := w.dated(); column != "" {
				why += "; column " + column + " holds dates, so that rows drawn at random would let the model see the future"
			} else if column := w.grouped(); column != "" {
				why += "; column " + column + " repeats, so that rows drawn at random would put one " + column + " in several parts"
			}
			out.Needs = append(out.Needs, engine.Need{Field: "data.split", Why: why, WhereToLook: append(placesToLook(w.view), "ask the user"), Candidates: w.splitCandidates()})
		}
	}
	if w.ownSplit {
		out.Findings = append(out.Findings, finding.Finding{Code: "split_unchecked", Severity: finding.Warning,
			What: "the script splits its file itself; that the parts are disjoint was not checked", Remedy: "give split_hint and a script that takes the parts as files, when it matters"})
	}
	out.Decide()
	if !present && out.Gate.Passed {
		out.Status = contract.StatePartial
	}
	for _, n := range out.Needs {
		out.Blockers = append(out.Blockers, n.Field)
	}
	if !out.Gate.Passed && len(out.Needs) > 0 {
		out.Next = w.dataCall(p.Tool())
	}
}

func (w *dataWork) columns() []string {
	if w.profile == nil {
		return []string{}
	}
	return w.profile.Order[:min(40, len(w.profile.Order))]
}

// fewClasses is up to how many distinct values a target is taken for classes when a split is proposed.
const fewClasses = 20

// proposedSplit is the split that the next call proposes: it is made only when the agent sends it. Rows that carry a date are cut
// by time, since drawing them at random would let a model see the future; rows of the same patient or station stay together.
func (w *dataWork) proposedSplit() map[string]any {
	strategy := dataset.Random
	var target *dataset.Column
	if w.profile != nil {
		target = w.profile.Columns[w.sample.Target.Name]
	}
	switch {
	case w.dated() != "":
		return map[string]any{"strategy": dataset.Time, "fractions": map[string]any{"train": 0.7, "val": 0.15, "test": 0.15}}
	case w.grouped() != "":
		strategy = dataset.Group
	case target != nil && !target.DistinctAtLeast && target.Distinct <= fewClasses && target.Type != dataset.TypeNumber:
		strategy = dataset.Stratified
	}
	return map[string]any{"strategy": strategy, "fractions": map[string]any{"train": 0.7, "val": 0.15, "test": 0.15}, "seed": 17}
}

// splitCandidates says the proposed split in words.
func (w *dataWork) splitCandidates() []string {
	by := ""
	if column := w.dated() + w.grouped(); column != "" {
		by = " by " + column
	}
	return []string{fmt.Sprintf("%s%s train 0.7, val 0.15, test 0.15, seed 17", w.proposedSplit()["strategy"], by)}
}

// dated is the first column of dates that are those of the row, if there is one: a date of birth is not.
func (w *dataWork) dated() string {
	if w.profile == nil {
		return ""
	}
	for _, name := range w.profile.Order {
		if c := w.profile.Columns[name]; c != nil && c.Type == dataset.TypeDate && !datesOfPersons().MatchString(name) {
			return name
		}
	}
	return ""
}

// dataCall is the call that answers what the gate waits for.
func (w *dataWork) dataCall(tool string) *engine.NextCall {
	data := map[string]any{}
	for _, n := range w.out.Needs {
		switch n.Field {
		case "data.target":
			data["target"] = "<column>"
		case "data.split":
			data["split"] = w.proposedSplit()
			if column := w.dated(); column != "" {
				data["time"] = column
			} else if column := w.grouped(); column != "" {
				data["group"] = column
			}
		}
	}
	arguments := map[string]any{"run_id": w.step.Run.ID}
	if len(data) > 0 {
		arguments["data"] = data
	}
	return &engine.NextCall{Tool: tool, Arguments: arguments}
}
