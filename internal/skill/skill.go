// Package skill loads Agent Skills: folders with a SKILL.md whose YAML frontmatter names and describes them. It reads them
// from any fs.FS, judges them by the rules of the standard, and keeps those of several places in one Library.
//
// The rules are those of the Agent Skills specification (name, description, license, compatibility, metadata,
// allowed-tools) and the limits of the MCP skills extension (512 files, 16 MiB). `type: resource|executor` is a convention
// beside the standard; it is read from the frontmatter's type or, where it belongs, from metadata.type.
package skill

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/trainwright/trainwright/internal/finding"
)

// Limits of one skill, from the MCP skills extension.
const (
	MaxFiles       = 512
	MaxBytes int64 = 16 << 20
)

// manifest is the file that makes a folder a skill.
const manifest = "SKILL.md"

// The types that matter to trainwright.
const (
	TypeResource = "resource" // holds knowledge for recall
	TypeExecutor = "executor" // says how to do something
)

// Skill is one loaded skill. FS is rooted at its folder; Dir is that folder in the file system it was loaded from.
type Skill struct {
	Name        string
	Description string
	Type        string // empty where the skill does not say
	Dir         string
	Frontmatter map[string]any
	Files       []File // by path; SKILL.md among them
	Dynamic     bool   // it has more than the limits allow to list: Files holds the first ones
	FS          fs.FS
	dated       []string // fields whose value is a date without quotes
}

// File is one file of a skill. URI is skill://<name>/<path>, SHA256 is "sha256:<64 hex>", Size is in bytes.
type File struct {
	Path   string
	URI    string
	SHA256 string
	Size   int64
}

// Load reads the skill in folder dir of fsys. A folder without a SKILL.md is refused (skill_file_missing), and so is one
// whose frontmatter can't be read or has no usable name (skill_frontmatter_malformed, skill_name_invalid); other breaches of
// the standard are findings of Validate beside a skill that can be used.
func Load(fsys fs.FS, dir string) (*Skill, []finding.Finding, error) {
	sub, err := fs.Sub(fsys, dir)
	if err != nil {
		return nil, nil, fmt.Errorf("load skill %s: %w", dir, err)
	}
	file := path.Join(dir, manifest)
	text, err := readFile(sub, manifest, MaxBytes)
	if err != nil {
		return nil, nil, finding.Refuse(finding.Finding{Code: "skill_file_missing", Severity: finding.Error, What: fmt.Sprintf("the folder %s holds no readable SKILL.md: %v", dir, reason(err)),
			Where: &finding.Where{Path: file}, Expected: "a SKILL.md with name and description in its frontmatter", Remedy: "add the file, or remove the folder"})
	}
	frontmatter, dated, fault := readFrontmatter(text)
	if fault != nil {
		return nil, nil, finding.Refuse(finding.Finding{Code: "skill_frontmatter_malformed", Severity: finding.Error, What: fmt.Sprintf("the frontmatter of %s can't be read: %s", file, fault.what),
			Where: &finding.Where{Path: file, Line: fault.line}, Expected: "YAML between two lines of three dashes at the top of the file", Remedy: fault.remedy})
	}
	s := &Skill{Dir: dir, Frontmatter: frontmatter, dated: dated, FS: sub, Name: digitsOf(frontmatter["name"]), Description: digitsOf(frontmatter["description"]), Type: typeOf(frontmatter)}
	if !usableName(s.Name) {
		return nil, nil, finding.Refuse(s.nameFinding(file))
	}
	findings, err := s.list()
	if err != nil {
		return nil, nil, err
	}
	return s, append(s.Validate(), findings...), nil
}

// textOf is a frontmatter value as text on its own; a number or a list is none.
func textOf(value any) string {
	text, _ := value.(string)
	return strings.TrimSpace(text)
}

// digitsOf is textOf, and reads a number or a truth value as clients do: as it would be written.
func digitsOf(value any) string {
	if value != nil && scalar(value) {
		return strings.TrimSpace(fmt.Sprint(value))
	}
	return ""
}

