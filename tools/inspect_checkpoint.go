package tools

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainwright/trainwright/internal/checkpoint"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// InspectCheckpointInput asks what a checkpoint holds.
type InspectCheckpointInput struct {
	Path string `json:"path" jsonschema:"required" jsonschema_description:"A checkpoint file, or a folder of them."`
	Full bool   `json:"full,omitempty" jsonschema_description:"Also hash it, verify its checksums and list up to 1000 tensors; reads the whole file."`
}

// InspectCheckpointOutput is one entry for the file, or one for each in the folder, the newest epoch first.
type InspectCheckpointOutput struct {
	Checkpoints []checkpoint.Info `json:"checkpoints"`
	Findings    []finding.Finding `json:"findings"`
}

// Bounds of one call: an answer comes within some 20 s, so that a file larger than fullLimit is never read whole, and
// without full none beyond headerLimit; tensors are counted beyond those that are listed.
const (
	headerLimit = 16 << 20
	fullLimit   = 4 << 30
	fewTensors  = 30
	mostTensors = 1000
)

// inspectCheckpoint is the tool inspect_checkpoint.
func inspectCheckpoint(deps Deps) Tool {
	return typedTool("inspect_checkpoint",
		"Tells what a checkpoint holds without loading it: whether it is whole, epoch and step, parts (model, optimizer, rng), tensors with shapes, parameters. "+
			"PyTorch zip, safetensors, JSON; whole or cut.",
		Annotations{ReadOnly: true, Idempotent: true},
		func(ctx context.Context, _ engine.Caller, in InspectCheckpointInput) (InspectCheckpointOutput, error) {
			out := InspectCheckpointOutput{Checkpoints: []checkpoint.Info{}, Findings: []finding.Finding{}}
			if in.Path == "" {
				return out, missing("path", "a path relative to the workspace", "name the checkpoint or its folder")
			}
			e, err := deps.engine()
			if err != nil {
				return out, err
			}
			return inspectAt(ctx, e.Roots, in)
		},
		more[InspectCheckpointOutput]{toolset: SetWorkspace, rest: "name one file instead of the folder, or leave full out", text: checkpointText})
}

// inspectAt reads the file or the folder at a path within the roots.
func inspectAt(ctx context.Context, roots *rundir.Roots, in InspectCheckpointInput) (InspectCheckpointOutput, error) {
	out := InspectCheckpointOutput{Checkpoints: []checkpoint.Info{}, Findings: []finding.Finding{}}
	path, err := roots.Readable(in.Path)
	if err != nil {
		return out, err
	}
	info, err := os.Stat(path)
	options := checkpoint.Options{HashLimit: headerLimit, Tensors: fewTensors}
	if in.Full {
		options = checkpoint.Options{HashLimit: fullLimit, Tensors: mostTensors, Checksums: err == nil && info.Size() <= fullLimit}
	}
	var found []finding.Finding
	if err == nil && info.IsDir() {
		options.Checksums, options.Tensors = false, 0
		out.Checkpoints, found, err = checkpoint.ReadAll(ctx, path, options)
	} else {
		var one checkpoint.Info
		one, found, err = checkpoint.Read(ctx, path, options)
		out.Checkpoints = append(out.Checkpoints, one)
	}
	if err != nil {
		return out, err
	}
	for i := range out.Checkpoints {
		out.Checkpoints[i].Path = roots.Rel(out.Checkpoints[i].Path)
	}
	for i := range found {
		if found[i].Where != nil {
			found[i].Where.Path = roots.Rel(found[i].Where.Path)
		}
		if code := found[i].Code; code == "checkpoint_missing" || code == "checkpoint_not_a_file" {
			found[i].Where.Path, found[i].Where.Field = in.Path, "path"
			return out, finding.Refuse(found[i])
		}
	}
	if in.Full && info != nil && !info.IsDir() && info.Size() > fullLimit {
		found = append(found, finding.Finding{Code: "checkpoint_too_large_to_hash", Severity: finding.Note, Where: &finding.Where{Path: roots.Rel(path)},
			What: fmt.Sprintf("the file has %d bytes: its structure was read, its bytes were not", info.Size()), Expected: fmt.Sprintf("at most %d bytes for full", int64(fullLimit)),
			Remedy: "run sha256sum on it as a job and compare with its marker"})
	}
	out.Findings = append(out.Findings, found...)
	return out, nil
}

// checkpointText is one line for each checkpoint.
func checkpointText(o InspectCheckpointOutput) string {
	lines := make([]string, 0, len(o.Checkpoints))
	for _, c := range o.Checkpoints {
		line := fmt.Sprintf("%s: %s, %s, %d bytes", filepath.Base(c.Path), c.Format, c.Complete, c.Bytes)
		if c.Epoch != nil {
			line += fmt.Sprintf(", epoch %g", *c.Epoch)
		}
		if c.Step != nil {
			line += fmt.Sprintf(", step %d", *c.Step)
		}
		if len(c.Holds) > 0 {
			line += ", holds " + strings.Join(c.Holds, " ")
		}
		if c.TensorCount > 0 {
			line += fmt.Sprintf(", %d parameters, %d tensors", c.Parameters, c.TensorCount)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return "no checkpoint there"
	}
	return strings.Join(lines, "\n")
}
