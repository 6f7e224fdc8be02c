//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// layFile writes a file and makes its folders.
func layFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// serveWith serves a workspace with a home of its own.
func serveWith(t *testing.T, workspace, home string, arguments ...string) *served {
	t.Helper()
	cmd := trainwright([]string{"HOME=" + home}, append([]string{"serve", "--workspace", workspace}, arguments...)...)
	cmd.Stderr = os.Stderr
	return started(t, cmd)
}

// Skills come from the workspace, from named folders, from the user's home and from the binary, in this order; a skill seen
// through a link is there once. The workspace is browsed by address.
func TestServeSkillsAndWorkspace(t *testing.T) {
	workspace, home, named, alone := t.TempDir(), t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "alone")
	put := func(folder, name, description string) {
		layFile(t, filepath.Join(folder, name, "SKILL.md"), "---\nname: "+name+"\ndescription: "+description+"\n---\n")
	}
	put(filepath.Join(workspace, ".agents/skills"), "a", "workspace")
	put(filepath.Join(workspace, ".claude/skills"), "onescience-trainer", "workspace")
	put(named, "a", "named")
	put(named, "b", "named")
	put(filepath.Join(home, ".claude/skills"), "b", "home")
	put(filepath.Join(home, ".agents/skills"), "c", "home")
	put(filepath.Dir(alone), "alone", "alone")
	for link, target := range map[string]string{filepath.Join(workspace, ".claude/skills/a"): "../../.agents/skills/a", filepath.Join(home, ".claude/skills/c"): filepath.Join(home, ".agents/skills/c")} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	layFile(t, filepath.Join(workspace, "config.yaml"), "lr: 0.1\n")
	layFile(t, filepath.Join(workspace, ".env"), "TOKEN=x\n")
	s := serveWith(t, workspace, home, "--skills", named, "--skills", alone)
	s.ask(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	encoded, err := json.Marshal(s.ask(t, `{"jsonrpc":"2.0","id":2,"method":"skills/list"}`))
	if err != nil {
		t.Fatal(err)
	}
	var listed struct {
		Skills []struct {
			Frontmatter struct{ Name, Description string }
		}
	}
	if err := json.Unmarshal(encoded, &listed); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range listed.Skills {
		if !strings.HasPrefix(one.Frontmatter.Name, "training-cards-") { // of the binary, and shadowed by nobody here
			got = append(got, one.Frontmatter.Name+"="+one.Frontmatter.Description)
		}
	}
	if want := "a=workspace alone=alone b=named c=home onescience-trainer=workspace"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	read := func(uri string) string {
		contents, _ := s.ask(t, `{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"`+uri+`"}}`)["contents"].([]any)
		if len(contents) == 0 {
			t.Fatalf("%s: nothing", uri)
		}
		text, _ := contents[0].(map[string]any)["text"].(string)
		return text
	}
	if top := read("workspace:///"); !strings.Contains(top, `"config.yaml"`) || strings.Contains(top, `".env"`) {
		t.Errorf("the top folder: %s", top)
	}
	if text := read("workspace:///config.yaml?offset=4"); text != "0.1\n" {
		t.Errorf("%q", text)
	}
}

// A folder of skills that is none is refused before anything is served.
func TestServeRefusesWhatIsNoFolderOfSkills(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	layFile(t, file, "x")
	for _, folder := range []string{filepath.Join(t.TempDir(), "none"), file, ""} {
		var out, errors strings.Builder
		if code := execute(t.Context(), terminal{strings.NewReader(""), &out, &errors}, []string{"serve", "--skills", folder}); code != exitUnusable || !strings.Contains(errors.String(), "no such folder") || out.Len() > 0 {
			t.Errorf("%q: %d %s", folder, code, errors.String())
		}
	}
}
