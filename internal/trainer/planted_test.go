package trainer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
)

// buoys is phase 2 of a fixture whose data are daily temperatures of five stations, planned but not run. files are written over the
// project, data.train_source may name parts.
func buoys(t *testing.T, data map[string]any, files map[string]string) engine.Envelope {
	t.Helper()
	return buoysFor(t, contract.IntentPlanOnly, data, files)
}

func buoysFor(t *testing.T, intent string, data map[string]any, files map[string]string) engine.Envelope {
	t.Helper()
	f := newFixture(t)
	f.edit("train.py", `default="sample"`, `default=""`)
	for name, text := range files {
		f.write(name, text)
	}
	in := &f.handoff.Inputs
	in.Runtime.ExecutionIntent = intent
	in.Data.TrainSource, in.Data.SplitHint = "data/buoys.csv", files["hint"]
	in.Data.DomainMetadata = map[string]any{"target": "temp"}
	if files["data/val.csv"] != "" {
		in.Data.TrainSource, in.Data.ValSource = "data/train.csv", "data/val.csv"
	}
	f.handoff.CompletionCriteria = []string{"test/rmse <= 5"}
	begun := f.walk()
	answer := f.phase(2, begun.Run.RunID, map[string]any{"data": data})
	return answer
}

// observations are the rows of five stations over sixty days, with one more column.
func observations(header string, more func(day int, temp float64) string) string {
	var text strings.Builder
	text.WriteString("station,date,wind,temp" + header + "\n")
	for day := range 60 {
		for station := range 5 {
			temp := float64((day*7+station*13)%41)/2 + float64(station)
			fmt.Fprintf(&text, "S%d,2024-%02d-%02d,%d.%d,%.2f%s\n", station, 1+day/28, 1+day%28, (day*3+station)%9+day/10, station, temp, more(day, temp))
		}
	}
	return text.String()
}

func nothing(int, float64) string { return "" }

var thirds = map[string]any{"train": 0.6, "val": 0.2, "test": 0.2}

func TestPlantedFaultsAreFoundWithTheirPlace(t *testing.T) {
	plain := observations("", nothing)
	lines := strings.SplitAfter(plain, "\n")
	head, train, val := lines[0], strings.Join(lines[1:201], ""), strings.Join(lines[201:301], "")
	for _, test := range []struct {
		name  string
		data  map[string]any
		files map[string]string
		code  string
		sev   finding.Severity
		file  string
		line  int
		field string
	}{
		{"a bad row behind quoted newlines", nil, map[string]string{"data/buoys.csv": "note,wind,temp\n\"two\nlines\",1,2\n\"a\n\nb\",3\nc,5,6\n"},
			"row_ragged", finding.Error, "data/buoys.csv", 4, ""},
		{"a duplicate across parts", nil, map[string]string{"data/train.csv": head + train, "data/val.csv": head + val + lines[42]},
			"leakage_row", finding.Error, "data/val.csv", 102, ""},
		{"a group in two parts", map[string]any{"group": "station"}, map[string]string{"data/train.csv": head + train, "data/val.csv": head + val},
			"leakage_group", finding.Error, "data/val.csv", 2, "station"},
		{"one leaking window", map[string]any{"time": "date", "split": map[string]any{"strategy": "predefined", "history": 3, "horizon": 1}},
			map[string]string{"data/train.csv": head + strings.Join(lines[1:191], "") + "S0,2024-02-12,1.0,9.99\n", "data/val.csv": head + val},
			"leakage_window", finding.Error, "data/train.csv", 192, "date"},
		{"the target under another name", map[string]any{"time": "date", "split": map[string]any{"strategy": "time", "fractions": thirds}},
			map[string]string{"data/buoys.csv": observations(",t_kelvin", func(_ int, temp float64) string { return fmt.Sprintf(",%.2f", temp+273.15) })},
			"target_in_features", finding.Warning, "data/buoys.csv", 1, "t_kelvin"},
		{"a unit given twice", map[string]any{"columns": map[string]any{"temp": map[string]any{"unit": "K"}}, "split": map[string]any{"strategy": "time", "fractions": thirds}},
			map[string]string{"data/buoys.csv": plain, "README.md": "# Buoys\n\nTrain on data/buoys.csv. The column temp is in degC.\n"},
			"unit_conflict", finding.Warning, "data/buoys.csv", 1, "temp"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			answer := buoys(t, test.data, test.files)
			f := wantCode(t, answer.Findings, test.code)
			if f.Severity != test.sev || f.Where == nil || !strings.HasSuffix(filepath.ToSlash(f.Where.Path), test.file) || f.Where.Line != test.line || f.Where.Field != test.field {
				t.Errorf("%s %+v %+v", f.Severity, f, f.Where)
			}
		})
	}
}

