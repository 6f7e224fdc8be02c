// Package examples tests the example projects as a user runs them: as commands, by what they leave behind.
package examples

import (
	"bufio"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/contract"
)

// The exit codes that formats.md fixes for a training script.
const (
	exitDone        = 0
	exitNonFinite   = 65
	exitInterrupted = 75
	exitConfig      = 78
)

// newProject returns a folder with the three data files that train.py reads: of every seven rows of a class five
// train, one validates and one tests.
func newProject(t *testing.T) string {
	t.Helper()
	source, err := os.Open("breast-cancer/data/wdbc.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	rows, err := csv.NewReader(source).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string][][]string{"train": {rows[0]}, "val": {rows[0]}, "test": {rows[0]}}
	seen := map[string]int{}
	for _, row := range rows[1:] {
		class := row[len(row)-1]
		part := []string{"train", "train", "train", "train", "train", "val", "test"}[seen[class]%7]
		seen[class]++
		parts[part] = append(parts[part], row)
	}
	dir := t.TempDir()
	for name, part := range parts {
		var b strings.Builder
		if err := csv.NewWriter(&b).WriteAll(part); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "data", name+".csv"), b.String())
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// command is train.py in dir, quick unless args say otherwise.
func command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	script, err := filepath.Abs("breast-cancer/train.py")
	if err != nil {
		t.Fatal(err)
	}
	quick := []string{"-B", script, "--epochs", "6", "--checkpoint-every", "2", "--keep-last", "2"}
	cmd := exec.CommandContext(t.Context(), "python3", append(quick, args...)...)
	cmd.Dir = dir
	return cmd
}

