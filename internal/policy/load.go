package policy

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/trainwright/trainwright/internal/finding"
)

// WorkspaceFile is the name of the workspace's own file, in its root.
const WorkspaceFile = "trainwright.yaml"

// DefaultPath is where policy.yaml lies in a home folder.
func DefaultPath(home string) string {
	return filepath.Join(home, ".config", "trainwright", "policy.yaml")
}

var (
	policyKeys    = []string{"allow", "read_roots", "write_roots", "budget", "trust_handoff", "sites", "network_addresses"}
	workspaceKeys = []string{"allow", "read_roots", "write_roots", "budget", "sites", "skills", "trust_handoff"}
	siteKeys      = []string{"ssh", "work_dir", "scheduler", "defaults"}
	budgetKeys    = []string{"core_hours", "gpu_hours"}
)

// Load reads policy.yaml at policyPath ("" for none) and trainwright.yaml in the workspace, both of which may be missing.
//
// Findings: policy_missing (note), policy_key_unknown, policy_not_widened, policy_writable_by_others (warnings),
// policy_value_unknown, policy_root_unusable, site_unusable and policy_in_workspace (errors; the strictest reading holds,
// and a policy inside the workspace only narrows, since agents write there). A file that can't be read is refused with
// policy_unreadable: it may hold a limit.
func Load(policyPath, workspace string) (Policy, []finding.Finding, error) {
	p := Policy{path: policyPath, allow: map[string]rule{}, Sites: map[string]Site{}}
	var found []finding.Finding
	root, err := filepath.Abs(workspace)
	if err != nil {
		return p, nil, fmt.Errorf("policy of %s: %w", workspace, err)
	}
	if policyPath != "" {
		d, err := readDocument(policyPath)
		switch {
		case err != nil:
			return p, nil, err
		case d == nil:
			found = append(found, finding.Finding{Code: "policy_missing", Severity: finding.Note, What: "there is no policy: what needs the user's word is asked for",
				Where: &finding.Where{Path: policyPath}, Remedy: "the user may write one, or approve single runs with `trainwright approve RUN`"})
		case insideOf(root, policyPath):
			d.found = append(d.found, finding.Finding{Code: "policy_in_workspace", Severity: finding.Error, What: "the policy lies inside the workspace, where agents write: it grants nothing, and only narrows",
				Where: &finding.Where{Path: policyPath}, Expected: "a file outside " + root, Remedy: "have the user move it to ~/.config/trainwright/policy.yaml, or work in a folder that does not hold it"})
			p.narrowBy(d, root, policyKeys)
		default:
			p.grantBy(d, root)
			d.found = append(d.found, writableByOthers(policyPath)...)
		}
		if d != nil {
			found = append(found, d.found...)
			if err := d.refusal(); err != nil {
				return p, nil, err
			}
		}
	}
	d, err := readDocument(filepath.Join(root, WorkspaceFile))
	if err != nil {
		return p, nil, err
	}
	if d != nil {
		p.narrowBy(d, root, workspaceKeys)
		if err := d.refusal(); err != nil {
			return p, nil, err
		}
		found = append(found, d.found...)
	}
	return p, found, nil
}

// insideOf says whether path lies below root, links followed as far as they lead.
func insideOf(root, path string) bool {
	for _, r := range []string{root, resolved(root)} {
		for _, p := range []string{path, resolved(path)} {
			if abs, err := filepath.Abs(p); err == nil {
				if rel, err := filepath.Rel(r, abs); err == nil && filepath.IsLocal(rel) {
					return true
				}
			}
		}
	}
	return false
}

// resolved follows links in the longest prefix of path that exists.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolved(parent), filepath.Base(path))
}

// writableByOthers warns as ssh does of its configuration.
func writableByOthers(path string) []finding.Finding {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o022 == 0 {
		return nil
	}
	return []finding.Finding{{Code: "policy_writable_by_others", Severity: finding.Warning, What: fmt.Sprintf("others may write the policy (mode %#o)", info.Mode().Perm()),
		Where: &finding.Where{Path: path}, Expected: "mode 0600 or 0644", Remedy: "have the user run chmod go-w on it"}}
}

