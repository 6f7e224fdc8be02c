package trainer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/evidence"
	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/project"
	"github.com/trainwright/trainwright/internal/rundir"
)

func leavesOf(values map[string]any) map[string]Leaf {
	out := map[string]Leaf{}
	for path, value := range values {
		out[path] = Leaf{Value: value, Status: evidence.Assumption}
	}
	return out
}

// A tier bounds epochs and wall time; the shorter limit holds.
func TestTiers(t *testing.T) {
	for name, c := range map[string]struct {
		tier   string
		values map[string]any
		want   []string
		budget int
		limit  int
	}{
		"smoke":                  {tierSmoke, map[string]any{"epochs": 3}, nil, 0, 300},
		"smoke, a short step":    {tierSmoke, map[string]any{"epochs": 1}, nil, 60, 60},
		"smoke of twenty epochs": {tierSmoke, map[string]any{"epochs": 20}, []string{"tier_exceeded"}, 0, 300},
		"quick":                  {tierQuick, map[string]any{"epochs": 200, "patience": 5}, nil, 7200, 3600},
		"quick without patience": {tierQuick, map[string]any{"epochs": 200}, []string{"tier_without_patience"}, 0, 3600},
		"full":                   {"", map[string]any{"epochs": 200}, nil, 7200, 7200},
	} {
		plan := Plan{Leaves: leavesOf(c.values), Tier: tierOf(c.tier)}
		var got []string
		for _, f := range checkStrategy(plan, contract.DataManifest{}, contract.StepHandoff{}) {
			got = append(got, f.Code)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if limit := tierLimit(plan.Tier, c.budget); limit != c.limit {
			t.Errorf("%s: limit %d", name, limit)
		}
	}
}

// A run of the tier smoke is validated and is no result: it says so, and its job is held to five minutes.
func TestSmokeTierIsNoResult(t *testing.T) {
	f := newFixture(t)
	two := 2
	f.handoff.Inputs.Parameters.EpochsOrSteps = &two
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	id := f.walk().Run.RunID
	planned := f.phase(3, id, map[string]any{"strategy": map[string]any{"tier": "smoke"}})
	wantStatus(t, planned, contract.StatusSuccess)
	if text := f.read(f.file(planned, planText)); !strings.Contains(text, "| smoke | 5 min | no weights |") || !strings.Contains(text, "ASSUMPTION: chosen by the agent") {
		t.Errorf("the plan says\n%s", text)
	}
	run := contract.StepHandoff{}
	run.Inputs.Runtime.ExecutionIntent = contract.IntentRunLocal
	answer, err := f.try(contract.Call{RunID: id, Handoff: &run, Section: map[string]any{"resolve": []any{map[string]any{"field": "inputs.runtime.execution_intent", "keep": "sent"}}}})
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, answer.Findings, "tier_is_a_trial")
	entries, unread := jobs.List([]string{f.file(answer, "jobs")})
	if unread != nil || len(entries) != 1 || entries[0].Request.WallTimeSeconds != 300 {
		t.Errorf("jobs %+v, %v", entries, unread)
	}
}

// Every estimate shows its arithmetic, and what is not known says so.
func TestPlanEstimates(t *testing.T) {
	dir := t.TempDir()
	roots, err := rundir.NewRoots(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Two tensors of 6 and 4 elements (https://huggingface.co/docs/safetensors, "Format").
	header := `{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"F32","shape":[4],"data_offsets":[24,40]}}`
	header += strings.Repeat(" ", (8-len(header)%8)%8)
	file := append([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}, header...)
	if err := os.WriteFile(filepath.Join(dir, "base.safetensors"), append(file, make([]byte, 40)...), 0o644); err != nil {
		t.Fatal(err)
	}
	rows := int64(100)
	manifest := contract.DataManifest{Files: []contract.DataFile{{Part: "train", Rows: &rows, Bytes: 3 << 20}}}
	var h contract.StepHandoff
	plan := Plan{Leaves: leavesOf(map[string]any{"batch.micro": 8, "epochs": 2, "optimizer.name": "AdamW", "checkpoint.keep": 3})}
	want := []string{
		"optimizer steps per epoch = 100 rows / (8) = 12, and one more where the incomplete last batch is kept", "optimizer steps in all = 24 to 26 over 2 epochs",
		"parameters: unknown (no checkpoint names them); memory and disk follow from the smoke run",
		"data: the parts hold 3.0 MiB on the disk; a script that loads them whole takes at least that of memory", "time: unknown, nothing is run",
	}
	if diff := cmp.Diff(want, estimates(plan, manifest, h, roots)); diff != "" {
		t.Error(diff)
	}
	h.Inputs.Checkpoint.FinetuneCheckpoint = "base.safetensors"
	want = append(want[:2:2], "parameters = 10 (base.safetensors)",
		"memory for weights, gradients and optimizer ≥ 10 × (4 + 4 + 8) bytes = 160 bytes (8 for the optimizer's state; activations come on top)",
		"disk for checkpoints ≈ 3 kept × 10 × (4 + 8) bytes = 360 bytes", want[3], want[4])
	if diff := cmp.Diff(want, estimates(plan, manifest, h, roots)); diff != "" {
		t.Error(diff)
	}
}

// The smoke run bounds the time of the whole.
func TestProjection(t *testing.T) {
	plan := Plan{Leaves: leavesOf(map[string]any{"batch.micro": 16, "epochs": 10})}
	smoke := Smoke{State: jobs.StateSucceeded, Rows: map[string]int{"train": 64}, Seconds: 2}
	seconds, arithmetic := projection(plan, 1000, smoke)
	if seconds != 2.0/4*63*10 || !strings.HasPrefix(arithmetic, "2.0 s / 4 steps of the smoke run × 63 steps × 10 epochs") {
		t.Errorf("%g: %s", seconds, arithmetic)
	}
	if seconds, _ := projection(plan, 0, smoke); seconds != 0 {
		t.Errorf("without known rows it projects %g", seconds)
	}
}

// The ten functions are found by name with their line, by the place of a fact, or said to be written.
func TestRunnerContract(t *testing.T) {
	script := project.Entrypoint{Path: "train.py", Functions: []string{"get_config", "make_model", "train_one_epoch"}, Definitions: []project.Definition{
		{Name: "get_config", Place: project.Place{Line: 4}}, {Name: "make_model", Place: project.Place{Line: 9}}, {Name: "train_one_epoch", Place: project.Place{Line: 20}}}}
	view := projectView{Root: "/p", Entry: "train.py", Entrypoints: []project.Entrypoint{script}}
	facts := []evidence.Fact{{Field: "training.optimizer", By: byServer, Why: "train.py:31", Quote: "torch.optim.SGD(model.parameters())"}}
	got := map[string]string{}
	for _, e := range runner(view, facts, contract.RunnerContract) {
		got[e.Function] = e.In
	}
	for name, want := range map[string]string{"load_config": "train.py:4 get_config", "build_model": "train.py:9 make_model", "run_training": "train.py:20 train_one_epoch",
		"build_optimizer": "train.py:31, not a function of its own", "build_scheduler": "train.py, not a function of its own"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for _, e := range runner(projectView{}, nil, contract.RunnerContract) {
		if !strings.HasPrefix(e.In, "MISSING: to be written: ") || len(e.In) < 30 || e.Status != evidence.Missing {
			t.Errorf("%+v", e)
		}
	}
}
