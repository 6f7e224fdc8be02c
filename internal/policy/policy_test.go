package policy

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainwright/trainwright/internal/finding"
)

// place is a home with a policy and a workspace with its file; "" writes none.
func place(t *testing.T, policy, workspace string) (policyPath, root string) {
	t.Helper()
	home := t.TempDir()
	policyPath, root = DefaultPath(home), filepath.Join(home, "work")
	put(t, filepath.Join(root, "readme"), "x")
	if policy != "" {
		put(t, policyPath, policy)
	}
	if workspace != "" {
		put(t, filepath.Join(root, WorkspaceFile), workspace)
	}
	return policyPath, root
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// marks are the findings as code:line.
func marks(found []finding.Finding) []string {
	var list []string
	for _, f := range found {
		if f.Where == nil || f.Remedy == "" && f.Expected == "" {
			list = append(list, f.Code+" says not where or what to do")
			continue
		}
		list = append(list, f.Code+":"+string(rune('0'+f.Where.Line)))
	}
	return list
}

func decisions(p Policy) map[string]Decision {
	all := map[string]Decision{}
	for _, what := range Effects {
		if d, _ := p.Allows(what); d != Ask {
			all[what] = d
		}
	}
	return all
}

func TestPrecedence(t *testing.T) {
	for _, c := range []struct {
		name, policy, workspace string
		want                    map[string]Decision // what is not asked for
		marks                   []string
	}{
		{name: "nothing", marks: []string{"policy_missing:0"}},
		{name: "the user grants", policy: "allow: {network: yes, git_push: no, model_calls: ask}", want: map[string]Decision{Network: Yes, GitPush: No}},
		{name: "spelt as truth values", policy: "allow: {network: true, git_push: off, model_calls: 'On'}", want: map[string]Decision{Network: Yes, GitPush: No, ModelCalls: Yes}},
		{name: "the workspace narrows", policy: "allow: {network: yes, git_push: yes}", workspace: "allow: {network: no, git_push: ask}", want: map[string]Decision{Network: No}},
		{name: "the workspace can't widen", policy: "allow: {git_push: no}", workspace: "# by an agent\nallow:\n  git_push: yes\n  network: yes\n",
			want: map[string]Decision{GitPush: No}, marks: []string{"policy_not_widened:3", "policy_not_widened:4"}},
		{name: "nor without a policy", workspace: "allow: {network: yes}", marks: []string{"policy_missing:0", "policy_not_widened:1"}},
		{name: "nor trust itself", policy: "allow: {network: ask}", workspace: "trust_handoff: true\nallow: {network: yes}", marks: []string{"policy_not_widened:1", "policy_not_widened:2"}},
		{name: "trusted, it widens what is asked", policy: "trust_handoff: true\nallow: {git_push: no}", workspace: "allow: {network: yes, git_push: yes}",
			want: map[string]Decision{Network: Yes, GitPush: No}, marks: []string{"policy_not_widened:1"}},
		{name: "a typing mistake", policy: "alow: {network: yes}\nallow:\n  pakage_install: yes\n  zebra: yes\n",
			marks: []string{"policy_key_unknown:1", "policy_key_unknown:3", "policy_key_unknown:4"}},
		{name: "a value of its own", policy: "allow: {network: perhaps}", want: map[string]Decision{Network: No}, marks: []string{"policy_value_unknown:1"}},
		{name: "an anchor", policy: "allow: {network: &y yes, git_push: *y}", want: map[string]Decision{Network: Yes, GitPush: Yes}},
		{name: "empty files", policy: "# nothing\n", workspace: "\n"},
	} {
		policyPath, root := place(t, c.policy, c.workspace)
		p, found, err := Load(policyPath, root)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, decisions(p)); diff != "" && len(c.want)+len(decisions(p)) > 0 {
			t.Errorf("%s: %s", c.name, diff)
		}
		if !slices.Equal(marks(found), c.marks) {
			t.Errorf("%s: %v, want %v", c.name, marks(found), c.marks)
		}
	}
}

func TestNearestKeyIsNamed(t *testing.T) {
	policyPath, root := place(t, "trust_handof: true\n", "skils: [a]\n")
	p, found, err := Load(policyPath, root)
	if err != nil || p.TrustHandoff || len(found) != 2 || !strings.Contains(found[0].Remedy, `"trust_handoff"`) || !strings.Contains(found[1].Remedy, `"skills"`) {
		t.Errorf("%v %v", found, err)
	}
}

