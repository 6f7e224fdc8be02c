package trainer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/trainwright/trainwright/internal/dataset"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/finding"
)

// groupNames are the names of columns whose repeated values are one thing that was measured several times.
var groupNames = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(patient|subject|participant|donor|person|user|animal|mouse|individual|family|station|site|buoy|sensor|plot|field|plate|well|batch|scene|molecule|compound|composition|protein|cluster|case|geometry|mesh|speaker|group)([_ -]?(id|no|nr|name|code))?$`)
})

// datesOfPersons are names of columns whose dates say nothing of when a row was taken.
var datesOfPersons = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|[_ -])(dob|born|birth|birthday|birthdate|date_?of_?birth|expir(y|es|ation)|due)([_ -]|$)`)
})

// grouped is the first column of that kind that repeats and is not the target, if there is one.
func (w *dataWork) grouped() string {
	if w.profile == nil || w.dated() != "" {
		return ""
	}
	for _, name := range w.profile.Order {
		c := w.profile.Columns[name]
		if c != nil && name != w.sample.Target.Name && groupNames().MatchString(name) && c.Distinct > 2 && c.Distinct < w.profile.Coverage.RowsRead && c.Missing == 0 {
			return name
		}
	}
	return ""
}

// chosenSplit is the split of the call, with the columns that the user's hint names. Where the user asked for another one, their word holds.
func (w *dataWork) chosenSplit(hint *evidence.Fact, userParts bool) *dataset.SplitSpec {
	choice := w.choice.Split
	spec := &dataset.SplitSpec{Strategy: choice.Strategy, Fractions: choice.Fractions, Seed: choice.Seed}
	if userParts {
		w.contradicts("data.split", "the files that the handoff names for each part", choice.Strategy)
	}
	if hint == nil || hint.By != byUser {
		return spec
	}
	asked, found, err := dataset.ParseSplitHint(text(hint.Value))
	switch {
	case err != nil || finding.Has(found, finding.Error) || asked.Strategy == "" || asked.Strategy == dataset.Predefined:
		return spec // the hint says nothing that could be done
	case asked.Strategy != choice.Strategy && !slices.ContainsFunc(found, assumed):
		w.contradicts("data.split", text(hint.Value), choice.Strategy)
	case asked.Strategy == choice.Strategy:
		w.hinted = true
		spec.Group, spec.Time, spec.Sequence, spec.Target = asked.Group, asked.Time, asked.Sequence, asked.Target
	}
	return spec
}

// assumed says that a hint named no strategy.
func assumed(f finding.Finding) bool {
	return f.Code == "split_assumed" && strings.Contains(f.What, "no strategy")
}

func (w *dataWork) contradicts(field, user, call string) {
	w.out.Findings = append(w.out.Findings, finding.Finding{Code: "contradicts_fact", Severity: finding.Error,
		What:  fmt.Sprintf("%s is %q by the user's handoff, the call says %q", field, user, call),
		Where: &finding.Where{Field: field}, Expected: user, Remedy: "leave it out, or ask the user and amend the handoff"})
}

// units names the columns that keep rows together or in order: the call's, the user's or the script's, else for a split by time the one
// column of dates.
func (w *dataWork) units(spec *dataset.SplitSpec) {
	for _, unit := range []struct {
		field, chosen string
		into          *string
	}{{"data.group", w.choice.Group, &spec.Group}, {"data.time", w.choice.Time, &spec.Time}} {
		column := w.column(unit.field, unit.chosen)
		if w.hinted && *unit.into != "" && unit.chosen != "" && unit.chosen != *unit.into {
			w.contradicts(unit.field, *unit.into, unit.chosen)
		}
		if column != "" && (*unit.into == "" || unit.chosen != "") {
			*unit.into = column
		}
	}
	if w.choice.Sequence != "" {
		spec.Sequence = w.choice.Sequence
	}
	if spec.Strategy == dataset.Time && spec.Time == "" {
		spec.Time = w.dated()
	}
	if spec.Strategy == dataset.Group && spec.Group == "" {
		spec.Group = w.grouped()
	}
}

// crossings looks at the parts that the script will read: does a group, or the time of a window, reach from one into another?
func (w *dataWork) crossings(ctx context.Context, spec dataset.SplitSpec) error {
	switch {
	case spec.Strategy == dataset.Group || spec.Strategy == dataset.Similarity:
		spec.Time = "" // the groups were asked for, their times overlap
	case spec.Strategy == dataset.Time:
		spec.Group = "" // the past of a group may teach its future
	}
	// What nobody names is looked at by its name, and only told of: it may be no unit.
	guessed := spec.Group == "" && spec.Time == "" && !slices.Contains([]string{dataset.Group, dataset.Similarity, dataset.Time}, spec.Strategy)
	if guessed {
		spec.Time, spec.Group = w.dated(), w.grouped()
	}
	if spec.Group == "" && spec.Time == "" || len(w.parts) < 2 {
		return nil
	}
	whole := ""
	if w.written {
		whole = w.first()
	}
	leaks, found, err := dataset.CheckUnits(ctx, w.parts, whole, spec)
	if err != nil {
		if !guessed {
			w.out.Findings = append(w.out.Findings, refusalOf(err)...)
		}
		return notRefused(err)
	}
	if guessed {
		for i := range found {
			found[i].Severity = finding.Warning
		}
		for i := range leaks {
			leaks[i].Severity = finding.Warning
		}
	}
	w.out.Findings, w.leaks = append(w.out.Findings, found...), append(w.leaks, leaks...)
	return nil
}

