package dataset

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// The strategies of a split that MakeSplit knows.
const (
	Random     = "random"     // rows ranked by a hash of seed and id
	Stratified = "stratified" // the same within each class of the target
	Group      = "group"      // whole groups: patients, stations, batches
	Time       = "time"       // the past trains, the future is held out
	Similarity = "similarity" // whole clusters of sequences that share k-mers
	Predefined = "predefined" // files that are split already
)

// The parts of a split, in the order in which rows are dealt to them.
const (
	Train = "train"
	Val   = "val"
	Test  = "test"
)

// Parts are the names a split may use.
var Parts = []string{Train, Val, Test}

// SplitSpec asks for a split. Fractions name train, val and test and sum to 1; a part left out or at 0 is not made.
type SplitSpec struct {
	Strategy  string             `json:"strategy"`
	Fractions map[string]float64 `json:"fractions,omitempty"`
	Seed      int64              `json:"seed"`
	ID        string             `json:"id,omitempty"`       // the id column; empty numbers the rows
	Target    string             `json:"target,omitempty"`   // the class column of a stratified split
	Group     string             `json:"group,omitempty"`    // group: the column whose equal values stay in one part
	Time      string             `json:"time,omitempty"`     // time: the column that orders the rows
	Sequence  string             `json:"sequence,omitempty"` // similarity: the column of sequences
	History   int                `json:"history,omitempty"`  // time steps that a sample looks back
	Horizon   int                `json:"horizon,omitempty"`  // time steps from a sample to its target
	Gap       int                `json:"gap,omitempty"`      // time steps left out before each cut; Horizon when 0
	Files     map[string]string  `json:"files,omitempty"`    // predefined: part → path
	Dialect   Dialect            `json:"dialect,omitzero"`
}

const splitsThatWork = `"random 70/15/15 seed 17", "stratified by <column> 70/15/15", "group by <column> 70/15/15", "time by <column> 70/15/15 gap 12", "similarity by <column> 70/15/15", or "predefined" with a file for each part`

// fractionTolerance is how far fractions may sum from 1, for 1/3 written with six digits.
const fractionTolerance = 1e-6

// check returns what is wrong with the spec.
func (s SplitSpec) check() []finding.Finding {
	bad := func(code, field, what, expected, remedy string) finding.Finding {
		return finding.Finding{Code: code, Severity: finding.Error, What: what, Where: &finding.Where{Field: field}, Expected: expected, Remedy: remedy}
	}
	switch s.Strategy {
	case Random, Stratified, Group, Time, Similarity, Predefined:
	default:
		return []finding.Finding{unsupported(s.Strategy)}
	}
	var found []finding.Finding
	given := s.Fractions
	if s.Strategy == Predefined {
		if len(s.Files) == 0 || s.Files[Train] == "" {
			found = append(found, bad("split_files_missing", "split.files", "a predefined split names no train file", "files.train, and val or test", "name the file of each part"))
		}
		for part := range s.Files {
			if !slices.Contains(Parts, part) {
				found = append(found, bad("part_unknown", "split.files", fmt.Sprintf("there is no part %q", part), "train, val, test", "rename the part"))
			}
		}
		return found
	}
	sum := 0.0
	for part, fraction := range given {
		if !slices.Contains(Parts, part) {
			found = append(found, bad("part_unknown", "split.fractions", fmt.Sprintf("there is no part %q", part), "train, val, test", "rename the part"))
		}
		if fraction < 0 || math.IsNaN(fraction) {
			found = append(found, bad("fractions_sum", "split.fractions", fmt.Sprintf("the fraction of %q is %v", part, fraction), "fractions of 0 or more that sum to 1", "correct it"))
		}
		sum += fraction
	}
	switch {
	case len(given) == 0:
		found = append(found, bad("fractions_sum", "split.fractions", "no fractions are given", `{"train": 0.7, "val": 0.15, "test": 0.15}`, "send split.fractions"))
	case math.Abs(sum-1) > fractionTolerance:
		found = append(found, bad("fractions_sum", "split.fractions", fmt.Sprintf("the fractions sum to %.6g", sum), "a sum of 1", "correct them"))
	case given[Train] <= 0:
		found = append(found, bad("fractions_sum", "split.fractions", "nothing is left for training", "a train fraction above 0", "name train"))
	}
	if s.Strategy == Stratified && s.Target == "" {
		found = append(found, bad("split_target_missing", "split.target", "a stratified split names no class column", "the column whose classes are kept in proportion", "send data.target, or \"stratified by <column>\""))
	}
	for _, need := range []struct{ strategy, column, field, what string }{{Group, s.Group, "group", "the column whose equal values stay in one part"},
		{Time, s.Time, "time", "the column that orders the rows"}, {Similarity, s.Sequence, "sequence", "the column of sequences"}} {
		if s.Strategy == need.strategy && need.column == "" {
			found = append(found, bad("split_column_missing", "split."+need.field, "a "+need.strategy+" split names no column", need.what,
				fmt.Sprintf("send data.split.%s, or \"%s by <column>\"", need.field, need.strategy)))
		}
	}
	for field, steps := range map[string]int{"history": s.History, "horizon": s.Horizon, "gap": s.Gap} {
		if steps < 0 {
			found = append(found, bad("split_steps_negative", "split."+field, fmt.Sprintf("%s is %d time steps", field, steps), "0 or more", "correct it"))
		}
	}
	slices.SortStableFunc(found, func(a, b finding.Finding) int { return strings.Compare(a.What, b.What) })
	return found
}

func unsupported(word string) finding.Finding {
	return finding.Finding{Code: "split_strategy_unsupported", Severity: finding.Error, What: fmt.Sprintf("a split by %q is not supported", word),
		Where: &finding.Where{Field: "split.strategy"}, Expected: splitsThatWork, Remedy: "split the data yourself and give the files as predefined, or choose one of these"}
}

// parts are the parts to make, in dealing order, with their shares as integers in parts of a billion: whole numbers
// round alike everywhere.
func (s SplitSpec) parts() (names []string, weights []int64) {
	for _, part := range Parts {
		if weight := int64(math.Round(s.Fractions[part] * 1e9)); weight > 0 {
			names, weights = append(names, part), append(weights, weight)
		}
	}
	return names, weights
}