// scalar reports whether a value is neither a list nor a mapping.
func scalar(value any) bool {
	switch value.(type) {
	case []any, map[string]any:
		return false
	}
	return true
}

func typeOf(frontmatter map[string]any) string {
	if text := textOf(frontmatter["type"]); text != "" {
		return strings.ToLower(text)
	}
	metadata, _ := frontmatter["metadata"].(map[string]any)
	return strings.ToLower(textOf(metadata["type"]))
}

// URI is the address of one of the skill's files.
func (s *Skill) URI(file string) string { return "skill://" + s.Name + "/" + file }

// frontmatterFault says what is wrong in which physical line of the file.
type frontmatterFault struct {
	line         int
	what, remedy string
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// readFrontmatter parses the YAML between the first line and the next one of three dashes. dated are the fields whose value
// is a date without quotes; it is kept as the text that it is, and some clients read a time there.
func readFrontmatter(text []byte) (frontmatter map[string]any, dated []string, fault *frontmatterFault) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if strings.TrimRight(string(first), " \t\r") != "---" {
		return nil, nil, &frontmatterFault{1, "the first line is not ---", "begin the file with ---, then name and description, then --- again"}
	}
	var block []byte
	for {
		line, after, more := bytes.Cut(rest, []byte("\n"))
		if strings.TrimRight(string(line), " \t\r") == "---" {
			break
		}
		if !more {
			return nil, nil, &frontmatterFault{1, "the block that begins here is never closed", "end the frontmatter with a line of ---"}
		}
		block, rest = append(append(block, line...), '\n'), after
	}
	var document yaml.Node
	if err := yaml.Unmarshal(block, &document); err != nil {
		return nil, nil, yamlFault(err)
	}
	frontmatter = map[string]any{}
	if document.Kind == 0 { // nothing but comments
		return frontmatter, nil, nil
	}
	dated = datesAsText(&document)
	if err := document.Decode(&frontmatter); err != nil {
		return nil, nil, yamlFault(err)
	}
	for key, value := range frontmatter {
		frontmatter[key] = plain(value)
	}
	return frontmatter, dated, nil
}

// datesAsText makes text of every date that is not in quotes, and names the fields at the top that hold one.
func datesAsText(document *yaml.Node) (dated []string) {
	const date = "!!timestamp"
	if top := document.Content[0]; top.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(top.Content); i += 2 {
			if top.Content[i+1].ShortTag() == date {
				dated = append(dated, top.Content[i].Value)
			}
		}
	}
	var walk func(*yaml.Node)
	walk = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && n.ShortTag() == date {
			n.Tag = "!!str"
		}
		for _, below := range n.Content { // an alias has none: its anchor is elsewhere in the document
			walk(below)
		}
	}
	walk(document)
	return dated
}

// plain makes of a YAML value what JSON can hold: keys that are no texts become texts, infinities too.
func plain(value any) any {
	switch x := value.(type) {
	case map[string]any:
		for key, element := range x {
			x[key] = plain(element)
		}
	case map[any]any:
		texts := map[string]any{}
		for key, element := range x {
			texts[fmt.Sprint(key)] = plain(element)
		}
		return texts
	case []any:
		for i, element := range x {
			x[i] = plain(element)
		}
	case float64:
		if x-x != 0 {
			return fmt.Sprint(x)
		}
	}
	return value
}

// yamlFault finds the line in a yaml.v3 error; the block begins in the file's second line.
func yamlFault(err error) *frontmatterFault {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	message = strings.Join(strings.Fields(strings.TrimPrefix(message, "unmarshal errors:")), " ")
	fault := &frontmatterFault{line: 2, what: message, remedy: "correct the YAML"}
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		line, _ := strconv.Atoi(m[1])
		fault.line, fault.what = line+1, strings.TrimPrefix(message, m[0])
		// yaml.v3 counts the lines of its parser's messages from 0 and those of its scanner's from 1.
		if strings.Contains(message, "did not find expected") {
			fault.line++
		}
	}
	if strings.Contains(message, "mapping values are not allowed") {
		fault.remedy = "put the text in quotes: it holds a colon followed by a space"
	}
	return fault
}

