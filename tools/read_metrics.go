package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/metrics"
	"github.com/trainwright/trainwright/internal/rundir"
)

// ReadMetricsInput asks for the metrics of a run, or of a file that any training left.
type ReadMetricsInput struct {
	RunID   string   `json:"run_id,omitempty" jsonschema_description:"The run whose metrics to read; or path."`
	Path    string   `json:"path,omitempty" jsonschema_description:"A metrics file (JSONL, CSV, Lightning's too, or a text log of Keras, Hugging Face, tqdm, key=value), or the folder that holds it."`
	Metric  string   `json:"metric,omitempty" jsonschema_description:"Show the values of this series, e.g. val/loss. A bare name is test, else val, never train. Left out: all series in short."`
	Split   string   `json:"split,omitempty" jsonschema_description:"Only series of this split: train, val, test."`
	Compare []string `json:"compare,omitempty" jsonschema_description:"Runs or paths to compare with."`
}

// ReadMetricsOutput is what a metrics file says. Every value is logged: the script said so, nobody has computed it again.
type ReadMetricsOutput struct {
	Path     string            `json:"path"`
	Shape    string            `json:"shape"`
	SHA256   string            `json:"sha256"`
	Bytes    int64             `json:"bytes"`
	Series   []metrics.Summary `json:"series"`
	Metric   string            `json:"metric,omitempty"`
	Points   []metrics.Spot    `json:"points,omitempty"`
	Compared []ComparedMetric  `json:"compared,omitempty"`
	Findings []finding.Finding `json:"findings"`
}

// ComparedMetric is the same series of another run. Difference is its best value less that of the first file, on the best
// side of the measure; Better says whose is better: first, this or equal.
type ComparedMetric struct {
	With       string           `json:"with"`
	Path       string           `json:"path"`
	Summary    *metrics.Summary `json:"summary,omitempty"`
	Difference *float64         `json:"difference,omitempty"`
	Better     string           `json:"better,omitempty"`
}

// Bounds of one answer.
const (
	mostPoints   = 120
	mostCompared = 20
)

// readMetrics is the tool read_metrics.
func readMetrics(deps Deps) Tool {
	return typedTool("read_metrics",
		"Reads what a training logged about itself, from a run or any metrics file or log: every series with first, last and best value and where each stands (line, bytes), the values of one, "+
			"two runs side by side, and what is wrong (NaN, divergence, plateau, gaps, restarts). Values are as logged, not recomputed.",
		Annotations{ReadOnly: true, Idempotent: true},
		func(_ context.Context, _ engine.Caller, in ReadMetricsInput) (ReadMetricsOutput, error) {
			e, err := deps.engine()
			if err != nil {
				return ReadMetricsOutput{}, err
			}
			return metricsOf(e.Roots, in)
		},
		more[ReadMetricsOutput]{toolset: SetWorkspace, rest: "name one metric, or a split", text: metricsText, schema: brief[ReadMetricsOutput]("points", "compared")}) // points are what first and last of a series are
}

func metricsOf(roots *rundir.Roots, in ReadMetricsInput) (ReadMetricsOutput, error) {
	out := ReadMetricsOutput{Series: []metrics.Summary{}, Findings: []finding.Finding{}}
	switch {
	case in.RunID == "" && in.Path == "":
		return out, missing("run_id", "the id of a run, or a path", "run_list has the ids; path names any metrics file or log")
	case in.RunID != "" && in.Path != "":
		return out, finding.Refuse(finding.Finding{Code: "arguments_contradict", Severity: finding.Error, What: "both run_id and path are given",
			Where: &finding.Where{Field: "path"}, Expected: "one of them", Remedy: "to set two beside each other, name the second in compare"})
	}
	log, health, err := loadMetrics(roots, in.RunID, in.Path)
	if err != nil {
		return out, err
	}
	out.Path, out.Shape, out.SHA256, out.Bytes, out.Findings = log.Path, log.Shape, log.SHA256, log.Bytes, health
	for _, s := range log.Summaries() {
		if in.Split == "" || strings.HasPrefix(s.Key, wantedKey("x", in.Split).Split+"/") {
			out.Series = append(out.Series, s)
		}
	}
	key, err := chosenKey(log, in)
	if err != nil || key.Name == "" {
		return out, err
	}
	if in.Metric != "" {
		out.Metric, out.Series = key.String(), only(out.Series, key)
		for _, p := range log.Thinned(key, mostPoints) {
			out.Points = append(out.Points, p.Spot())
		}
	}
	return out, compareMetrics(roots, in, log, key, &out)
}

