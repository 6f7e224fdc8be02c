package recall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/skill"
)

// Bounds of a library and of one of its files.
const (
	maxCards           = 20_000
	maxCardBytes int64 = 1 << 20
)

// card is one resource: a folder assets/<domain>/<category>/<name>/ of a skill of type resource.
type card struct {
	skill       *skill.Skill
	dir         string // in the skill
	name        string // as metadata.json has it, else the folder's
	names       []string
	kind        string
	domain      string // as domainKey gives it
	description string
	limitations string
	tags        []string
}

// readCards lists the cards of all resource skills in a fixed order: by skill, then by folder.
func readCards(ctx context.Context, library *skill.Library) ([]card, []finding.Finding, error) {
	var cards []card
	var findings []finding.Finding
	for _, s := range library.List(skill.TypeResource) {
		dirs, err := cardFolders(s.FS)
		if err != nil {
			return nil, nil, fmt.Errorf("list the cards of skill %s: %w", s.Name, err)
		}
		for _, dir := range dirs {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			if len(cards) == maxCards {
				findings = append(findings, finding.Finding{Code: "recall_library_cut", Severity: finding.Warning, What: fmt.Sprintf("the library holds more than %d cards; the ones from %s on are left out", maxCards, s.URI(dir)),
					Where: &finding.Where{Path: s.URI(dir)}, Remedy: "split the library over several workspaces"})
				return cards, findings, nil
			}
			c, f := readCard(s, dir)
			cards = append(cards, c)
			if f != nil {
				findings = append(findings, *f)
			}
		}
	}
	return cards, findings, nil
}

// cardFolders lists the folders three levels below assets. A skill without assets has none.
func cardFolders(fsys fs.FS) ([]string, error) {
	level := []string{"assets"}
	for range 3 {
		var below []string
		for _, dir := range level {
			entries, err := fs.ReadDir(fsys, dir)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			for _, entry := range entries {
				if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
					below = append(below, path.Join(dir, entry.Name()))
				}
			}
		}
		level = below
	}
	return level, nil
}

// readCard reads metadata.json as far as it can be read; the folder's own names stand in for what it lacks.
func readCard(s *skill.Skill, dir string) (card, *finding.Finding) {
	parts := strings.Split(dir, "/")
	c := card{skill: s, dir: dir, name: parts[3], kind: parts[2], domain: domainKey(parts[1]), names: []string{fold(parts[3])}}
	file := path.Join(dir, "metadata.json")
	data, err := readFile(s.FS, file)
	var metadata map[string]any
	if err == nil {
		err = json.Unmarshal(data, &metadata)
	}
	if err != nil {
		return c, &finding.Finding{Code: "card_malformed", Severity: finding.Warning, What: fmt.Sprintf("the metadata of card %s can't be read: %v", parts[3], err), Where: &finding.Where{Path: s.URI(file)},
			Expected: "a JSON object with name, type, domain, version, description, tags", Remedy: "correct the file; until then the card is found by its folder's name"}
	}
	take := func(key string, into *string) {
		if text := strings.Join(texts(metadata[key]), "; "); text != "" {
			*into = text
		}
	}
	take("name", &c.name)
	take("type", &c.kind)
	take("description", &c.description)
	take("limitations", &c.limitations)
	domain := ""
	if take("domain", &domain); domain != "" {
		c.domain = domainKey(domain)
	}
	if folded := fold(c.name); folded != c.names[0] {
		c.names = append(c.names, folded)
	}
	for _, tag := range texts(metadata["tags"]) {
		for _, part := range strings.FieldsFunc(tag, func(r rune) bool { return r == ',' || r == ';' || r == '，' }) {
			if folded := fold(part); folded != "" {
				c.tags = append(c.tags, folded)
			}
		}
	}
	return c, nil
}

// texts is a value as texts: a lone string, or the strings of a list.
func texts(value any) []string {
	switch x := value.(type) {
	case string:
		if trimmed := strings.TrimSpace(x); trimmed != "" {
			return []string{trimmed}
		}
	case []any:
		var all []string
		for _, element := range x {
			all = append(all, texts(element)...)
		}
		return all
	}
	return nil
}

// called reports whether one of the card's names is the folded one.
func (c *card) called(folded string) bool {
	for _, name := range c.names {
		if name == folded {
			return true
		}
	}
	return false
}

func (c *card) uri() string { return c.skill.URI(c.dir) }

var (
	heading    = regexp.MustCompile(`^\s{0,3}(#+)\s*(.*?)\s*#*\s*$`)
	listItem   = regexp.MustCompile(`^\s*(?:[-*+]|\d+[.)])\s+(.*)$`)
	inCode     = regexp.MustCompile("`([^`]+)`")
	linkText   = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)
	afterNamed = regexp.MustCompile(`\s*(?:[:：(（,，;—–|]|\s-\s).*$`)
)

// dependencies returns the names listed under "# key_dependencies" in spec.md, in their order. A name is what an item
// shows as code, or its link's text, or what stands before a colon, bracket or dash.
func (c *card) dependencies() []string {
	data, err := readFile(c.skill.FS, path.Join(c.dir, "spec.md"))
	if err != nil {
		return nil
	}
	var names []string
	level := 0 // of the section that is open, 0: none
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if m := heading.FindStringSubmatch(line); m != nil {
			switch {
			case fold(m[2]) == "key dependencies":
				level = len(m[1])
			case len(m[1]) <= level:
				level = 0
			}
			continue
		}
		item := listItem.FindStringSubmatch(line)
		if level == 0 || item == nil {
			continue
		}
		if name := dependencyName(item[1]); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func dependencyName(item string) string {
	if m := inCode.FindStringSubmatch(item); m != nil {
		return strings.TrimSpace(m[1])
	}
	if m := linkText.FindStringSubmatch(item); m != nil {
		return strings.TrimSpace(m[1])
	}
	return strings.Trim(afterNamed.ReplaceAllString(item, ""), " *_.")
}

// content joins the wanted files within limit bytes. What is cut or not there is said in notes, and a cut in the text too.
func (c *card) content(files []string, limit int) (text string, notes []string) {
	var out strings.Builder
	if c.description != "" {
		fmt.Fprintf(&out, "%s: %s\n", c.name, c.description)
	}
	for _, file := range files {
		data, err := readFile(c.skill.FS, path.Join(c.dir, file))
		if err != nil {
			notes = append(notes, "it has no readable "+file)
			continue
		}
		fmt.Fprintf(&out, "\n--- %s ---\n%s\n", file, strings.TrimSpace(strings.ToValidUTF8(string(data), "\ufffd")))
	}
	text = strings.TrimSpace(out.String())
	if len(text) <= limit {
		return text, notes
	}
	whole := len(text)
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	note := fmt.Sprintf("cut: %d of %d bytes shown; ask again with filters.keyword %q and a narrower content_request (usage, config or planning)", limit, whole, c.name)
	return text[:limit] + "\n[" + note + "]", append(notes, note)
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxCardBytes))
}
