package examples

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The other examples keep the same promises as the first, tested by the same commands.
func TestOtherExamples(t *testing.T) {
	for _, name := range []string{"mauna-loa", "penguins"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script, err := filepath.Abs(name + "/train.py")
			if err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(name + "/data/*.csv")
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			text, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			rows := strings.SplitAfter(string(text), "\n")
			header, rows := rows[0], rows[1:]
			project := func() string {
				dir := t.TempDir()
				first, second := len(rows)*7/10, len(rows)*17/20
				for part, some := range map[string][]string{"train": rows[:first], "val": rows[first:second], "test": rows[second:]} {
					write(t, filepath.Join(dir, "data", part+".csv"), header+strings.Join(some, ""))
				}
				return dir
			}
			run := func(dir string, args ...string) (int, string) {
				cmd := exec.Command("python3", append([]string{script}, args...)...)
				cmd.Dir = dir
				out, _ := cmd.CombinedOutput()
				return cmd.ProcessState.ExitCode(), string(out)
			}
			whole, again, parted := project(), project(), project() // of the last one a part is trained, then the rest
			for _, dir := range []string{whole, again} {
				if code, out := run(dir, "--epochs", "20"); code != exitDone {
					t.Fatalf("%d: %s", code, out)
				}
			}
			if left(t, whole) != left(t, again) {
				t.Error("the same seed gave other numbers")
			}

			// Stopped by a signal and resumed, a run says what an uninterrupted one does.
			cmd := exec.Command("python3", script, "--epochs", "5000") // it does not end by itself, however busy the machine is
			cmd.Dir = parted
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if !bufio.NewScanner(out).Scan() {
				t.Fatal("it printed nothing")
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_, _ = bufio.NewReader(out).WriteTo(new(strings.Builder))
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
				t.Fatalf("SIGTERM: exit code %d", code)
			}
			saved, _ := filepath.Glob(filepath.Join(parted, "checkpoints/*.complete.json"))
			last := strings.TrimSuffix(saved[len(saved)-1], ".complete.json")
			epoch, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(last), "epoch-"), ".json"))
			if err != nil {
				t.Fatal(err)
			}
			until := strconv.Itoa(epoch + 7)
			if code, out := run(parted, "--epochs", until); code != exitConfig || !strings.Contains(out, "--resume") {
				t.Errorf("a silent start beside checkpoints: %d %s", code, out)
			}
			straight := project()
			if code, out := run(straight, "--epochs", until); code != exitDone {
				t.Fatalf("%d: %s", code, out)
			}
			if code, out := run(parted, "--epochs", until, "--resume", last); code != exitDone {
				t.Fatalf("resume: %d %s", code, out)
			}
			if left(t, straight) != left(t, parted) {
				t.Error("a resumed run left other numbers")
			}

			damaged := filepath.Join(whole, "checkpoints/epoch-0020.json")
			data, err := os.ReadFile(damaged)
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)/2] ^= 1
			write(t, damaged, string(data))
			if code, out := run(whole, "--epochs", "25", "--resume", damaged); code != exitConfig || !strings.Contains(out, "epoch-0020.json") {
				t.Errorf("a damaged checkpoint: %d %s", code, out)
			}
		})
	}
}

var when = regexp.MustCompile(`"time": [0-9.]+`)

// left is what a run leaves, without times of the clock.
func left(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range []string{"metrics.jsonl", "predictions-val.jsonl", "predictions-test.jsonl"} {
		data, err := os.ReadFile(filepath.Join(dir, "outputs", name))
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(when.ReplaceAllString(string(data), ""))
	}
	return all.String()
}
