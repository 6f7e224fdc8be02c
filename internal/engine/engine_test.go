package engine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// copier is a phase of a skill that has nothing to do with training: it copies one file into another, and counts.
type copier struct {
	name, from, to string
	ran            *atomic.Int32
	block          func() bool
}

func (c copier) Name() string { return c.name }
func (c copier) Tool() string { return "tool_" + c.name }

func (c copier) Run(_ context.Context, step *Step) (Outcome, error) {
	c.ran.Add(1)
	var out Outcome
	sha, err := step.Track(c.from)
	if err != nil {
		return out, err
	}
	if c.block != nil {
		out.Check("open", !c.block(), "someone opened it")
	}
	out.AddText(c.to, []byte("made from "+sha+"\n"))
	out.Summary = "copied"
	out.Decide()
	return out, nil
}

// kitchen is a workspace with a skill of three phases: a → b → c, where b waits while the file "shut" exists.
type kitchen struct {
	t      *testing.T
	dir    string
	engine *Engine
	skill  *Skill
	ran    [3]atomic.Int32
}

func newKitchen(t *testing.T) *kitchen {
	t.Helper()
	k := &kitchen{t: t, dir: t.TempDir()}
	k.write("in.txt", "flour")
	roots, err := rundir.NewRoots(k.dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	shut := func() bool { _, err := os.Stat(filepath.Join(k.dir, "shut")); return err == nil }
	k.skill = &Skill{Name: "onescience-baker", Walker: "bake", Last: func(contract.StepHandoff) string { return "c" },
		Phases:    []Phase{copier{"a", filepath.Join(k.dir, "in.txt"), "a.txt", &k.ran[0], nil}, copier{"b", "a.txt", "b.md", &k.ran[1], shut}, copier{"c", "b.md", "c.txt", &k.ran[2], nil}},
		Canonical: []string{"step_handoff.json", "a.txt", "b.md", "c.txt"}, Artifacts: func(r *Run) map[string]string { return map[string]string{"bread": r.File("c.txt")} }}
	k.engine = New(roots, time.Now, k.skill)
	return k
}

func (k *kitchen) write(name, text string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o644); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kitchen) bake() Envelope {
	k.t.Helper()
	answer, err := k.engine.Walk(context.Background(), Silent, k.skill, contract.Call{Handoff: &contract.StepHandoff{StepID: "bread", StepGoal: "bake"}})
	if err != nil {
		k.t.Fatal(err)
	}
	return answer
}

func (k *kitchen) wantRan(a, b, c int) {
	k.t.Helper()
	if got := [3]int{int(k.ran[0].Load()), int(k.ran[1].Load()), int(k.ran[2].Load())}; got != [3]int{a, b, c} {
		k.t.Errorf("phases ran %v times, want %v", got, [3]int{a, b, c})
	}
}

func has(findings []finding.Finding, code string) bool {
	return slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Code == code })
}

// Another skill uses the engine through the Phase interface alone; a passed phase is not run again.
func TestAnotherSkillWalksItsPhases(t *testing.T) {
	k := newKitchen(t)
	answer := k.bake()
	if answer.ExecutionResult.Status != contract.StatusSuccess || answer.ExecutionResult.Skill != "onescience-baker" || answer.ExecutionResult.Artifacts["bread"] == "" {
		t.Fatalf("%+v", answer.ExecutionResult)
	}
	k.wantRan(1, 1, 1)
	if again := k.bake(); again.Run.RunID != answer.Run.RunID || again.ExecutionResult.Status != contract.StatusSuccess {
		t.Errorf("again: %+v", again.Run)
	}
	k.wantRan(1, 1, 1)
	one, err := k.engine.RunPhase(context.Background(), Silent, k.skill, "b", contract.Call{RunID: answer.Run.RunID})
	if err != nil || one.Run.PhaseStatus["b"] != contract.StateSuccess {
		t.Errorf("a passed phase: %+v %v", one.Run, err)
	}
	k.wantRan(1, 1, 1)
}