// Statistics that somebody fitted on more than the training years are found by their number, and those of the training years are not.
func TestStatisticsThatKnowOfTheValidation(t *testing.T) {
	t.Parallel()
	plain := observations("", nothing)
	choice := map[string]any{"time": "date", "split": map[string]any{"strategy": "time", "fractions": thirds}}
	sum, n := 0.0, 0.0
	for i, line := range strings.Split(strings.TrimSpace(plain), "\n")[1:] {
		var wind float64
		if _, err := fmt.Sscan(strings.Split(line, ",")[2], &wind); err != nil {
			t.Fatal(err)
		}
		if i < 5*48 { // 36 days of training and 12 of validation
			sum, n = sum+wind, n+1
		}
	}
	answer := buoys(t, choice, map[string]string{"data/buoys.csv": plain, "norm_stats.json": fmt.Sprintf(`{"mean": {"wind": %v}, "std": {"wind": 2.6}}`, sum/n)})
	f := wantCode(t, answer.Findings, "leakage_statistics")
	if !strings.HasSuffix(f.Where.Path, "norm_stats.json") || f.Where.Field != "wind" || !strings.Contains(f.What, "train and val") {
		t.Errorf("%+v %+v", f, f.Where)
	}
}

// A table with dates is cut by time when nobody says otherwise, one with stations by station; the next call only has to be sent.
func TestAProposedSplitDoesNotLeak(t *testing.T) {
	t.Parallel()
	undated := strings.NewReplacer(",date", "", ",2024-01-0", ",0", ",2024-01-", ",", ",2024-02-", ",", ",2024-03-", ",").Replace(strings.ReplaceAll(observations("", nothing), ",date", ",day"))
	born := strings.Replace(observations("", nothing), ",date,", ",birth_date,", 1)
	for name, want := range map[string]struct{ text, strategy, unit string }{
		"dates":    {observations("", nothing), "time", "date"},
		"stations": {undated, "group", "station"},
		"persons":  {born, "group", "station"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := buoysFor(t, contract.IntentRunLocal, nil, map[string]string{"data/buoys.csv": want.text})
			if answer.Run.NextCall == nil {
				t.Fatal(describe(answer))
			}
			data, _ := answer.Run.NextCall.Arguments["data"].(map[string]any)
			split, _ := data["split"].(map[string]any)
			if split["strategy"] != want.strategy || data[map[string]string{"time": "time", "group": "group"}[want.strategy]] != want.unit {
				t.Errorf("proposed %v", data)
			}
			if i := slices.IndexFunc(answer.Needs, func(n engine.Need) bool { return n.Field == "data.split" }); i < 0 || !strings.Contains(answer.Needs[i].Candidates[0], want.strategy+" by "+want.unit) {
				t.Errorf("needs %+v", answer.Needs)
			}
		})
	}
}

// A split by time with a horizon leaves the days before a cut out; what it wrote is then not taken for straddling.
func TestASplitByTimeWithAHorizonPasses(t *testing.T) {
	t.Parallel()
	answer := buoys(t, map[string]any{"time": "date", "split": map[string]any{"strategy": "time", "fractions": thirds, "history": 3, "horizon": 2}},
		map[string]string{"data/buoys.csv": observations("", nothing)})
	if finding.Has(answer.Findings, finding.Error) || slices.ContainsFunc(answer.Findings, func(f finding.Finding) bool { return strings.HasPrefix(f.Code, "leakage") }) {
		t.Error(describe(answer))
	}
}

func TestStatisticsAsPeopleWriteThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stats.json")
	for text, want := range map[string]string{
		`{"n": 398, "source": "train.csv", "mean": {"wind": 4.52}, "std": {"wind": 2.1}}`: "4.52 2.1 0.005",
		`{"wind": {"mean": 4.5, "std": 2, "unit": "m/s"}}`:                                "4.5 2 0.05",
		`{"wind": {"mean": 4.5e0, "sigma": 2}}`:                                           "4.5 2 0",
		`{"wind": {"mean": "4.5"}}`:                                                       "",
		`["wind"]`:                                                                        "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got := ""
		if m, ok := readStatistics(path)["wind"]; ok {
			got = fmt.Sprintf("%v %v %v", *m.Mean, *m.Std, m.Rounded)
		}
		if got != want {
			t.Errorf("%s is read as %q", text, got)
		}
	}
}

