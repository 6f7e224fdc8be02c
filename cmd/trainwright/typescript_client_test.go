//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/server"
	"github.com/trainwright/trainwright/tools"
)

// npmTools is the folder of what .ci/install took from npm.
func npmTools(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../.cache/npm/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("%v: run .ci/install, as make test does", err)
	}
	return dir
}

// script prepares one of testdata/clients to run: beside the packages that it imports.
func script(t *testing.T, name string, arguments ...string) *exec.Cmd {
	t.Helper()
	modules := npmTools(t)
	dir := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join("testdata/clients", name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(modules, ".bin")
	node, err := filepath.EvalSymlinks(filepath.Join(bin, "node"))
	if err != nil { // a system whose Node is new enough of itself
		node = "node"
	}
	command := exec.CommandContext(t.Context(), node, append([]string{path}, arguments...)...)
	command.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return command
}

// seen is what typescript.mjs tells of its visit.
type seen struct {
	Server                                  struct{ Name string }
	Version, Instructions                   string
	Tools, Resources, Templates             []string
	Together                                [][]string
	Calls, Errors                           []string
	Progress                                []float64
	WrongProgress, After                    int
	Status, Run, Report                     string
	Cancelled, UnknownTool, UnknownResource string
	Refused                                 struct {
		IsError bool
		Codes   []string
	}
}

// Clients on both lines of the official TypeScript SDK complete the example's training, over both transports and in both
// eras of the protocol, and every answer fits its schema.
func TestTypeScriptClients(t *testing.T) {
	binary, err := faulty()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, sdk, mode, transport, version string }{
		{"first line over stdio", "v1", "", "stdio", ""},
		{"first line over HTTP", "v1", "", "http", "2025-11-25"},
		{"second line over stdio", "v2", "auto", "stdio", "2026-07-28"},
		{"second line over HTTP", "v2", "auto", "http", "2026-07-28"},
		{"second line with a session", "v2", "legacy", "http", "2025-11-25"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // most of the time they wait for a training
			workspace, handoff := exampleWorkspace(t, 1)
			fewRows(t, workspace)
			given := map[string]any{"sdk": c.sdk, "mode": c.mode, "handoff": handoff}
			if c.transport == "stdio" {
				given["command"], given["args"] = binary, []string{"serve", "--workspace", workspace}
			} else {
				given["url"], _ = serveHTTP(t, nil, "--workspace", workspace)
			}
			encoded, err := json.Marshal(given)
			if err != nil {
				t.Fatal(err)
			}
			command := script(t, "typescript.mjs", string(encoded))
			var stderr bytes.Buffer
			command.Stderr = &stderr
			out, err := command.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			var s seen
			if err := json.Unmarshal(out, &s); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			s.check(t, c.version)
		})
	}
}

func (s seen) check(t *testing.T, version string) {
	t.Helper()
	if s.Server.Name != "trainwright" || s.Version != version || s.Instructions != server.Instructions {
		t.Errorf("server %+v, protocol %q, instructions %.40q", s.Server, s.Version, s.Instructions)
	}
	if len(s.Tools) != len(tools.All(tools.Deps{})) || s.Tools[0] != "trainer" {
		t.Errorf("tools %v", s.Tools)
	}
	if !slices.Contains(s.Resources, "skill://onescience-trainer/SKILL.md") || !slices.ContainsFunc(s.Templates, func(uri string) bool { return strings.HasPrefix(uri, "run://") }) {
		t.Errorf("resources %v, templates %v", s.Resources, s.Templates)
	}
	if len(s.Together) != 2 || !slices.Contains(s.Together[0], "runs") || !slices.Contains(s.Together[1], "skills") {
		t.Errorf("answers of two calls at once have %v", s.Together)
	}
	if s.Status != contract.StatusSuccess || s.Calls[0] != "trainer" || s.After != 1 {
		t.Errorf("%s after %v, %d runs", s.Status, s.Calls, s.After)
	}
	if len(s.Progress) == 0 || s.WrongProgress != 0 {
		t.Errorf("progress %v, %d after the answer", s.Progress, s.WrongProgress)
	}
	if !strings.Contains(s.Report, "test/accuracy") {
		t.Errorf("report %.200q", s.Report)
	}
	if !strings.Contains(s.UnknownTool, "no_such_tool") || !strings.Contains(s.UnknownResource, "r-none") || !s.Refused.IsError || !slices.Equal(s.Refused.Codes, []string{"run_id_malformed"}) {
		t.Errorf("unknown tool %q, resource %q, run %+v", s.UnknownTool, s.UnknownResource, s.Refused)
	}
	if !strings.Contains(s.Cancelled, "changed my mind") || len(s.Errors) != 0 {
		t.Errorf("cancelled %q, errors %v", s.Cancelled, s.Errors)
	}
}