// loadMetrics finds and reads the metrics of a run or path; findings name paths as the workspace does.
func loadMetrics(roots *rundir.Roots, runID, path string) (*metrics.Log, []finding.Finding, error) {
	file, err := metricsFile(roots, runID, path)
	if err != nil {
		return nil, nil, err
	}
	log, found, err := metrics.Read(file)
	if err != nil {
		return nil, nil, err
	}
	log.Path = roots.Rel(file)
	found = append(found, metrics.Health(log)...)
	for i := range found {
		if found[i].Where != nil {
			found[i].Where.Path = log.Path
		}
	}
	return log, append([]finding.Finding{}, found...), nil
}

// metricsNames are where trainings leave their metrics, best first; the folder's own log is the last resort.
var metricsNames = []string{"outputs/metrics.jsonl", "metrics.jsonl", "outputs/metrics.csv", "metrics.csv", "lightning_logs/version_*/metrics.csv",
	"logs/*.out", "stdout.log", "*.log"}

// metricsFile is the metrics file of a run, of a folder, or the file itself.
func metricsFile(roots *rundir.Roots, runID, named string) (string, error) {
	if runID != "" {
		entry, err := rundir.Index{Workspace: roots.Workspace()}.Get(runID)
		if err != nil {
			return "", err
		}
		named = entry.CodeSaveDir
	}
	folder, err := roots.ReadableDir(named)
	var refused *finding.Refused
	if errors.As(err, &refused) && refused.Findings[0].Code == "not_a_directory" {
		file, _, err := roots.ReadableFile(named)
		return file, err
	}
	if err != nil {
		return "", err
	}
	for _, pattern := range metricsNames {
		found, err := fs.Glob(os.DirFS(folder), pattern)
		if err != nil {
			return "", err
		}
		slices.SortFunc(found, func(a, b string) int { // version_10 before version_9
			return cmp.Or(len(b)-len(a), strings.Compare(b, a))
		})
		for _, name := range found {
			if file, _, err := roots.ReadableFile(filepath.Join(folder, filepath.FromSlash(name))); err == nil {
				return file, nil
			}
		}
	}
	return "", finding.Refuse(finding.Finding{Code: "metrics_missing", Severity: finding.Error, What: "there is no metrics file in " + roots.Rel(folder),
		Where: &finding.Where{Path: roots.Rel(folder)}, Expected: "one of " + strings.Join(metricsNames, ", "),
		Remedy: "if the job still runs, call again later; else name the file as path"})
}

func wantedKey(metric, split string) metrics.Key {
	if split == "" {
		return metrics.ParseKey(metric)
	}
	key := metrics.ParseKey(metric)
	key.Split = metrics.ParseKey(split + "/x").Split
	if key.Split == "" { // a split of the script's own
		key.Split = strings.ToLower(strings.TrimSpace(split))
	}
	return key
}

// chosenKey is the series that the call means: the one it names, else for a comparison the first measure of the validation
// part, else of any.
func chosenKey(log *metrics.Log, in ReadMetricsInput) (metrics.Key, error) {
	if in.Metric == "" {
		if len(in.Compare) == 0 {
			return metrics.Key{}, nil
		}
		for _, split := range []string{"val", "test", ""} {
			for _, key := range log.Names {
				if _, ok := log.Best(key); ok && (in.Split == "" && (key.Split == split || split == "") || in.Split != "" && key.Split == wantedKey("x", in.Split).Split) {
					return key, nil
				}
			}
		}
	}
	asked := metrics.ParseKey(in.Metric)
	if in.Split != "" && asked.Split != "" && asked.Split != wantedKey("x", in.Split).Split {
		return metrics.Key{}, finding.Refuse(finding.Finding{Code: "arguments_contradict", Severity: finding.Error,
			What: fmt.Sprintf("metric %q is not of split %q", in.Metric, in.Split), Where: &finding.Where{Field: "split"}, Expected: "one split", Remedy: "leave split out"})
	}
	if key, ok := log.Resolve(wantedKey(in.Metric, in.Split)); ok {
		return key, nil
	}
	names := make([]string, len(log.Names))
	for i, key := range log.Names {
		names[i] = key.String()
	}
	f := finding.Finding{Code: "metric_unknown", Severity: finding.Error, What: fmt.Sprintf("%s has no series %q", log.Path, wantedKey(in.Metric, in.Split)),
		Where: &finding.Where{Field: "metric", Path: log.Path}, Expected: "one of " + strings.Join(names[:min(len(names), 40)], ", "), Remedy: "name one of them; a bare name never means train"}
	if near := finding.Nearest(wantedKey(in.Metric, in.Split).String(), names); near != "" {
		f.Remedy = fmt.Sprintf("did you mean %q? A bare name never means train", near)
	}
	return metrics.Key{}, finding.Refuse(f)
}