func TestUnitsBySpelling(t *testing.T) {
	for written, want := range map[string]string{"meV": "meV", "MeV": "MeV", "eV": "eV", "MPa": "MPa", "hPa": "hPa", "celsius": "degC", "°C": "degC", "parsec": ""} {
		if got := knownUnit(written); got != want {
			t.Errorf("%s is %q, want %q", written, got, want)
		}
	}
}

// A split that the user asks for in words is not made another by the call.
func TestTheUsersSplitHolds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		hint string
		data map[string]any
		code string
	}{
		"another strategy":  {"group by station 60/20/20 seed 1", map[string]any{"split": map[string]any{"strategy": "random", "fractions": thirds}}, "contradicts_fact"},
		"another column":    {"group by station 60/20/20 seed 1", map[string]any{"group": "wind"}, "contradicts_fact"},
		"the same again":    {"group by station 60/20/20 seed 1", map[string]any{"split": map[string]any{"strategy": "group", "fractions": thirds}}, ""},
		"no strategy asked": {"60/20/20", map[string]any{"split": map[string]any{"strategy": "time", "fractions": thirds}}, ""},
		"what can't be":     {"5-fold", map[string]any{"split": map[string]any{"strategy": "time", "fractions": thirds}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := buoys(t, test.data, map[string]string{"data/buoys.csv": observations("", nothing), "hint": test.hint})
			if test.code != "" {
				wantCode(t, answer.Findings, test.code)
			} else if finding.Has(answer.Findings, finding.Error) {
				t.Error(describe(answer))
			}
		})
	}
}

// A column by whose name rows belong together is looked at when nobody names it, and only warned of.
func TestUnitsThatNobodyNames(t *testing.T) {
	t.Parallel()
	plain := observations("", nothing)
	undated := strings.NewReplacer("2024-01-", "", "2024-02-", "1", "2024-03-", "2").Replace(strings.ReplaceAll(plain, ",date", ",day"))
	for name, test := range map[string]struct{ text, code, field string }{
		"dates":    {plain, "leakage_window", "date"},
		"stations": {undated, "leakage_group", "station"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := buoys(t, map[string]any{"split": map[string]any{"strategy": "random", "fractions": thirds}}, map[string]string{"data/buoys.csv": test.text})
			f := wantCode(t, answer.Findings, test.code)
			if f.Severity != finding.Warning || f.Where.Field != test.field || finding.Has(answer.Findings, finding.Error) {
				t.Errorf("%+v %+v", f, f.Where)
			}
		})
	}
}

// Epochs in the README against those of the configuration: both places are named, and a document that agrees is silent.
func TestAReadmeAgainstTheConfig(t *testing.T) {
	t.Parallel()
	for readme, want := range map[string]string{
		"# Net\n\nThe model was trained for 40 epochs\nwith a batch size of 16.\n":       `README.md:3 says "40 epochs"; in force is training.epochs_or_steps = 25`,
		"# Net\n\nTraining takes 25 epochs; the paper used 40 epochs.\n":                 "",
		"# 网络\n\n训练 40 轮。\n":                                                             `README.md:3 says "40 轮"`,
		"# Net\n\nBatch size: 16, seed 17. See epoch 3 of the log, and page 40 of it.\n": "",
	} {
		f := newFixture(t)
		f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
		f.handoff.Inputs.Parameters = contract.Parameters{}
		f.write("README.md", readme)
		f.write("config.yaml", "epochs: 25\nbatch_size: 16\n")
		f.edit("train.py", "def main(", "CONFIG = 'config.yaml'\n\n\ndef main(")
		answer := f.walk()
		got := ""
		for _, found := range answer.Findings {
			if found.Code == "documents_disagree" {
				got += found.What
				if found.Where.Line != 3 || found.Where.Field != "training.epochs_or_steps" {
					t.Errorf("%+v", found.Where)
				}
			}
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q:\n%s\nwant %s", readme, got, want)
		}
	}
}
