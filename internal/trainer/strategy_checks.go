package trainer

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/dataset"
	"github.com/trainwright/trainwright/internal/finding"
)

// strategyCheck is one way in which the values of a plan can contradict each other, the data or the machine.
type strategyCheck struct {
	plan     Plan
	manifest contract.DataManifest
	handoff  contract.StepHandoff
	found    []finding.Finding
}

func (c *strategyCheck) add(code string, severity finding.Severity, path, what, expected, remedy string) {
	c.found = append(c.found, finding.Finding{Code: code, Severity: severity, What: what, Where: &finding.Where{Field: "strategy." + path}, Expected: expected, Remedy: remedy})
}

// number is a leaf that is a number; ok is false where the plan leaves it open.
func (c *strategyCheck) number(path string) (n float64, ok bool) {
	return asFloat(c.plan.Leaves[path].Value)
}

func (c *strategyCheck) word(path string) string {
	word, _ := c.plan.Leaves[path].Value.(string)
	return strings.ToLower(word)
}

// checkStrategy holds the plan's values against each other, the data and the machine that the handoff names.
func checkStrategy(plan Plan, manifest contract.DataManifest, handoff contract.StepHandoff) []finding.Finding {
	c := &strategyCheck{plan: plan, manifest: manifest, handoff: handoff}
	c.positive()
	c.batches()
	c.schedule()
	c.cadences()
	c.best()
	c.precision()
	c.loss()
	c.tier()
	return c.found
}

func (c *strategyCheck) positive() {
	for _, path := range []string{"epochs", "batch.micro", "batch.accumulation", "batch.world_size", "optimizer.lr", "checkpoint.every_epochs", "checkpoint.keep", "evaluation.every_epochs"} {
		if n, ok := c.number(path); ok && n <= 0 {
			c.add("strategy_value", finding.Error, path, fmt.Sprintf("%s is %g", path, n), "a positive number", "correct it in the handoff or the strategy")
		}
	}
	if n, ok := c.number("optimizer.lr"); ok && n >= 10 {
		c.add("learning_rate_large", finding.Warning, "optimizer.lr", fmt.Sprintf("the learning rate is %g", n), "well below 1 for every usual optimizer", "check the decimal point")
	}
}

// rows are those of a part; 0 where they are not known.
func (c *strategyCheck) rows(part string) (rows int64) {
	for _, f := range c.manifest.Files {
		if f.Part == part && f.Rows != nil {
			rows += *f.Rows
		}
	}
	return rows
}

// effective is how many samples an optimizer step takes, with its arithmetic.
func (c *strategyCheck) effective() (n float64, shown string) {
	n, ok := c.number("batch.micro")
	if !ok {
		return 0, ""
	}
	shown = fmt.Sprintf("%g", n)
	for _, path := range []string{"batch.accumulation", "batch.world_size"} {
		if by, ok := c.number(path); ok && by > 1 {
			n, shown = n*by, fmt.Sprintf("%s × %g", shown, by)
		}
	}
	return n, shown
}

func (c *strategyCheck) batches() {
	rows := trainRows(c.manifest)
	if n, shown := c.effective(); rows > 0 && n > float64(rows) {
		c.add("batch_larger_than_data", finding.Warning, "batch.micro", fmt.Sprintf("an optimizer step takes %s = %g samples, the training part has %d", shown, n, rows), "at most the training part", "lower the batch size or the accumulation")
	}
	world, ok := c.number("batch.world_size")
	if held := c.rows("val"); ok && world > 1 && held > 0 && float64(held) < world {
		c.add("evaluation_smaller_than_ranks", finding.Warning, "batch.world_size", fmt.Sprintf("the validation part has %d rows for %g processes", held, world), "at least one batch for each process",
			"evaluate on one process, or use fewer")
	}
	if world > 1 && c.word("distributed") == "single" {
		c.add("distributed_contradicts_world_size", finding.Error, "distributed", fmt.Sprintf("distributed is single, world_size is %g", world), "one process, or a mode such as ddp", "correct one of the two")
	}
}

func (c *strategyCheck) schedule() {
	warmup, ok := c.number("scheduler.warmup_steps")
	epochs, okE := c.number("epochs")
	n, _ := c.effective()
	rows := trainRows(c.manifest)
	if !ok || !okE || warmup <= 0 || n <= 0 || rows == 0 {
		return
	}
	steps := (float64(rows)/n + 1) * epochs
	if total := float64(int64(steps)); warmup >= total {
		c.add("warmup_exceeds_training", finding.Error, "scheduler.warmup_steps", fmt.Sprintf("the warm-up takes %g steps, the training at most %g (%d rows / %g × %g epochs)", warmup, total, rows, n, epochs),
			"a warm-up that ends early in the training", "shorten it, or train longer")
	}
}

