package resources

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ignoring is what git ignores on the way down to a file: the rules of the folders passed so far, the last one that matches
// decides. Rules are kept for names below the top of the repository; above is the workspace's own path there.
//
// go-git has a matcher, but one that takes a rule for a folder (!*/) as true of all that is in it, so that it shows files
// that git ignores.
type ignoring struct {
	above []string
	rules []rule
}

// rule is one line of a .gitignore. domain is the number of names above the folder that it stands in.
type rule struct {
	pattern                     *regexp.Regexp
	domain                      int
	include, folders, anyFolder bool
}

const (
	ignoreFile    = ".gitignore"
	excludeFile   = "info/exclude"
	mostRuleBytes = 256 << 10
	mostAbove     = 64
)

// ignoringAt prepares the rules that hold for a workspace: those of the repository that it is part of, above it. A
// workspace that is itself ignored there was chosen by the user, and stands for itself.
func ignoringAt(workspace string) *ignoring {
	top, above := repositoryOf(workspace)
	g := &ignoring{}
	for i := range above { // the top folder, and so on down to the one that holds the workspace
		folder := filepath.Join(append([]string{top}, above[:i]...)...)
		at, err := os.OpenRoot(folder)
		if err != nil {
			continue
		}
		g.enter(at, above[:i])
		_ = at.Close()
		if g.matches(above[:i+1], true) {
			return &ignoring{}
		}
	}
	g.above = above
	return g
}

// repositoryOf finds the repository that holds a folder, and the folder's path in it; the folder itself where there is none.
func repositoryOf(folder string) (top string, below []string) {
	at := folder
	for range mostAbove {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at, below
		}
		parent := filepath.Dir(at)
		if parent == at {
			break
		}
		at, below = parent, append([]string{filepath.Base(at)}, below...)
	}
	return folder, nil
}

// enter adds the rules of a folder, which lies at path in the workspace.
func (g *ignoring) enter(at *os.Root, path []string) {
	domain := len(g.above) + len(path)
	if git, err := at.OpenRoot(".git"); err == nil { // the weakest rules of a repository, so they go before
		g.rules = append(g.rules, parseRules(readRules(git, excludeFile), domain)...)
		_ = git.Close()
	}
	g.rules = append(g.rules, parseRules(readRules(at, ignoreFile), domain)...)
}

func readRules(at *os.Root, name string) []byte {
	info, err := at.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	file, err := at.OpenFile(name, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	data, _ := io.ReadAll(io.LimitReader(file, mostRuleBytes)) // what could be read holds
	return data
}

// match says whether git ignores a name, whose folders it does not ignore.
func (g *ignoring) match(path []string, folder bool) bool {
	return g.matches(slices.Concat(g.above, path), folder)
}

func (g *ignoring) matches(path []string, folder bool) bool {
	for _, r := range slices.Backward(g.rules) {
		if r.domain >= len(path) || r.folders && !folder {
			continue
		}
		name := path[len(path)-1]
		if !r.anyFolder {
			name = strings.Join(path[r.domain:], "/")
		}
		if r.pattern.MatchString(name) {
			return !r.include
		}
	}
	return false
}

// parseRules reads the lines of a .gitignore, as gitignore(5) says. A line that is no pattern matches nothing.
func parseRules(text []byte, domain int) []rule {
	var rules []rule
	for line := range strings.Lines(string(bytes.TrimPrefix(text, []byte("\ufeff")))) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if strings.HasPrefix(line, "#") {
			continue
		}
		for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
			line = line[:len(line)-1]
		}
		r := rule{domain: domain}
		if line, r.include = strings.CutPrefix(line, "!"); line == "" {
			continue
		}
		line, r.folders = strings.CutSuffix(line, "/")
		r.anyFolder = !strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		expression, ok := regexOf(line)
		if !ok || line == "" {
			continue
		}
		if namesFold {
			expression = "(?i)" + expression
		}
		var err error
		if r.pattern, err = regexp.Compile(expression); err == nil {
			rules = append(rules, r)
		}
	}
	return rules
}

// regexOf makes a regular expression of a pattern; not ok where a bracket or a backslash is left open.
func regexOf(pattern string) (expression string, ok bool) {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(pattern); {
		rest := pattern[i:]
		atName := i == 0 || pattern[i-1] == '/'
		switch {
		case atName && strings.HasPrefix(rest, "**/"):
			b.WriteString(`(?:.*/)?`)
			i += 3
		case atName && rest == "**":
			b.WriteString(`.+`)
			i += 2
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
			i += len(rest) - len(strings.TrimLeft(rest, "*"))
		case rest[0] == '?':
			b.WriteString(`[^/]`)
			i++
		case rest[0] == '[':
			class, size := classOf(rest)
			if size == 0 {
				return "", false
			}
			b.WriteString(class)
			i += size
		case rest[0] == '\\':
			if len(rest) == 1 {
				return "", false
			}
			b.WriteString(regexp.QuoteMeta(rest[1:2]))
			i += 2
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
			i++
		}
	}
	b.WriteString(`\z`)
	return b.String(), true
}

// classOf translates a bracket expression, and gives its length in the pattern; 0 where it has no end.
func classOf(pattern string) (class string, size int) {
	var b strings.Builder
	b.WriteByte('[')
	i := 1
	if i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^') {
		b.WriteString("^/")
		i++
	}
	var before byte // what a range begins with
	for first := true; i < len(pattern); first = false {
		switch c := pattern[i]; {
		case c == ']' && !first:
			b.WriteByte(']')
			return b.String(), i + 1
		case c == '[' && strings.HasPrefix(pattern[i:], "[:"):
			end := strings.Index(pattern[i:], ":]")
			if end < 0 {
				return "", 0
			}
			b.WriteString(pattern[i : i+end+2])
			i, before = i+end+2, 0
		case c == '\\':
			if i+1 == len(pattern) {
				return "", 0
			}
			before = pattern[i+1]
			b.WriteString(quoteInClass(before))
			i += 2
		case c == '-' && before != 0 && i+1 < len(pattern) && pattern[i+1] < before && pattern[i+1] != ']' && pattern[i+1] != '\\':
			i, before = i+2, 0 // [z-a] is no range, and git takes its z
		case c == '-' && before != 0 && i+1 < len(pattern) && pattern[i+1] != ']':
			b.WriteByte('-')
			i++
		default:
			before = c
			b.WriteString(quoteInClass(c))
			i++
		}
	}
	return "", 0
}

func quoteInClass(c byte) string {
	if strings.IndexByte(`\]^-[&~`, c) >= 0 {
		return string([]byte{'\\', c})
	}
	return string([]byte{c})
}
