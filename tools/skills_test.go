package tools

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/skill"
	"github.com/trainwright/trainwright/internal/trainer"
)

// skilledTools are the tools over two skills: one with a long and a binary file, one of type resource.
func skilledTools(t *testing.T) []Tool {
	t.Helper()
	library, found := skill.NewLibrary(skill.Root{Label: "test", Dir: ".", FS: fstest.MapFS{
		"planner/SKILL.md":      {Data: []byte("---\nname: planner\ndescription: Plans. Use it to plan.\nmetadata:\n  type: executor\n---\n# planner\napi_key: sk-abcdefghijklmnopqrstuvwxyz123456\n")},
		"planner/refs/long.md":  {Data: []byte(strings.Repeat("a line of text\n", 10_000))},
		"planner/refs/data.bin": {Data: []byte{0xff, 0xfe, 0}},
		"models/SKILL.md":       {Data: []byte("---\nname: models\ndescription: Knows models.\nmetadata:\n  type: resource\n---\n# models\n")},
	}})
	if len(found) > 0 {
		t.Fatal(found)
	}
	dir := t.TempDir()
	roots, err := rundir.NewRoots(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := trainer.New(roots, library, local.New(local.Options{Workspace: dir}), time.Now)
	return All(Deps{Trainer: func() (*trainer.Trainer, error) { return tr, nil },
		SkillFindings: func() []finding.Finding {
			return []finding.Finding{{Code: "skill_file_missing", Severity: finding.Error, What: "x"}}
		}})
}

func TestSkillList(t *testing.T) {
	all := skilledTools(t)
	got, err := call[SkillListOutput](t, all, "skill_list", `{}`)
	if err != nil || len(got.Skills) != 2 || got.Skills[0].Name != "models" || got.Skills[1].URI != "skill://planner/SKILL.md" || got.Skills[1].Files != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if len(got.Findings) != 1 || got.Findings[0].Code != "skill_file_missing" {
		t.Errorf("a skill that can't be loaded is not told: %+v", got.Findings)
	}
	got, err = call[SkillListOutput](t, all, "skill_list", `{"type": "resource"}`)
	if err != nil || len(got.Skills) != 1 || got.Skills[0].Name != "models" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSkillGet(t *testing.T) {
	all := skilledTools(t)
	got, err := call[SkillGetOutput](t, all, "skill_get", `{"name": "planner"}`)
	if err != nil || got.Path != "SKILL.md" || !strings.Contains(got.Content, "# planner") || len(got.Files) != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if strings.Contains(got.Content, "abcdefgh") {
		t.Errorf("a secret is shown: %s", got.Content)
	}
	got, err = call[SkillGetOutput](t, all, "skill_get", `{"name": "planner", "path": "refs/long.md"}`)
	if err != nil || len(got.Findings) != 1 || got.Findings[0].Code != "result_cut" || !strings.Contains(got.Findings[0].What, "of 150000 characters") || len(got.Content) < 30_000 {
		t.Errorf("%d characters, %+v, %v", len(got.Content), got.Findings, err)
	}
	for arguments, code := range map[string]string{
		`{}`:                                     "missing_argument",
		`{"name": "none"}`:                       "skill_unknown",
		`{"name": "planner", "path": "none.md"}`: "skill_file_unknown",
		`{"name": "planner", "path": "../models/SKILL.md"}`: "skill_file_unknown",
		`{"name": "planner", "path": "refs/data.bin"}`:      "skill_file_binary",
	} {
		if _, err := call[SkillGetOutput](t, all, "skill_get", arguments); !refusedWith(err, code) {
			t.Errorf("%s: %v, want %s", arguments, err, code)
		}
	}
}
