package metrics

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

var update = flag.Bool("update", false, "write the golden files anew")

// render shows a log as a table that a person can check against the file.
func render(log *Log, read, health []finding.Finding) string {
	var b strings.Builder
	for _, p := range log.Points {
		step, epoch := "-", "-"
		if p.Step != nil {
			step = fmt.Sprint(*p.Step)
		}
		if p.Epoch != nil {
			epoch = fmt.Sprint(*p.Epoch)
		}
		fmt.Fprintf(&b, "line %d [%d,%d) step %s epoch %s %s = %v %q digits %d unit %q\n",
			p.Line, p.Start, p.End, step, epoch, p.Key(), p.Value, p.Text, p.Digits, p.Unit)
	}
	fmt.Fprintf(&b, "names %v, %d bytes\n", log.Names, log.Bytes)
	for _, f := range read {
		fmt.Fprintf(&b, "read %s @%d %s\n", f.Severity, f.Where.Byte, f)
	}
	for _, f := range health {
		fmt.Fprintf(&b, "health %s %s\n", f.Severity, f)
	}
	return b.String()
}

func TestReadJSONLGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/logs/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no logs", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			log, found, err := ReadJSONL(filepath.ToSlash(path))
			if err != nil {
				t.Fatal(err)
			}
			got := render(log, found, Health(log))
			golden := strings.TrimSuffix(path, ".jsonl") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range log.Points {
				if row := data[p.Start:p.End]; row[0] != '{' || row[len(row)-1] != '}' {
					t.Errorf("line %d: the byte range is %q, not the row", p.Line, row)
				}
			}
		})
	}
}

func TestReadJSONLRefusesWhatIsNoFile(t *testing.T) {
	_, _, err := ReadJSONL(filepath.Join(t.TempDir(), "metrics.jsonl"))
	var refused *finding.Refused
	if !errors.As(err, &refused) || refused.Findings[0].Code != "file_missing" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	_, _, err = ReadJSONL(t.TempDir())
	if !errors.As(err, &refused) || refused.Findings[0].Code != "not_a_file" {
		t.Errorf("directory: %v", err)
	}
}

