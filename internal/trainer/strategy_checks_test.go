package trainer

import (
	"slices"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/finding"
)

func TestStrategyChecks(t *testing.T) {
	rows := func(n int64) *int64 { return &n }
	manifest := contract.DataManifest{Files: []contract.DataFile{{Part: "train", Rows: rows(100)}, {Part: "val", Rows: rows(3)}}, Schema: contract.DataSchema{Target: contract.TargetColumn{Name: "temp", Type: "number"}}}
	type values map[string]any
	for name, c := range map[string]struct {
		plan        values
		accelerator string
		want        []string
	}{
		"sound":                             {values{"epochs": 20, "batch.micro": 10, "optimizer.lr": 0.01, "scheduler.warmup_steps": 50, "loss": "mse", "checkpoint.best.metric": "val/loss", "checkpoint.best.mode": "min"}, "", nil},
		"nothing known":                     {values{}, "", nil},
		"a rate of zero":                    {values{"optimizer.lr": 0.0}, "", []string{"strategy_value"}},
		"a lost decimal point":              {values{"optimizer.lr": 30.0}, "", []string{"learning_rate_large"}},
		"keep none":                         {values{"checkpoint.keep": 0}, "", []string{"strategy_value"}},
		"accumulation beyond the data":      {values{"batch.micro": 32, "batch.accumulation": 4}, "", []string{"batch_larger_than_data"}},
		"more ranks than validation rows":   {values{"batch.micro": 4, "batch.world_size": 8, "distributed": "ddp"}, "", []string{"evaluation_smaller_than_ranks"}},
		"eight single processes":            {values{"batch.world_size": 2, "distributed": "single"}, "", []string{"distributed_contradicts_world_size"}},
		"a warm-up that never ends":         {values{"epochs": 2, "batch.micro": 10, "scheduler.warmup_steps": 22}, "", []string{"warmup_exceeds_training"}},
		"a warm-up that just ends":          {values{"epochs": 2, "batch.micro": 10, "scheduler.warmup_steps": 21}, "", nil},
		"no checkpoint on the way":          {values{"epochs": 3, "checkpoint.every_epochs": 5}, "", []string{"cadence_exceeds_training"}},
		"the largest loss":                  {values{"checkpoint.best.metric": "val/loss", "checkpoint.best.mode": "max"}, "", []string{"best_metric_direction"}},
		"the smallest accuracy":             {values{"checkpoint.best.metric": "val_acc", "checkpoint.best.mode": "min"}, "", []string{"best_metric_direction"}},
		"a metric of no known direction":    {values{"checkpoint.best.metric": "val/zeal"}, "", []string{"best_metric_direction_unknown"}},
		"chosen by the test":                {values{"checkpoint.best.metric": "test/accuracy"}, "", []string{"best_metric_of_test"}},
		"half precision on a CPU":           {values{"precision": "bf16"}, "cpu", []string{"precision_without_hardware"}},
		"half precision, nobody says where": {values{"precision": "bf16"}, "", nil},
		"classes of decimals":               {values{"loss": "CrossEntropyLoss"}, "", []string{"loss_does_not_fit_target"}},
	} {
		plan := Plan{Leaves: map[string]Leaf{}}
		for path, value := range c.plan {
			plan.Leaves[path] = Leaf{Value: value}
		}
		var handoff contract.StepHandoff
		if c.accelerator != "" {
			handoff.Inputs.Runtime.EnvironmentRequirements = map[string]any{"accelerator": c.accelerator}
		}
		var got []string
		for _, f := range checkStrategy(plan, manifest, handoff) {
			if got = append(got, f.Code); f.Remedy == "" || f.Expected == "" {
				t.Errorf("%s: %+v does not help", name, f)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// What is proposed suits the optimizer, and the project's own value is not replaced without a word.
func TestProposalsSuitTheOptimizer(t *testing.T) {
	for name, want := range map[string]any{"sgd": 0.01, "Adam": 1e-3, "adamw": 3e-4, "lion": nil} {
		s := &settler{leaves: map[string]Leaf{"optimizer.name": {Value: name}}}
		if got, _ := s.proposal(leafSpec{"optimizer.lr", "training.extra.learning_rate", 3e-4, "x"}); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	f := newFixture(t)
	f.handoff.Inputs.Runtime.ExecutionIntent = contract.IntentPlanOnly
	begun := f.walk()
	answer := f.phase(3, begun.Run.RunID, map[string]any{"strategy": map[string]any{"optimizer": map[string]any{"weight_decay": 0.5}}})
	if found := wantCode(t, answer.Findings, "replaces_fact"); found.Severity != finding.Note || found.Where.Field != "strategy.optimizer.weight_decay" {
		t.Errorf("%+v", found)
	}
}
