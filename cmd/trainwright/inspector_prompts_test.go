//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// The Inspector lists the prompts and gets one with its blank filled in.
func TestInspectorGetsAPrompt(t *testing.T) {
	dir := t.TempDir()
	var listed struct{ Prompts []struct{ Name string } }
	out := inspector(t, dir, "--method", "prompts/list")
	if err := json.Unmarshal(out, &listed); err != nil || len(listed.Prompts) != 3 || listed.Prompts[0].Name != "train" {
		t.Errorf("%v in %s", err, out)
	}
	out = inspector(t, dir, "--method", "prompts/get", "--prompt-name", "train", "--prompt-args", "goal=tell the species apart")
	if !strings.Contains(string(out), `tell the species apart`) || !strings.Contains(string(out), `step_goal`) {
		t.Errorf("%s", out)
	}
}
