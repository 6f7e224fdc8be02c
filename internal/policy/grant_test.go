package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

var at = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func refusedWith(err error, code string) bool {
	var refused *finding.Refused
	return errors.As(err, &refused) && refused.Findings[0].Code == code
}

func TestGrantsAreKeptAndFound(t *testing.T) {
	policyPath, root := place(t, "allow: {git_push: no}", "")
	path := GrantsPath(policyPath)
	if grants, found, err := LoadGrants(path, root); err != nil || len(grants)+len(found) != 0 {
		t.Errorf("%v %v %v", grants, found, err)
	}
	g := Grant{Workspace: root, RunID: "r-1", What: PackageInstall, Command: "pip install torch", Target: "local", CoreHours: 0.5, By: "ann", At: at}
	other := g
	other.Workspace = filepath.Join(root, "elsewhere")
	later := g
	later.At = at.Add(time.Hour).In(time.FixedZone("", 3600))
	for _, grant := range []Grant{g, other, later} {
		if err := grant.Save(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	grants, found, err := LoadGrants(path, root)
	later.At = later.At.UTC()
	if diff := cmp.Diff([]Grant{later}, grants); err != nil || diff != "" || len(found) > 0 {
		t.Errorf("%s %v %v", diff, found, err)
	}
	p, _, err := Load(policyPath, root)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, what, run, command string
		want                     Decision
	}{
		{"that command", PackageInstall, "r-1", "pip install torch", Yes},
		{"another command", PackageInstall, "r-1", "pip install torch evil", Ask},
		{"another run", PackageInstall, "r-2", "pip install torch", Ask},
		{"another effect", Network, "r-1", "pip install torch", Ask},
		{"no command", PackageInstall, "r-1", "", Ask},
		{"what the user forbids", GitPush, "r-1", "pip install torch", No},
	} {
		if got, why := p.Decide(c.what, c.run, c.command, grants); got != c.want || why == "" {
			t.Errorf("%s: %s %s", c.name, got, why)
		}
	}
	if _, why := p.Decide(PackageInstall, "r-1", "pip install torch", grants); why != "ann approved it for run r-1 at 2026-11-30T13:00:00Z" {
		t.Error(why)
	}
}

func TestGrantsThatCountForNothing(t *testing.T) {
	policyPath, root := place(t, "", "")
	g := Grant{Workspace: root, RunID: "r-1", What: Network, Command: "curl", By: "ann", At: at}
	if err := g.Save(t.Context(), filepath.Join(root, "grants.json")); !refusedWith(err, "grants_in_workspace") {
		t.Error(err)
	}
	for _, broken := range []func(*Grant){
		func(g *Grant) { g.What = "all" }, func(g *Grant) { g.RunID = "" }, func(g *Grant) { g.Command = " " }, func(g *Grant) { g.By = "" },
		func(g *Grant) { g.At = time.Time{} }, func(g *Grant) { g.Workspace = "work" },
	} {
		bad := g
		broken(&bad)
		if err := bad.Save(t.Context(), GrantsPath(policyPath)); !refusedWith(err, "grant_incomplete") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	inside := filepath.Join(root, "grants.json") // as an agent would write it
	put(t, inside, fmt.Sprintf(`[{"workspace": %q, "run_id": "r-1", "what": "network", "command": "curl", "by": "ann", "at": "2026-11-30T12:00:00Z"}]`, root))
	if grants, found, err := LoadGrants(inside, root); err != nil || len(grants) != 0 || !slices.Equal(marks(found), []string{"grants_in_workspace:0"}) {
		t.Errorf("%v %v %v", grants, found, err)
	}
	path := GrantsPath(policyPath)
	put(t, path, fmt.Sprintf(`[{"workspace": %q, "run_id": "r-1"}]`, root))
	if grants, found, err := LoadGrants(path, root); err != nil || len(grants) != 0 || !slices.Equal(marks(found), []string{"grant_incomplete:0"}) {
		t.Errorf("%v %v %v", grants, found, err)
	}
	put(t, path, `[{"workspace":`)
	if _, _, err := LoadGrants(path, root); !refusedWith(err, "json_unreadable") {
		t.Error(err)
	}
	if err := g.Save(t.Context(), path); !refusedWith(err, "json_unreadable") {
		t.Error("a damaged file was overwritten:", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != `[{"workspace":` {
		t.Error(string(data), err)
	}
}

func TestGrantsOfTwoTerminalsAreBothKept(t *testing.T) {
	policyPath, root := place(t, "", "")
	path := GrantsPath(policyPath)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	failed := make([]error, 8)
	for i := range failed {
		group.Go(func() {
			failed[i] = Grant{Workspace: root, RunID: fmt.Sprint("r-", i), What: Network, Command: "curl", By: "ann", At: at}.Save(ctx, path)
		})
	}
	group.Wait()
	grants, _, err := LoadGrants(path, root)
	if err := errors.Join(append(failed, err)...); err != nil || len(grants) != len(failed) {
		t.Errorf("%d grants, %v", len(grants), err)
	}
}
