package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/jobs/local"
	"github.com/trainwright/trainwright/internal/policy"
	"github.com/trainwright/trainwright/internal/rundir"
	"github.com/trainwright/trainwright/internal/trainer"
	"github.com/trainwright/trainwright/resources"
	"github.com/trainwright/trainwright/server"
	"github.com/trainwright/trainwright/tools"
)

// workspace is the folder that the tools work in. It is opened on the first call that needs it, once.
type workspace struct {
	trainer func() (*trainer.Trainer, error)
	source  func() (*resources.Source, error)
}

var (
	_ server.Library   = (*workspace)(nil)
	_ server.Completer = (*workspace)(nil)
)

// open prepares the workspace of the settings without touching it.
func (s *settings) open() *workspace {
	w := &workspace{}
	w.trainer = sync.OnceValues(func() (*trainer.Trainer, error) { return s.openTrainer() })
	w.source = sync.OnceValues(func() (*resources.Source, error) {
		t, err := w.trainer()
		if err != nil {
			return nil, err
		}
		return &resources.Source{Roots: t.Engine.Roots, Library: t.Library, JobRoots: t.JobRoots, JobStatus: t.Runtime.Status, Canonical: func(skill string) []string {
			if s := t.Engine.Skills[skill]; s != nil {
				return s.Canonical
			}
			return nil
		}}, nil
	})
	return w
}

func (s *settings) openTrainer() (*trainer.Trainer, error) {
	folder := s.workspace
	if folder == "" {
		current, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("find the current directory: %w", err)
		}
		folder = current
	}
	granted, err := loadPolicy(folder, s.policy)
	if err != nil {
		return nil, err
	}
	roots, err := rundir.NewRoots(folder, granted.ReadRoots, granted.WriteRoots)
	if err != nil {
		return nil, finding.Refuse(finding.Finding{Code: "workspace_unusable", Severity: finding.Error, What: err.Error(), Where: &finding.Where{Path: folder},
			Expected: "a folder that exists and can be read", Remedy: "start trainwright with --workspace FOLDER, or in the project's folder"})
	}
	home, _ := os.UserHomeDir() // without one there are no skills in it
	library := resources.Skills(resources.SkillPlaces{Workspace: roots.Workspace(), Folders: s.skillFolders, Home: home, Now: time.Now})
	t := trainer.New(roots, library, local.New(local.Options{Workspace: roots.Workspace()}), time.Now)
	t.Authority.Policy = granted
	if path := userPolicy(s.policy); path != "" {
		t.Authority.Grants = func() ([]policy.Grant, []finding.Finding, error) {
			return policy.LoadGrants(policy.GrantsPath(path), roots.Workspace())
		}
		t.Authority.Save = func(ctx context.Context, g policy.Grant) error {
			g.Workspace = roots.Workspace()
			return g.Save(ctx, policy.GrantsPath(path))
		}
	}
	return t, nil
}

// userPolicy is where the user's policy lies: the one that was named, else that of their home; "" where there is no home.
func userPolicy(named string) string {
	if named != "" {
		return named
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return policy.DefaultPath(home)
}

// loadPolicy reads what the user allows. A policy that was named must be there; one whose words can't be understood is
// refused, since it may hold a limit.
func loadPolicy(folder, path string) (policy.Policy, error) {
	named := path != ""
	granted, found, err := policy.Load(userPolicy(path), folder)
	if err != nil {
		return granted, err
	}
	refused := finding.Refuse()
	for _, f := range found {
		if f.Severity == finding.Error || named && f.Code == "policy_missing" {
			refused.Findings = append(refused.Findings, f)
		}
	}
	if len(refused.Findings) > 0 {
		return granted, refused
	}
	return granted, nil
}

// deps is what the tools work with.
func (w *workspace) deps() tools.Deps {
	return tools.Deps{Trainer: w.trainer, SkillFindings: w.skillFindings}
}

// skillFindings tells what is wrong with the skills now.
func (w *workspace) skillFindings() []finding.Finding {
	t, err := w.trainer()
	if err != nil {
		return nil
	}
	return t.Library.Findings()
}

// List gives the resources of the workspace.
func (w *workspace) List(ctx context.Context, cursor string) ([]resources.Item, string, error) {
	source, err := w.source()
	if err != nil {
		return nil, "", err
	}
	return source.List(ctx, cursor)
}

// Read gives one resource of the workspace.
func (w *workspace) Read(ctx context.Context, uri string) (resources.Content, error) {
	source, err := w.source()
	if err != nil {
		return resources.Content{}, err
	}
	return source.Read(ctx, uri)
}

// Complete completes an argument of an address.
func (w *workspace) Complete(ctx context.Context, template, argument, written string, known map[string]string) ([]string, error) {
	source, err := w.source()
	if err != nil {
		return nil, err
	}
	return source.Complete(ctx, template, argument, written, known)
}