func only(all []metrics.Summary, key metrics.Key) []metrics.Summary {
	return slices.DeleteFunc(all, func(s metrics.Summary) bool { return s.Key != key.String() })
}

// compareMetrics sets the same series of other runs or files beside this one. What can't be read there is a finding, and
// the others are still compared.
func compareMetrics(roots *rundir.Roots, in ReadMetricsInput, log *metrics.Log, key metrics.Key, out *ReadMetricsOutput) error {
	if len(in.Compare) > mostCompared {
		return finding.Refuse(finding.Finding{Code: "too_many_compared", Severity: finding.Error, What: fmt.Sprintf("%d are too many to compare", len(in.Compare)),
			Where: &finding.Where{Field: "compare"}, Expected: fmt.Sprintf("at most %d", mostCompared), Remedy: "compare them in several calls"})
	}
	if len(in.Compare) == 0 {
		return nil
	}
	out.Metric = key.String()
	own, hasOwn := log.Best(key)
	for _, other := range in.Compare {
		runID, path := other, ""
		if !isRunID(other) {
			runID, path = "", other
		}
		that, found, err := loadMetrics(roots, runID, path)
		var refused *finding.Refused
		if errors.As(err, &refused) {
			out.Findings = append(out.Findings, refused.Findings...)
			continue
		}
		if err != nil {
			return err
		}
		for _, f := range found {
			if f.Severity != finding.Note {
				out.Findings = append(out.Findings, f)
			}
		}
		compared := ComparedMetric{With: other, Path: that.Path}
		if summary := only(that.Summaries(), key); len(summary) > 0 {
			compared.Summary = &summary[0]
		} else {
			out.Findings = append(out.Findings, finding.Finding{Code: "metric_unknown", Severity: finding.Warning, What: fmt.Sprintf("%s has no series %s", that.Path, key),
				Where: &finding.Where{Path: that.Path}, Remedy: "compare by a metric that both log"})
		}
		if best, ok := that.Best(key); ok && hasOwn {
			compared.Difference, compared.Better = difference(compared.Summary.Better, own.Value, best.Value)
		}
		out.Compared = append(out.Compared, compared)
	}
	return nil
}

// isRunID tells the id of a run from a path.
func isRunID(text string) bool {
	return strings.HasPrefix(text, "r-") && path.Base(text) == text && !strings.ContainsAny(text, `.\`)
}

// difference is the other best value less our own, and whose is better.
func difference(betterSide string, own, other float64) (*float64, string) {
	d := other - own
	if math.IsInf(d, 0) {
		return nil, ""
	}
	switch {
	case d == 0:
		return &d, "equal"
	case (betterSide == "max") == (d > 0):
		return &d, "this"
	}
	return &d, "first"
}

func metricsText(o ReadMetricsOutput) string {
	lines := []string{fmt.Sprintf("%s (%s): %d series, %d findings", o.Path, o.Shape, len(o.Series), len(o.Findings))}
	for _, s := range o.Series[:min(len(o.Series), 6)] {
		if s.Last.Value != nil {
			lines = append(lines, fmt.Sprintf("%s: %d values, last %.6g", s.Key, s.Count, *s.Last.Value))
		}
	}
	return strings.Join(lines, "\n")
}
