package trainer

import (
	"fmt"
	"strings"

	"github.com/trainwright/trainwright/internal/checkpoint"
	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/rundir"
)

// estimates are what the plan lets expect, each with its arithmetic; what is not known says so and where it will be found out.
func estimates(plan Plan, manifest contract.DataManifest, h contract.StepHandoff, roots *rundir.Roots) []string {
	out := stepEstimates(plan, manifest)
	parameters, from := parametersOf(h, roots)
	out = append(out, weightEstimates(plan, parameters, from)...)
	var bytes int64
	for _, f := range manifest.Files {
		if f.Part != "" {
			bytes += f.Bytes
		}
	}
	if bytes > 0 {
		out = append(out, fmt.Sprintf("data: the parts hold %s on the disk; a script that loads them whole takes at least that of memory", size(bytes)))
	}
	if runs(h) {
		return append(out, "time, memory, size of a checkpoint: from the smoke run of phase 4 (smoke.json), before the job starts")
	}
	return append(out, "time: unknown, nothing is run")
}

// stepEstimates shows the arithmetic of steps where its numbers are known. An optimizer step takes micro-batch × accumulation ×
// processes samples; whether the script drops an incomplete last one is not known, so both counts are given.
func stepEstimates(plan Plan, manifest contract.DataManifest) []string {
	rows := trainRows(manifest)
	micro, okB := asFloat(plan.Leaves["batch.micro"].Value)
	epochs, okE := asFloat(plan.Leaves["epochs"].Value)
	if rows == 0 || !okB || !okE || micro < 1 {
		return []string{"steps: unknown (training rows, batch size or epochs are not all known)"}
	}
	batch, shown := int64(micro), fmt.Sprintf("%g", micro)
	for _, path := range []string{"batch.accumulation", "batch.world_size"} {
		if n, ok := asFloat(plan.Leaves[path].Value); ok && n > 1 {
			batch, shown = batch*int64(n), fmt.Sprintf("%s × %g", shown, n)
		}
	}
	if whole := rows / batch; whole*batch != rows {
		return []string{fmt.Sprintf("optimizer steps per epoch = %d rows / (%s) = %d, and one more where the incomplete last batch is kept", rows, shown, whole),
			fmt.Sprintf("optimizer steps in all = %d to %d over %g epochs", whole*int64(epochs), (whole+1)*int64(epochs), epochs)}
	}
	return []string{fmt.Sprintf("optimizer steps per epoch = %d rows / (%s) = %d", rows, shown, rows/batch),
		fmt.Sprintf("optimizer steps in all = %d × %g epochs = %d", rows/batch, epochs, rows/batch*int64(epochs))}
}

// parametersOf counts the model's parameters in the checkpoint that the handoff names; 0 where none names them.
func parametersOf(h contract.StepHandoff, roots *rundir.Roots) (n int64, from string) {
	named := h.Inputs.Checkpoint
	for _, path := range []string{named.ResumeCheckpoint, named.FinetuneCheckpoint, named.InitCheckpoint} {
		if path == "" {
			continue
		}
		abs, err := roots.Readable(path)
		if err != nil {
			continue // phase 0 tells
		}
		if info, _, err := checkpoint.Inspect(abs); err == nil && info.Parameters > 0 {
			return info.Parameters, path
		}
	}
	return 0, ""
}

// optimizerStates is how many numbers an optimizer keeps for each parameter: Adam its two moments, SGD with momentum one (the
// documentation of torch.optim); known is false for others.
func optimizerStates(plan Plan) (n int64, known bool) {
	name, _ := plan.Leaves["optimizer.name"].Value.(string)
	momentum, _ := asFloat(plan.Leaves["optimizer.momentum"].Value)
	switch name = strings.ToLower(name); {
	case strings.Contains(name, "adafactor"):
		return 0, false
	case strings.Contains(name, "adam"):
		return 2, true
	case name == "sgd" && momentum == 0:
		return 0, true
	case name == "sgd", name == "rmsprop", name == "adagrad", name == "lion":
		return 1, true
	}
	return 0, false
}

// weightEstimates are memory and disk of weights, gradients and optimizer. Mixed precision keeps its weights in fp32.
func weightEstimates(plan Plan, parameters int64, from string) []string {
	if parameters == 0 {
		return []string{"parameters: unknown (no checkpoint names them); memory and disk follow from the smoke run"}
	}
	each := int64(4)
	if precision, _ := plan.Leaves["precision"].Value.(string); strings.Contains(precision, "64") {
		each = 8
	}
	states, known := optimizerStates(plan)
	kept := "its state is not known and comes on top"
	if known {
		kept = fmt.Sprintf("%d for the optimizer's state", states*each)
	}
	out := []string{fmt.Sprintf("parameters = %d (%s)", parameters, from),
		fmt.Sprintf("memory for weights, gradients and optimizer ≥ %d × (%d + %d + %d) bytes = %s (%s; activations come on top)", parameters, each, each, states*each, size(parameters*(2+states)*each), kept)}
	keep, planned := asFloat(plan.Leaves["checkpoint.keep"].Value)
	if !planned || keep < 1 {
		return append(out, fmt.Sprintf("disk for each checkpoint with optimizer ≈ %d × (%d + %d) bytes = %s", parameters, each, states*each, size(parameters*(1+states)*each)))
	}
	return append(out, fmt.Sprintf("disk for checkpoints ≈ %g kept × %d × (%d + %d) bytes = %s", keep, parameters, each, states*each, size(int64(keep)*parameters*(1+states)*each)))
}

// size writes bytes in binary units.
func size(bytes int64) string {
	units, n := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}, float64(bytes)
	i := 0
	for ; n >= 1024 && i < len(units)-1; i++ {
		n /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%.1f %s", n, units[i])
}
