//go:build !linux && !darwin

package local

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs"
)

func TestSubmitIsRefusedHere(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "j-1")
	if err := jobs.Create(folder, jobs.Request{JobID: "j-1", Command: []string{"python"}, WorkDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	_, err := New(Options{}).Submit(context.Background(), folder)
	var refused *finding.Refused
	if !errors.As(err, &refused) || refused.Findings[0].Code != "runtime_unsupported_here" {
		t.Errorf("got %v", err)
	}
}
