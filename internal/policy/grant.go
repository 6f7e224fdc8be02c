package policy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

// Grant is the user's word for one effect of one run: that very command may do it. Workspace keeps runs of the same id in
// two workspaces apart.
type Grant struct {
	Workspace string    `json:"workspace"` // canonical path
	RunID     string    `json:"run_id"`
	What      string    `json:"what"`    // one of Effects
	Command   string    `json:"command"` // as it was shown to the user
	Target    string    `json:"target,omitempty"`
	CoreHours float64   `json:"core_hours,omitempty"`
	GPUHours  float64   `json:"gpu_hours,omitempty"`
	By        string    `json:"by"` // who approved
	At        time.Time `json:"at"` // UTC
}

// GrantsPath is where grants lie: beside policy.yaml.
func GrantsPath(policyPath string) string {
	return filepath.Join(filepath.Dir(policyPath), "grants.json")
}

// maxGrants bounds the file; the oldest go first.
const maxGrants = 10_000

// Save adds the grant to the file at path, in place of one for the same effect, run and command. It is for
// launch.Authority alone: a person has agreed, at a terminal or to a question that their client showed. Refused (*finding.Refused): grant_incomplete, grants_in_workspace,
// json_unreadable.
func (g Grant) Save(ctx context.Context, path string) error {
	if err := g.check(); err != nil {
		return err
	}
	if insideOf(g.Workspace, path) {
		return finding.Refuse(inWorkspace(path, g.Workspace))
	}
	unlock, err := rundir.Lock(ctx, path+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	all, err := readGrants(path)
	if err != nil {
		return err
	}
	g.At = g.At.UTC()
	all = slices.DeleteFunc(all, func(old Grant) bool { return old.Workspace == g.Workspace && old.Covers(g.What, g.RunID, g.Command) })
	all = append(all, g)
	if len(all) > maxGrants {
		all = all[len(all)-maxGrants:]
	}
	return rundir.WriteJSON(path, all)
}

// check refuses a grant that would cover nothing, or more than was shown.
func (g Grant) check() error {
	lacking := ""
	switch {
	case !slices.Contains(Effects, g.What):
		lacking = fmt.Sprintf("there is no effect %q", g.What)
	case g.RunID == "":
		lacking = "no run is named"
	case strings.TrimSpace(g.Command) == "":
		lacking = "no command is named"
	case g.By == "":
		lacking = "nobody is named who approved"
	case !filepath.IsAbs(g.Workspace):
		lacking = "the workspace is no absolute path"
	case g.At.IsZero():
		lacking = "no time is named"
	default:
		return nil
	}
	return finding.Refuse(finding.Finding{Code: "grant_incomplete", Severity: finding.Error, What: lacking, Expected: "workspace, run_id, what, command, by and at",
		Remedy: "approve what the run asks for: what is one of " + strings.Join(Effects, ", ")})
}

func inWorkspace(path, workspace string) finding.Finding {
	return finding.Finding{Code: "grants_in_workspace", Severity: finding.Error, What: "grants inside the workspace count for nothing: agents write there",
		Where: &finding.Where{Path: path}, Expected: "a file outside " + workspace, Remedy: "keep the policy in ~/.config/trainwright, or name one outside with --policy"}
}

// LoadGrants reads the grants of a workspace, the oldest first. No file is no grants; one inside the workspace counts for
// nothing, with the finding grants_in_workspace; entries that are incomplete are left out with grant_incomplete. A file
// that can't be read is refused with json_unreadable.
func LoadGrants(path, workspace string) ([]Grant, []finding.Finding, error) {
	all, err := readGrants(path)
	if err != nil || len(all) == 0 {
		return nil, nil, err
	}
	if insideOf(workspace, path) {
		return nil, []finding.Finding{inWorkspace(path, workspace)}, nil
	}
	var grants []Grant
	found := writableByOthers(path)
	for i, g := range all {
		var refused *finding.Refused
		if errors.As(g.check(), &refused) {
			f := refused.Findings[0]
			f.Severity, f.Where = finding.Warning, &finding.Where{Path: path, Field: fmt.Sprintf("[%d]", i)}
			found = append(found, f)
			continue
		}
		if g.Workspace == workspace || g.Workspace == resolved(workspace) {
			grants = append(grants, g)
		}
	}
	return grants, found, nil
}

func readGrants(path string) ([]Grant, error) {
	var all []Grant
	err := rundir.ReadJSON(path, &all)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return all, err
}
