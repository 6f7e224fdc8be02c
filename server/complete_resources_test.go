package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/resources"
)

// failing is a Library whose disk is gone.
type failing struct{ shelf }

func (failing) Complete(context.Context, string, string, string, map[string]string) ([]string, error) {
	return nil, errors.New("disk says no: token=sk-secret")
}

type completed struct {
	Completion struct {
		Values  []string
		Total   int
		HasMore bool
	}
}

func completing(template, argument, written string) map[string]any {
	return map[string]any{"ref": map[string]any{"type": "ref/resource", "uri": template}, "argument": map[string]any{"name": argument, "value": written}}
}

// Arguments of the templates are completed, a hundred values at most; the capability is there only with it.
func TestCompletionOnTheWire(t *testing.T) {
	workspace := t.TempDir()
	for i := range maxValues + 20 {
		putFile(t, filepath.Join(workspace, fmt.Sprintf("f%03d.txt", i)), nil)
	}
	roots, err := rundir.NewRoots(workspace, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	source := &resources.Source{Roots: roots, Library: resources.Skills(resources.SkillPlaces{Workspace: workspace, Now: time.Now}), Canonical: func(string) []string { return nil }}
	s := New(Options{Version: "test", Resources: source, Log: zerolog.Nop()})
	template := resources.Templates()[0].URITemplate
	var got completed
	if code := ask(t, s, "completion/complete", completing(template, "path", "f"), &got); code != 0 || len(got.Completion.Values) != maxValues || got.Completion.Total != maxValues+20 || !got.Completion.HasMore {
		t.Errorf("%d, %d of %d", code, len(got.Completion.Values), got.Completion.Total)
	}
	got = completed{}
	if code := ask(t, s, "completion/complete", completing(template, "path", "none"), &got); code != 0 || got.Completion.Values == nil || len(got.Completion.Values) > 0 {
		t.Errorf("%d, %+v", code, got)
	}
	s = New(Options{Version: "test", Resources: failing{}, Log: zerolog.Nop()})
	if code := ask(t, s, "completion/complete", completing(template, "path", ""), &got); code != codeInternal {
		t.Errorf("a fault of the disk: %d", code)
	}
	s, _ = newServer() // its library completes nothing
	got = completed{}
	if code := ask(t, s, "completion/complete", completing(template, "path", ""), &got); code != 0 || got.Completion.Values == nil || len(got.Completion.Values) > 0 {
		t.Errorf("without completion: %d, %+v", code, got)
	}
}
