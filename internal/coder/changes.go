package coder

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/redact"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Bounds of a set of changes.
const (
	maxFiles = 200
	maxBytes = 4 << 20 // of one file
)

// baseNew is the base of a file that must not exist.
const baseNew = "new"

// changeSet is what a call makes of a repository.
type changeSet struct {
	root  string
	asked string    // hash of what the call asked for
	files []*change // in the order in which they were named
	notes []finding.Finding
}

// change is one file: its bytes before (nil for a new one) and after.
type change struct {
	name          string // relative to the repository, slashes
	path          string // absolute, free of links
	before, after []byte
	exists        bool
}

func (c *change) beforeHash() string {
	if !c.exists {
		return baseNew
	}
	return rundir.HashBytes(c.before)
}

// workOut reads every file that is named and makes the changes in memory. All that is wrong with them is told at once.
func workOut(roots *rundir.Roots, root string, changes Changes) (*changeSet, error) {
	set := &changeSet{root: root}
	wrong := finding.Refuse()
	try := func(err error) error {
		found, other := finding.Of(err)
		wrong.Findings = append(wrong.Findings, found...)
		return other
	}
	if n := len(changes.Files) + len(changes.Edits); n > maxFiles {
		return nil, refuse("changes_many", root, fmt.Sprintf("%d changes in one call", n), fmt.Sprintf("at most %d", maxFiles), "land them in several calls")
	}
	for i, file := range changes.Files {
		if err := try(set.replace(roots, file, fmt.Sprintf("changes.files[%d]", i))); err != nil {
			return nil, err
		}
	}
	for i, edit := range changes.Edits {
		if err := try(set.edit(roots, edit, fmt.Sprintf("changes.edits[%d]", i))); err != nil {
			return nil, err
		}
	}
	if len(wrong.Findings) > 0 {
		return nil, wrong
	}
	return set, nil
}

// open finds a file in the set, or reads it.
func (s *changeSet) open(roots *rundir.Roots, name string) (*change, error) {
	local, err := inside(s.root, name)
	if err != nil {
		return nil, err
	}
	if err := forbidden(local, name); err != nil {
		return nil, err
	}
	path, err := roots.Writable(filepath.Join(s.root, local))
	if err != nil {
		return nil, err
	}
	if err := forbidden(roots.Rel(path), name); err != nil { // a link may lead there
		return nil, err
	}
	if !rundir.Inside(s.root, path) {
		return nil, refuse("path_outside_repository", name, "a link leads out of the repository, to "+path, "a file inside "+s.root, "name the file where it is, with its own repository")
	}
	for _, c := range s.files {
		if c.path == path {
			return c, nil
		}
	}
	c := &change{name: filepath.ToSlash(local), path: path}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, refuse("not_a_regular_file", path, name+" is no regular file", "a file", "name a file")
	case info.Size() > maxBytes:
		return nil, refuse("file_too_large", path, fmt.Sprintf("%s has %d bytes", name, info.Size()), fmt.Sprintf("at most %d", maxBytes), "this is data, not code")
	default:
		if c.before, err = os.ReadFile(path); err != nil {
			return nil, err
		}
		c.exists = true
	}
	c.after = c.before
	s.files = append(s.files, c)
	return c, nil
}

// forbidden refuses a path with a part that nobody but the user writes: secrets, git's own, the records of runs.
func forbidden(path, name string) error {
	for _, part := range strings.Split(filepath.ToSlash(path), "/") {
		if redact.SecretName(part) || strings.EqualFold(part, ".onescience") {
			return refuse("path_secret", name, "it leads to "+part+": files of this name hold secrets, or are git's or trainwright's own", "a file of the project", "have the user make this change")
		}
	}
	return nil
}

