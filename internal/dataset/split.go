package dataset

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Split is what split.json holds: which rows are in which part, and what was found out on the way. Ids files are named
// relative to the folder of split.json.
type Split struct {
	Strategy   string                      `json:"strategy"`
	Seed       int64                       `json:"seed"`
	Unit       string                      `json:"unit"` // "row", "group", "sequence", or "window" where there is a horizon
	Fractions  map[string]float64          `json:"fractions,omitempty"`
	ID         string                      `json:"id,omitempty"`
	Target     string                      `json:"target,omitempty"`
	Group      string                      `json:"group,omitempty"`
	Time       string                      `json:"time,omitempty"`
	Sequence   string                      `json:"sequence,omitempty"`
	History    int                         `json:"history,omitempty"` // time steps
	Horizon    int                         `json:"horizon,omitempty"`
	Gap        int                         `json:"gap,omitempty"`      // time steps left out before each cut
	LeftOut    int64                       `json:"left_out,omitempty"` // rows in no part, because of Gap
	Units      map[string]int64            `json:"units,omitempty"`    // part → groups, clusters or time steps in it
	Parts      map[string]Part             `json:"parts"`
	Classes    map[string]map[string]int64 `json:"classes,omitempty"` // stratified: part → class → rows
	Statistics map[string]Stat             `json:"statistics"`
	Leakage    []Leak                      `json:"leakage"`
	Source     []FileInfo                  `json:"source"`
	Dialect    Dialect                     `json:"dialect"` // how Source is to be read again
}

// Part is one part of a split. SHA256 is of the ids file: one id per line in the order of the source, UTF-8.
type Part struct {
	N       int64  `json:"n"`
	SHA256  string `json:"sha256"`
	IDsFile string `json:"ids_file"`
	Path    string `json:"path,omitempty"` // predefined: the file that is this part
	From    string `json:"from,omitempty"` // time: its first and last value of the time column, as written
	To      string `json:"to,omitempty"`
}

// MakeSplit splits the rows of a file and writes <dir>/split/<part>.ids and <dir>/split.json; for a predefined split the files
// in spec are listed instead and path is not read. Equal rows (without the id) stay in one part. Statistics are of the
// train part only. What can't be split is refused: the findings of a damaged file (row_ragged, quote_unterminated, nul_bytes, …) and of
// SplitSpec, id_duplicate, id_missing, id_unusable, target_missing_values, stratify_too_many_classes, part_empty, too_many_rows.
// Findings beside a result: duplicates_kept_together, split_sizes_inexact, class_not_in_part, leakage_*.
func MakeSplit(ctx context.Context, path string, spec SplitSpec, dir string) (*Split, []finding.Finding, error) {
	if bad := spec.check(); len(bad) > 0 {
		return nil, nil, finding.Refuse(bad...)
	}
	if spec.Strategy == Predefined {
		return takePredefined(ctx, spec, dir)
	}
	s, err := scanRows(ctx, path, spec)
	if err != nil {
		return nil, nil, err
	}
	if err := s.uniqueIDs(ctx, spec); err != nil {
		return nil, nil, err
	}
	names, weights := spec.parts()
	split := &Split{Strategy: spec.Strategy, Seed: spec.Seed, Unit: "row", Fractions: spec.Fractions, ID: spec.ID, Target: spec.Target,
		Group: spec.Group, Time: spec.Time, Sequence: spec.Sequence, History: spec.History, Horizon: spec.Horizon, Parts: map[string]Part{}, Dialect: s.dialect()}
	part, found, err := s.assign(split, spec, names, weights)
	if err != nil {
		return nil, nil, err
	}
	split.Classes, split.Leakage = s.tally(names, part), s.leakage(names, part)
	if err := s.writeIDs(ctx, split, names, part, dir); err != nil {
		return nil, nil, err
	}
	found = append(append(found, s.labels.absent(path, spec.Target, names, part)...), leakFindings(split.Leakage)...)
	return split, found, split.save(dir)
}

// save writes split.json last, so that it never names a file that is not there.
func (s *Split) save(dir string) error {
	for _, part := range Parts {
		if _, made := s.Parts[part]; !made {
			os.Remove(filepath.Join(dir, idsFile(part))) // left by an earlier split
		}
	}
	if s.Leakage == nil {
		s.Leakage = []Leak{}
	}
	return rundir.WriteJSON(filepath.Join(dir, "split.json"), s)
}

func idsFile(part string) string { return "split/" + part + ".ids" }

// judge refuses empty parts and tells where the split could not be what was asked for.
func (s *scanned) judge(names []string, weights []int64, part []uint8, different int) ([]finding.Finding, error) {
	counts := make([]int64, len(names))
	for _, p := range part {
		counts[p]++
	}
	repeated := len(s.rows) - different
	where := &finding.Where{Path: s.path}
	var found, empty []finding.Finding
	if repeated > 0 {
		found = append(found, finding.Finding{Code: "duplicates_kept_together", Severity: finding.Note, Where: where,
			What: fmt.Sprintf("%d row(s) repeat another; each stays in the part of its twin, so that the split does not leak", repeated)})
	}
	for p, want := range shares(int64(len(s.rows)), weights) {
		if counts[p] == 0 {
			empty = append(empty, finding.Finding{Code: "part_empty", Severity: finding.Error,
				What:  fmt.Sprintf("the part %q would be empty: %d rows (%d different) in %d parts", names[p], len(s.rows), different, len(names)),
				Where: where, Expected: "at least one row in each part", Remedy: "choose fewer parts or other fractions"})
		} else if counts[p] != want {
			found = append(found, finding.Finding{Code: "split_sizes_inexact", Severity: finding.Note, Where: where,
				What: fmt.Sprintf("%q has %d rows instead of %d, since equal rows stay together", names[p], counts[p], want)})
		}
	}
	if len(empty) > 0 {
		return nil, finding.Refuse(empty...)
	}
	return append(found, s.absentClasses(names, part)...), nil
}

