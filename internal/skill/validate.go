package skill

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trainwright/trainwright/internal/finding"
)

// The rules of the Agent Skills specification.
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
)

var (
	namePattern    = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	standardFields = []string{"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
)

// usableName reports whether a name can stand in a skill:// address at all; whether it is a good one is for Validate.
func usableName(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= maxName && !strings.ContainsAny(name, "/\\?#% \t\r\n") && name != "." && name != ".."
}

// Validate judges the skill by the standard: an error for what a client that follows it would refuse, a note for fields
// beside it.
func (s *Skill) Validate() []finding.Finding {
	file := path.Join(s.Dir, manifest)
	var findings []finding.Finding
	report := func(code string, severity finding.Severity, field, what, expected, remedy string) {
		findings = append(findings, finding.Finding{Code: code, Severity: severity, What: what, Where: &finding.Where{Path: file, Field: field}, Expected: expected, Remedy: remedy})
	}
	if !namePattern.MatchString(s.Name) || len(s.Name) > maxName {
		findings = append(findings, s.nameFinding(file))
	}
	if folder := path.Base(s.Dir); folder != s.Name && s.Dir != "." {
		report("skill_name_mismatch", finding.Error, "name", fmt.Sprintf("the skill is named %q but lies in the folder %q", s.Name, folder), "a name equal to its folder's", "rename one of them")
	}
	description, _ := s.Frontmatter["description"].(string) // as it stands: white space at its end counts too
	switch n := utf8.RuneCountInString(description); {
	case s.Description == "":
		report("skill_description_missing", finding.Error, "description", "the skill has no description, so no agent can choose it", "what the skill does and when to use it, in 1 to 1024 characters", "add a description")
	case n > maxDescription:
		report("skill_description_too_long", finding.Error, "description", fmt.Sprintf("the description has %d characters", n), "at most 1024", "shorten it; details belong below the frontmatter")
	}
	if n := utf8.RuneCountInString(textOf(s.Frontmatter["compatibility"])); n > maxCompatibility {
		report("skill_compatibility_too_long", finding.Error, "compatibility", fmt.Sprintf("compatibility has %d characters", n), "at most 500", "shorten it")
	}
	for _, field := range []string{"name", "description", "license", "compatibility", "allowed-tools"} {
		value, given := s.Frontmatter[field]
		dated := slices.Contains(s.dated, field)
		if _, text := value.(string); !given || text && !dated || value == nil && field != "compatibility" {
			continue
		}
		if dated { // clients that read a time there see another name, and no text
			severity := finding.Warning
			if field == "name" || field == "compatibility" {
				severity = finding.Error
			}
			report("skill_field_malformed", severity, field, fmt.Sprintf("%s is a date without quotes", field), "a text", fmt.Sprintf("put it in quotes: %s: %q", field, value))
			continue
		}
		// Clients read a number as its digits, and know lists of tools.
		severity := finding.Warning
		if field == "compatibility" || field != "license" && field != "allowed-tools" && !scalar(value) {
			severity = finding.Error
		}
		report("skill_field_malformed", severity, field, fmt.Sprintf("%s is not a text", field), "a text", "write it as one line of text")
	}
	if value, given := s.Frontmatter["metadata"]; given && value != nil {
		if _, mapping := value.(map[string]any); !mapping {
			report("skill_field_malformed", finding.Warning, "metadata", "metadata is not a mapping", "keys with texts", "write it as key: value lines")
		}
	}
	var unknown []string
	for field := range s.Frontmatter {
		if !slices.Contains(standardFields, field) {
			unknown = append(unknown, field)
		}
	}
	slices.Sort(unknown)
	for _, field := range unknown {
		report("skill_field_unknown", finding.Note, field, fmt.Sprintf("%q is no field of the standard", field), strings.Join(standardFields, ", "), "move it below metadata")
	}
	return findings
}

func (s *Skill) nameFinding(file string) finding.Finding {
	what := fmt.Sprintf("the name %q can't be used", s.Name)
	if s.Name == "" {
		what = "the skill has no name"
	}
	return finding.Finding{Code: "skill_name_invalid", Severity: finding.Error, What: what, Where: &finding.Where{Path: file, Field: "name"},
		Expected: "1 to 64 of a-z, 0-9 and single hyphens between them", Remedy: fmt.Sprintf("name it as its folder: name: %s", path.Base(s.Dir))}
}
