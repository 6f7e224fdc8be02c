package tools

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/redact"
)

// SkillGetInput names a file of a skill.
type SkillGetInput struct {
	Name string `json:"name" jsonschema:"required" jsonschema_description:"The skill; skill_list has the names."`
	Path string `json:"path,omitempty" jsonschema_description:"A file of it, relative to its folder; SKILL.md when left out."`
}

// SkillFile is one file of a skill; Size is in bytes.
type SkillFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// SkillGetOutput is a file of a skill and the names of the others.
type SkillGetOutput struct {
	Name     string            `json:"name"`
	Path     string            `json:"path"`
	URI      string            `json:"uri"`
	Content  string            `json:"content"`
	Files    []SkillFile       `json:"files"`
	Findings []finding.Finding `json:"findings"`
}

// skillGet is the tool skill_get.
func skillGet(deps Deps) Tool {
	return typedTool("skill_get",
		"Gives a skill's SKILL.md, or another file of it, and the names of its files.",
		Annotations{ReadOnly: true, Idempotent: true},
		func(_ context.Context, _ engine.Caller, in SkillGetInput) (SkillGetOutput, error) {
			if in.Name == "" {
				return SkillGetOutput{}, missing("name", "the name of a skill", "skill_list has the names")
			}
			if in.Path == "" {
				in.Path = "SKILL.md"
			}
			t, err := deps.Trainer()
			if err != nil {
				return SkillGetOutput{}, err
			}
			s, err := t.Library.Get(in.Name)
			if err != nil {
				return SkillGetOutput{}, err
			}
			text, err := t.Library.Read(in.Name, in.Path)
			if err != nil {
				return SkillGetOutput{}, err
			}
			if !utf8.Valid(text) {
				return SkillGetOutput{}, finding.Refuse(finding.Finding{Code: "skill_file_binary", Severity: finding.Error, What: fmt.Sprintf("%s of skill %s is no text", in.Path, in.Name),
					Where: &finding.Where{Field: "path"}, Expected: "a text file", Remedy: "read the resource " + s.URI(in.Path)})
			}
			out := SkillGetOutput{Name: s.Name, Path: in.Path, URI: s.URI(in.Path), Content: redact.Text(string(text)), Files: []SkillFile{}, Findings: []finding.Finding{}}
			for _, f := range s.Files {
				out.Files = append(out.Files, SkillFile{f.Path, f.Size})
			}
			return out, nil
		},
		more[SkillGetOutput]{toolset: SetSkills, rest: "the resource at uri holds the whole file",
			text: func(o SkillGetOutput) string {
				return fmt.Sprintf("%s of %s, %d bytes, %d files", o.Path, o.Name, len(o.Content), len(o.Files))
			},
			links: func(o SkillGetOutput) []Link { return []Link{{URI: o.URI, Name: o.Path, MIME: linkType(o.Path)}} }})
}
