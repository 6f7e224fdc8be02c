//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainwright/trainwright/internal/policy"
	"github.com/trainwright/trainwright/internal/rundir"
)

// serveIn starts a server over a workspace with further flags.
func serveIn(t *testing.T, workspace string, flags ...string) *served {
	t.Helper()
	return started(t, trainwright(nil, append([]string{"serve", "--workspace", workspace}, flags...)...))
}

const helloLine = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"claude-code","version":"1"}}}`

func names(list any) string {
	var out []string
	all, _ := list.([]any)
	for _, one := range all {
		entry, _ := one.(map[string]any)
		out = append(out, fmt.Sprint(entry["name"]))
	}
	return strings.Join(out, " ")
}

// A read-only server lists the tools that change nothing, serves no other, and leaves no trace in the workspace.
func TestServeReadOnly(t *testing.T) {
	workspace := t.TempDir()
	s := serveIn(t, workspace, "--read-only")
	s.ask(t, helloLine)
	tools := s.ask(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)["tools"].([]any)
	for _, tool := range tools {
		entry := tool.(map[string]any)
		if hints := entry["annotations"].(map[string]any); hints["readOnlyHint"] != true {
			t.Errorf("%v is listed: %v", entry["name"], hints)
		}
	}
	if len(tools) < 8 {
		t.Errorf("only %s", names(any(tools)))
	}
	if got := names(s.ask(t, `{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`)["prompts"]); got != "debug_failed_run" {
		t.Errorf("prompts %s", got)
	}
	refused, _ := s.exchange(t, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"trainer","arguments":{"request":"train"}}}`)["error"].(map[string]any)
	if text := fmt.Sprint(refused["message"]); refused["code"] != -32602.0 || !strings.Contains(text, "--read-only") {
		t.Errorf("%v", refused)
	}
	s.ask(t, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"run_list","arguments":{}}}`)
	if left, err := os.ReadDir(workspace); err != nil || len(left) > 0 {
		t.Errorf("the workspace holds %v, %v", left, err)
	}
}

// Toolsets narrow what is listed and what can be called; a set that there is not is a mistake on the command line.
func TestServeToolsets(t *testing.T) {
	s := serveIn(t, t.TempDir(), "--toolsets", "skills,workspace")
	s.ask(t, helloLine)
	if got := names(s.ask(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)["tools"]); !strings.Contains(got, "skill_list") || strings.Contains(got, "trainer") || strings.Contains(got, "job_") {
		t.Errorf("tools %s", got)
	}
	refused, _ := s.exchange(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"job_list","arguments":{}}}`)["error"].(map[string]any)
	if !strings.Contains(fmt.Sprint(refused["message"]), "--toolsets skills,workspace, and it belongs to runtime") {
		t.Errorf("%v", refused)
	}
	cmd := trainwright(nil, "serve", "--toolsets", "skill")
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != exitUnusable || !strings.Contains(string(out), `did you mean "skills"`) {
		t.Errorf("%d %s", cmd.ProcessState.ExitCode(), out)
	}
}

// A launch that needs the user's word asks for it over the wire: the yes is kept beside the policy as an approval at the
// terminal is, the job's events say who gave it and how, and the command runs once.
func TestTheUserAllowsALaunchOverTheWire(t *testing.T) {
	workspace := t.TempDir()
	supervisorsGone(t, workspace)
	pip := filepath.Join(workspace, "pip")
	if err := os.WriteFile(pip, []byte("#!/bin/sh\necho installed >> installed\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("allow: {package_install: ask}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveIn(t, workspace, "--policy", file)
	s.ask(t, helloLine)
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"runtime","arguments":{"launch":{"command":[%q,"install","x"]},"wait_seconds":60}}}`, pip)
	answerTo := func(question map[string]any, result string) string {
		if question["method"] != "elicitation/create" {
			t.Fatalf("%v", question)
		}
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":%s}`, question["id"], result)
	}
	question := s.exchange(t, call)
	if text := fmt.Sprint(question["params"]); !strings.Contains(text, "package_install") || !strings.Contains(text, pip+" install x") {
		t.Errorf("the question: %s", text)
	}
	no := fmt.Sprint(s.exchange(t, answerTo(question, `{"action":"decline"}`)))
	if !strings.Contains(no, "status:blocked") || !strings.Contains(no, "the user was asked and declined") || !strings.Contains(no, "trainwright approve j-") {
		t.Errorf("after a no: %s", no)
	}
	if _, err := os.Stat(policy.GrantsPath(file)); err == nil {
		t.Error("a no left a grant")
	}
	yes := fmt.Sprint(s.exchange(t, answerTo(s.exchange(t, call), `{"action":"accept","content":{"allow":true}}`)))
	if !strings.Contains(yes, "status:success") {
		t.Errorf("after a yes: %s", yes)
	}
	if again := fmt.Sprint(s.exchange(t, call)); !strings.Contains(again, "status:success") {
		t.Errorf("again: %s", again)
	}
	if text, err := os.ReadFile(filepath.Join(workspace, "installed")); err != nil || string(text) != "installed\n" {
		t.Errorf("%q %v", text, err)
	}
	var grants []policy.Grant
	if err := rundir.ReadJSON(policy.GrantsPath(file), &grants); err != nil || len(grants) != 1 {
		t.Fatal(grants, err)
	}
	g := grants[0]
	if g.What != policy.PackageInstall || g.By != "user via claude-code" || !strings.HasPrefix(g.RunID, "j-") || g.Command != pip+" install x" {
		t.Errorf("%+v", g)
	}
	events, _, err := rundir.Dir{Path: filepath.Join(workspace, ".onescience", "jobs", g.RunID)}.Events()
	if err != nil || len(events) == 0 || events[0].Event != "approved" || events[0].By != g.By || events[0].Detail["how"] != "elicitation" {
		t.Errorf("%+v %v", events, err)
	}
}