// errEnough ends a walk at the limits.
var errEnough = errors.New("enough files")

// list fills Files in. What is hidden (.git, .DS_Store) or compiled (__pycache__) is no part of the skill.
func (s *Skill) list() ([]finding.Finding, error) {
	var findings []finding.Finding
	var total int64
	err := fs.WalkDir(s.FS, ".", func(name string, entry fs.DirEntry, err error) error {
		hidden := noPart(name)
		switch {
		case hidden && entry != nil && entry.IsDir():
			return fs.SkipDir
		case hidden:
			return nil
		case err != nil:
			findings = append(findings, s.fileFinding(name, err))
			return nil
		case entry.IsDir():
			return nil
		}
		info, err := fs.Stat(s.FS, name)
		if err != nil || info.IsDir() || !info.Mode().IsRegular() {
			if err != nil {
				findings = append(findings, s.fileFinding(name, err))
			}
			return nil
		}
		if total += info.Size(); len(s.Files) == MaxFiles || total > MaxBytes {
			return errEnough
		}
		file, err := s.digest(name)
		if err != nil {
			findings = append(findings, s.fileFinding(name, err))
			return nil
		}
		s.Files = append(s.Files, file)
		return nil
	})
	if errors.Is(err, errEnough) {
		s.Dynamic, err = true, nil
		findings = append(findings, finding.Finding{Code: "skill_too_large", Severity: finding.Warning, What: fmt.Sprintf("%s has more than %d files or %d MiB; the first %d are listed", s.Name, MaxFiles, MaxBytes>>20, len(s.Files)),
			Where: &finding.Where{Path: s.Dir}, Expected: "at most 512 files and 16 MiB", Remedy: "split the skill, or move data out of it"})
	}
	if err != nil {
		return nil, fmt.Errorf("list skill %s: %w", s.Name, err)
	}
	return findings, nil
}

func (s *Skill) fileFinding(name string, err error) finding.Finding {
	return finding.Finding{Code: "skill_file_unreadable", Severity: finding.Warning, What: fmt.Sprintf("%s of skill %s can't be read and is left out: %v", name, s.Name, reason(err)),
		Where: &finding.Where{Path: path.Join(s.Dir, name)}, Expected: "a file inside the skill's own place", Remedy: "replace a link that leads elsewhere by the file itself"}
}

func (s *Skill) digest(name string) (File, error) {
	f, err := s.FS.Open(name)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, io.LimitReader(f, MaxBytes))
	if err != nil {
		return File{}, err
	}
	return File{Path: name, URI: s.URI(name), SHA256: "sha256:" + hex.EncodeToString(sum.Sum(nil)), Size: size}, nil
}

func readFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// reason strips the operation and path from a file error: the sentence around it names them.
func reason(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// LoadAll loads every skill whose folder lies directly in folder root of fsys, by folder name. A root that is not there has
// no skills. A skill that can't be loaded is left out and its findings say why; the others are not affected.
func LoadAll(fsys fs.FS, root string) ([]*Skill, []finding.Finding, error) {
	entries, err := fs.ReadDir(fsys, root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list skills in %s: %w", root, err)
	}
	var skills []*Skill
	var findings []finding.Finding
	for _, entry := range entries {
		dir := path.Join(root, entry.Name())
		if !mayBeSkill(entry) {
			continue
		}
		s, found, err := Load(fsys, dir)
		var refused *finding.Refused
		switch {
		case errors.As(err, &refused):
			findings = append(findings, refused.Findings...)
			continue
		case err != nil:
			return nil, nil, err
		}
		skills, findings = append(skills, s), append(findings, found...)
	}
	return skills, findings, nil
}
