//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/tools"
)

// inspector runs the MCP Inspector's command line against the server, with the Node that .ci/install put beside it.
func inspector(t *testing.T, workspace string, arguments ...string) []byte {
	t.Helper()
	binary, err := faulty()
	if err != nil {
		t.Fatal(err)
	}
	bin, err := filepath.Abs("../../.cache/npm/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(bin, "mcp-inspector")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: run .ci/install, as make test does", err)
	}
	config := filepath.Join(t.TempDir(), "mcp.json")
	servers := map[string]any{"mcpServers": map[string]any{"trainwright": map[string]any{"type": "stdio", "command": binary, "args": []string{"serve", "--workspace", workspace}}}}
	data, err := json.Marshal(servers)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, data, 0o644); err != nil {
		t.Fatal(err)
	}
	out, stderr, err := inspected(program, bin, config, arguments)
	for tries := 0; err != nil && tries < 3 && strings.Contains(out+stderr, "Request timed out"); tries++ {
		// It waits for a minute at most, and a stalled machine takes longer: the same call goes on where that one was.
		out, stderr, err = inspected(program, bin, config, arguments)
	}
	if err != nil {
		t.Fatalf("mcp-inspector %s: %v\n%s%s", strings.Join(arguments, " "), err, out, stderr)
	}
	return []byte(out)
}

func inspected(program, bin, config string, arguments []string) (out, said string, err error) {
	command := exec.Command(program, append([]string{"--cli", "--config", config, "--server", "trainwright"}, arguments...)...)
	command.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	var stderr bytes.Buffer
	command.Stderr = &stderr
	printed, err := command.Output()
	return string(printed), stderr.String(), err
}

// The Inspector finds every schema portable.
func TestInspectorListsTheToolsStrictly(t *testing.T) {
	dir, _ := exampleWorkspace(t, 1)
	var listed struct {
		Tools []struct{ Name string }
	}
	out := inspector(t, dir, "--method", "tools/list", "--strict")
	if err := json.Unmarshal(out, &listed); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if len(listed.Tools) != len(tools.All(tools.Deps{})) || listed.Tools[0].Name != "trainer" {
		t.Errorf("%d tools, the first %+v", len(listed.Tools), listed.Tools[0])
	}
}

// The Inspector runs the example from handoff to success.
func TestInspectorRunsTheExample(t *testing.T) {
	dir, handoff := exampleWorkspace(t, 1)
	encoded, err := json.Marshal(handoff)
	if err != nil {
		t.Fatal(err)
	}
	out := inspector(t, dir, "--method", "tools/call", "--tool-name", "trainer", "--tool-arg", "step_handoff="+string(encoded), "--tool-arg", "wait_seconds=30")
	var result struct {
		StructuredContent struct {
			Result contract.ExecutionResult `json:"execution_result"`
		}
	}
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if result.StructuredContent.Result.Status != contract.StatusSuccess {
		t.Errorf("the step ends in %q\n%s", result.StructuredContent.Result.Status, out)
	}
}
