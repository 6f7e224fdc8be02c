package tools

import (
	"bytes"
	"encoding/json"
	"image/png"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainwright/trainwright/internal/engine"
)

// The curve is drawn from what the job has logged so far, a half-written row included; before that the answer says that
// there is none. Without plot no picture is sent.
func TestRunStatusShowsTheCurve(t *testing.T) {
	dir, all := workspaceTools(t)
	began, err := call[engine.Envelope](t, all, "trainer", `{"request": "train train.py on data/wdbc.csv, plan only"}`)
	if err != nil {
		t.Fatal(err)
	}
	tool, _ := Find(all, "run_status")
	ask := func(arguments map[string]any) (Result, engine.Envelope) {
		t.Helper()
		arguments["run_id"] = began.Run.RunID
		encoded, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		result, err := tool.Call(t.Context(), engine.Silent, encoded)
		if err != nil {
			t.Fatal(err)
		}
		structured, err := json.Marshal(result.Structured)
		if err != nil {
			t.Fatal(err)
		}
		conforms(t, tool, structured)
		var envelope engine.Envelope
		if err := json.Unmarshal(structured, &envelope); err != nil || envelope.Run.RunID != began.Run.RunID {
			t.Fatalf("%s: %v", structured, err)
		}
		return result, envelope
	}
	if result, answer := ask(map[string]any{"plot": true}); len(result.Images) != 0 || !slices.Contains(codesOf(answer.Findings), "no_curve_yet") {
		t.Errorf("before the job: %d images, findings %v", len(result.Images), codesOf(answer.Findings))
	}
	work, err := filepath.Rel(dir, began.ExecutionResult.Artifacts["trainer_workdir"])
	if err != nil {
		t.Fatal(err)
	}
	layFiles(t, dir, map[string]string{work + "/code/outputs/metrics.jsonl": lossFile(3, 0.1) + `{"step": 40, "epoch": 4, "split": "tr`})
	result, answer := ask(map[string]any{"plot": "true"})
	if len(result.Images) != 1 || result.Images[0].MIME != "image/png" || slices.Contains(codesOf(answer.Findings), "no_curve_yet") {
		t.Fatalf("%d images, findings %v", len(result.Images), codesOf(answer.Findings))
	}
	if picture, err := png.Decode(bytes.NewReader(result.Images[0].Data)); err != nil || picture.Bounds().Dx() != 900 {
		t.Errorf("the picture: %v", err)
	}
	if result, _ := ask(map[string]any{}); len(result.Images) != 0 {
		t.Error("a picture that nobody asked for")
	}
}
