package resources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainwright/trainwright/internal/rundir"
)

// lay makes a workspace with a skill, a run and a secret beside them.
func lay(t *testing.T) (*Source, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		".agents/skills/own/SKILL.md":     "---\nname: own\ndescription: A skill of the workspace.\n---\n# own\n",
		".agents/skills/own/refs/deep.md": "deep",
		"runs/a/training_plan.md":         "# plan\napi_key: sk-abcdefghijklmnopqrstuvwxyz123456\n",
		"runs/a/facts.json":               "{}\n",
		"runs/a/jobs/j-1/stdout.log":      "epoch 1\n",
		"secret.txt":                      "outside the run",
	} {
		write(t, filepath.Join(dir, name), []byte(text))
	}
	roots, err := rundir.NewRoots(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "r-20261130-aaaa", "runs/a", time.Unix(1_790_000_000, 0))
	library := Skills(SkillPlaces{Workspace: roots.Workspace(), Now: time.Now})
	return &Source{Roots: roots, Library: library, Canonical: func(string) []string { return []string{"training_plan.md", "facts.json", "not_there.md", "linked.md"} }}, dir
}

func put(t *testing.T, dir, id, workdir string, at time.Time) {
	t.Helper()
	if err := (rundir.Index{Workspace: dir}).Put(rundir.IndexEntry{RunID: id, Skill: "onescience-trainer", StepGoal: "goal of " + id, TrainerWorkdir: workdir, CreatedAt: at,
		HandoffSHA256: fmt.Sprintf("sha256:%064x", at.Unix())}); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestReadText(t *testing.T) {
	s, _ := lay(t)
	for _, c := range []struct{ uri, mime, text string }{
		{"skill://own/SKILL.md", "text/markdown", "# own"},
		{"skill://own/refs/deep.md", "text/markdown", "deep"},
		{"skill://own/refs%2Fdeep.md", "text/markdown", "deep"},
		{"skill://onescience-trainer/SKILL.md", "text/markdown", "name: onescience-trainer"},
		{"run://r-20261130-aaaa/training_plan.md", "text/markdown", "# plan"},
		{"run://r-20261130-aaaa/facts.json", "application/json", "{}"},
		{"run://r-20261130-aaaa/jobs/j-1/stdout.log", "text/plain", "epoch 1"},
	} {
		got, err := s.Read(t.Context(), c.uri)
		if err != nil || got.MIME != c.mime || !strings.Contains(got.Text, c.text) || got.Binary || got.Cut || got.URI != c.uri {
			t.Errorf("%s: %+v, %v", c.uri, got, err)
		}
	}
	if got, _ := s.Read(t.Context(), "run://r-20261130-aaaa/training_plan.md"); strings.Contains(got.Text, "abcdefgh") {
		t.Errorf("a secret is shown: %s", got.Text)
	}
}

func TestNothingOutsideIsRead(t *testing.T) {
	s, dir := lay(t)
	for name, target := range map[string]string{"linked.md": "../../secret.txt", "absolute.md": filepath.Join(dir, "secret.txt"), "up": ".."} {
		if err := os.Symlink(target, filepath.Join(dir, "runs/a", name)); err != nil {
			t.Fatal(err)
		}
	}
	outside := t.TempDir()
	write(t, filepath.Join(outside, "x.md"), []byte("elsewhere"))
	put(t, dir, "r-20261130-bbbb", outside, time.Unix(1_790_000_001, 0))
	for _, uri := range []string{
		"run://r-20261130-aaaa/../../secret.txt", "run://r-20261130-aaaa/..%2f..%2fsecret.txt", "run://r-20261130-aaaa/%2e%2e/%2e%2e/secret.txt",
		"run://r-20261130-aaaa//etc/passwd", "run://r-20261130-aaaa/" + filepath.ToSlash(dir) + "/secret.txt", `run://r-20261130-aaaa/..\..\secret.txt`,
		"run://r-20261130-aaaa/linked.md", "run://r-20261130-aaaa/absolute.md", "run://r-20261130-aaaa/up/up/secret.txt", "run://r-20261130-aaaa/x%00.md",
		"run://r-20261130-aaaa/jobs", "run://r-20261130-aaaa/", "run://r-20261130-aaaa", "run://r-20261130-aaaa/none.md", "run://../x", "run://..%2f..%2fx/y", "run://r-none/x.md",
		"run://r-20261130-bbbb/x.md", "skill://own/../own/SKILL.md", "skill://own/none.md", "skill://none/SKILL.md", "skill://own", "file:///etc/passwd", "", "run://%zz/%zz",
	} {
		got, err := s.Read(t.Context(), uri)
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %+v, %v", uri, got, err)
		}
	}
}