// absentClasses tells which classes a part lacks.
func (s *scanned) absentClasses(names []string, part []uint8) []finding.Finding {
	var found []finding.Finding
	for p, tally := range s.tally(names, part) {
		var absent []string
		for _, class := range s.classes {
			if tally[class] == 0 {
				absent = append(absent, class)
			}
		}
		if len(absent) > 0 {
			slices.Sort(absent)
			found = append(found, finding.Finding{Code: "class_not_in_part", Severity: finding.Warning, Where: &finding.Where{Path: s.path},
				What:     fmt.Sprintf("%q has no row of %d class(es): %s", p, len(absent), listed(absent)),
				Expected: "every class in every part", Remedy: "join rare classes, or report their scores as unknown"})
		}
	}
	slices.SortFunc(found, func(a, b finding.Finding) int { return bytes.Compare([]byte(a.What), []byte(b.What)) })
	return found
}

// tally counts the rows of each class in each part; nil without classes.
func (s *scanned) tally(names []string, part []uint8) map[string]map[string]int64 {
	if len(s.classes) == 0 {
		return nil
	}
	out := map[string]map[string]int64{}
	for _, name := range names {
		out[name] = map[string]int64{}
	}
	for i, p := range part {
		if p != leftOut {
			out[names[p]][s.classes[s.rows[i].class]]++
		}
	}
	return out
}

// writeIDs reads the file a second time, to write the ids and to fit statistics on the train part.
func (s *scanned) writeIDs(ctx context.Context, split *Split, names []string, part []uint8, dir string) error {
	files := make([]*atomicFile, len(names))
	counts := make([]int64, len(names))
	for i, name := range names {
		file, err := createAtomic(filepath.Join(dir, filepath.FromSlash(idsFile(name))))
		if err != nil {
			return err
		}
		defer file.abandon()
		files[i] = file
	}
	t, err := openTable(ctx, s.path, s.dialect())
	if err != nil {
		return err
	}
	defer t.close()
	fit := newFitter(t.names, s.id)
	for {
		record, err := t.next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return t.refuse(err)
		}
		if t.number >= int64(len(part)) {
			return finding.Refuse(changed(s.path))
		}
		p := part[t.number]
		if p == leftOut {
			continue
		}
		counts[p]++
		if names[p] == Train {
			fit.add(record)
		}
		if _, err := io.WriteString(files[p], t.id(record, s.id)+"\n"); err != nil {
			return err
		}
	}
	if t.info().SHA256 != s.info.SHA256 {
		return finding.Refuse(changed(s.path))
	}
	for i, name := range names {
		made := split.Parts[name] // where a time split knows its bounds already
		made.N, made.SHA256, made.IDsFile = counts[i], files[i].sha256(), idsFile(name)
		split.Parts[name] = made
		if err := files[i].commit(); err != nil {
			return err
		}
	}
	split.Statistics, split.Source = fit.statistics(), []FileInfo{s.info}
	return nil
}

func changed(path string) finding.Finding {
	return finding.Finding{Code: "file_changed", Severity: finding.Error, What: "the file changed while it was read", Where: &finding.Where{Path: path},
		Expected: "a file that nothing writes to", Remedy: "call again when it is complete"}
}

// takePredefined lists the rows of files that are split already, and checks the files against each other.
func takePredefined(ctx context.Context, spec SplitSpec, dir string) (*Split, []finding.Finding, error) {
	split := &Split{Strategy: Predefined, Seed: spec.Seed, Unit: "row", ID: spec.ID, Target: spec.Target, Group: spec.Group, Time: spec.Time,
		History: spec.History, Horizon: spec.Horizon, Parts: map[string]Part{}, Dialect: spec.Dialect}
	for _, name := range Parts {
		path := spec.Files[name]
		if path == "" {
			continue
		}
		own := spec
		own.Target = "" // a test file may lack it; CheckParts tells
		s, err := scanRows(ctx, path, own)
		if err != nil {
			return nil, nil, err
		}
		if err := s.uniqueIDs(ctx, own); err != nil {
			return nil, nil, err
		}
		one := &Split{Parts: map[string]Part{}}
		if err := s.writeIDs(ctx, one, []string{name}, make([]uint8, len(s.rows)), dir); err != nil {
			return nil, nil, err
		}
		part := one.Parts[name]
		part.Path = path
		split.Parts[name] = part
		info := one.Source[0]
		info.Part = name
		split.Source = append(split.Source, info)
		if name == Train {
			split.Statistics = one.Statistics
		}
	}
	files := maps.Clone(spec.Files)
	maps.DeleteFunc(files, func(_, path string) bool { return path == "" })
	leaks, found, err := checkParts(ctx, files, spec.ID, spec.Target, spec.Dialect)
	if err != nil {
		return nil, nil, err
	}
	split.Leakage = leaks
	given := spec
	given.Files = files
	classes, err := absentClasses(ctx, given)
	if err != nil {
		return nil, nil, err
	}
	alike, more, err := similarAcross(ctx, given)
	if err != nil {
		return nil, nil, err
	}
	if alike != nil {
		split.Leakage = append(split.Leakage, *alike)
	}
	return split, append(append(found, classes...), more...), split.save(dir)
}