// replace takes a whole file.
func (s *changeSet) replace(roots *rundir.Roots, file File, field string) error {
	c, err := s.open(roots, file.Path)
	if err != nil {
		return err
	}
	content := []byte(file.Content)
	if len(content) > maxBytes || !utf8.Valid(content) {
		return refuse("content_unusable", c.path, "the content is no UTF-8 text of a usual size", fmt.Sprintf("at most %d bytes of UTF-8", maxBytes), "send code, not data")
	}
	if c.exists && bytes.Equal(c.before, content) {
		c.after = content
		return nil // it is there already, whatever it was made against
	}
	if c.exists && file.Base == "" {
		return at(finding.Finding{Code: "base_missing", What: fmt.Sprintf("%s exists, and the change does not say what it replaces", c.name), Expected: "base: the sha256 of the file that was read",
			Remedy: fmt.Sprintf("read the file as it is; if the change still holds send \"base\": %q", c.beforeHash())}, c, field+".base")
	}
	if err := c.against(file.Base, field); err != nil {
		return err
	}
	c.after = content
	return nil
}

// against holds a file to the base that a change names.
func (c *change) against(base, field string) error {
	have := c.beforeHash()
	base = strings.ToLower(strings.TrimSpace(base))
	bare := strings.TrimPrefix(base, "sha256:")
	switch {
	case base == "" || base == have || base == baseNew && !c.exists:
		return nil
	case len(bare) >= 12 && strings.HasPrefix(strings.TrimPrefix(have, "sha256:"), bare):
		return nil
	}
	what := fmt.Sprintf("%s is not what the change was made against", c.name)
	if base == baseNew {
		what = c.name + " exists, and the change takes it for new"
	} else if !c.exists {
		what = c.name + " does not exist"
	}
	return at(finding.Finding{Code: "base_changed", What: what + "; nothing was changed", Expected: base,
		Remedy: fmt.Sprintf("read it as it is now and send the change again with \"base\": %q", have)}, c, field+".base")
}

func at(f finding.Finding, c *change, field string) error {
	f.Severity = finding.Error
	f.Where = &finding.Where{Path: c.path, Field: field}
	return finding.Refuse(f)
}

// edit replaces one passage.
func (s *changeSet) edit(roots *rundir.Roots, edit Edit, field string) error {
	c, err := s.open(roots, edit.Path)
	if err != nil {
		return err
	}
	if !c.exists && c.after == nil {
		return at(finding.Finding{Code: "file_missing", What: c.name + " does not exist", Expected: "a file to edit", Remedy: "check the path, or send the whole file in files with base new"}, c, field+".path")
	}
	if err := c.against(edit.Base, field); err != nil {
		return err
	}
	search, replace := edit.Search, edit.Replace
	if search == "" {
		return at(finding.Finding{Code: "search_empty", What: "the passage to replace is empty", Expected: "a verbatim passage", Remedy: "send the passage with the lines around it"}, c, field+".search")
	}
	text := string(c.after)
	if crlf := strings.Contains(text, "\r\n") && !strings.Contains(search, "\r\n"); crlf { // the file's line ends, whatever the call has
		search, replace = strings.ReplaceAll(search, "\n", "\r\n"), strings.ReplaceAll(strings.ReplaceAll(replace, "\r\n", "\n"), "\n", "\r\n")
	}
	places := occurrences(text, search)
	switch {
	case len(places) == 0:
		return s.notFound(c, text, search, replace, field)
	case edit.Occurrence > len(places) || edit.Occurrence < 0:
		return at(finding.Finding{Code: "search_ambiguous", What: fmt.Sprintf("the passage stands %d time(s) in %s, the change asks for number %d", len(places), c.name, edit.Occurrence),
			Expected: fmt.Sprintf("occurrence 1 to %d", len(places)), Remedy: "correct occurrence"}, c, field+".occurrence")
	case len(places) > 1 && edit.Occurrence == 0:
		return at(finding.Finding{Code: "search_ambiguous", What: fmt.Sprintf("the passage stands %d times in %s, on the lines %s", len(places), c.name, linesAt(text, places)),
			Expected: "a passage that stands once", Remedy: "send more of the lines around it, or \"occurrence\": n counted from 1"}, c, field+".search")
	}
	from := places[max(edit.Occurrence-1, 0)]
	c.after = []byte(text[:from] + replace + text[from+len(search):])
	return nil
}

