package dataset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/finding"
)

// SampleContract says what one sample is: the schema part of data_manifest.json.
type SampleContract struct {
	ID           string            `json:"id"` // the id column, or "row-<n>"
	IDIsColumn   bool              `json:"id_is_column"`
	Features     []string          `json:"features"`
	FeatureTypes map[string]string `json:"feature_types"`
	Target       Target            `json:"target"`
}

// Target is the column to be predicted. Unit is known only from people; the caller sets it.
type Target struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Unit string `json:"unit"`
}

// RowIDs is the id of a SampleContract whose samples are named by their number.
const RowIDs = "row-<n>"

// Contract resolves id, target and features against a profiled file. No features means every column but id and target.
// Findings: column_unknown (with the nearest names), column_role_conflict, id_duplicate, target_missing_values,
// target_constant, features_empty.
func Contract(profile *Profile, id, target string, features []string) (SampleContract, []finding.Finding) {
	path := ""
	if len(profile.Files) > 0 {
		path = profile.Files[0].Path
	}
	var found []finding.Finding
	check := func(role, name string) *Column {
		column := profile.Columns[name]
		if column == nil {
			found = append(found, unknownColumn(path, role, name, profile.Order))
		}
		return column
	}
	contract := SampleContract{ID: RowIDs, FeatureTypes: map[string]string{}, Features: []string{}}
	if id != "" {
		contract.ID, contract.IDIsColumn = id, true
		if column := check("id", id); column != nil && !column.DistinctAtLeast && column.Distinct+column.Missing < profile.Coverage.RowsRead-profile.BadTotal {
			found = append(found, finding.Finding{Code: "id_duplicate", Severity: finding.Error,
				What:     fmt.Sprintf("the id column %q has %d distinct values in %d records", id, column.Distinct, profile.Coverage.RowsRead),
				Where:    &finding.Where{Path: path, Field: id},
				Expected: "a different id in every record", Remedy: "name another id column, or none to number the records"})
		}
	}
	if target == "" {
		found = append(found, finding.Finding{Code: "target_unknown", Severity: finding.Error, What: "no target column is named",
			Where: &finding.Where{Path: path, Field: "target"}, Expected: "one of: " + listed(profile.Order), Remedy: "send data.target"})
	} else if column := check("target", target); column != nil {
		contract.Target = Target{Name: target, Type: column.Type}
		found = append(found, checkTarget(path, profile, column)...)
	}
	explicit := len(features) > 0
	if !explicit {
		features = profile.Order
	}
	for _, name := range features {
		role := ""
		switch name {
		case target:
			role = "target"
		case id:
			role = "id"
		}
		switch {
		case role != "" && explicit:
			found = append(found, finding.Finding{Code: "column_role_conflict", Severity: finding.Error,
				What:  fmt.Sprintf("column %q is named both as a feature and as the %s", name, role),
				Where: &finding.Where{Path: path, Field: name}, Expected: "one role for a column", Remedy: "take it out of data.features"})
		case role != "":
		default:
			if column := check("feature", name); column != nil {
				contract.Features = append(contract.Features, name)
				contract.FeatureTypes[name] = column.Type
			}
		}
	}
	if len(contract.Features) == 0 {
		found = append(found, finding.Finding{Code: "features_empty", Severity: finding.Error, What: "no column is left as a feature",
			Where: &finding.Where{Path: path}, Expected: "at least one column beside id and target", Remedy: "name the features"})
	}
	return contract, found
}

func checkTarget(path string, profile *Profile, column *Column) []finding.Finding {
	var found []finding.Finding
	if profile.target != column.Name {
		found = targetMissing(path, column)
	}
	if column.Distinct == 1 && column.Missing == 0 && profile.Coverage.RowsRead > 1 {
		found = append(found, finding.Finding{Code: "target_constant", Severity: finding.Warning,
			What:  fmt.Sprintf("the target %q has the same value in every record", column.Name),
			Where: &finding.Where{Path: path, Field: column.Name}, Expected: "a target that varies", Remedy: "check that this is the right column"})
	}
	return found
}

// unknown is the finding that the table has no such column, nil for a known or empty name.
func (t *table) unknown(name string) *finding.Finding {
	if _, ok := t.index[name]; ok || name == "" {
		return nil
	}
	f := unknownColumn(t.path, "named", name, t.names)
	return &f
}

func unknownColumn(path, role, name string, names []string) finding.Finding {
	return finding.Finding{Code: "column_unknown", Severity: finding.Error, What: fmt.Sprintf("the file has no column %q (%s)", name, role),
		Where: &finding.Where{Path: path, Line: 1, Field: name}, Expected: "one of: " + listed(names), Remedy: "did you mean " + listed(nearest(name, names, 3)) + "?"}
}

func listed(names []string) string {
	const shown = 20
	more := ""
	if len(names) > shown {
		more = fmt.Sprintf(" and %d more", len(names)-shown)
		names = names[:shown]
	}
	return shorten(strings.Join(names, ", "), 400) + more
}

// longestName is how much of a column name is compared: headers of data can be anything.
const longestName = 64

// nearest returns the n names most like name, ignoring case: containing it, then by edit distance.
func nearest(name string, names []string, n int) []string {
	wanted := strings.ToLower(name)
	score := func(candidate string) int {
		candidate = strings.ToLower(candidate)
		distance := finding.Distance(wanted[:min(len(wanted), longestName)], candidate[:min(len(candidate), longestName)])
		if strings.Contains(candidate, wanted) || strings.Contains(wanted, candidate) {
			distance = min(distance, 1)
		}
		return distance
	}
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(score(a), score(b)) })
	return sorted[:min(n, len(sorted))]
}

// linesOf lists the first few lines out of total.
func linesOf(at []BadValue, total int64) string {
	var lines []string
	for _, bad := range at[:min(len(at), 5)] {
		lines = append(lines, fmt.Sprint(bad.Line))
	}
	if total > int64(len(lines)) {
		lines = append(lines, "…")
	}
	word := "line "
	if total > 1 {
		word = "lines "
	}
	return word + strings.Join(lines, ", ")
}
