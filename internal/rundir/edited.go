package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/trainwright/trainwright/internal/finding"
)

// What a run keeps of its Markdown artifacts: the text that was rendered last, and what hands made of it.
const (
	RenderingsDir = "renderings"
	EditsDir      = "edits"
)

// isMarkdown says whether an artifact is for people: phases read the JSON beside it.
func isMarkdown(name string) bool { return strings.EqualFold(path.Ext(name), ".md") }

func (d Dir) renderingPath(name string) string {
	return filepath.Join(d.Path, RenderingsDir, filepath.FromSlash(name))
}

// keepRendering keeps the text of a Markdown artifact for comparison, where it is not kept already.
func (d Dir) keepRendering(name string, data []byte, sha string) error {
	if !isMarkdown(name) {
		return nil
	}
	if kept, err := diskHash(d.renderingPath(name)); err != nil || kept == sha {
		return err
	}
	return WriteFile(d.renderingPath(name), data)
}

// Edit is a Markdown artifact that was changed by hand: the text that was rendered and what stands there now.
type Edit struct {
	Name             string
	Rendered, Edited []byte
}

// Edited compares an artifact with its last rendering; nil when they agree, when there is no artifact or when no rendering was
// kept. Runs made before renderings were kept have none.
func (d Dir) Edited(name string) (*Edit, error) {
	rendered, err := os.ReadFile(d.renderingPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the rendering of %s: %w", name, err)
	}
	file := d.Abs(name)
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() || info.Size() > 64<<20 {
		return nil, nil // gone, or no text that a hand has written
	}
	now, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	known := map[string]rendering{}
	if err := ReadJSON(d.renderedPath(), &known); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if sha := HashBytes(now); string(now) == string(rendered) || sha == known[name].SHA256 || sha == known[name].Before {
		return nil, nil // ours, also where a crash came between the two files
	}
	return &Edit{Name: name, Rendered: rendered, Edited: now}, nil
}

// Diff shows the edit as a unified difference.
func (e Edit) Diff() string {
	return udiff.Unified(e.Name+" (rendered)", e.Name+" (edited)", string(e.Rendered), e.Text())
}

// Text is the edited text with its lines ended as the rendering ends them: some editors change that.
func (e Edit) Text() string { return strings.ReplaceAll(string(e.Edited), "\r\n", "\n") }

// shortDiff is the part of the difference that a message can carry: changed lines, cut at maxDiff bytes and lines.
func (e Edit) shortDiff() string {
	const mostLines, mostBytes = 12, 1200
	var kept []string
	size, changed := 0, 0
	for _, line := range strings.Split(e.Diff(), "\n") {
		if strings.HasPrefix(line, "---") || strings.HasPrefix(line, "+++") || line == "" || line[0] != '+' && line[0] != '-' && line[0] != '@' {
			continue
		}
		if line[0] != '@' {
			changed++
		}
		if len(line) > 240 {
			line = strings.ToValidUTF8(line[:240], "") + "…"
		}
		if size += len(line); len(kept) < mostLines && size <= mostBytes {
			kept = append(kept, line)
		}
	}
	shown := 0
	for _, line := range kept {
		if line[0] != '@' {
			shown++
		}
	}
	if shown < changed {
		kept = append(kept, fmt.Sprintf("… and %d more changed lines", changed-shown))
	}
	return strings.Join(kept, "\n")
}

// Newest is the text that would stand there without the edit: what was rendered after it, else what was rendered before.
func (d Dir) Newest(e Edit) ([]byte, error) {
	rendered := map[string]rendering{}
	if err := ReadJSON(d.renderedPath(), &rendered); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	offered := rendered[e.Name].Offered
	if offered == "" {
		return e.Rendered, nil
	}
	beside, err := os.ReadFile(newName(d.Abs(e.Name)))
	if err != nil || HashBytes(beside) != offered {
		return e.Rendered, nil // turned down, or changed itself
	}
	return beside, nil
}

// KeepEdit copies an edited artifact into the run's edits folder and lets the next rendering take its place. It returns the
// name of the copy. The caller holds the run's lock.
func (d Dir) KeepEdit(e Edit) (kept string, err error) {
	sha := HashBytes(e.Edited)
	base := strings.TrimSuffix(strings.ReplaceAll(e.Name, "/", "-"), path.Ext(e.Name))
	kept = path.Join(EditsDir, base+"-"+strings.TrimPrefix(sha, "sha256:")[:8]+path.Ext(e.Name))
	if err := WriteFile(d.Abs(kept), e.Edited); err != nil {
		return "", err
	}
	rendered := map[string]rendering{}
	if err := ReadJSON(d.renderedPath(), &rendered); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	last := rendered[e.Name]
	last.Before = sha
	rendered[e.Name] = last
	return kept, WriteJSON(d.renderedPath(), rendered)
}

// editedFinding tells of an artifact that was edited by hand: what was changed, and the two ways on.
func (d Dir) editedFinding(name, phase string) finding.Finding {
	f := finding.Finding{Code: "artifact_edited_by_hand", Severity: finding.Warning, Where: &finding.Where{Path: d.Abs(name)},
		What:     fmt.Sprintf("%s was edited after %s had written it; it is kept as it is, and what counts is the JSON beside it", name, phase),
		Expected: "the two to agree",
		Remedy: fmt.Sprintf("call phase_%s with the run_id and \"edited\": \"take_over\" to take the edit into the run, or \"render_anew\" to write the file from the JSON again (the edited text is kept under %s/)",
			phase, EditsDir)}
	if edit, err := d.Edited(name); err == nil && edit != nil {
		f.What += ":\n" + edit.shortDiff()
	}
	return f
}

// Lines are the numbers (from 0) of the lines of the edited text that the rendering does not have, and how many of the
// rendering's it lacks.
func (e Edit) Lines() (added []int, removed int) {
	rendered := string(e.Rendered)
	for _, edit := range udiff.Lines(rendered, e.Text()) {
		first := countLines(rendered[:edit.Start]) - removed + len(added)
		for i := range countLines(edit.New) {
			added = append(added, first+i)
		}
		removed += countLines(rendered[edit.Start:edit.End])
	}
	return added, removed
}

// countLines counts a last line without an end as well.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