// grantBy takes what the user wrote.
func (p *Policy) grantBy(d *document, root string) {
	for _, e := range d.entries(d.root, "", policyKeys) {
		switch e.name {
		case "allow":
			for _, a := range d.entries(e.value, "allow", Effects) {
				decision := d.decision(a.value, "allow."+a.name)
				p.allow[a.name] = rule{decision: decision, user: true, why: fmt.Sprintf("%s:%d says %s: %s", d.path, a.key.Line, a.name, decision)}
			}
		case "read_roots":
			p.ReadRoots = d.roots(e.value, e.name, root)
		case "write_roots":
			p.WriteRoots = d.roots(e.value, e.name, root)
		case "budget":
			p.Budget = d.budget(e.value)
		case "trust_handoff":
			p.TrustHandoff = d.truth(e.value, e.name)
		case "sites":
			p.Sites = d.sites(e.value)
		case "network_addresses":
			p.NetworkAddresses = d.prefixes(e.value, e.name)
		}
	}
}

// prefixes are ranges of addresses, such as 10.1.0.0/16, or single ones.
func (d *document) prefixes(node *yaml.Node, key string) []netip.Prefix {
	var out []netip.Prefix
	for _, item := range d.texts(node, key) {
		prefix, err := netip.ParsePrefix(item.Value)
		if address, single := netip.ParseAddr(item.Value); err != nil && single == nil {
			prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			d.value(item, key, fmt.Sprintf("%.80q is no address; it is left out", item.Value), "addresses or ranges, such as 10.1.0.0/16")
			continue
		}
		out = append(out, prefix.Masked())
	}
	return out
}

// narrowBy takes what the workspace says: stricter decisions, fewer folders, smaller budgets, more sites.
func (p *Policy) narrowBy(d *document, root string, keys []string) {
	for _, e := range d.entries(d.root, "", keys) {
		switch e.name {
		case "allow":
			for _, a := range d.entries(e.value, "allow", Effects) {
				decision := d.decision(a.value, "allow."+a.name)
				why := fmt.Sprintf("%s:%d says %s: %s", d.path, a.key.Line, a.name, decision)
				if f := p.take(a.name, decision, why, *d.where(a.key, "allow."+a.name)); f != nil {
					d.found = append(d.found, *f)
				}
			}
		case "read_roots":
			p.ReadRoots = p.narrowRoots(d, e, p.ReadRoots, root)
		case "write_roots":
			p.WriteRoots = p.narrowRoots(d, e, p.WriteRoots, root)
		case "budget":
			p.narrowBudget(d, e)
		case "trust_handoff":
			if d.truth(e.value, e.name) && !p.TrustHandoff {
				d.notWidened(e.key, e.name, "only the user can trust handoffs", p.path)
			}
		case "sites":
			p.addSites(d, e)
		case "skills":
			for _, node := range d.texts(e.value, e.name) {
				p.Skills = append(p.Skills, node.Value)
			}
		}
	}
}

func (d *document) notWidened(at *yaml.Node, field, what, policyPath string) {
	if policyPath == "" {
		policyPath = "policy.yaml"
	}
	d.found = append(d.found, finding.Finding{Code: "policy_not_widened", Severity: finding.Warning, What: what, Where: d.where(at, field),
		Expected: "what the policy allows, or less", Remedy: "have the user write it in " + policyPath})
}

// roots reads folders. Relative ones are relative to the workspace; a ~ is not expanded, since whose home it is depends on
// who runs.
func (d *document) roots(node *yaml.Node, field, root string) []string {
	var list []string
	for _, item := range d.texts(node, field) {
		path := item.Value
		switch {
		case strings.TrimSpace(path) == "" || strings.ContainsRune(path, 0) || strings.HasPrefix(path, "~") || strings.ContainsRune(path, '$'):
			d.found = append(d.found, finding.Finding{Code: "policy_root_unusable", Severity: finding.Error, What: fmt.Sprintf("%.80q in %s is not a folder's path; it is left out", path, field),
				Where: d.where(item, field), Expected: "an absolute path, written out", Remedy: "write the path in full"})
			continue
		case !filepath.IsAbs(path):
			path = filepath.Join(root, path)
		}
		list = append(list, filepath.Clean(path))
	}
	return list
}

