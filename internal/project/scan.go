package project

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trainwright/trainwright/internal/finding"
)

// Scan reads the tree at root. A root that is a file is scanned as its folder, with the file as the entry point. Scripts and
// configurations that can't be read are findings and the scan goes on; only a root that is not there or can't be opened is
// refused (file_missing, file_unreadable). ctx ends the scan with its error.
func Scan(ctx context.Context, root string, opts Options) (*Tree, []finding.Finding, error) {
	opts.MaxFiles = cmp.Or(opts.MaxFiles, DefaultMaxFiles)
	opts.MaxBytes = cmp.Or(opts.MaxBytes, DefaultMaxBytes)
	opts.GitBudget = cmp.Or(opts.GitBudget, DefaultGitBudget)
	absolute, hint, err := locate(root, opts.Entrypoint)
	if err != nil {
		return nil, nil, err
	}
	folder, err := os.OpenRoot(absolute)
	if err != nil {
		return nil, nil, finding.Refuse(finding.Finding{Code: "file_unreadable", Severity: finding.Error, What: fmt.Sprintf("%s can't be opened: %v", absolute, reason(err)),
			Where: &finding.Where{Path: absolute}, Expected: "a folder this user may read", Remedy: "correct its permissions or name another folder"})
	}
	defer folder.Close()
	s := &scanner{walker: &walker{root: folder, options: opts}, hint: hint, modules: map[string]bool{}, firstImport: map[string]importedModule{},
		tree: &Tree{Root: absolute, Entrypoints: []Entrypoint{}, Configs: []Config{}, Dependencies: []Dependency{}, Docs: []string{}, DataFiles: []string{}, Checkpoints: []string{}, Traps: []Trap{}, Settings: []Setting{}, Launches: []Launch{}}, texts: map[string]string{}}
	if err := s.walk(ctx); err != nil {
		return nil, nil, err
	}
	if err := s.hash(ctx); err != nil {
		return nil, nil, err
	}
	if err := s.readFiles(ctx); err != nil {
		return nil, nil, err
	}
	s.tree.Files = append([]File{}, s.files...)
	s.probe(ctx)
	s.finish()
	s.tree.Git = ReadGit(ctx, absolute, opts.GitCeiling, opts.GitBudget)
	return s.tree, s.findings, ctx.Err()
}

// locate makes root absolute and the hint relative to it.
func locate(root, hint string) (absolute, relative string, err error) {
	absolute, err = filepath.Abs(root)
	if err != nil {
		return "", "", fmt.Errorf("scan %s: %w", root, err)
	}
	info, err := os.Stat(absolute)
	if err != nil {
		code, what := "file_unreadable", fmt.Sprintf("%s can't be read: %v", absolute, reason(err))
		if os.IsNotExist(err) {
			code, what = "file_missing", fmt.Sprintf("%s does not exist", absolute)
		}
		return "", "", finding.Refuse(finding.Finding{Code: code, Severity: finding.Error, What: what, Where: &finding.Where{Path: absolute},
			Expected: "the folder of a project, or one of its scripts", Remedy: "correct the path"})
	}
	if !info.IsDir() {
		return filepath.Dir(absolute), filepath.Base(absolute), nil
	}
	if filepath.IsAbs(hint) {
		if rel, err := filepath.Rel(absolute, hint); err == nil {
			hint = rel
		}
	}
	if hint != "" {
		hint = path.Clean(filepath.ToSlash(hint))
	}
	return absolute, hint, nil
}

// scanner is one scan under way.
type scanner struct {
	*walker
	tree        *Tree
	hint        string
	modules     map[string]bool // what the project itself offers to import, as "<folder>/<name>"
	firstImport map[string]importedModule
	parsed      int64             // bytes handed out so far
	texts       map[string]string // scripts that the probe may be asked about
	cut         bool              // that there were too many has been said
}