// A gate that does not pass stops the walk there, and the same call goes on when it does.
func TestGateStopsTheWalk(t *testing.T) {
	k := newKitchen(t)
	k.write("shut", "")
	answer := k.bake()
	if answer.ExecutionResult.Status != contract.StatusBlocked || answer.Run.Phase != "b" || answer.Run.PhaseStatus["c"] != contract.StatePending {
		t.Fatalf("%+v", answer.Run)
	}
	if next := answer.Run.NextCall; next == nil || next.Tool != "tool_b" {
		t.Errorf("next call %+v", next)
	}
	skipped, err := k.engine.RunPhase(context.Background(), Silent, k.skill, "c", contract.Call{RunID: answer.Run.RunID})
	if err != nil {
		t.Fatal(err)
	}
	if skipped.ExecutionResult.Status != contract.StatusBlocked || !has(skipped.Findings, "phase_skipped") || skipped.Run.NextCall.Tool != "tool_b" {
		t.Errorf("a skipped phase: %+v", skipped)
	}
	if err := os.Remove(filepath.Join(k.dir, "shut")); err != nil {
		t.Fatal(err)
	}
	if done := k.bake(); done.ExecutionResult.Status != contract.StatusSuccess {
		t.Errorf("%+v", done.ExecutionResult)
	}
	k.wantRan(1, 2, 1)
}

// A changed input makes the phases after it pending, and only they run again.
func TestChangedInputMakesLaterPhasesStale(t *testing.T) {
	k := newKitchen(t)
	first := k.bake()
	k.write("in.txt", "rye")
	status, err := k.engine.RunStatus(context.Background(), first.Run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	for _, phase := range []string{"a", "b", "c"} {
		if status.Run.PhaseStatus[phase] != contract.StatePending {
			t.Errorf("%s is %s after its input changed", phase, status.Run.PhaseStatus[phase])
		}
	}
	if !has(status.Findings, "phase_stale") {
		t.Errorf("findings %+v", status.Findings)
	}
	if done := k.bake(); done.ExecutionResult.Status != contract.StatusSuccess {
		t.Errorf("%+v", done.ExecutionResult)
	}
	k.wantRan(2, 2, 2)
}

// A Markdown artifact that was edited by hand stays as it is; the new rendering is offered beside it.
func TestHandEditedMarkdownIsKept(t *testing.T) {
	k := newKitchen(t)
	first := k.bake()
	dir := filepath.Join(k.dir, ".onescience/trainer", first.Run.RunID)
	if err := os.WriteFile(filepath.Join(dir, "b.md"), []byte("my words\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	k.write("in.txt", "rye")
	answer := k.bake()
	if !has(answer.Findings, "artifact_edited_by_hand") {
		t.Errorf("findings %+v", answer.Findings)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "b.md")); string(got) != "my words\n" {
		t.Errorf("the edit was overwritten: %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "b.new.md")); err != nil {
		t.Errorf("the new rendering is not offered: %v", err)
	}
}

// The manifest is a projection: gone or garbled, it is made again from the records.
func TestManifestIsAProjection(t *testing.T) {
	k := newKitchen(t)
	first := k.bake()
	path := filepath.Join(k.dir, ".onescience/trainer", first.Run.RunID, manifestFile)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"", "{", `{"run_id": "other"}`} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		k.bake()
		if after, _ := os.ReadFile(path); string(after) != string(before) {
			t.Errorf("after %q the manifest is\n%s", content, after)
		}
	}
}

// Two callers with the same handoff at once get one run, and both get the same end.
func TestTwoCallersAtOnce(t *testing.T) {
	k := newKitchen(t)
	var wait sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wait.Add(1)
		go func() {
			defer wait.Done()
			other := New(k.engine.Roots, time.Now, &Skill{Name: k.skill.Name, Walker: "bake", Last: k.skill.Last, Canonical: k.skill.Canonical, Artifacts: k.skill.Artifacts,
				Phases: []Phase{copier{"a", filepath.Join(k.dir, "in.txt"), "a.txt", new(atomic.Int32), nil}, copier{"b", "a.txt", "b.md", new(atomic.Int32), nil}, copier{"c", "b.md", "c.txt", new(atomic.Int32), nil}}})
			answer, err := other.Walk(context.Background(), Silent, other.Skills[k.skill.Name], contract.Call{Handoff: &contract.StepHandoff{StepID: "bread", StepGoal: "bake"}})
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
				return
			}
			if answer.ExecutionResult.Status != contract.StatusSuccess {
				t.Errorf("caller %d: %+v", i, answer.ExecutionResult)
			}
			ids[i] = answer.Run.RunID
		}()
	}
	wait.Wait()
	if len(slices.Compact(ids)) != 1 {
		t.Errorf("runs %v", ids)
	}
}