func (c *strategyCheck) cadences() {
	epochs, ok := c.number("epochs")
	if !ok || epochs < 3 { // a trial, of which nothing is to be kept
		return
	}
	for path, what := range map[string]string{"checkpoint.every_epochs": "checkpoint", "evaluation.every_epochs": "evaluation"} {
		if every, ok := c.number(path); ok && every > epochs {
			c.add("cadence_exceeds_training", finding.Warning, path, fmt.Sprintf("a %s every %g epochs in a training of %g comes at its end at best", what, every, epochs), fmt.Sprintf("at most %g", epochs),
				"lower it: a job that is ended early would leave nothing")
		}
	}
}

// smallerIsBetter and largerIsBetter know the direction of metrics by their names.
var (
	smallerIsBetter = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(loss|error|rmse|mse|mae|mape|perplexity|nll|crps|divergence|bias|fid)`)
	})
	largerIsBetter = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(acc|auc|auroc|auprc|f1|precision|recall|mcc|r2|score|iou|dice|bleu|rouge|correlation|skill|map$)`)
	})
)

func (c *strategyCheck) best() {
	metric, mode := c.word("checkpoint.best.metric"), c.word("checkpoint.best.mode")
	if metric == "" {
		return
	}
	smaller, larger := smallerIsBetter().MatchString(metric), largerIsBetter().MatchString(metric)
	switch {
	case mode == "" && smaller == larger:
		c.add("best_metric_direction_unknown", finding.Warning, "checkpoint.best.mode", fmt.Sprintf("nobody says whether a larger %s is better", metric), "min or max", `send strategy.checkpoint.best.mode`)
	case mode == "max" && smaller && !larger, mode == "min" && larger && !smaller:
		c.add("best_metric_direction", finding.Error, "checkpoint.best.mode", fmt.Sprintf("the best checkpoint would be the one with the %s %s", map[string]string{"max": "largest", "min": "smallest"}[mode], metric),
			"the other way round", "correct strategy.checkpoint.best.mode")
	}
	split, _, named := strings.Cut(metric, "/")
	if !named {
		split, _, named = strings.Cut(metric, "_")
	}
	if named && split == "test" {
		c.add("best_metric_of_test", finding.Error, "checkpoint.best.metric", fmt.Sprintf("the best checkpoint is chosen by %s: the test part would no longer be unseen", metric), "a metric of the validation part", "choose it by val")
	}
	if named && split == "val" && len(c.manifest.Files) > 0 && c.rows("train") > 0 && c.rows("val") == 0 {
		c.add("best_metric_without_part", finding.Warning, "checkpoint.best.metric", fmt.Sprintf("the best checkpoint is chosen by %s, and there is no validation part", metric), "a validation part", "split one off, or keep the last checkpoint")
	}
}

func (c *strategyCheck) precision() {
	accelerator, _ := c.handoff.Inputs.Runtime.EnvironmentRequirements["accelerator"].(string)
	half := strings.Contains(c.word("precision"), "16") || strings.Contains(c.word("precision"), "amp") || c.plan.Leaves["precision"].Value == true
	if half && (strings.EqualFold(accelerator, "cpu") || strings.EqualFold(accelerator, "none")) {
		c.add("precision_without_hardware", finding.Warning, "precision", fmt.Sprintf("precision %v on %s", c.plan.Leaves["precision"].Value, accelerator), "fp32, which a CPU computes faster", "set precision to fp32, or name the accelerator")
	}
}

func (c *strategyCheck) loss() {
	loss, target := c.word("loss"), c.manifest.Schema.Target
	classes := strings.Contains(loss, "cross_entropy") || strings.Contains(loss, "crossentropy") || strings.Contains(loss, "nll")
	numbers := strings.Contains(loss, "mse") || strings.Contains(loss, "l1") || strings.Contains(loss, "mae") || strings.Contains(loss, "huber")
	switch {
	case classes && target.Type == dataset.TypeNumber:
		c.add("loss_does_not_fit_target", finding.Warning, "loss", fmt.Sprintf("the loss %s is for classes, %s holds decimal numbers", loss, target.Name), "a loss for numbers, such as mse", "check target and loss")
	case numbers && target.Type == dataset.TypeString:
		c.add("loss_does_not_fit_target", finding.Warning, "loss", fmt.Sprintf("the loss %s is for numbers, %s holds words", loss, target.Name), "a loss for classes, such as cross_entropy", "check target and loss")
	}
}
