package tools

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainwright/trainwright/internal/checkpoint"
	"github.com/trainwright/trainwright/internal/finding"
)

func hasCode(found []finding.Finding, code string) bool {
	return slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Code == code })
}

func TestInspectCheckpoint(t *testing.T) {
	dir, all := workspaceTools(t)
	if err := os.CopyFS(filepath.Join(dir, "ckpt"), os.DirFS("../internal/checkpoint/testdata/torch")); err != nil {
		t.Fatal(err)
	}
	type out = InspectCheckpointOutput
	got, err := call[out](t, all, "inspect_checkpoint", `{"path": "ckpt/full.pt", "full": "true"}`)
	if err != nil || len(got.Checkpoints) != 1 || finding.Has(got.Findings, finding.Error) {
		t.Fatalf("%+v %v", got, err)
	}
	c := got.Checkpoints[0]
	if c.Path != "ckpt/full.pt" || c.Complete != checkpoint.Complete || c.SHA256 == "" || c.Step == nil || *c.Step != 300 || c.TensorCount != len(c.Tensors) || c.Parameters == 0 ||
		!slices.Equal(c.Holds, []string{"model", "optimizer", "scheduler", "epoch", "step", "rng"}) {
		t.Errorf("%+v", c)
	}
	got, err = call[out](t, all, "inspect_checkpoint", `{"path": "ckpt/cut.pt"}`)
	if err != nil || got.Checkpoints[0].Complete != checkpoint.Truncated || !hasCode(got.Findings, "checkpoint_truncated") || got.Checkpoints[0].TensorCount != c.TensorCount {
		t.Errorf("%+v %v", got, err)
	}
	got, err = call[out](t, all, "inspect_checkpoint", `{"path": "ckpt/evil.pt"}`)
	if err != nil || !hasCode(got.Findings, "checkpoint_runs_code") {
		t.Errorf("%+v %v", got, err)
	}
	got, err = call[out](t, all, "inspect_checkpoint", `{"path": "ckpt"}`)
	if err != nil || len(got.Checkpoints) < 9 || got.Checkpoints[0].Path != "ckpt/sgd-epoch17.pt" || got.Checkpoints[0].Tensors != nil {
		t.Errorf("%d checkpoints, %v", len(got.Checkpoints), err)
	}
	for arguments, code := range map[string]string{`{}`: "missing_argument", `{"path": "none.pt"}`: "checkpoint_missing", `{"path": "../x.pt"}`: "path_outside_roots"} {
		if _, err := call[out](t, all, "inspect_checkpoint", arguments); !refusedWith(err, code) {
			t.Errorf("%s: %v", arguments, err)
		}
	}
}

// The structure of a file too large to read whole is told, and that its bytes were not read.
func TestInspectCheckpointTooLargeForFull(t *testing.T) {
	dir, all := workspaceTools(t)
	path := filepath.Join(dir, "big.safetensors")
	header := `{"w":{"dtype":"U8","shape":[5368709120],"data_offsets":[0,5368709120]}}`
	if err := os.WriteFile(path, append([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}, header...), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 8+int64(len(header))+5368709120); err != nil {
		t.Fatal(err)
	}
	got, err := call[InspectCheckpointOutput](t, all, "inspect_checkpoint", `{"path": "big.safetensors", "full": true}`)
	if err != nil || got.Checkpoints[0].Complete != checkpoint.Complete || got.Checkpoints[0].SHA256 != "" || !hasCode(got.Findings, "checkpoint_too_large_to_hash") {
		t.Errorf("%+v %v", got, err)
	}
}
