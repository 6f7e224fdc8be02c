package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

// files makes a file system of path, content pairs.
func files(pairs ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		fsys[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1]), Mode: 0o644}
	}
	return fsys
}

func markdown(name, description, more string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: %s\n%s---\n\n# Text\n", name, description, more)
}

func codes(findings []finding.Finding) string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Code)
	}
	return strings.Join(out, " ")
}

func refusal(t *testing.T, err error) finding.Finding {
	t.Helper()
	var refused *finding.Refused
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a refusal", err)
	}
	return refused.Findings[0]
}

func TestLoad(t *testing.T) {
	fsys := files("skills/ocean/SKILL.md", "\ufeff---\r\nname: ocean\r\ndescription: What is known of the sea.\r\nmetadata:\r\n  type: Resource\r\n  3: x\r\n---\r\ntext\r\n",
		"skills/ocean/assets/a.md", "abc", "skills/ocean/.git/config", "x", "skills/ocean/.DS_Store", "x", "skills/ocean/scripts/__pycache__/a.pyc", "x")
	s, findings, err := Load(fsys, "skills/ocean")
	if err != nil || len(findings) != 0 {
		t.Fatalf("%v, %v", findings, err)
	}
	if s.Name != "ocean" || s.Description != "What is known of the sea." || s.Type != TypeResource || s.Dir != "skills/ocean" || s.Dynamic {
		t.Errorf("%+v", s)
	}
	want := []File{{"SKILL.md", "skill://ocean/SKILL.md", s.Files[0].SHA256, 109}, {"assets/a.md", "skill://ocean/assets/a.md", "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 3}}
	if diff := cmp.Diff(want, s.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if _, err := json.Marshal(s.Frontmatter); err != nil {
		t.Errorf("the frontmatter does not go into JSON: %v", err)
	}
}

func TestTypeIsReadFromBothPlaces(t *testing.T) {
	for more, want := range map[string]string{"type: executor\n": TypeExecutor, "metadata: {type: resource}\n": TypeResource, "": "", "type: [a]\n": "", "metadata: x\n": ""} {
		s, _, err := Load(files("a/SKILL.md", markdown("a", "d", more)), "a")
		if err != nil || s.Type != want {
			t.Errorf("%q: type %q, %v", more, s.Type, err)
		}
	}
}

// A date without quotes is what it says, as text: clients that follow YAML 1.2 know no dates.
func TestDatesStayText(t *testing.T) {
	s, findings, err := Load(files("a/SKILL.md", "---\nname: a\ndescription: 2026-01-02\ndate: 2026-01-02\nmetadata:\n  at: 2026-01-02T10:00:00Z\n  list: [2026-01-03]\n  2026-01-04: x\n---\n"), "a")
	if err != nil || codes(findings) != "skill_field_malformed skill_field_unknown" || s.Description != "2026-01-02" {
		t.Fatalf("%+v, %v, %v", s, findings, err)
	}
	got, err := json.Marshal(s.Frontmatter)
	want := `{"date":"2026-01-02","description":"2026-01-02","metadata":{"2026-01-04":"x","at":"2026-01-02T10:00:00Z","list":["2026-01-03"]},"name":"a"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if s, _, err := Load(files("2026-01-02/SKILL.md", "---\nname: 2026-01-02\ndescription: d\n---\n"), "2026-01-02"); err != nil || s.Name != "2026-01-02" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestLoadRefuses(t *testing.T) {
	tests := []struct {
		name, text, code string
		line             int
		remedy           string
	}{
		{"no frontmatter", "# Title\n", "skill_frontmatter_malformed", 1, "begin the file with ---"},
		{"empty", "", "skill_frontmatter_malformed", 1, "begin the file with ---"},
		{"never closed", "---\nname: a\n", "skill_frontmatter_malformed", 1, "end the frontmatter"},
		{"a colon in the text", "---\nname: a\ndescription: Use when: always\n---\n", "skill_frontmatter_malformed", 3, "put the text in quotes"},
		{"a bracket left open", "---\nname: a\nx: [1,\ny: 2\n---\n", "skill_frontmatter_malformed", 3, "correct the YAML"},
		{"a key twice", "---\nname: a\nname: b\n---\n", "skill_frontmatter_malformed", 3, "correct the YAML"},
		{"a list", "---\n- a\n---\n", "skill_frontmatter_malformed", 2, "correct the YAML"},
		{"no name", "---\ndescription: d\n---\n", "skill_name_invalid", 0, "name: a"},
		{"a name with a slash", "---\nname: ../b\n---\n", "skill_name_invalid", 0, "name: a"},
	}
	for _, test := range tests {
		_, _, err := Load(files("a/SKILL.md", test.text), "a")
		got := refusal(t, err)
		if got.Code != test.code || got.Where.Line != test.line || got.Where.Path != "a/SKILL.md" || !strings.Contains(got.Remedy, test.remedy) {
			t.Errorf("%s: %v", test.name, got)
		}
	}
	_, _, err := Load(files("a/README.md", "x"), "a")
	if got := refusal(t, err); got.Code != "skill_file_missing" {
		t.Errorf("no SKILL.md: %v", got)
	}
}

func TestValidate(t *testing.T) {
	tests := []struct{ name, folder, text, codes string }{
		{"good", "a-b2", markdown("a-b2", "d", "license: MIT\ncompatibility: any\nallowed-tools: Bash Read\nmetadata: {type: resource}\n"), ""},
		{"other folder", "b", markdown("a", "d", ""), "skill_name_mismatch"},
		{"capitals", "Ab", markdown("Ab", "d", ""), "skill_name_invalid"},
		{"double hyphen", "a--b", markdown("a--b", "d", ""), "skill_name_invalid"},
		{"leading hyphen", "-a", markdown("\"-a\"", "d", ""), "skill_name_invalid"},
		{"no description", "a", "---\nname: a\n---\n", "skill_description_missing"},
		{"description of 1024 characters", "a", markdown("a", strings.Repeat("ü", 1024), ""), ""},
		{"description of 1025", "a", markdown("a", strings.Repeat("ü", 1025), ""), "skill_description_too_long"},
		{"compatibility", "a", markdown("a", "d", "compatibility: "+strings.Repeat("x", 501)+"\n"), "skill_compatibility_too_long"},
		{"metadata", "a", markdown("a", "d", "metadata: x\n"), "skill_field_malformed"},
		{"license", "a", markdown("a", "d", "license: [MIT]\n"), "skill_field_malformed"},
		{"fields beside the standard", "a", markdown("a", "d", "type: resource\nauthor: x\n"), "skill_field_unknown skill_field_unknown"},
	}
	for _, test := range tests {
		_, findings, err := Load(files(test.folder+"/SKILL.md", test.text), test.folder)
		if err != nil || codes(findings) != test.codes {
			t.Errorf("%s: %v, %v", test.name, findings, err)
		}
	}
}

func TestLoadIsBounded(t *testing.T) {
	fsys := files("a/SKILL.md", markdown("a", "d", ""))
	for i := range MaxFiles + 5 {
		fsys[fmt.Sprintf("a/assets/%04d.md", i)] = &fstest.MapFile{Data: []byte("x"), Mode: 0o644}
	}
	s, findings, err := Load(fsys, "a")
	if err != nil || len(s.Files) != MaxFiles || !s.Dynamic || codes(findings) != "skill_too_large" {
		t.Errorf("%d files, %v, %v", len(s.Files), findings, err)
	}
	library, _ := NewLibrary(Root{Label: "x", FS: fsys, Dir: "."})
	if data, err := library.Read("a", "assets/0516.md"); err != nil || string(data) != "x" {
		t.Errorf("a file beyond the list: %q, %v", data, err)
	}
}

func TestLoadAll(t *testing.T) {
	fsys := files("s/a/SKILL.md", markdown("a", "d", ""), "s/b/SKILL.md", "no frontmatter", "s/c/notes.md", "x", "s/.hidden/SKILL.md", markdown("h", "d", ""), "s/README.md", "x", "s/embed.go", "x")
	skills, findings, err := LoadAll(fsys, "s")
	if err != nil || len(skills) != 1 || skills[0].Name != "a" || codes(findings) != "skill_frontmatter_malformed skill_file_missing" {
		t.Errorf("%v, %v, %v", skills, findings, err)
	}
	if skills, findings, err := LoadAll(fsys, "nowhere"); err != nil || skills != nil || findings != nil {
		t.Errorf("no root: %v, %v, %v", skills, findings, err)
	}
}

func TestLibrary(t *testing.T) {
	own := files("own/a/SKILL.md", markdown("a", "mine", ""), "own/c/SKILL.md", markdown("c", "d", "metadata: {type: resource}\n"), "own/x/SKILL.md", markdown("wrong", "d", ""))
	copied := files("copy/x/SKILL.md", markdown("wrong", "d", ""))
	embedded := files("a/SKILL.md", markdown("a", "theirs", ""), "b/SKILL.md", markdown("b", "d", ""), "b/references/r.md", "text")
	library, findings := NewLibrary(Root{Label: "own", FS: own, Dir: "own"}, Root{Label: "copy", FS: copied, Dir: "copy"}, Root{Label: "embedded", FS: embedded, Dir: "."})
	if codes(findings) != "skill_name_mismatch skill_shadowed" {
		t.Errorf("%v", findings)
	}
	var names []string
	for _, s := range library.List("") {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "wrong"}, names); diff != "" {
		t.Error(diff)
	}
	if found := library.List(TypeResource); len(found) != 1 || found[0].Name != "c" {
		t.Errorf("%v", found)
	}
	if s, err := library.Get("a"); err != nil || s.Description != "mine" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := library.Get("z"); refusal(t, err).Code != "skill_unknown" || !strings.Contains(refusal(t, err).Expected, "a, b, c, wrong") {
		t.Error(err)
	}
	if data, err := library.Read("b", "references/r.md"); err != nil || string(data) != "text" {
		t.Errorf("%q, %v", data, err)
	}
	for _, path := range []string{"../a/SKILL.md", "references", "references/../SKILL.md", "/etc/passwd", "", ".", "references/r.md/"} {
		_, err := library.Read("b", path)
		if f := refusal(t, err); f.Code != "skill_file_unknown" || !strings.Contains(f.Expected, "SKILL.md, references/r.md") {
			t.Errorf("%q: %v", path, f)
		}
	}
	if _, err := library.Read("z", "SKILL.md"); refusal(t, err).Code != "skill_unknown" {
		t.Error(err)
	}
}

func TestEmptyLibrary(t *testing.T) {
	for _, library := range []*Library{nil, {}} {
		if found := library.List(""); len(found) != 0 {
			t.Error(found)
		}
		if _, err := library.Get("a"); !strings.Contains(refusal(t, err).Expected, "none") {
			t.Error(err)
		}
	}
}

func TestWorkspaceSkills(t *testing.T) {
	workspace, outside := t.TempDir(), t.TempDir()
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(workspace, ".agents", "skills", "a", "SKILL.md"), markdown("a", "mine", ""))
	put(filepath.Join(workspace, ".agents", "skills", "a", "r.md"), "r")
	put(filepath.Join(workspace, ".claude", "skills", "b", "SKILL.md"), markdown("b", "d", ""))
	put(filepath.Join(outside, "secret", "SKILL.md"), markdown("secret", "d", ""))
	put(filepath.Join(outside, "secret.txt"), "secret")
	want := ""
	if runtime.GOOS != "windows" { // links need a privilege there
		for link, target := range map[string]string{".claude/skills/a": "../../.agents/skills/a", ".claude/skills/secret": filepath.Join(outside, "secret"), ".agents/skills/a/leak.txt": filepath.Join(outside, "secret.txt")} {
			if err := os.Symlink(target, filepath.Join(workspace, link)); err != nil {
				t.Fatal(err)
			}
		}
		want = "skill_file_unreadable skill_file_missing"
	}
	library, findings := NewLibrary(append(WorkspaceRoots(workspace), Root{Label: "embedded", FS: files("a/SKILL.md", markdown("a", "theirs", "")), Dir: "."})...)
	shadowed := 0
	var others []finding.Finding
	for _, f := range findings {
		if f.Code == "skill_shadowed" {
			shadowed++
			continue
		}
		others = append(others, f)
	}
	if shadowed != 1 || len(library.List("")) != 2 {
		t.Errorf("%d shadowed, %v", shadowed, findings)
	}
	if got := codes(others); got != want {
		t.Errorf("got %s", got)
	}
	if data, err := library.Read("a", "r.md"); err != nil || string(data) != "r" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := library.Read("a", "leak.txt"); err == nil {
		t.Error("a link out of the workspace was read")
	}
	if _, findings := NewLibrary(WorkspaceRoots(filepath.Join(workspace, "nowhere"))...); len(findings) != 0 {
		t.Errorf("a workspace that is not there: %v", findings)
	}
}
