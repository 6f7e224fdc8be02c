package skill

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/trainwright/trainwright/internal/finding"
)

// What clients keep of descriptions, in characters. They list every skill's in each conversation, up to a budget; what is
// beyond it is shortened or left out, and those skills are then hardly ever chosen. Claude Code's budget is 1 % of the
// context window, 8000 where that is not known ("Extend Claude with skills", code.claude.com/docs).
const (
	LongDescription   = 500
	DescriptionBudget = 8000
)

// Verdict is what a check of one skill came to.
type Verdict struct {
	Path        string            `json:"path"` // as it was given
	Name        string            `json:"name,omitempty"`
	Valid       bool              `json:"valid"` // no finding is an error
	Description int               `json:"description_characters"`
	Findings    []finding.Finding `json:"findings"`
}

// Check judges the skill in a folder, or that of a SKILL.md, as skills-ref validate does: beside what Load reports, a field
// that is not in the standard is an error, and so is a byte order mark before the frontmatter, which other readers do not
// skip. A long description is a warning.
func Check(path string) Verdict {
	v := Verdict{Path: path, Findings: []finding.Finding{}}
	if strings.EqualFold(filepath.Base(path), manifest) && !isFolder(path) {
		path = filepath.Dir(path)
	}
	s, findings, err := loadFolder(path)
	var refused *finding.Refused
	switch {
	case errors.As(err, &refused):
		findings = refused.Findings
	case err != nil:
		findings = []finding.Finding{{Code: "skill_file_missing", Severity: finding.Error, What: fmt.Sprintf("the folder can't be read: %v", reason(err)), Where: &finding.Where{Path: path}, Expected: "a folder with a SKILL.md", Remedy: "send the folder of one skill"}}
	default:
		v.Name, v.Description = s.Name, utf8.RuneCountInString(s.Description)
		findings = append(findings, s.strictly()...)
	}
	for _, f := range findings {
		if f.Code == "skill_field_unknown" {
			f.Severity = finding.Error
		}
		f.Where = from(path, f.Where)
		v.Findings = append(v.Findings, f)
	}
	v.Valid = !finding.Has(v.Findings, finding.Error)
	return v
}

// from names a place by the folder as it was given, instead of by the name of the skill's folder.
func from(folder string, where *finding.Where) *finding.Where {
	if where == nil {
		return nil
	}
	place := *where
	if absolute, err := filepath.Abs(folder); err == nil {
		if rest, ok := strings.CutPrefix(place.Path, filepath.Base(absolute)+"/"); ok {
			place.Path = filepath.Join(folder, filepath.FromSlash(rest))
		}
	}
	return &place
}

// strictly finds what Load does not mind.
func (s *Skill) strictly() []finding.Finding {
	var findings []finding.Finding
	where := &finding.Where{Path: s.Dir + "/" + manifest}
	if text, err := readFile(s.FS, manifest, MaxBytes); err == nil && bytes.HasPrefix(text, []byte("\ufeff")) {
		findings = append(findings, finding.Finding{Code: "skill_byte_order_mark", Severity: finding.Error, What: "the file begins with a byte order mark, so that clients do not see its frontmatter", Where: where,
			Expected: "--- as the first bytes", Remedy: "save it as UTF-8 without a byte order mark"})
	}
	if n := utf8.RuneCountInString(s.Description); n > LongDescription && n <= maxDescription {
		findings = append(findings, finding.Finding{Code: "skill_description_long", Severity: finding.Warning, What: fmt.Sprintf("the description has %d characters, and clients keep all descriptions in one budget", n), Where: where,
			Expected: fmt.Sprintf("up to %d", LongDescription), Remedy: "say first when to use it; details belong below the frontmatter"})
	}
	return findings
}

// Budget tells of skills that together have more to say of themselves than clients keep.
func Budget(verdicts []Verdict) []finding.Finding {
	total := 0
	for _, v := range verdicts {
		total += v.Description
	}
	if total <= DescriptionBudget {
		return nil
	}
	return []finding.Finding{{Code: "skill_descriptions_over_budget", Severity: finding.Warning, What: fmt.Sprintf("the descriptions of %d skills have %d characters together, so clients drop some of them", len(verdicts), total),
		Expected: fmt.Sprintf("up to %d", DescriptionBudget), Remedy: "shorten the longest ones, or install fewer skills in one place"}}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// loadFolder loads a folder under the name by which it was called; a link to it has a name of its own. Links inside may not
// lead out of it.
func loadFolder(path string) (*Skill, []finding.Finding, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err := os.Stat(absolute); err != nil {
		return nil, nil, err
	} else if !info.IsDir() {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("it is not a folder")}
	}
	folder, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return nil, nil, err
	}
	name := filepath.Base(absolute)
	return Load(mounted{name, confined(folder)}, name)
}

// mounted is a file system that is one folder of another name.
type mounted struct {
	name string
	confined
}

// Open opens name or what is in it.
func (m mounted) Open(name string) (fs.File, error) {
	inner, err := m.inner("open", name)
	if err != nil {
		return nil, err
	}
	return m.confined.Open(inner)
}

// Stat follows links as confined does.
func (m mounted) Stat(name string) (fs.FileInfo, error) {
	inner, err := m.inner("stat", name)
	if err != nil {
		return nil, err
	}
	return m.confined.Stat(inner)
}

func (m mounted) inner(op, name string) (string, error) {
	if name == m.name {
		return ".", nil
	}
	if inner, ok := strings.CutPrefix(name, m.name+"/"); ok {
		return inner, nil
	}
	return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}
