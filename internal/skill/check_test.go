package skill

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/trainwright/trainwright/internal/finding"
)

// reference runs skills-ref over folders, in one process, and gives the errors of each.
const reference = `import { validate } from process.argv[1];
const out = {};
for (const folder of process.argv.slice(2)) out[folder] = await validate(folder);
console.log(JSON.stringify(out));`

// row is one skill of the table.
type row struct{ name, folder, verdict string }

// table writes the skills of testdata, and those that are only long, into a folder.
func table(t *testing.T) []row {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/verdicts.txtar")
	if err != nil {
		t.Fatal(err)
	}
	long := func(name, text string) {
		archive.Files = append(archive.Files, txtar.File{Name: name + "/SKILL.md", Data: []byte(text)})
	}
	long("good/64-characters/"+strings.Repeat("a", 64), markdown(strings.Repeat("a", 64), "d", ""))
	long("bad/65-characters/"+strings.Repeat("a", 65), markdown(strings.Repeat("a", 65), "d", ""))
	long("good/1024-characters/a", markdown("a", strings.Repeat("ü", 1024), ""))
	long("bad/1025-characters/a", markdown("a", strings.Repeat("ü", 1025), ""))
	long("bad/1024-characters-and-a-line-end/a", markdown("a", "|\n  "+strings.Repeat("x", 1024), ""))
	long("good/500-of-compatibility/a", markdown("a", "d", "compatibility: "+strings.Repeat("x", 500)+"\n"))
	long("bad/501-of-compatibility/a", markdown("a", "d", "compatibility: "+strings.Repeat("x", 501)+"\n"))
	long("good/CRLF/a", strings.ReplaceAll(markdown("a", "d", ""), "\n", "\r\n"))
	long("bad/byte-order-mark/a", "\ufeff"+markdown("a", "d", ""))
	root := t.TempDir()
	var rows []row
	for _, f := range archive.Files {
		path := filepath.Join(root, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(f.Name, "/")
		rows = append(rows, row{parts[1], filepath.Dir(path), parts[0]})
	}
	return append(rows, row{"no folder", filepath.Join(root, "nowhere"), "bad"})
}

func TestCheckAgreesWithTheReference(t *testing.T) {
	rows := table(t)
	errors := referenceErrors(t, rows)
	for _, r := range rows {
		said := errors[r.folder] // no errors: valid
		ours := Check(r.folder)
		wantOurs, wantTheirs := r.verdict == "good", r.verdict != "bad"
		if ours.Valid != wantOurs {
			t.Errorf("%s: Check: valid %v: %v", r.name, ours.Valid, ours.Findings)
		}
		if (len(said) == 0) != wantTheirs {
			t.Errorf("%s: skills-ref: %q", r.name, said)
		}
	}
}

// referenceErrors asks skills-ref, which .ci/install puts there.
func referenceErrors(t *testing.T, rows []row) map[string][]string {
	t.Helper()
	library, err := filepath.Abs("../../.cache/npm/node_modules/skills-ref/dist/index.js")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(library); err != nil {
		t.Skipf("npm skills-ref is not installed (%v): run .ci/install, as make test does", err)
	}
	bin := filepath.Join(library, "..", "..", "..", ".bin")
	script := strings.Replace(reference, "process.argv[1]", `"file://`+filepath.ToSlash(library)+`"`, 1)
	arguments := []string{"--input-type=module", "-e", script, "--", "-"}
	for _, r := range rows {
		arguments = append(arguments, r.folder)
	}
	command := exec.Command("node", arguments...)
	command.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := command.Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	errors := map[string][]string{}
	if err := json.Unmarshal(out, &errors); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for _, r := range rows {
		if _, asked := errors[r.folder]; !asked {
			t.Fatalf("skills-ref was not asked about %s: %s", r.folder, out)
		}
	}
	return errors
}

func TestCheckSaysWhy(t *testing.T) {
	codes := map[string]string{"everything": "", "tools-as-a-list": "skill_field_malformed", "type-at-the-top": "skill_field_unknown", "byte-order-mark": "skill_byte_order_mark",
		"1024-characters": "skill_description_long", "1025-characters": "skill_description_too_long", "no folder": "skill_file_missing", "no-skill-file": "skill_file_missing",
		"other-folder": "skill_name_mismatch", "colon-in-the-text": "skill_frontmatter_malformed", "compatibility-as-a-number": "skill_field_malformed", "null-description": "skill_description_missing",
		"a-date-as-name": "skill_field_malformed", "a-date-as-compatibility": "skill_field_malformed", "a-date-beside-the-standard": "skill_field_unknown", "a-date-as-description": "skill_field_malformed"}
	for _, r := range table(t) {
		want, named := codes[r.name]
		if !named {
			continue
		}
		v := Check(r.folder)
		var got []string
		for _, f := range v.Findings {
			got = append(got, f.Code)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v", r.name, v.Findings)
		}
		if file := filepath.Join(r.folder, "SKILL.md"); len(v.Findings) > 0 && r.name != "no folder" && v.Findings[0].Where.Path != file {
			t.Errorf("%s: found at %s, not at %s", r.name, v.Findings[0].Where.Path, file)
		}
		delete(codes, r.name)
	}
	if len(codes) > 0 {
		t.Errorf("no rows for %v", codes)
	}
}

func TestCheckOfOurOwn(t *testing.T) {
	for _, path := range []string{"../../skills/onescience-trainer", "../../skills/onescience-trainer/", "../../skills/onescience-trainer/SKILL.md"} {
		if v := Check(path); !v.Valid || len(v.Findings) > 0 || v.Name != "onescience-trainer" {
			t.Errorf("%s: %+v", path, v)
		}
	}
}

func TestCheckOfALink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege on Windows")
	}
	root := t.TempDir()
	target := filepath.Join(root, "target")
	if err := os.MkdirAll(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(target, "SKILL.md"), []byte(markdown("a", "d", "")), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	if v := Check(filepath.Join(root, "a")); !v.Valid || v.Name != "a" {
		t.Errorf("%+v", v)
	}
}

func TestBudget(t *testing.T) {
	if found := Budget([]Verdict{{Description: DescriptionBudget - 1}, {Description: 1}}); found != nil {
		t.Error(found)
	}
	found := Budget([]Verdict{{Description: DescriptionBudget}, {Description: 1}})
	if codes(found) != "skill_descriptions_over_budget" || found[0].Severity != finding.Warning {
		t.Error(found)
	}
}