// ---- statistics that the project brings ---------------------------------------------------------------------------

const (
	statisticsBytes = 1 << 20
	statisticsFiles = 20
	statisticsDepth = 3
	meansAlike      = 1e-3 // of a standard deviation
)

var statisticsName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(stat|scal|norm|mean|std).*\.json$`)
})

// statisticsElsewhere compares means and deviations that lie in the project with those of the training part. Statistics that fit all the data
// instead let the training know of the test.
func (w *dataWork) statisticsElsewhere(ctx context.Context) error {
	root, own := w.view.Root, w.split.Statistics
	if root == "" || len(own) == 0 {
		return nil
	}
	var files []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || strings.Count(strings.TrimPrefix(path, root), string(filepath.Separator)) > statisticsDepth):
			return fs.SkipDir
		case entry.Type().IsRegular() && statisticsName().MatchString(entry.Name()) && len(files) < statisticsFiles:
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, path := range files {
		if err := w.compareStatistics(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// moments is a mean and a deviation that somebody wrote down. Rounded is half the last place of the mean as written.
type moments struct {
	Mean, Std *float64
	Rounded   float64
}

// halfLastPlace is by how much a number may have been rounded when it was written down; 0 where it has an exponent.
func halfLastPlace(written string) float64 {
	if strings.ContainsAny(written, "eE") {
		return 0
	}
	_, decimals, _ := strings.Cut(written, ".")
	return math.Pow10(-len(decimals)) / 2
}

// readStatistics reads {"column": {"mean": 1, "std": 2}} and {"mean": {"column": 1}, "std": {"column": 2}}.
func readStatistics(path string) map[string]moments {
	info, err := os.Stat(path)
	if err != nil || info.Size() > statisticsBytes {
		return nil
	}
	data, err := os.ReadFile(path)
	var tree map[string]any // with counts and names beside the columns
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err != nil || decoder.Decode(&tree) != nil {
		return nil
	}
	out := map[string]moments{}
	set := func(column, what string, value any) {
		written, _ := value.(json.Number)
		number, err := written.Float64()
		m := out[column]
		switch {
		case err != nil:
			return
		case slices.Contains([]string{"mean", "mu", "means"}, what):
			m.Mean, m.Rounded = &number, halfLastPlace(written.String())
		case slices.Contains([]string{"std", "sd", "sigma", "stdev", "stds"}, what):
			m.Std = &number
		default:
			return
		}
		out[column] = m
	}
	for outer, inside := range tree {
		columns, _ := inside.(map[string]any)
		for inner, value := range columns {
			set(outer, strings.ToLower(inner), value)
			set(inner, strings.ToLower(outer), value)
		}
	}
	return out
}

// compareStatistics tells of a file whose means are not those of the training part.
func (w *dataWork) compareStatistics(ctx context.Context, path string) error {
	said := readStatistics(path)
	for _, column := range slices.Sorted(maps.Keys(said)) {
		own, known := w.split.Statistics[column]
		mean := said[column].Mean
		if !known || mean == nil || own.Std == 0 || math.Abs(*mean-own.Mean) <= max(meansAlike*own.Std, said[column].Rounded) {
			continue
		}
		which, err := w.whoseMean(ctx, column, *mean, own.Std)
		if err != nil {
			return err
		}
		f := finding.Finding{Code: "statistics_not_of_train", Severity: finding.Warning,
			What:     fmt.Sprintf("%s gives %s the mean %.6g; the training part's is %.6g", w.step.Run.Roots.Rel(path), column, *mean, own.Mean),
			Where:    &finding.Where{Path: path, Field: column},
			Expected: "statistics of the training part (split.json has them)", Remedy: "fit them on train only, before the script normalises with them"}
		if which != "" {
			f.Code, f.Severity = "leakage_statistics", finding.Error
			f.What += "; it is that of " + which + ", so training would know of data it must not see"
		}
		w.out.Findings = append(w.out.Findings, f)
		return nil
	}
	return nil
}

// whoseMean finds the parts whose joint mean a number is, "" for none.
func (w *dataWork) whoseMean(ctx context.Context, column string, mean, std float64) (string, error) {
	var sum, n float64
	names := ""
	for _, part := range partNames {
		path := w.parts[part]
		if path == "" {
			continue
		}
		stats, err := dataset.Statistics(ctx, path, nil)
		if err != nil {
			return "", notRefused(err)
		}
		s, ok := stats[column]
		if !ok {
			return "", nil
		}
		sum, n = sum+s.Mean*float64(s.N), n+float64(s.N)
		names = strings.TrimPrefix(names+" and "+part, " and ")
		if part != "train" && math.Abs(sum/n-mean) <= meansAlike*std {
			return names, nil
		}
	}
	if c := w.profile.Columns[column]; c != nil && c.Mean != nil && math.Abs(*c.Mean-mean) <= meansAlike*std {
		return "the whole file", nil
	}
	return "", nil
}

// ---- units --------------------------------------------------------------------------------------------------------

// unitSpellings lead the ways in which people write a unit to one of them.
var unitSpellings = map[string]string{"k": "K", "kelvin": "K", "degc": "degC", "c": "degC", "celsius": "degC", "°c": "degC", "deg_c": "degC", "degf": "degF", "f": "degF", "fahrenheit": "degF",
	"m": "m", "metre": "m", "meter": "m", "metres": "m", "meters": "m", "mm": "mm", "cm": "cm", "km": "km", "pa": "Pa", "hpa": "hPa", "mbar": "hPa", "kpa": "kPa", "bar": "bar",
	"m/s": "m/s", "ms-1": "m/s", "km/h": "km/h", "kmh": "km/h", "kn": "knot", "knots": "knot", "ev": "eV", "mev": "meV", "kcal/mol": "kcal/mol", "kj/mol": "kJ/mol",
	"s": "s", "sec": "s", "ms": "ms", "min": "min", "h": "h", "hours": "h", "kg": "kg", "g": "g", "mg": "mg", "ug": "ug", "µg": "ug", "ppm": "ppm", "ppb": "ppb", "%": "%", "percent": "%",
	"mg/dl": "mg/dL", "mmol/l": "mmol/L", "angstrom": "angstrom", "å": "angstrom", "nm": "nm"}

// knownUnit is the one spelling of a unit, "" for what is none. Case tells a thousandth from a million.
func knownUnit(written string) string {
	written = strings.TrimSpace(written)
	if slices.Contains([]string{"meV", "MeV", "mPa", "MPa"}, written) {
		return written
	}
	return unitSpellings[strings.ToLower(written)]
}

// headerUnit finds the unit in a column name: temp_K, speed [m/s], level (hPa). Behind an underscore only what is no word of its own.
var headerUnit = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.*?)(?:\s*[\[(]([^\])]{1,12})[\])]|_(K|degC|degF|celsius|kelvin|fahrenheit|mm|cm|km|hPa|Pa|kPa|eV|meV|MeV|MPa|ppm|ppb|kg|mg))$`)
})