func TestBinary(t *testing.T) {
	s, dir := lay(t)
	png := append([]byte("\x89PNG\r\n\x1a\n\x00"), bytes.Repeat([]byte{0xff}, WholeText)...)
	write(t, filepath.Join(dir, "runs/a/plot.png"), png)
	write(t, filepath.Join(dir, "runs/a/weights"), bytes.Repeat([]byte{0, 1, 2}, WholeBinary))

	got, err := s.Read(t.Context(), "run://r-20261130-aaaa/plot.png")
	if err != nil || !got.Binary || got.MIME != "image/png" || !bytes.Equal(got.Blob, png) || got.Cut {
		t.Errorf("plot.png: %v %s %v", err, got.MIME, got.Cut)
	}
	got, err = s.Read(t.Context(), "run://r-20261130-aaaa/weights")
	if err != nil || !got.Binary || !got.Cut || got.MIME != "application/octet-stream" || len(got.Blob) != WholeText || got.Total != 3*WholeBinary {
		t.Errorf("weights: %v %s %d", err, got.MIME, len(got.Blob))
	}
	got, err = s.Read(t.Context(), "run://r-20261130-aaaa/weights?offset=3&limit=4")
	if err != nil || !bytes.Equal(got.Blob, []byte{0, 1, 2, 0}) || got.Offset != 3 || got.Shown != 4 {
		t.Errorf("weights: %v %v", err, got)
	}
}

func TestListShowsWhatIsThere(t *testing.T) {
	s, _ := lay(t)
	items, next, err := s.List(context.Background(), "")
	if err != nil || next != "" {
		t.Fatal(err, next)
	}
	var uris []string
	for _, i := range items {
		if i.MIME == "" || i.Name == "" || i.Size <= 0 && i.URI != "workspace:///" {
			t.Errorf("%+v", i)
		}
		if !strings.HasPrefix(i.URI, "skill://onescience-trainer/") && !(strings.HasPrefix(i.URI, "skill://training-cards-") && strings.HasSuffix(i.URI, "/SKILL.md")) {
			uris = append(uris, i.URI)
		}
	}
	want := []string{"skill://own/SKILL.md", "skill://own/refs/deep.md", "workspace:///", "run://r-20261130-aaaa/training_plan.md", "run://r-20261130-aaaa/facts.json"}
	if !slices.Equal(uris, want) {
		t.Errorf("got %v, want %v", uris, want)
	}
}

func TestListPagesMeetWithoutGap(t *testing.T) {
	s, dir := lay(t)
	artifacts := []string{"training_plan.md", "facts.json", "split.json", "claims.json", "validation_report.md"}
	for i := range newestRuns + 10 {
		id := fmt.Sprintf("r-20261201-%04d", i)
		for _, name := range artifacts {
			write(t, filepath.Join(dir, "runs", id, name), []byte("x"))
		}
		put(t, dir, id, "runs/"+id, time.Unix(1_800_000_000+int64(i), 0))
	}
	s.Canonical = func(string) []string { return artifacts }
	seen := map[string]bool{}
	pages := 0
	for cursor := ""; ; pages++ {
		items, next, err := s.List(t.Context(), cursor)
		if err != nil || len(items) > pageSize {
			t.Fatal(err, len(items))
		}
		for _, i := range items {
			if seen[i.URI] {
				t.Errorf("%s comes twice", i.URI)
			}
			seen[i.URI] = true
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if pages != 1 {
		t.Errorf("%d items came on %d pages", len(seen), pages+1)
	}
	if seen["run://r-20261201-0009/training_plan.md"] || !seen["run://r-20261201-0010/training_plan.md"] || !seen[fmt.Sprintf("run://r-20261201-%04d/training_plan.md", newestRuns+9)] {
		t.Error("the list does not have the newest runs")
	}
	if items, _, err := s.List(t.Context(), "run://gone/x"); err != nil || len(items) > 0 {
		t.Errorf("a cursor that is gone gives %d items, %v", len(items), err)
	}
}