// readFiles parses what the walk listed.
func (s *scanner) readFiles(ctx context.Context) error {
	for i, file := range s.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if file.Kind == KindConfig && !s.readConfigFile(file) {
			file.Kind = KindData
			s.files[i].Kind = KindData
		}
		if file.Kind == KindShell || makefileName.MatchString(path.Base(file.Path)) {
			if src, ok := s.content(file, maxConfigBytes, "script_too_large"); ok {
				s.tree.Launches = append(s.tree.Launches, readLaunches(file.Path, src)...)
			}
		}
		switch file.Kind {
		case KindPython:
			s.readPython(file)
		case KindDoc:
			s.tree.Docs = append(s.tree.Docs, file.Path)
		case KindData:
			s.tree.DataFiles = append(s.tree.DataFiles, file.Path)
		case KindCheckpoint:
			s.tree.Checkpoints = append(s.tree.Checkpoints, file.Path)
		}
	}
	return nil
}

func (s *scanner) warn(code, what string, where finding.Where, expected, remedy string) {
	s.findings = append(s.findings, finding.Finding{Code: code, Severity: finding.Warning, What: what, Where: &where, Expected: expected, Remedy: remedy})
}

// content returns a file's text, or false with a finding where it is none or too large.
func (s *scanner) content(file File, limit int64, tooLarge string) (string, bool) {
	if file.Bytes > limit {
		s.note(tooLarge, fmt.Sprintf("%s has %d bytes and was not parsed", file.Path, file.Bytes), file.Path, fmt.Sprintf("at most %d bytes", limit), "")
		return "", false
	}
	if s.parsed += file.Bytes; s.parsed > s.options.MaxBytes {
		if !s.cut {
			s.cut = true
			s.note("scan_cut", fmt.Sprintf("%s and what comes after it was not parsed: one scan reads %d bytes", file.Path, s.options.MaxBytes), file.Path, "", "scan a smaller folder")
		}
		return "", false
	}
	data, err := s.read(file.Path, limit+1)
	if err != nil {
		if file.SHA256 == "" { // said already when its hash was to be taken
			return "", false
		}
		s.note("file_unreadable", fmt.Sprintf("%s can't be read: %v", file.Path, reason(err)), file.Path, "a file this user may read", "")
		return "", false
	}
	if at := notText(data); at >= 0 {
		s.warn("not_text", fmt.Sprintf("%s is no text: byte %d is not UTF-8", file.Path, at), finding.Where{Path: file.Path, Byte: int64(at)}, "a text file in UTF-8", "name the right file, or save this one as UTF-8")
		return "", false
	}
	return string(data), true
}

// codingLine is the declaration of PEP 263; with it a script may be in another encoding.
var codingLine = regexp.MustCompile(`^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)`)