// A log that is cut at any byte keeps all complete rows and says that one is lost, or is simply shorter.
func TestReadJSONLCutAnywhere(t *testing.T) {
	whole := []byte(`{"step":1,"val/loss":0.5}` + "\n" + `{"step":2,"val/loss":NaN}` + "\n" + `{"step":3,"val":{"loss":0.25}}` + "\n")
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	for cut := 0; cut < len(whole); cut++ {
		if err := os.WriteFile(path, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		log, found, err := ReadJSONL(path)
		if err != nil {
			t.Fatal(cut, err)
		}
		rows := bytes.Count(whole[:cut], []byte("\n"))
		last := whole[bytes.LastIndexByte(whole[:cut], '\n')+1 : cut]
		complete := len(last) > 0 && bytes.HasSuffix(whole[:cut+1], []byte("}\n"))
		if complete {
			rows++
		}
		if len(log.Points) != rows {
			t.Errorf("cut at %d: %d points, want %d", cut, len(log.Points), rows)
		}
		if wantFinding := len(last) > 0 && !complete; wantFinding != hasCode(found, "line_truncated") {
			t.Errorf("cut at %d: findings %v", cut, found)
		}
		if cut == 0 && !hasCode(found, "file_empty") {
			t.Errorf("empty file: %v", found)
		}
	}
}

func hasCode(found []finding.Finding, code string) bool {
	for _, f := range found {
		if f.Code == code {
			return true
		}
	}
	return false
}

func codes(found []finding.Finding) []string {
	var list []string
	for _, f := range found {
		list = append(list, f.Code)
	}
	return list
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadJSONLStepsOverALineThatIsTooLong(t *testing.T) {
	path := writeFile(t, "m.jsonl", `{"val/loss":1}`+"\n"+`{"note":"`+strings.Repeat("x", MaxLine)+"\"}\n"+`{"val/loss":2}`+"\n")
	log, found, err := ReadJSONL(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Points) != 2 || log.Points[1].Line != 3 || !hasCode(found, "line_too_long") {
		t.Errorf("points %v, findings %v", log.Points, codes(found))
	}
}

// A long log is thinned, and still has its NaN, its last value, every validation value, and true counts.
func TestThinnedLogKeepsWhatMatters(t *testing.T) {
	var b strings.Builder
	for i := 1; i <= 5000; i++ {
		value := fmt.Sprint(1 / float64(i))
		if i == 777 {
			value = "NaN"
		}
		fmt.Fprintf(&b, `{"step":%d,"train/loss":%s}`+"\n", i, value)
		if i%500 == 0 {
			fmt.Fprintf(&b, `{"step":%d,"val/loss":%g}`+"\n", i, 2/float64(i))
		}
	}
	log, found, err := readJSONL(writeFile(t, "m.jsonl", b.String()), 300)
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Points) > 302 || len(log.Points)+log.Dropped != 5010 || !hasCode(found, "metrics_thinned") {
		t.Errorf("%d kept, %d dropped, findings %v", len(log.Points), log.Dropped, codes(found))
	}
	if last, ok := log.Last(Key{"train", "loss"}); !ok || *last.Step != 5000 {
		t.Errorf("last is %+v", last)
	}
	if val := log.Series(Key{"val", "loss"}); len(val) != 10 {
		t.Errorf("%d validation points kept", len(val))
	}
	nan, early := false, 0
	for _, p := range log.Series(Key{"train", "loss"}) {
		nan = nan || p.NonFinite == "nan" && *p.Step == 777
		if *p.Step <= 2500 {
			early++
		}
	}
	if !nan {
		t.Error("the NaN was thinned away")
	}
	if n := len(log.Series(Key{"train", "loss"})); early < n/3 || early > 2*n/3 {
		t.Errorf("%d of %d kept points are of the first half", early, n)
	}
	if health := Health(log); len(health) != 1 || health[0].Code != "metric_nonfinite" || health[0].Where.Line != 778 {
		t.Errorf("health %v", health)
	}
}

func TestTooManyNamesAreCut(t *testing.T) {
	var b strings.Builder
	for i := 0; i < MaxKeys+5; i++ {
		fmt.Fprintf(&b, `{"val/m%d": 1}`+"\n", i)
	}
	log, found, err := ReadJSONL(writeFile(t, "m.jsonl", b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Names) != MaxKeys || log.Dropped != 5 || !cmp.Equal(codes(found), []string{"metrics_keys_cut"}) {
		t.Errorf("%d names, %d dropped, %v", len(log.Names), log.Dropped, codes(found))
	}
}

func TestManyBadLinesAreCounted(t *testing.T) {
	_, found, err := ReadJSONL(writeFile(t, "m.jsonl", strings.Repeat("nonsense\n", 100)+`{"val/loss":1}`+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != maxLineFindings+1 || found[maxLineFindings].What != "80 more lines are like that" {
		t.Errorf("%d findings, last %v", len(found), found[len(found)-1])
	}
}

func TestResolveNeverTakesTrain(t *testing.T) {
	log := func(keys ...string) *Log {
		l := &Log{}
		for _, k := range keys {
			l.Names = append(l.Names, ParseKey(k))
		}
		return l
	}
	for _, c := range []struct {
		name  string
		log   *Log
		asked string
		want  string // "" = not found
	}{
		{"test before val", log("train/loss", "val/loss", "test/loss"), "loss", "test/loss"},
		{"val when no test", log("train/loss", "val/loss"), "loss", "val/loss"},
		{"never train", log("train/loss", "val/acc"), "loss", ""},
		{"train when named", log("train/loss"), "train_loss", "train/loss"},
		{"named split is not swapped", log("val/loss"), "test/loss", ""},
		{"no split anywhere", log("accuracy", "loss"), "acc", "accuracy"},
		{"bare beside splits is training's", log("loss", "eval_accuracy"), "loss", ""},
		{"custom split by its name", log("accuracy"), "ood/accuracy", ""},
	} {
		got, ok := c.log.Resolve(ParseKey(c.asked))
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s: %v %v, want %q", c.name, got, ok, c.want)
		}
	}
	ood := &Log{Names: []Key{{Split: "ood", Name: "accuracy"}}}
	if got, ok := ood.Resolve(ParseKey("ood/accuracy")); !ok || got.Split != "ood" {
		t.Errorf("a split of the script's own: %v %v", got, ok)
	}
}

func TestAtTheBestCheckpoint(t *testing.T) {
	log, _, err := ReadJSONL(writeFile(t, "m.jsonl", `{"step":10,"epoch":1,"val/acc":0.7}
{"step":20,"epoch":2,"val/acc":0.9}
{"step":30,"epoch":3,"val/acc":0.8}
{"step":20,"epoch":2,"val/acc":0.85}
`))
	if err != nil {
		t.Fatal(err)
	}
	step, epoch, none := int64(20), 3.0, int64(25)
	key := Key{"val", "accuracy"}
	for _, c := range []struct {
		name  string
		step  *int64
		epoch *float64
		want  float64
		ok    bool
	}{
		{"by step, the later row", &step, nil, 0.85, true},
		{"by epoch", nil, &epoch, 0.8, true},
		{"step before epoch", &step, &epoch, 0.85, true},
		{"epoch when the step has no row", &none, &epoch, 0.8, true},
		{"no such step", &none, nil, 0, false},
		{"nothing asked", nil, nil, 0, false},
	} {
		got, ok := log.At(key, c.step, c.epoch)
		if ok != c.ok || got.Value != c.want {
			t.Errorf("%s: %v %v", c.name, got.Value, ok)
		}
	}
	if last, ok := log.Last(key); !ok || last.Value != 0.85 || last.Line != 4 {
		t.Errorf("last %+v", last)
	}
	if _, ok := log.Last(Key{"test", "accuracy"}); ok {
		t.Error("a series that is not there has a last value")
	}
}

func TestHealthOfALogMadeInMemory(t *testing.T) {
	one, two := int64(1), int64(2)
	log := &Log{Path: "m", Names: []Key{{"val", "loss"}}, Points: []Point{
		{Step: &two, Split: "val", Name: "loss", Value: 1, Line: 1}, {Step: &one, Split: "val", Name: "loss", Value: math.Inf(1), NonFinite: "inf", Line: 2},
	}}
	if got := codes(Health(log)); !cmp.Equal(got, []string{"metric_nonfinite", "steps_backward"}) {
		t.Error(got)
	}
}