// train runs the script to its end, checks its exit code and returns what it said.
func train(t *testing.T, dir string, wantCode int, args ...string) string {
	t.Helper()
	cmd := command(t, dir, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("python3 did not start: %v", err)
	}
	if got := cmd.ProcessState.ExitCode(); got != wantCode {
		t.Fatalf("train.py %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, wantCode, out)
	}
	return string(out)
}

// result is everything a run leaves that must not depend on when or in how many pieces it ran.
type result struct {
	Metrics     []map[string]any
	Best        any
	Predictions map[string]string
	Model       any
}

func readResult(t *testing.T, dir, outputs, checkpoints string) result {
	t.Helper()
	r := result{Predictions: map[string]string{}}
	for _, line := range strings.Split(strings.TrimSpace(read(t, dir, outputs, "metrics.jsonl")), "\n") {
		var row map[string]any
		decode(t, line, &row)
		delete(row, "time")
		r.Metrics = append(r.Metrics, row)
	}
	var summary map[string]any
	decode(t, read(t, dir, outputs, "summary.json"), &summary)
	if summary["status"] != "completed" {
		t.Fatalf("summary.json: status %v, want completed", summary["status"])
	}
	best := summary["best"].(map[string]any)
	best["checkpoint"] = filepath.Base(best["checkpoint"].(string))
	r.Best = best
	for _, split := range []string{"val", "test"} {
		r.Predictions[split] = read(t, dir, outputs, "predictions-"+split+".jsonl")
	}
	var last map[string]any
	decode(t, read(t, dir, checkpoints, fmt.Sprintf("epoch-%04d.json", int(summary["epochs"].(float64)))), &last)
	r.Model = last["model"]
	return r
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
}

func TestDataIsWhatItsSourcePageSays(t *testing.T) {
	data, source := read(t, "breast-cancer/data/wdbc.csv"), read(t, "breast-cancer/data/SOURCE.md")
	for _, fact := range []string{
		fmt.Sprintf("%x", sha256.Sum256([]byte(data))),
		fmt.Sprintf("%d bytes", len(data)),
		fmt.Sprintf("%d rows", strings.Count(data, "\n")-1),
		fmt.Sprintf("%d malignant", strings.Count(data, ",malignant\n")),
		fmt.Sprintf("%d benign", strings.Count(data, ",benign\n")),
	} {
		if !strings.Contains(source, fact) {
			t.Errorf("SOURCE.md does not say %q", fact)
		}
	}
}

func TestHandoffIsExactlyTheContract(t *testing.T) {
	handoff, findings, err := contract.DecodeHandoff([]byte(read(t, "breast-cancer/step_handoff.yaml")))
	if err != nil || len(findings) > 0 {
		t.Fatalf("decoding says %v, %v; want nothing to say", findings, err)
	}
	if len(handoff.Unknown) > 0 || len(handoff.Inputs.Unknown) > 0 {
		t.Errorf("unknown fields %v, %v", handoff.Unknown, handoff.Inputs.Unknown)
	}
	for _, path := range []string{handoff.Inputs.Model.TrainingEntrypoint, handoff.Inputs.Data.TrainSource, handoff.Inputs.InstructionSource.LocalPath} {
		read(t, "breast-cancer", path)
	}
	header, _, _ := strings.Cut(read(t, "breast-cancer", handoff.Inputs.Data.TrainSource), "\n")
	for _, role := range []string{"target", "id"} {
		if column, ok := handoff.Inputs.Data.DomainMetadata[role].(string); !ok || !slices.Contains(strings.Split(header, ","), column) {
			t.Errorf("%s %v is no column of the data", role, handoff.Inputs.Data.DomainMetadata[role])
		}
	}
}

func TestDefaultsReachTheCriterion(t *testing.T) {
	dir := newProject(t)
	train(t, dir, exitDone, "--epochs", "20", "--checkpoint-every", "5")
	r := readResult(t, dir, "outputs", "checkpoints")
	last := r.Metrics[len(r.Metrics)-1]
	if last["split"] != "test" || last["name"] != "accuracy" || last["value"].(float64) < 0.9 {
		t.Errorf("last metric %v, want test accuracy of at least 0.9", last)
	}
	right, rows := 0, strings.Split(strings.TrimSpace(r.Predictions["test"]), "\n")
	for _, line := range rows {
		var p struct{ ID, Target, Prediction string }
		decode(t, line, &p)
		if p.Target == p.Prediction {
			right++
		}
	}
	if got := float64(right) / float64(len(rows)); got != last["value"] {
		t.Errorf("accuracy of the predictions is %v, the log says %v", got, last["value"])
	}
	best := r.Best.(map[string]any)
	if last["step"] != best["step"] || last["epoch"] != best["epoch"] {
		t.Errorf("test metrics are of step %v, the best checkpoint is of step %v", last["step"], best["step"])
	}
}

func TestSameSeedSameNumbers(t *testing.T) {
	dir := newProject(t)
	var runs []result
	for i, seed := range []string{"3", "3", "4"} {
		outputs, checkpoints := fmt.Sprintf("o%d", i), fmt.Sprintf("c%d", i)
		train(t, dir, exitDone, "--seed", seed, "--output-dir", outputs, "--checkpoint-dir", checkpoints)
		runs = append(runs, readResult(t, dir, outputs, checkpoints))
	}
	if diff := cmp.Diff(runs[0], runs[1]); diff != "" {
		t.Errorf("two runs with seed 3 differ:\n%s", diff)
	}
	if cmp.Equal(runs[0].Model, runs[2].Model) {
		t.Error("seeds 3 and 4 give the same model")
	}
}

func TestResumeInAnotherFolderGivesTheNumbersOfOneRun(t *testing.T) {
	dir := newProject(t)
	train(t, dir, exitDone, "--keep-last", "9")
	train(t, dir, exitDone, "--keep-last", "9", "--resume", "checkpoints/epoch-0002.json", "--output-dir", "o2", "--checkpoint-dir", "c2")
	whole, resumed := readResult(t, dir, "outputs", "checkpoints"), readResult(t, dir, "o2", "c2")
	whole.Metrics = whole.Metrics[2*3:] // the new folder starts at epoch 3; an epoch has three metrics
	if diff := cmp.Diff(whole, resumed); diff != "" {
		t.Errorf("resumed run differs:\n%s", diff)
	}
}

func TestSigtermSavesAndResumeGivesTheNumbersOfOneRun(t *testing.T) {
	dir := newProject(t)
	shape := []string{"--epochs", "20", "--checkpoint-every", "7"}
	cmd := command(t, dir, shape...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || !strings.HasPrefix(line, "epoch 1/20 ") {
		t.Errorf("first line %q, %v; want the progress of epoch 1", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, stdout)
	_ = cmd.Wait() // the exit code says it
	if got := cmd.ProcessState.ExitCode(); got != exitInterrupted {
		t.Fatalf("exit code %d after SIGTERM, want %d", got, exitInterrupted)
	}
	var summary struct {
		Status string
		Epochs int
	}
	decode(t, read(t, dir, "outputs", "summary.json"), &summary)
	if summary.Status != "interrupted" || summary.Epochs < 1 || summary.Epochs >= 20 {
		t.Fatalf("summary %+v, want an interrupted run of fewer than 20 epochs", summary)
	}

	last := fmt.Sprintf("checkpoints/epoch-%04d.json", summary.Epochs)
	train(t, dir, exitDone, append(shape, "--resume", last)...)
	train(t, dir, exitDone, append(shape, "--output-dir", "o2", "--checkpoint-dir", "c2")...)
	if diff := cmp.Diff(readResult(t, dir, "o2", "c2"), readResult(t, dir, "outputs", "checkpoints")); diff != "" {
		t.Errorf("the interrupted and resumed run differs:\n%s", diff)
	}
}

func TestCheckpointMarkerAndWhatIsKept(t *testing.T) {
	dir := newProject(t)
	train(t, dir, exitDone, "--epochs", "8", "--checkpoint-every", "1", "--keep-last", "2")
	found, err := filepath.Glob(filepath.Join(dir, "checkpoints", "epoch-*.complete.json"))
	if err != nil || len(found) < 2 || len(found) > 3 {
		t.Fatalf("%d checkpoints (%v), want the last two and the best", len(found), err)
	}
	for _, path := range found {
		var marker struct {
			SHA256      string
			Bytes       int
			Step, Epoch int
			Holds       []string
		}
		decode(t, read(t, path), &marker)
		data := read(t, strings.TrimSuffix(path, ".complete.json"))
		want := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(data)))
		if marker.SHA256 != want || marker.Bytes != len(data) || marker.Step == 0 || marker.Epoch == 0 {
			t.Errorf("%s: %+v, want %s and %d bytes", path, marker, want, len(data))
		}
		if diff := cmp.Diff([]string{"model", "optimizer", "scheduler", "step", "rng"}, marker.Holds); diff != "" {
			t.Errorf("%s holds:\n%s", path, diff)
		}
	}
	if leftovers, _ := filepath.Glob(filepath.Join(dir, "*", "*.tmp")); len(leftovers) > 0 {
		t.Errorf("temporary files left: %v", leftovers)
	}
}

func TestRefusals(t *testing.T) {
	dir := newProject(t)
	train(t, dir, exitDone, "--keep-last", "9")
	whole := read(t, dir, "checkpoints", "epoch-0006.json")
	marker := read(t, dir, "checkpoints", "epoch-0006.json.complete.json")
	write(t, filepath.Join(dir, "cut", "epoch-0006.json"), whole[:len(whole)/2])
	write(t, filepath.Join(dir, "cut", "epoch-0006.json.complete.json"), marker)
	write(t, filepath.Join(dir, "flipped", "epoch-0006.json"), strings.Replace(whole, "0.", "1.", 1))
	write(t, filepath.Join(dir, "flipped", "epoch-0006.json.complete.json"), marker)
	write(t, filepath.Join(dir, "unmarked", "epoch-0006.json"), whole)
	train4 := strings.SplitAfter(read(t, dir, "data", "train.csv"), "\n")[:4]
	write(t, filepath.Join(dir, "short.csv"), strings.Join(train4, "")+"1,2,3\n")
	write(t, filepath.Join(dir, "text.csv"), strings.Join(train4, "")+strings.Replace(train4[1], ",", ",n/a", 1))

	fresh := []string{"--checkpoint-dir", "fresh", "--output-dir", "fresh-outputs"}
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"missing target column", append(fresh, "--target", "outcome"), exitConfig, "no column 'outcome'"},
		{"missing id column", append(fresh, "--id-column", "patient"), exitConfig, "no column 'patient'"},
		{"missing file", append(fresh, "--val-data", "data/none.csv"), exitConfig, "data/none.csv: No such file"},
		{"short record", append(fresh, "--train-data", "short.csv"), exitConfig, "short.csv:5: 3 fields, expected 32"},
		{"text as a feature", append(fresh, "--train-data", "text.csv"), exitConfig, "text.csv:5: could not convert"},
		{"unknown optimizer", append(fresh, "--optimizer", "adamw"), exitConfig, "invalid choice: 'adamw'"},
		{"no epochs", append(fresh, "--epochs", "0"), exitConfig, "--epochs must be at least 1"},
		{"scratch into a used folder", nil, exitConfig, "a start from scratch needs an empty folder"},
		{"truncated checkpoint", append(fresh, "--resume", "cut/epoch-0006.json"), exitConfig, "use an earlier checkpoint"},
		{"damaged checkpoint", append(fresh, "--resume", "flipped/epoch-0006.json"), exitConfig, "the bytes differ"},
		{"checkpoint without a marker", append(fresh, "--resume", "unmarked/epoch-0006.json"), exitConfig, "cannot be read as a complete checkpoint"},
		{"resume with another seed", append(fresh, "--resume", "checkpoints/epoch-0004.json", "--seed", "9"), exitConfig, "seed: 17 then, 9 now"},
		{"resume on other data", append(fresh, "--resume", "checkpoints/epoch-0004.json", "--val-data", "data/test.csv"), exitConfig, "the rows of the data files"},
		{"resume before a later checkpoint", []string{"--resume", "checkpoints/epoch-0004.json"}, exitConfig, "later than"},
		{"diverging", append(fresh, "--learning-rate", "1e300", "--clip-norm", "0"), exitNonFinite, "not finite at epoch 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if said := train(t, dir, c.code, c.args...); !strings.Contains(said, c.says) {
				t.Errorf("said %q, want %q in it", said, c.says)
			}
		})
	}
	diverged := read(t, dir, "fresh-outputs", "metrics.jsonl")
	if !strings.Contains(diverged, `"value": null, "unit": "", "nonfinite": "nan"`) {
		t.Errorf("metrics of the diverged run do not show it: %s", diverged)
	}
	if got := read(t, dir, "checkpoints", "epoch-0006.json"); got != whole {
		t.Error("a refused start changed a checkpoint")
	}
}

func TestTwoEpochsAreQuick(t *testing.T) {
	dir := newProject(t)
	started := time.Now()
	said := train(t, dir, exitDone, "--epochs", "2", "--id-column", "", "--checkpoint-dir", "c", "--output-dir", "o")
	// A smoke run must fit into a tool call; measured 0.3 s on two cores, the rest is for a busy machine.
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("two epochs took %v\n%s", took, said)
	}
	if first, _, _ := strings.Cut(read(t, dir, "o", "predictions-test.jsonl"), "\n"); !strings.HasPrefix(first, `{"id": "row-0", `) {
		t.Errorf("without an id column the first prediction is %s, want id row-0", first)
	}
}
