package tools

import (
	"context"
	"fmt"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/internal/finding"
)

// SkillListInput narrows the list.
type SkillListInput struct {
	Type string `json:"type,omitempty" jsonschema:"enum=resource,enum=executor" jsonschema_description:"resource: knowledge for recall; executor: how to do something. Left out: all."`
}

// SkillRow is one skill of the list. URI is the address of its SKILL.md; Files counts its files.
type SkillRow struct {
	Name        string `json:"name"`
	Type        string `json:"type,omitempty"`
	Description string `json:"description"`
	URI         string `json:"uri"`
	Files       int    `json:"files"`
}

// SkillListOutput is the skills by name. Findings tell what is wrong with skills, also with those that could not be loaded.
type SkillListOutput struct {
	Skills   []SkillRow        `json:"skills"`
	Findings []finding.Finding `json:"findings"`
	NextCall *engine.NextCall  `json:"next_call,omitempty"`
}

// skillList is the tool skill_list.
func skillList(deps Deps) Tool {
	return typedTool("skill_list",
		"Lists the skills at hand: trainwright's own and the workspace's (.agents/skills), each with what it is for.",
		Annotations{ReadOnly: true, Idempotent: true},
		func(_ context.Context, _ engine.Caller, in SkillListInput) (SkillListOutput, error) {
			out := SkillListOutput{Skills: []SkillRow{}, Findings: []finding.Finding{}}
			t, err := deps.Trainer()
			if err != nil {
				return out, err
			}
			for _, s := range t.Library.List(in.Type) {
				out.Skills = append(out.Skills, SkillRow{Name: s.Name, Type: s.Type, Description: s.Description, URI: s.URI("SKILL.md"), Files: len(s.Files)})
			}
			if deps.SkillFindings != nil {
				out.Findings = append(out.Findings, deps.SkillFindings()...)
			}
			if len(out.Skills) > 0 {
				out.NextCall = &engine.NextCall{Tool: "skill_get", Arguments: map[string]any{"name": out.Skills[0].Name}}
			}
			return out, nil
		},
		more[SkillListOutput]{toolset: SetSkills, rest: "call skill_list with a type", text: func(o SkillListOutput) string {
			return fmt.Sprintf("%d skills", len(o.Skills))
		}})
}