// notFound tells where the passage nearly stands.
func (s *changeSet) notFound(c *change, text, search, replace, field string) error {
	f := finding.Finding{Code: "search_not_found", What: "the passage does not stand in " + c.name, Expected: "a verbatim passage, with its spaces", Remedy: "read the file and send the passage as it stands there"}
	err := at(f, c, field+".search")
	refused := err.(*finding.Refused)
	if at := occurrences(text, replace); replace != "" && len(at) > 0 {
		refused.Findings[0].Where.Line = 1 + strings.Count(text[:at[0]], "\n")
		refused.Findings[0].What += fmt.Sprintf("; the replacement stands on line %d already", refused.Findings[0].Where.Line)
		refused.Findings[0].Remedy = "where this change is made already, leave it out; else read the file and send the passage as it stands there"
	} else if line, shown := nearest(text, search); line > 0 {
		refused.Findings[0].Where.Line = line
		refused.Findings[0].What += fmt.Sprintf("; line %d comes nearest: %s", line, shown)
	}
	return err
}

// nearest is the line that is most like the first line of the passage with letters in it.
func nearest(text, search string) (line int, shown string) {
	wanted := ""
	for _, l := range strings.Split(search, "\n") {
		if strings.TrimSpace(l) != "" {
			wanted = strings.Join(strings.Fields(l), " ")
			break
		}
	}
	if wanted == "" {
		return 0, ""
	}
	best := 0.5 // less alike than that says nothing
	words := strings.Fields(wanted)
	for i, l := range strings.Split(text, "\n") {
		have := strings.Fields(l)
		if len(have) == 0 {
			continue
		}
		alike := 0
		for _, w := range words {
			if slices.Contains(have, w) {
				alike++
			}
		}
		if score := 2 * float64(alike) / float64(len(words)+len(have)); score > best || strings.Join(have, " ") == wanted && score >= best {
			best, line, shown = score, i+1, strings.TrimSpace(l)
		}
	}
	if len(shown) > 160 {
		shown = strings.ToValidUTF8(shown[:160], "") + "…"
	}
	return line, shown
}

func occurrences(text, search string) (places []int) {
	for from := 0; ; {
		i := strings.Index(text[from:], search)
		if i < 0 {
			return places
		}
		places = append(places, from+i)
		from += i + max(len(search), 1)
	}
}

func linesAt(text string, places []int) string {
	var lines []string
	for _, p := range places[:min(len(places), 10)] {
		lines = append(lines, fmt.Sprint(1+strings.Count(text[:p], "\n")))
	}
	return strings.Join(lines, ", ")
}

// diff is the set as a unified difference that git and patch take.
func (s *changeSet) diff() string {
	var b strings.Builder
	for _, c := range s.files {
		if bytes.Equal(c.before, c.after) && c.exists {
			continue
		}
		old, fresh := "a/"+c.name, "b/"+c.name
		if !c.exists {
			old = "/dev/null"
		}
		b.WriteString(udiff.Unified(old, fresh, string(c.before), string(c.after)))
	}
	return b.String()
}

func (s *changeSet) unchanged() bool {
	return !slices.ContainsFunc(s.files, func(c *change) bool { return !c.exists || !bytes.Equal(c.before, c.after) })
}

// summary counts files and lines.
func (s *changeSet) summary() string {
	files, added, removed := 0, 0, 0
	for _, c := range s.files {
		if c.exists && bytes.Equal(c.before, c.after) {
			continue
		}
		files++
	}
	for _, line := range strings.Split(s.diff(), "\n") {
		switch {
		case strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "---"):
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	return fmt.Sprintf("%d file(s), +%d -%d lines", files, added, removed)
}
