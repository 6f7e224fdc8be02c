package tools

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/rundir"
)

// The kinds of value that a workspace can complete.
const (
	RunIDs = "run"  // the newest first
	JobIDs = "job"  // the newest first
	Paths  = "path" // relative to the workspace, folders with a slash at the end
)

// maxEntries bounds how much of a folder is looked at.
const maxEntries = 10_000

// Values gives the values of a kind that fit what was typed so far. It reads names only, and changes nothing.
func (d Deps) Values(_ context.Context, kind, typed string) ([]string, error) {
	t, err := d.Trainer()
	if err != nil {
		return nil, err
	}
	switch kind {
	case RunIDs:
		entries, _, err := rundir.Index{Workspace: t.Engine.Roots.Workspace()}.List()
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(entries, func(a, b rundir.IndexEntry) int { return b.CreatedAt.Compare(a.CreatedAt) })
		ids := make([]string, len(entries))
		for i, e := range entries {
			ids[i] = e.RunID
		}
		return fitting(ids, typed), nil
	case JobIDs:
		roots, err := t.JobRoots()
		if err != nil {
			return nil, err
		}
		entries, _ := jobs.List(roots)
		slices.SortStableFunc(entries, func(a, b jobs.Entry) int { return b.Request.CreatedAt.Compare(a.Request.CreatedAt) })
		ids := make([]string, len(entries))
		for i, e := range entries {
			ids[i] = e.JobID
		}
		return fitting(ids, typed), nil
	case Paths:
		return pathsIn(t.Engine.Roots.Workspace(), typed)
	}
	return nil, fmt.Errorf("there are no values of kind %q", kind)
}

// fitting are the ids that begin with what was typed, then those that have it inside: the hash is what people remember.
func fitting(ids []string, typed string) []string {
	begin, inside := []string{}, []string{}
	for _, id := range ids {
		switch {
		case strings.HasPrefix(id, typed):
			begin = append(begin, id)
		case strings.Contains(id, typed):
			inside = append(inside, id)
		}
	}
	return append(begin, inside...)
}

// secretName is how files are called that hold secrets; nobody completes those.
var secretName = regexp.MustCompile(`(?i)secret|credential|password|token|\.(?:pem|key|p12|pfx)$|^id_(?:rsa|dsa|ecdsa|ed25519)`)

// pathsIn are the entries of a folder below the root that begin with what was typed, without hidden ones. Nothing outside
// the root is looked at, whatever links lead there.
func pathsIn(root, typed string) ([]string, error) {
	dir, begin := path.Split(strings.TrimPrefix(typed, "./"))
	found := []string{}
	folder := path.Clean("./" + dir)
	if path.IsAbs(typed) || !fs.ValidPath(folder) || strings.HasPrefix(folder, ".") && folder != "." || strings.Contains(folder, "/.") {
		return found, nil
	}
	within, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	defer within.Close()
	info, err := within.Stat(folder)
	if err != nil || !info.IsDir() {
		return found, nil // there is nothing of that name, or nothing to look into
	}
	open, err := within.Open(folder)
	if err != nil {
		return found, nil
	}
	defer open.Close()
	entries, _ := open.ReadDir(maxEntries) // what could be read is completed
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, begin) || strings.HasPrefix(name, ".") || secretName.MatchString(name) {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		found = append(found, dir+name)
	}
	slices.Sort(found)
	return found, nil
}
