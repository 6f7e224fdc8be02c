package project

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
)

// maxGitPaths bounds each of the two lists of changed paths.
const maxGitPaths = 200

// ReadGit finds the repository that holds dir and reads its state. No repository is nil; one that can't be read, or whose
// state takes longer than budget, says so in Error. It runs nothing: hooks, filters and credential helpers of the
// repository are not looked at.
func ReadGit(ctx context.Context, dir, ceiling string, budget time.Duration) *Git {
	root := repositoryAbove(dir, ceiling)
	if root == "" {
		return nil
	}
	g := &Git{Root: root, Modified: []string{}, Untracked: []string{}}
	repository, err := git.PlainOpenWithOptions(root, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if err != nil {
		g.Error = fmt.Sprintf("%s holds a .git that is no readable repository: %v", root, err)
		return g
	}
	if head, err := repository.Reference(plumbing.HEAD, false); err == nil && head.Type() == plumbing.SymbolicReference {
		g.Branch = head.Target().Short()
	}
	head, err := repository.Head()
	switch {
	case errors.Is(err, plumbing.ErrReferenceNotFound):
		g.Error = "the repository has no commit yet"
	case err != nil:
		g.Error = fmt.Sprintf("HEAD can't be read: %v", err)
		return g
	default:
		g.Commit = head.Hash().String()
	}
	status, err := statusWithin(ctx, repository, budget)
	if err != nil {
		g.Error = strings.TrimPrefix(g.Error+"; "+err.Error(), "; ")
		return g
	}
	g.take(status)
	return g
}

// repositoryAbove returns the nearest folder from dir upward that holds a .git, not above ceiling.
func repositoryAbove(dir, ceiling string) string {
	if ceiling != "" {
		if absolute, err := filepath.Abs(ceiling); err == nil {
			ceiling = absolute
		}
		if real, err := filepath.EvalSymlinks(ceiling); err == nil {
			ceiling = real
		}
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir || dir == ceiling {
			return ""
		}
		dir = parent
	}
}

// statusWithin asks for the state of the work tree and waits no longer than budget. go-git can't be interrupted: beyond
// the budget it finishes unheard.
func statusWithin(ctx context.Context, repository *git.Repository, budget time.Duration) (git.Status, error) {
	type answer struct {
		status git.Status
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		worktree, err := repository.Worktree()
		if err != nil {
			done <- answer{err: err}
			return
		}
		status, err := worktree.Status()
		done <- answer{status, err}
	}()
	timer := time.NewTimer(budget)
	defer timer.Stop()
	select {
	case a := <-done:
		if a.err != nil {
			return nil, fmt.Errorf("the state of the work tree can't be read: %w", a.err)
		}
		return a.status, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("the state of the work tree was not found out: %w", ctx.Err())
	case <-timer.C:
		return nil, fmt.Errorf("the state of the work tree was not found out within %s, so whether it is dirty is not known", budget)
	}
}

// take sorts the changed paths. trainwright's own folder is no change of the project.
func (g *Git) take(status git.Status) {
	for path, state := range status {
		switch {
		case state.Worktree == git.Unmodified && state.Staging == git.Unmodified:
		case state.Worktree == git.Untracked:
			if !strings.HasPrefix(path, ".onescience/") {
				g.Untracked = append(g.Untracked, path)
			}
		default:
			g.Modified = append(g.Modified, path)
		}
	}
	g.Dirty = len(g.Modified) > 0
	for _, list := range []*[]string{&g.Modified, &g.Untracked} {
		slices.Sort(*list)
		if n := len(*list); n > maxGitPaths {
			*list = append((*list)[:maxGitPaths:maxGitPaths], fmt.Sprintf("… and %d more", n-maxGitPaths))
		}
	}
}