// The rules of where a run lives, first that applies.
func TestPlaceOfARun(t *testing.T) {
	cases := []struct {
		name             string
		runtime          contract.Runtime
		artifacts        []string
		goal             string
		workdir, codeDir string // relative to the workspace; ID stands for the run's id
		code             string // of a refusal or a note
	}{
		{name: "nothing named", workdir: ".onescience/trainer/ID", codeDir: ".onescience/trainer/ID/code"},
		{name: "trainer_workdir", runtime: contract.Runtime{TrainerWorkdir: "w", Workdir: "x"}, workdir: "w", codeDir: "w/code"},
		{name: "code_save_dir", runtime: contract.Runtime{CodeSaveDir: "c", Workdir: "x"}, workdir: "c/.trainer_work/ID", codeDir: "c"},
		{name: "workdir", runtime: contract.Runtime{Workdir: "x"}, workdir: "x", codeDir: "x/code"},
		{name: "relevant artifact", artifacts: []string{"data.csv", "trainer_workdir: runs/a"}, workdir: "runs/a", codeDir: "runs/a/code"},
		{name: "the user's words", goal: "Train it, workdir=runs/b.", workdir: "runs/b", codeDir: "runs/b/code"},
		{name: "contradiction", runtime: contract.Runtime{TrainerWorkdir: "w", CodeSaveDir: "c"}, workdir: "w", codeDir: "c", code: "workdir_contradiction"},
		{name: "outside", runtime: contract.Runtime{TrainerWorkdir: "../w"}, code: "path_outside_roots"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newKitchen(t)
			handoff := contract.StepHandoff{StepID: c.name, TaskContext: contract.TaskContext{RelevantArtifacts: c.artifacts, UserGoal: c.goal}, Inputs: contract.Inputs{Runtime: c.runtime}}
			got, err := k.engine.placeRun("ID", handoff)
			notes := (&Run{Workdir: got.workdir, CodeSaveDir: got.codeSaveDir, Handoff: handoff, Roots: k.engine.Roots}).Contradiction()
			var refused *finding.Refused
			if errors.As(err, &refused) {
				notes = refused.Findings
			} else if err != nil {
				t.Fatal(err)
			}
			if c.code != "" && !has(notes, c.code) {
				t.Errorf("findings %+v, want %s", notes, c.code)
			}
			root := k.engine.Roots.Workspace()
			if c.workdir != "" && (got.workdir != filepath.Join(root, c.workdir) || got.codeSaveDir != filepath.Join(root, c.codeDir)) {
				t.Errorf("trainer_workdir %s, code_save_dir %s", got.workdir, got.codeSaveDir)
			}
		})
	}
}

// What looks like a secret is masked before the handoff is kept.
func TestSecretsOfAHandoffAreNotKept(t *testing.T) {
	k := newKitchen(t)
	secret := "hf_" + "abcdefghijklmnopqrstuvwxyz123456"
	handoff := contract.StepHandoff{StepID: "bread", StepGoal: "bake with token " + secret}
	answer, err := k.engine.Walk(context.Background(), Silent, k.skill, contract.Call{Handoff: &handoff})
	if err != nil {
		t.Fatal(err)
	}
	if !has(answer.Findings, "secret_redacted") {
		t.Errorf("findings %+v", answer.Findings)
	}
	err = filepath.WalkDir(k.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && bytes.Contains(data, []byte(secret)) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
