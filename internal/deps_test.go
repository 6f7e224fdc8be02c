package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	module = "github.com/trainwright/trainwright/"
	mcpGo  = "github.com/mark3labs/mcp-go"
)

// edges is the one list of which package may import which of ours. Imports run one way: cmd, server, tools and
// resources, trainer, engine, the rooms below, and at the bottom contract, finding and redact. Adding a line here is a
// decision about the design; if it would point back up, the code lives in the wrong room.
var edges = map[string][]string{
	"cmd/trainwright":     {"server", "tools", "prompts", "resources", "skills", "internal/engine", "internal/trainer", "internal/jobs", "internal/jobs/local", "internal/launch", "internal/policy", "internal/rundir", "internal/finding", "internal/contract", "internal/clients", "internal/skill"},
	"server":              {"tools", "resources", "prompts", "internal/engine", "internal/finding", "internal/redact", "internal/skill"},
	"server/conformance":  {"server", "resources", "internal/rundir", "internal/skill"},
	"server/bench":        {},
	"server/bench/three":  {"server", "tools", "resources", "internal/engine"},
	"tools":               {"internal/*"},
	"tools/gen":           {"tools", "prompts", "resources"},
	"prompts":             {},
	"resources":           {"skills", "internal/*"},
	"skills":              {},
	"examples/demo":       {},
	"internal/trainer":    {"internal/*"},
	"internal/engine":     {"internal/contract", "internal/evidence", "internal/finding", "internal/rundir", "internal/recall", "internal/skill", "internal/redact", "internal/jobs"},
	"internal/recall":     {"internal/contract", "internal/finding", "internal/skill"},
	"internal/evidence":   {"internal/finding", "internal/redact", "internal/rundir"},
	"internal/jobs":       {"internal/diagnose", "internal/finding", "internal/redact", "internal/rundir", "internal/snapshot"},
	"internal/diagnose":   {"internal/finding", "internal/redact"},
	"internal/jobs/local": {"internal/jobs", "internal/finding", "internal/redact", "internal/rundir"},
	"internal/jobs/shell": {"internal/jobs", "internal/finding", "internal/rundir"},
	"internal/jobs/bench": {},
	"internal/jobs/suite": {"internal/jobs", "internal/finding", "internal/rundir"},
	"internal/dataset":    {"internal/finding", "internal/rundir"},
	"internal/project":    {"internal/finding", "internal/pyprobe"},
	"internal/pyprobe":    {},
	"internal/metrics":    {"internal/finding"},
	"internal/criteria":   {"internal/finding"},
	"internal/checkpoint": {"internal/finding"},
	"internal/baseline":   {"internal/dataset", "internal/finding", "internal/metrics"},
	"internal/launch":     {"internal/contract", "internal/engine", "internal/finding", "internal/jobs", "internal/jobs/local", "internal/metrics", "internal/policy", "internal/redact", "internal/rundir"},
	"internal/coder":      {"internal/contract", "internal/engine", "internal/finding", "internal/project", "internal/pyprobe", "internal/redact", "internal/rundir"},
	"internal/policy":     {"internal/finding", "internal/rundir"},
	"internal/review":     {"internal/finding", "internal/pyprobe"},
	"internal/source":     {"internal/finding"},
	"internal/clients":    {"internal/finding", "internal/redact", "internal/rundir"},
	"internal/skill":      {"internal/finding"},
	"internal/rundir":     {"internal/finding", "internal/redact"},
	"internal/snapshot":   {"internal/project", "internal/finding", "internal/redact", "internal/rundir"},
	"internal/contract":   {"internal/finding"},
	"internal/redact":     {},
	"internal/finding":    {},

	"internal/dataset/bench": {"internal/dataset"},
}

// mayImportMCP are the packages that speak the protocol. The core and the tools' sentences know nothing of it.
var mayImportMCP = []string{"server", "server/conformance", "examples/demo"}

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func TestImportsRunOneWay(t *testing.T) {
	said := map[string]bool{}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, v := range violations(listPackages(t, goos)) {
			if !said[v] {
				t.Errorf("%s: %s", goos, v)
			}
			said[v] = true
		}
	}
}

func listPackages(t *testing.T, goos string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// violations returns a sentence for each import that edges and mayImportMCP do not allow. Tests may import any of our
// packages; the ban on the protocol holds for the tests of internal and tools too.
func violations(packages []listed) []string {
	var found []string
	for _, p := range packages {
		from := strings.TrimPrefix(p.ImportPath, module)
		for _, path := range p.Imports {
			if to, ours := strings.CutPrefix(path, module); ours && !allowed(from, to) {
				found = append(found, fmt.Sprintf("%s imports %s, which nobody has decided on: list the edge in edges of "+
					"internal/deps_test.go if the design wants it, otherwise move the code to the room it belongs to", from, to))
			}
		}
		imports := p.Imports
		if strings.HasPrefix(from, "internal/") || from == "tools" {
			imports = slices.Concat(p.Imports, p.TestImports, p.XTestImports)
		}
		if !slices.Contains(mayImportMCP, from) && slices.ContainsFunc(imports, isMCP) {
			found = append(found, fmt.Sprintf("%s imports mcp-go, which only %s may: pass what it needs in, as "+
				"engine.Caller does", from, strings.Join(mayImportMCP, " and ")))
		}
	}
	return found
}

// allowed reports whether edges lists the import, by name or by the pattern internal/*.
func allowed(from, to string) bool {
	return slices.ContainsFunc(edges[from], func(pattern string) bool {
		rooms, open := strings.CutSuffix(pattern, "*")
		return pattern == to || open && strings.HasPrefix(to, rooms)
	})
}

func isMCP(path string) bool { return path == mcpGo || strings.HasPrefix(path, mcpGo+"/") }

func TestViolationsAreFound(t *testing.T) {
	for _, c := range []struct {
		name string
		p    listed
		want []string // the beginnings of the sentences
	}{
		{"listed edge", listed{ImportPath: module + "internal/recall", Imports: []string{module + "internal/skill", "fmt"}}, nil},
		{"pattern", listed{ImportPath: module + "tools", Imports: []string{module + "internal/dataset"}}, nil},
		{"back-arrow", listed{ImportPath: module + "internal/jobs", Imports: []string{module + "internal/engine"}}, []string{"internal/jobs imports internal/engine, "}},
		{"unknown room", listed{ImportPath: module + "internal/misc", Imports: []string{module + "internal/finding"}}, []string{"internal/misc imports internal/finding, "}},
		{"room above", listed{ImportPath: module + "internal/trainer", Imports: []string{module + "tools"}}, []string{"internal/trainer imports tools, "}},
		{"test of another room", listed{ImportPath: module + "internal/metrics", XTestImports: []string{module + "internal/rundir"}}, nil},
		{"protocol in the core", listed{ImportPath: module + "internal/engine", Imports: []string{mcpGo + "/mcp"}}, []string{"internal/engine imports mcp-go, "}},
		{"protocol in a tool's test", listed{ImportPath: module + "tools", TestImports: []string{mcpGo + "/client"}}, []string{"tools imports mcp-go, "}},
		{"protocol in the server", listed{ImportPath: module + "server", Imports: []string{mcpGo + "/server"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for i, v := range violations([]listed{c.p}) {
				if i < len(c.want) && strings.HasPrefix(v, c.want[i]) {
					v = c.want[i]
				}
				got = append(got, v)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
