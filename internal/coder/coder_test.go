package coder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// bench is a workspace with a small repository.
type bench struct {
	t     *testing.T
	dir   string
	coder *Coder
	run   string
}

var original = map[string]string{
	"train.py":     "import sys\n\nlr = 0.1\nepochs = 20\n\n\ndef main():\n    print(lr, epochs)\n",
	"model.py":     "SIZE = 8\nDEPTH = 8\n",
	"windows.txt":  "one\r\ntwo\r\nthree\r\n",
	"notes.md":     "# Notes\n",
	"secrets.yaml": "key: x\n",
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, dir: t.TempDir()}
	for name, text := range original {
		b.write(name, text)
	}
	roots, err := rundir.NewRoots(b.dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.coder = New(engine.New(roots, time.Now))
	return b
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *bench) try(changes map[string]any) (engine.Envelope, error) {
	call := contract.Call{RunID: b.run, Section: map[string]any{"changes": changes}}
	if b.run == "" {
		call.Handoff = &contract.StepHandoff{StepID: "code", StepGoal: "make it learn", ExecutionSkill: Skill}
	}
	answer, err := b.coder.Run(context.Background(), engine.Silent, call, Input{})
	if err == nil {
		b.run = answer.Run.RunID
	}
	return answer, err
}

func (b *bench) land(changes map[string]any) engine.Envelope {
	b.t.Helper()
	answer, err := b.try(changes)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer
}

func (b *bench) untouched(but ...string) {
	b.t.Helper()
	for name, text := range original {
		if !slices.Contains(but, name) && b.read(name) != text {
			b.t.Errorf("%s was changed to %q", name, b.read(name))
		}
	}
}

func files(list ...map[string]any) map[string]any { return map[string]any{"files": anys(list)} }
func edits(list ...map[string]any) map[string]any { return map[string]any{"edits": anys(list)} }

func anys(list []map[string]any) []any {
	var out []any
	for _, x := range list {
		out = append(out, x)
	}
	return out
}

func codes(answer engine.Envelope) string {
	var out []string
	for _, f := range answer.Findings {
		out = append(out, f.Code)
	}
	return strings.Join(out, " ")
}

func find(t *testing.T, answer engine.Envelope, code string) finding.Finding {
	t.Helper()
	i := slices.IndexFunc(answer.Findings, func(f finding.Finding) bool { return f.Code == code })
	if i < 0 {
		t.Fatalf("no %s among %s", code, codes(answer))
	}
	if f := answer.Findings[i]; f.Remedy == "" || f.Where == nil {
		t.Errorf("%s has no place or no remedy: %+v", code, f)
	}
	return answer.Findings[i]
}

