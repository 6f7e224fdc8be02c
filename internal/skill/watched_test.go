package skill

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// write puts a file there, and its folders.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege on Windows")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// clock is a time that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }
func (c *clock) pass()          { c.at = c.at.Add(lookEvery) }

func names(l *Library) string {
	var out []string
	for _, s := range l.List("") {
		out = append(out, s.Name+"="+s.Description)
	}
	return strings.Join(out, " ")
}

// What is added, edited and removed is picked up, and what is wrong with it is told; between two looks nothing is read.
func TestALiveLibraryFollowsItsPlaces(t *testing.T) {
	workspace := t.TempDir()
	c := &clock{time.Unix(1_790_000_000, 0)}
	library := Live(c.now, append(WorkspaceRoots(workspace), Root{Label: "binary", FS: files("ours/SKILL.md", markdown("ours", "theirs", "")), Dir: ".", Fixed: true})...)
	expect := func(want string) {
		t.Helper()
		if got := names(library); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	expect("ours=theirs")
	own := filepath.Join(workspace, ".claude/skills")
	write(t, filepath.Join(own, "a/SKILL.md"), markdown("a", "first", ""))
	expect("ours=theirs") // looked a moment ago
	c.pass()
	expect("a=first ours=theirs")
	write(t, filepath.Join(own, "a/SKILL.md"), markdown("a", "edited", ""))
	write(t, filepath.Join(own, "ours/SKILL.md"), markdown("ours", "mine", "")) // a workspace's own skill wins
	c.pass()
	expect("a=edited ours=mine")
	if s, err := library.Get("ours"); err != nil || s.Description != "mine" {
		t.Errorf("%+v, %v", s, err)
	}
	if got := codes(library.Findings()); got != "skill_shadowed" {
		t.Errorf("findings: %s", got)
	}
	write(t, filepath.Join(own, "broken/SKILL.md"), "no frontmatter")
	if err := os.RemoveAll(filepath.Join(own, "ours")); err != nil {
		t.Fatal(err)
	}
	c.pass()
	expect("a=edited ours=theirs")
	if got := codes(library.Findings()); got != "skill_frontmatter_malformed" {
		t.Errorf("findings: %s", got)
	}
}

// A skill that is a link is followed too.
func TestALiveLibraryFollowsLinks(t *testing.T) {
	workspace := t.TempDir()
	write(t, filepath.Join(workspace, "elsewhere/a/SKILL.md"), markdown("a", "first", ""))
	link(t, "../../elsewhere/a", filepath.Join(workspace, ".agents/skills/a"))
	c := &clock{time.Unix(1_790_000_000, 0)}
	library := Live(c.now, WorkspaceRoots(workspace)...)
	if got := names(library); got != "a=first" {
		t.Fatal(got)
	}
	write(t, filepath.Join(workspace, "elsewhere/a/SKILL.md"), markdown("a", "edited", ""))
	c.pass()
	if got := names(library); got != "a=edited" {
		t.Error(got)
	}
}

// What is read is what is listed: the digest of a file that was edited a moment ago is the new one.
func TestWhatIsReadHasTheDigestThatIsListed(t *testing.T) {
	workspace := t.TempDir()
	file := filepath.Join(workspace, ".agents/skills/a/r.md")
	write(t, filepath.Join(workspace, ".agents/skills/a/SKILL.md"), markdown("a", "d", ""))
	write(t, file, "first")
	c := &clock{time.Unix(1_790_000_000, 0)}
	library := Live(c.now, WorkspaceRoots(workspace)...)
	if data, err := library.Read("a", "r.md"); err != nil || string(data) != "first" {
		t.Fatalf("%q, %v", data, err)
	}
	write(t, file, "edited since")
	write(t, filepath.Join(workspace, ".agents/skills/a/new.md"), "new")
	for name, want := range map[string]string{"r.md": "edited since", "new.md": "new"} {
		data, err := library.Read("a", name)
		if err != nil || string(data) != want {
			t.Fatalf("%s: %q, %v", name, data, err)
		}
		s, err := library.Get("a")
		if err != nil {
			t.Fatal(err)
		}
		listed := ""
		for _, f := range s.Files {
			if f.Path == name {
				listed = f.SHA256
			}
		}
		if listed != digestOf(data) {
			t.Errorf("%s: listed %s, read %s", name, listed, digestOf(data))
		}
	}
}

// Folders that the user named hold skills or are one; links to skills lead anywhere, and one seen twice is there once.
func TestFolderRoots(t *testing.T) {
	home, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "dotfiles/b/SKILL.md"), markdown("b", "linked", ""))
	write(t, filepath.Join(outside, "one/SKILL.md"), markdown("one", "alone", ""))
	write(t, filepath.Join(outside, "two/SKILL.md"), markdown("two", "a neighbour", ""))
	write(t, filepath.Join(outside, "secret.txt"), "secret")
	write(t, filepath.Join(home, ".agents/skills/a/SKILL.md"), markdown("a", "d", ""))
	link(t, filepath.Join(outside, "dotfiles/b"), filepath.Join(home, ".agents/skills/b"))
	link(t, filepath.Join(outside, "secret.txt"), filepath.Join(home, ".agents/skills/a/leak.txt"))
	link(t, "../.agents/skills", filepath.Join(home, ".claude/skills"))
	library, findings := NewLibrary(FolderRoot(filepath.Join(home, ".agents/skills")), FolderRoot(filepath.Join(home, ".claude/skills")),
		FolderRoot(filepath.Join(outside, "one")), FolderRoot(filepath.Join(home, "nowhere")))
	if got := names(library); got != "a=d b=linked one=alone" {
		t.Errorf("%s, %v", got, findings)
	}
	if len(findings) == 0 {
		t.Error("a link out of a skill is not told")
	}
	for _, f := range findings {
		if f.Code != "skill_file_unreadable" || f.Where.Path != filepath.Join(home, ".agents/skills/a/leak.txt") {
			t.Errorf("%v", f)
		}
	}
	foreign := FolderRoot(t.TempDir())
	foreign.Foreign = true
	write(t, filepath.Join(foreign.Label, "bad/SKILL.md"), "no frontmatter")
	if _, findings := NewLibrary(foreign); codes(findings) != "skill_frontmatter_malformed" || findings[0].Severity != finding.Warning {
		t.Errorf("%v", findings)
	}
	if _, err := library.Read("a", "leak.txt"); err == nil {
		t.Error("a link out of a skill was read")
	}
	if data, err := library.Read("b", "SKILL.md"); err != nil || !strings.Contains(string(data), "linked") {
		t.Errorf("%q, %v", data, err)
	}
	alone := Live(time.Now, FolderRoot(filepath.Join(outside, "one")))
	if got := names(alone); got != "one=alone" {
		t.Error(got)
	}
}