// narrowRoots keeps of the folders that the workspace names those that lie within the user's. A trusted workspace adds its
// own.
func (p *Policy) narrowRoots(d *document, e entry, granted []string, root string) []string {
	named := d.roots(e.value, e.name, root)
	if p.TrustHandoff {
		return append(granted, named...)
	}
	var kept []string
	for _, path := range named {
		if slices.ContainsFunc(granted, func(g string) bool { return insideOf(g, path) && insideOf(resolved(g), resolved(path)) }) {
			kept = append(kept, path)
		} else if !insideOf(root, resolved(path)) {
			d.notWidened(e.key, e.name, fmt.Sprintf("%.80q is outside the folders that the user allows; it is left out", path), p.path)
		}
	}
	return kept
}

func (d *document) budget(node *yaml.Node) Budget {
	var b Budget
	for _, e := range d.entries(node, "budget", budgetKeys) {
		hours := d.hours(e.value, "budget."+e.name)
		if e.name == "core_hours" {
			b.CoreHours = hours
		} else {
			b.GPUHours = hours
		}
	}
	return b
}

func (p *Policy) narrowBudget(d *document, e entry) {
	named := d.budget(e.value)
	for _, part := range []struct {
		name  string
		to    **float64
		value *float64
	}{{"core_hours", &p.Budget.CoreHours, named.CoreHours}, {"gpu_hours", &p.Budget.GPUHours, named.GPUHours}} {
		switch {
		case part.value == nil:
		case *part.to == nil || *part.value <= **part.to || p.TrustHandoff:
			*part.to = part.value
		default:
			d.notWidened(e.key, "budget."+part.name, fmt.Sprintf("%.4g %s are more than the user's %.4g, which hold", *part.value, part.name, **part.to), p.path)
		}
	}
}

// host is [user@]host as ssh takes it; it must not begin like an option (ssh -oProxyCommand=… runs a command).
var host = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@:-]*$`)

// sites reads the machines. One whose host could be read as something else is left out.
func (d *document) sites(node *yaml.Node) map[string]Site {
	sites := map[string]Site{}
	for _, e := range d.entries(node, "sites", nil) {
		field := "sites." + e.name
		var s Site
		for _, part := range d.entries(e.value, field, siteKeys) {
			if part.name == "defaults" {
				s.Defaults = map[string]string{}
				for _, option := range d.entries(part.value, field+".defaults", nil) {
					if text, ok := d.text(option.value, field+".defaults."+option.name); ok {
						s.Defaults[option.name] = text
					}
				}
				continue
			}
			text, _ := d.text(part.value, field+"."+part.name)
			*map[string]*string{"ssh": &s.SSH, "work_dir": &s.WorkDir, "scheduler": &s.Scheduler}[part.name] = text
		}
		problem := ""
		switch {
		case !host.MatchString(e.name):
			problem = "its name is no plain word"
		case s.SSH != "" && !host.MatchString(s.SSH):
			problem = fmt.Sprintf("%.60q is no host", s.SSH)
		case s.Scheduler != "" && s.Scheduler != "slurm":
			problem = fmt.Sprintf("the scheduler %.40q is not known", s.Scheduler)
		}
		if problem != "" {
			d.found = append(d.found, finding.Finding{Code: "site_unusable", Severity: finding.Error, What: fmt.Sprintf("the site %.60q is left out: %s", e.name, problem),
				Where: d.where(e.key, field), Expected: "{ssh: [user@]host, work_dir: /path, scheduler: slurm, defaults: {…}}", Remedy: "correct it"})
			continue
		}
		sites[e.name] = s
	}
	return sites
}

// addSites takes the workspace's sites; one that the user named stays as the user wrote it.
func (p *Policy) addSites(d *document, e entry) {
	added := d.sites(e.value)
	for _, name := range slices.Sorted(maps.Keys(added)) {
		if _, taken := p.Sites[name]; taken {
			d.notWidened(e.key, "sites."+name, fmt.Sprintf("the site %.60q is the user's and stays as the policy has it", name), p.path)
			continue
		}
		p.Sites[name] = added[name]
	}
}