// Files and edits of one call land together, with a difference that can be reviewed, and what was there is kept.
func TestChangesLand(t *testing.T) {
	b := newBench(t)
	changes := files(map[string]any{"path": "lib/util.py", "content": "X = 1\n", "base": "new"},
		map[string]any{"path": "notes.md", "content": "# Notes\n\nread\n", "base": rundir.HashBytes([]byte(original["notes.md"]))})
	changes["edits"] = edits(map[string]any{"path": "train.py", "search": "lr = 0.1", "replace": "lr = 0.01"}, map[string]any{"path": "train.py", "search": "epochs = 20", "replace": "epochs = 30"},
		map[string]any{"path": "windows.txt", "search": "two\nthree", "replace": "2\n3"}, map[string]any{"path": "model.py", "search": "8", "replace": "16", "occurrence": 2})["edits"]
	answer := b.land(changes)
	if answer.ExecutionResult.Status != contract.StatusSuccess {
		t.Fatalf("%s: %s", answer.ExecutionResult.Status, codes(answer))
	}
	b.untouched("train.py", "notes.md", "windows.txt", "model.py")
	for name, want := range map[string]string{"lib/util.py": "X = 1\n", "notes.md": "# Notes\n\nread\n", "windows.txt": "one\r\n2\r\n3\r\n", "model.py": "SIZE = 8\nDEPTH = 16\n",
		"train.py": strings.NewReplacer("0.1", "0.01", "20", "30").Replace(original["train.py"])} {
		if got := b.read(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	work := answer.ExecutionResult.Artifacts["trainer_workdir"]
	diff, err := os.ReadFile(filepath.Join(work, diffFile))
	for _, want := range []string{"--- /dev/null\n+++ b/lib/util.py\n", "--- a/train.py\n+++ b/train.py\n", "-lr = 0.1\n-epochs = 20\n+lr = 0.01\n+epochs = 30\n"} {
		if err != nil || !strings.Contains(string(diff), want) {
			t.Errorf("%v; the difference lacks %q:\n%s", err, want, diff)
		}
	}
	if f := find(t, answer, "difference"); f.What != string(diff) {
		t.Errorf("the answer shows\n%s", f.What)
	}
	if got := answer.ExecutionResult.Observation.Summary; !strings.Contains(got, "landed 5 file(s), +8 -5 lines") {
		t.Errorf("summary %q", got)
	}
	kept, err := os.ReadFile(filepath.Join(work, "landings", "1", "before", "2"))
	if err != nil || string(kept) != original["train.py"] {
		t.Errorf("kept %q, %v", kept, err)
	}
	again := b.land(changes)
	if again.ExecutionResult.Status != contract.StatusSuccess || !strings.Contains(again.ExecutionResult.Observation.Summary, "already holds") {
		t.Errorf("again: %s %s", again.ExecutionResult.Observation.Summary, codes(again))
	}
}

// Whatever is wrong with one change, none lands; each refusal has its place and the way on.
func TestAllOrNothing(t *testing.T) {
	hash := rundir.HashBytes([]byte(original["train.py"]))
	good := map[string]any{"path": "model.py", "search": "SIZE = 8", "replace": "SIZE = 9"}
	for name, c := range map[string]struct {
		change map[string]any
		code   string
		line   int
		remedy string
	}{
		"another base":          {map[string]any{"path": "train.py", "search": "lr = 0.1", "replace": "lr = 1", "base": "sha256:" + strings.Repeat("0", 64)}, "base_changed", 0, `"base": "` + hash + `"`},
		"passage not there":     {map[string]any{"path": "train.py", "search": "lr  =  0.2", "replace": "lr = 1"}, "search_not_found", 3, "as it stands there"},
		"passage twice":         {map[string]any{"path": "train.py", "search": "epochs", "replace": "steps"}, "search_ambiguous", 0, "occurrence"},
		"occurrence too high":   {map[string]any{"path": "model.py", "search": "8", "replace": "9", "occurrence": 3}, "search_ambiguous", 0, "occurrence"},
		"no passage":            {map[string]any{"path": "train.py", "search": "", "replace": "x"}, "search_empty", 0, ""},
		"no such file":          {map[string]any{"path": "train2.py", "search": "a", "replace": "x"}, "file_missing", 0, "base new"},
		"out of the repository": {map[string]any{"path": "../x.py", "search": "a", "replace": "x"}, "path_outside_repository", 0, ""},
		"an absolute path":      {map[string]any{"path": "/etc/passwd", "search": "root", "replace": "x"}, "path_outside_repository", 0, ""},
		"git's own":             {map[string]any{"path": ".git/config", "search": "a", "replace": "x"}, "path_secret", 0, ""},
		"secrets":               {map[string]any{"path": "secrets.yaml", "search": "x", "replace": "y"}, "path_secret", 0, ""},
		"a link into git":       {map[string]any{"path": "hooks/pre-commit", "search": "a", "replace": "x"}, "path_secret", 0, ""},
		"a link to secrets":     {map[string]any{"path": "plain.txt", "search": "x", "replace": "y"}, "path_secret", 0, ""},
		"the records of runs":   {map[string]any{"path": ".onescience/x.json", "search": "x", "replace": "y"}, "path_secret", 0, ""},
		"made already":          {map[string]any{"path": "train.py", "search": "learning_rate = 5", "replace": "import sys"}, "search_not_found", 1, "leave it out"},
		"through a link":        {map[string]any{"path": "out/x.py", "search": "a", "replace": "x"}, "path_outside_r", 0, ""},
		"a folder":              {map[string]any{"path": "sub", "search": "a", "replace": "x"}, "not_a_regular_file", 0, ""},
		"Python that breaks":    {map[string]any{"path": "train.py", "search": "def main():", "replace": "def main(:"}, "syntax_error", 7, "correct"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if err := errors.Join(os.Symlink(t.TempDir(), filepath.Join(b.dir, "out")), os.Mkdir(filepath.Join(b.dir, "sub"), 0o755),
				os.MkdirAll(filepath.Join(b.dir, ".git", "hooks"), 0o755), os.Symlink(".git/hooks", filepath.Join(b.dir, "hooks")), os.Symlink("secrets.yaml", filepath.Join(b.dir, "plain.txt"))); err != nil {
				t.Fatal(err)
			}
			answer := b.land(edits(good, c.change))
			if answer.ExecutionResult.Status != contract.StatusBlocked {
				t.Errorf("status %s", answer.ExecutionResult.Status)
			}
			i := slices.IndexFunc(answer.Findings, func(f finding.Finding) bool { return strings.HasPrefix(f.Code, c.code) && f.Severity == finding.Error })
			if i < 0 {
				t.Fatalf("no %s among %s", c.code, codes(answer))
			}
			if f := answer.Findings[i]; f.Where == nil || f.Where.Line != c.line || !strings.Contains(f.Remedy, c.remedy) || f.Remedy == "" {
				t.Errorf("%+v at %+v", f, f.Where)
			}
			b.untouched()
		})
	}
	b := newBench(t)
	answer := b.land(files(map[string]any{"path": "train.py", "content": "x = 1\n"}))
	if f := find(t, answer, "base_missing"); !strings.Contains(f.Remedy, hash) {
		t.Errorf("remedy %q", f.Remedy)
	}
	if err := os.Mkdir(filepath.Join(b.dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	own := files(map[string]any{"path": "config", "content": "x", "base": "new"})
	own["repository"] = ".git"
	find(t, b.land(own), "path_secret")
	answer = b.land(files(map[string]any{"path": "train.py", "content": "x = 1\n", "base": "new"}))
	find(t, answer, "base_changed")
	b.untouched()
}

// A dry run shows the difference and writes nothing.
func TestDryRun(t *testing.T) {
	b := newBench(t)
	changes := edits(map[string]any{"path": "train.py", "search": "lr = 0.1", "replace": "lr = 0.01"})
	changes["dry_run"] = true
	answer := b.land(changes)
	if answer.ExecutionResult.Status != contract.StatusPartial || !strings.Contains(find(t, answer, "difference").What, "+lr = 0.01") {
		t.Errorf("%s %s", answer.ExecutionResult.Status, codes(answer))
	}
	b.untouched()
}

// A file that can't be written takes the ones before it back.
func TestFailedWriteIsUndone(t *testing.T) {
	b := newBench(t)
	full, n := errors.New("no space left on device"), 0
	b.coder.write = func(path string, data []byte) error {
		if n++; n == 2 {
			return full
		}
		return writeFile(path, data)
	}
	_, err := b.try(edits(map[string]any{"path": "train.py", "search": "lr = 0.1", "replace": "lr = 0.01"}, map[string]any{"path": "model.py", "search": "SIZE = 8", "replace": "SIZE = 9"}))
	if !errors.Is(err, full) {
		t.Fatal(err)
	}
	b.untouched()
}

// A crash between two files is made good by the next call: what was begun is finished, or, where somebody has changed a file
// meanwhile, put back.
func TestCrashBetweenFiles(t *testing.T) {
	for name, meanwhile := range map[string]string{"finished": "", "undone": "SIZE = 64\n"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			crash := fmt.Sprint("killed ", name)
			n := 0
			b.coder.write = func(path string, data []byte) error {
				if n++; n == 2 {
					panic(crash)
				}
				return writeFile(path, data)
			}
			b.land(map[string]any{}) // begins the run
			func() {
				defer func() {
					if got := recover(); got != crash {
						t.Fatal(got)
					}
				}()
				_, _ = b.try(edits(map[string]any{"path": "train.py", "search": "lr = 0.1", "replace": "lr = 0.01"}, map[string]any{"path": "model.py", "search": "SIZE = 8", "replace": "SIZE = 9"}))
			}()
			if !strings.Contains(b.read("train.py"), "lr = 0.01") {
				t.Fatal("the first file was to be written before the crash")
			}
			if meanwhile != "" {
				b.write("model.py", meanwhile)
			}
			roots, err := rundir.NewRoots(b.dir, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			b.coder = New(engine.New(roots, time.Now)) // a new process
			if name == "finished" {
				b.run = "" // and another run
			}
			answer := b.land(map[string]any{})
			find(t, answer, "landing_"+name)
			if name == "finished" {
				if got := b.read("model.py"); got != "SIZE = 9\nDEPTH = 8\n" {
					t.Errorf("model.py is %q", got)
				}
			} else if b.read("train.py") != original["train.py"] || b.read("model.py") != meanwhile {
				t.Errorf("train.py is %q, model.py %q", b.read("train.py"), b.read("model.py"))
			}
			if again := b.land(map[string]any{}); strings.Contains(codes(again), "landing_") {
				t.Errorf("told twice: %s", codes(again))
			}
		})
	}
}

// Uncommitted work is told of and stays; the index and the history are not touched.
func TestUncommittedWorkStays(t *testing.T) {
	b := newBench(t)
	repository, err := git.PlainInit(b.dir, false)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repository.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	for name := range original {
		if _, err := tree.Add(name); err != nil {
			t.Fatal(err)
		}
	}
	head, err := tree.Commit("all", &git.CommitOptions{Author: &object.Signature{Name: "Ada", Email: "ada@example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	b.write("train.py", original["train.py"]+"# mine\n")
	b.write("notes.md", "# My notes\n")
	index, err := os.ReadFile(filepath.Join(b.dir, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	answer := b.land(edits(map[string]any{"path": "train.py", "search": "lr = 0.1", "replace": "lr = 0.01"}))
	if f := find(t, answer, "uncommitted_changes"); !strings.Contains(f.What, "train.py") {
		t.Error(f.What)
	}
	if f := find(t, answer, "work_untouched"); !strings.HasPrefix(f.What, "1 other file") {
		t.Error(f.What)
	}
	if b.read("notes.md") != "# My notes\n" || !strings.HasSuffix(b.read("train.py"), "# mine\n") {
		t.Error("uncommitted work was lost")
	}
	now, err := os.ReadFile(filepath.Join(b.dir, ".git", "index"))
	ref, errHead := repository.Head()
	if err != nil || errHead != nil || string(now) != string(index) || ref.Hash() != head {
		t.Errorf("index or HEAD changed: %v %v", err, errHead)
	}
}

// A call without changes says what to send.
func TestNothingToLand(t *testing.T) {
	b := newBench(t)
	answer := b.land(map[string]any{})
	if answer.ExecutionResult.Status != contract.StatusBlocked || len(answer.Needs) != 1 || answer.Run.NextCall == nil || answer.Run.NextCall.Tool != "coder" {
		t.Errorf("%+v", answer)
	}
}
