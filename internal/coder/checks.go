package coder

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/project"
	"github.com/trainwright/trainwright/internal/pyprobe"
)

// gitBudget is how long git's state may take.
const gitBudget = 5 * time.Second

// surroundings tells what the repository holds that is not committed: what the set changes of it, and that the rest stays.
func surroundings(ctx context.Context, root string, set *changeSet) []finding.Finding {
	git := project.ReadGit(ctx, root, "", gitBudget)
	if git == nil {
		return []finding.Finding{{Code: "no_git", Severity: finding.Note, What: "the repository is not under git: what was there before is kept in the run's folder alone", Where: &finding.Where{Path: root}, Remedy: "nothing to do"}}
	}
	var out []finding.Finding
	dirty := map[string]bool{}
	for _, name := range git.Modified {
		dirty[name] = true
	}
	var touched []string
	for _, c := range set.files {
		if name := strings.TrimPrefix(strings.TrimPrefix(c.path, git.Root), "/"); dirty[name] {
			touched = append(touched, c.name)
			delete(dirty, name)
		}
	}
	if touched != nil {
		out = append(out, finding.Finding{Code: "uncommitted_changes", Severity: finding.Warning, What: "these files hold changes that are not committed, and are changed on top of them: " + finding.Few(touched, 5),
			Where: &finding.Where{Path: root}, Remedy: "the files as they were are kept in the run's folder (landing.json says where)"})
	}
	if len(dirty) > 0 {
		out = append(out, finding.Finding{Code: "work_untouched", Severity: finding.Note, What: fmt.Sprintf("%d other file(s) with uncommitted changes stay as they are", len(dirty)), Where: &finding.Where{Path: root}, Remedy: "nothing to do"})
	}
	return out
}

// compiles asks Python whether texts are Python: it parses them and runs nothing.
const compiles = `import ast, json
out = []
for name, before, after in ASK["files"]:
    said = {"name": name, "line": 0, "what": "", "broken_before": False}
    try:
        ast.parse(after, name)
    except (SyntaxError, ValueError) as e:
        said["line"], said["what"] = getattr(e, "lineno", 0) or 0, getattr(e, "msg", str(e))
        try:
            ast.parse(before, name)
        except (SyntaxError, ValueError):
            said["broken_before"] = True
    out.append(said)
print(json.dumps(out))
`

// syntax refuses Python that does not parse, unless it did not before. Where no Python is there nothing is said.
func syntax(ctx context.Context, set *changeSet) []finding.Finding {
	var files [][3]string
	paths := map[string]string{}
	for _, c := range set.files {
		if strings.HasSuffix(c.name, ".py") && !bytes.Equal(c.before, c.after) {
			files = append(files, [3]string{c.name, string(c.before), string(c.after)})
			paths[c.name] = c.path
		}
	}
	python := project.AnyPython()
	if len(files) == 0 {
		return nil
	}
	unchecked := func(why string) []finding.Finding {
		return []finding.Finding{{Code: "syntax_unchecked", Severity: finding.Note, What: "the Python files were not parsed: " + why, Where: &finding.Where{Path: set.root}, Remedy: "run a test of the project"}}
	}
	if python == "" {
		return unchecked("there is no python3 here")
	}
	var said []struct {
		Name   string `json:"name"`
		Line   int    `json:"line"`
		What   string `json:"what"`
		Before bool   `json:"broken_before"`
	}
	if err := pyprobe.Ask(ctx, python, compiles, map[string]any{"files": files}, 20*time.Second, &said); err != nil {
		return unchecked(err.Error())
	}
	var out []finding.Finding
	for _, s := range said {
		if s.What == "" {
			continue
		}
		f := finding.Finding{Code: "syntax_error", Severity: finding.Error, What: fmt.Sprintf("%s would not parse: %s; nothing was changed", s.Name, s.What),
			Where: &finding.Where{Path: paths[s.Name], Line: s.Line}, Expected: "Python that parses", Remedy: "correct the change and send it again"}
		if s.Before {
			f.Severity, f.What, f.Remedy = finding.Warning, fmt.Sprintf("%s does not parse, and did not before: %s", s.Name, s.What), "correct it with a further change"
		}
		out = append(out, f)
	}
	return out
}