// statedUnit is a unit and who says it.
type statedUnit struct{ unit, where string }

// unitConflicts tells of a column that has two units: in the call, in the handoff's metadata, in its own name or in the project's README.
func (w *dataWork) unitConflicts() {
	readme := ""
	if w.view.Root != "" {
		readme = readText(filepath.Join(w.view.Root, "README.md"))
	}
	for _, column := range w.profile.Order {
		var said []statedUnit
		add := func(unit, where string) {
			if known := knownUnit(unit); known != "" {
				said = append(said, statedUnit{known, where})
			}
		}
		add(w.choice.Columns[column].Unit, "data.columns."+column+".unit")
		if units, ok := w.step.Run.Handoff.Inputs.Data.DomainMetadata["units"].(map[string]any); ok {
			add(text(units[column]), "inputs.data.domain_metadata.units."+column)
		}
		base := column
		if m := headerUnit().FindStringSubmatch(column); m != nil {
			add(m[2]+m[3], "the column's name")
			base = m[1]
		}
		if line, unit := unitInProse(readme, column, base); unit != "" {
			add(unit, fmt.Sprintf("README.md:%d", line))
		}
		for _, other := range said[min(len(said), 1):] {
			if other.unit != said[0].unit {
				w.out.Findings = append(w.out.Findings, finding.Finding{Code: "unit_conflict", Severity: finding.Warning,
					What:     fmt.Sprintf("column %q is in %s by %s and in %s by %s", column, said[0].unit, said[0].where, other.unit, other.where),
					Where:    &finding.Where{Path: w.first(), Line: 1, Field: column},
					Expected: "one unit", Remedy: "look at the values (data_profile.json has their range), then send the right one in data.columns and correct the other place"})
				break
			}
		}
	}
}

// unitInProse finds "column in unit", "column [unit]" and "column (unit)" in a text.
func unitInProse(prose, column, base string) (line int, unit string) {
	for i, text := range strings.Split(prose, "\n") {
		for _, name := range []string{column, base} {
			if len(name) < 3 && name != column || !strings.Contains(text, name) {
				continue
			}
			re, err := regexp.Compile("(?i)(?:^|[^\\p{L}\\p{N}_])" + regexp.QuoteMeta(name) + "[`'\"*]*(?:\\s*[:,|-])?\\s*(?:is |are |given |measured |recorded )*(?:in |\\(in |\\(|\\[)\\s*([^\\s,;.)\\]]{1,12})")
			if err != nil {
				continue
			}
			if m := re.FindStringSubmatch(text); m != nil && knownUnit(m[1]) != "" {
				return i + 1, m[1]
			}
		}
	}
	return 0, ""
}

// readText is a small text file, empty where there is none.
func readText(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > statisticsBytes {
		return ""
	}
	data, _ := os.ReadFile(path)
	return string(data)
}