func TestWhyNamesTheLineOrTheWay(t *testing.T) {
	policyPath, root := place(t, "allow:\n  network: yes\n", "")
	p, _, err := Load(policyPath, root)
	if err != nil {
		t.Fatal(err)
	}
	if d, why := p.Allows(Network); d != Yes || why != policyPath+":2 says network: yes" {
		t.Error(d, why)
	}
	if d, why := p.Allows(GitPush); d != Ask || !strings.Contains(why, "trainwright approve RUN") || !strings.Contains(why, "allow: {git_push: yes} in "+policyPath) {
		t.Error(d, why)
	}
	if d, why := p.Allows("rm"); d != No || !strings.Contains(why, "git_push") {
		t.Error(d, why)
	}
	if d, _ := (Policy{}).Allows(Network); d != Ask {
		t.Error(d)
	}
}

func TestUnreadableFilesAreRefusedWithTheirLine(t *testing.T) {
	for name, c := range map[string]struct {
		policy, workspace string
		line              int
	}{
		"no YAML":          {policy: "allow: [\nnetwork: yes\n", line: 2},
		"a list":           {policy: "- network\n", line: 1},
		"allow is a text":  {policy: "allow: everything\n", line: 1},
		"a key twice":      {policy: "allow: {network: no}\nbudget: {}\nallow: {network: yes}\n", line: 3},
		"an effect twice":  {policy: "allow:\n  network: no\n  network: yes\n", line: 3},
		"two documents":    {policy: "allow: {}\n---\nallow: {}\n", line: 2},
		"workspace broken": {policy: "allow: {network: yes}", workspace: "allow: {network: no\n", line: 1},
		"too long":         {policy: "# " + strings.Repeat("x", maxFile)},
		"a mapping as key": {policy: "? {a: b}\n: c\n", line: 1},
	} {
		policyPath, root := place(t, c.policy, c.workspace)
		_, _, err := Load(policyPath, root)
		var refused *finding.Refused
		if !errors.As(err, &refused) || refused.Findings[0].Code != "policy_unreadable" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if f := refused.Findings[0]; f.Where.Path == "" || c.line > 0 && (f.Where.Line < c.line || f.Where.Line > c.line+1) {
			t.Errorf("%s: %v", name, f)
		}
	}
	policyPath, root := place(t, "", "")
	if err := os.MkdirAll(policyPath, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(policyPath, root); err == nil {
		t.Error("a folder is read as a policy")
	}
}

func TestRootsAndBudget(t *testing.T) {
	policyPath, root := place(t, "read_roots: [/scratch/era5, ~/data, data]\nwrite_roots: /out\nbudget: {core_hours: 200, gpu_hours: 20}\n", "")
	p, found, err := Load(policyPath, root)
	if err != nil || !slices.Equal(p.ReadRoots, []string{"/scratch/era5", filepath.Join(root, "data")}) && runtime.GOOS != "windows" || !slices.Equal(marks(found), []string{"policy_root_unusable:1"}) {
		t.Errorf("%+v %v %v", p, found, err)
	}
	for _, c := range []struct {
		core, gpu float64
		ok        bool
	}{{200, 20, true}, {200.1, 0, false}, {0, 21, false}} {
		if ok, why := p.Budget.Within(c.core, c.gpu); ok != c.ok || ok != (why == "") {
			t.Errorf("%+v: %v %q", c, ok, why)
		}
	}
	if ok, _ := (Budget{}).Within(1e9, 1e9); !ok {
		t.Error("no budget is no limit")
	}
	put(t, filepath.Join(root, WorkspaceFile), "read_roots: [/scratch/era5/2020, /etc]\nwrite_roots: []\nbudget:\n  core_hours: 10\n  gpu_hours: 99\n")
	p, found, err = Load(policyPath, root)
	if err != nil || *p.Budget.CoreHours != 10 || *p.Budget.GPUHours != 20 || len(p.WriteRoots) != 0 || !slices.Equal(p.ReadRoots, []string{"/scratch/era5/2020"}) ||
		!slices.Equal(marks(found), []string{"policy_root_unusable:1", "policy_not_widened:1", "policy_not_widened:3"}) {
		t.Errorf("%+v %v %v", p, marks(found), err)
	}
	put(t, policyPath, "budget: {core_hours: -1, gpu_hours: many}\n")
	if p, found, err = Load(policyPath, root); err != nil || *p.Budget.CoreHours != 0 || *p.Budget.GPUHours != 0 || len(found) < 2 {
		t.Errorf("%+v %v %v", p, found, err)
	}
}

// A link inside an allowed folder must not make the workspace's narrower folder lead elsewhere.
func TestNarrowerRootThroughALink(t *testing.T) {
	home := t.TempDir()
	allowed, secret := filepath.Join(home, "allowed"), filepath.Join(home, "secret")
	put(t, filepath.Join(allowed, "x"), "")
	put(t, filepath.Join(secret, "x"), "")
	if err := os.Symlink(secret, filepath.Join(allowed, "link")); err != nil {
		t.Fatal(err)
	}
	policyPath, root := place(t, "read_roots: ["+allowed+"]\n", "read_roots: ["+filepath.Join(allowed, "link")+"]\n")
	p, found, err := Load(policyPath, root)
	if err != nil || len(p.ReadRoots) != 0 || !slices.Equal(marks(found), []string{"policy_not_widened:1"}) {
		t.Errorf("%v %v %v", p.ReadRoots, found, err)
	}
}

func TestSites(t *testing.T) {
	policyPath, root := place(t, "sites: {hpc1: {ssh: login.example.org, work_dir: /home/me/tw, scheduler: slurm, defaults: {partition: gpu, account: abc, nodes: 2}}}\n",
		"sites:\n  hpc1: {ssh: evil.example.org}\n  hpc2: {ssh: me@two.example.org}\n  bad: {ssh: -oProxyCommand=sh}\n  worse: {ssh: 'a b'}\n  odd: {sssh: x, scheduler: pbs}\n")
	p, found, err := Load(policyPath, root)
	want := map[string]Site{"hpc1": {SSH: "login.example.org", WorkDir: "/home/me/tw", Scheduler: "slurm", Defaults: map[string]string{"partition": "gpu", "account": "abc", "nodes": "2"}},
		"hpc2": {SSH: "me@two.example.org"}}
	if diff := cmp.Diff(want, p.Sites); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if !slices.Equal(marks(found), []string{"site_unusable:4", "site_unusable:5", "policy_key_unknown:6", "site_unusable:6", "policy_not_widened:1"}) {
		t.Errorf("%v", marks(found))
	}
}

// An agent that writes a policy of its own into the workspace gains nothing, also through a link.
func TestPolicyInsideTheWorkspaceGrantsNothing(t *testing.T) {
	_, root := place(t, "", "")
	inside := filepath.Join(root, "policy.yaml")
	put(t, inside, "allow: {network: yes, git_push: no}\ntrust_handoff: true\nread_roots: [/]\n")
	link := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.Symlink(inside, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{inside, link} {
		p, found, err := Load(path, root)
		if err != nil || p.TrustHandoff || len(p.ReadRoots) != 0 || !cmp.Equal(decisions(p), map[string]Decision{GitPush: No}) || found[0].Code != "policy_in_workspace" {
			t.Errorf("%s: %+v %v %v", path, p, found, err)
		}
	}
}

func TestPolicyWritableByOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // has no such modes
	}
	policyPath, root := place(t, "allow: {}", "")
	if err := os.Chmod(policyPath, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, found, err := Load(policyPath, root); err != nil || !slices.Equal(marks(found), []string{"policy_writable_by_others:0"}) {
		t.Errorf("%v %v", found, err)
	}
}

func TestHandoffNarrows(t *testing.T) {
	policyPath, root := place(t, "allow: {network: yes, git_push: no}", "")
	p, _, err := Load(policyPath, root)
	if err != nil {
		t.Fatal(err)
	}
	handoff := map[string]Decision{Network: No, PackageInstall: Yes, GitPush: Yes}
	narrow, found := p.Narrow("the handoff", handoff)
	if diff := cmp.Diff(map[string]Decision{Network: No, GitPush: No}, decisions(narrow)); diff != "" || len(found) != 2 || found[0].Code != "policy_not_widened" {
		t.Errorf("%s %v", diff, found)
	}
	if d, _ := p.Allows(Network); d != Yes {
		t.Error("narrowing for one run changed the policy")
	}
	p.TrustHandoff = true
	trusted, found := p.Narrow("the handoff", handoff)
	if diff := cmp.Diff(map[string]Decision{Network: No, PackageInstall: Yes, GitPush: No}, decisions(trusted)); diff != "" || len(found) != 1 {
		t.Errorf("%s %v", diff, found)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("allow: {network: yes}\nread_roots: [/a]\nbudget: {core_hours: 1}\n", "allow: {network: yes}\nsites: {a: {ssh: b}}\n")
	f.Add("a: &a [*a]\n<<: *a\n", "? ? :\n- \n")
	home := f.TempDir()
	policyPath, root := DefaultPath(home), filepath.Join(home, "work")
	if err := errors.Join(os.MkdirAll(root, 0o755), os.MkdirAll(filepath.Dir(policyPath), 0o755)); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, policy, workspace string) {
		if err := errors.Join(os.WriteFile(policyPath, []byte("allow: {git_push: no}\n"), 0o644), os.WriteFile(filepath.Join(root, WorkspaceFile), []byte(workspace), 0o644)); err != nil {
			t.Fatal(err)
		}
		p, _, err := Load(policyPath, root)
		if err == nil {
			for _, what := range Effects {
				if d, _ := p.Allows(what); d == Yes {
					t.Errorf("a workspace file grants %s:\n%s", what, workspace)
				}
			}
		}
		if err := os.WriteFile(policyPath, []byte(policy), 0o644); err != nil {
			t.Fatal(err)
		}
		var refused *finding.Refused
		if _, _, err := Load(policyPath, root); err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
	})
}