// notText returns the first byte that makes data no text, or -1.
func notText(data []byte) int {
	if at := bytes.IndexByte(data, 0); at >= 0 {
		return at
	}
	if utf8.Valid(data) {
		return -1
	}
	lines := bytes.SplitN(data, []byte("\n"), 3)
	for _, line := range lines[:min(2, len(lines))] {
		if codingLine.Match(line) {
			return -1
		}
	}
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

func (s *scanner) readPython(file File) {
	dir, base := path.Split(file.Path)
	name := strings.TrimSuffix(base, ".py")
	s.modules[dir+name] = true
	for folder := strings.TrimSuffix(dir, "/"); folder != "" && folder != "."; folder = strings.TrimSuffix(path.Dir(folder), ".") {
		s.modules[folder] = true
	}
	src, ok := s.content(file, maxReadBytes, "script_too_large")
	if !ok {
		return
	}
	script, fault := newScript(file.Path, src)
	if fault != nil {
		line := script.lines.line(fault.at)
		s.warn("python_unreadable", fmt.Sprintf("%s can't be read from line %d on: %s", file.Path, line, fault.what), finding.Where{Path: file.Path, Line: line, Byte: int64(fault.at)},
			"Python that its own parser accepts", "correct the line; what stands before it was read")
	}
	support := testFile.MatchString(base) || testFolder.MatchString(file.Path) // what tests import, a run does not need
	if !support && fault == nil {
		s.texts[file.Path] = src
	}
	for _, module := range script.imports() {
		if _, known := s.firstImport[module.name]; !known && !support {
			s.firstImport[module.name] = module
		}
	}
	entry, findings := readEntrypoint(script, s.hint)
	s.findings = append(s.findings, findings...)
	var arguments []Argument
	if entry != nil {
		s.tree.Entrypoints = append(s.tree.Entrypoints, *entry)
		arguments = entry.Arguments
	}
	s.tree.Traps = append(s.tree.Traps, script.traps(arguments)...)
}

// readConfigFile reads dependencies or configuration out of a file. It is false for a JSON file that is data: too large,
// or without keys.
func (s *scanner) readConfigFile(file File) bool {
	base := strings.ToLower(path.Base(file.Path))
	if requirementsFile(base) || base == "pyproject.toml" || base == "environment.yml" || base == "environment.yaml" {
		if src, ok := s.content(file, maxReadBytes, "dependencies_too_large"); ok {
			found, findings := readDependencies(file.Path, src)
			s.tree.Dependencies = append(s.tree.Dependencies, found...)
			s.findings = append(s.findings, findings...)
		}
		return true
	}
	format := configFormat(file.Path)
	if format == "" {
		return true
	}
	src, ok := s.content(file, maxConfigBytes, "config_too_large")
	if !ok {
		return file.Bytes <= maxConfigBytes
	}
	config, traps, findings := readConfig(file.Path, format, src)
	s.findings = append(s.findings, findings...)
	s.tree.Traps = append(s.tree.Traps, traps...)
	if len(config.Values) > 0 {
		s.tree.Configs = append(s.tree.Configs, config)
	}
	return format == "yaml" || len(config.Values) > 0 || len(findings) > 0
}

// finish does what needs the whole tree: the ranking, the imports nobody declared, the hint that leads nowhere.
func (s *scanner) finish() {
	rank(s.tree.Entrypoints)
	s.findings = append(s.findings, s.tree.brokenIncludes()...)
	var imports []importedModule
	for _, module := range s.firstImport {
		imports = append(imports, module)
	}
	slices.SortFunc(imports, func(a, b importedModule) int { return strings.Compare(a.name, b.name) })
	s.tree.Dependencies = append(s.tree.Dependencies, undeclared(imports, s.tree.Dependencies, s.local)...)
	slices.SortStableFunc(s.tree.Traps, func(a, b Trap) int {
		return cmp.Or(strings.Compare(a.Place.Path, b.Place.Path), cmp.Compare(a.Place.Start, b.Place.Start), strings.Compare(a.Kind, b.Kind))
	})
	s.tree.Traps = slices.Compact(s.tree.Traps)
	if s.hint == "" || s.tree.Entrypoint(s.hint) != nil {
		return
	}
	var found []string
	for _, e := range s.tree.Entrypoints[:min(3, len(s.tree.Entrypoints))] {
		found = append(found, e.Path)
	}
	remedy := "name a script of this project"
	if len(found) > 0 {
		remedy += ", such as " + strings.Join(found, ", ")
	}
	s.note("entrypoint_missing", fmt.Sprintf("the entry point %s is no readable Python script of %s", s.hint, s.tree.Root), s.hint, "a path relative to the project's root", remedy)
}

// local reports whether a module that importer names is the project's own: a folder or script beside it, above it up to
// the root, or under src or lib.
func (s *scanner) local(name, importer string) bool {
	for dir := path.Dir(importer); ; dir = path.Dir(dir) {
		if s.modules[strings.TrimPrefix(dir+"/"+name, "./")] {
			return true
		}
		if dir == "." {
			break
		}
	}
	return s.modules["src/"+name] || s.modules["lib/"+name] || s.modules["python/"+name]
}
