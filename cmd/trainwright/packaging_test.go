package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/trainwright/trainwright/internal/clients"
	"github.com/trainwright/trainwright/internal/skill"
	"github.com/trainwright/trainwright/skills"
)

// repository is a file at the root of the repository.
func repository(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// strictly reads JSON and refuses fields that the type has not: those of the format that we use.
func strictly(t *testing.T, path string, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(repository(t, path)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// accepts fails unless this binary takes the command line.
func accepts(t *testing.T, where string, arguments []string) {
	t.Helper()
	command, rest, err := newRoot(terminal{}).Find(arguments)
	if err == nil {
		err = command.ParseFlags(rest)
	}
	if err == nil {
		err = command.Args(command, command.Flags().Args())
	}
	if err != nil || !command.Runnable() || command.Name() != "serve" {
		t.Errorf("%s: trainwright %v is no server: %v", where, arguments, err)
	}
}

// stdio is a server as clients start it.
type stdio struct {
	Type    string   `json:"type"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

func (s stdio) check(t *testing.T, where string) {
	t.Helper()
	if s.Type != "stdio" || s.Command != "trainwright" {
		t.Errorf("%s: %+v", where, s)
	}
	accepts(t, where, s.Args)
}

type pluginManifest struct {
	Name, Version, Description, Homepage, Repository, License string
	Author                                                    struct{ Name string }
	Keywords                                                  []string
	MCPServers                                                map[string]stdio `json:"mcpServers"`
}

func manifest(t *testing.T) pluginManifest {
	t.Helper()
	var plugin pluginManifest
	strictly(t, "plugin/.claude-plugin/plugin.json", &plugin)
	return plugin
}

var exactVersion = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

// The plugin has the server and the skills of the binary: the folder of the repository, not a copy of it.
func TestPlugin(t *testing.T) {
	plugin := manifest(t)
	if plugin.Name != "trainwright" || !exactVersion.MatchString(plugin.Version) || plugin.License != "MIT" || len(plugin.MCPServers) != 1 {
		t.Errorf("%+v", plugin)
	}
	plugin.MCPServers["trainwright"].check(t, "plugin.json")
	embedded, err := skills.FS.ReadDir(".")
	if err != nil || len(embedded) == 0 {
		t.Fatal(embedded, err)
	}
	for _, folder := range embedded {
		path := filepath.Join("..", "..", "plugin", "skills", folder.Name())
		if runtime.GOOS == "windows" {
			path = filepath.Join("..", "..", "skills", folder.Name()) // a checkout there may have no links
		}
		if v := skill.Check(path); !v.Valid || len(v.Findings) > 0 {
			t.Errorf("%s: %v", path, v.Findings)
		}
		want, err := skills.FS.ReadFile(folder.Name() + "/SKILL.md")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(path, "SKILL.md")); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not the skill of the binary: %v", path, err)
		}
	}
}

func TestMarketplaceHasThePlugin(t *testing.T) {
	var market struct {
		Name, Description string
		Owner             struct{ Name string }
		Plugins           []struct{ Name, Source, Description string }
	}
	strictly(t, ".claude-plugin/marketplace.json", &market)
	if market.Name == "" || market.Owner.Name == "" || len(market.Plugins) != 1 {
		t.Fatalf("%+v", market)
	}
	if p := market.Plugins[0]; p.Name != manifest(t).Name || p.Source != "./plugin" || p.Description != manifest(t).Description {
		t.Errorf("%+v", p)
	}
}

// The example is what install writes.
func TestExampleConfiguration(t *testing.T) {
	c, err := clients.Find("claude-code")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	change, err := c.Install(clients.Target{Scope: clients.Project, Project: folder}, clients.Server{Name: "trainwright", Command: "trainwright"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := change.Write(); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(folder, ".mcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got := repository(t, "examples/.mcp.json"); !bytes.Equal(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// argument is one of a package's, as the registry describes it.
type argument struct {
	Type, Name, Description, Value string
	IsRequired                     bool
	Variables                      map[string]struct {
		Description, Format string
		IsRequired          bool
	}
}

// The limits are those of the registry's schema of 2025-12-11 and of its page on package types: an OCI package has its
// version in the identifier, and its image a label with the server's name.
func TestRegistryEntry(t *testing.T) {
	var entry struct {
		Schema                                        string `json:"$schema"`
		Name, Title, Description, Version, WebsiteURL string
		Repository                                    struct{ URL, Source string }
		Packages                                      []struct {
			RegistryType, Identifier, RuntimeHint string
			Transport                             struct{ Type string }
			RuntimeArguments, PackageArguments    []argument
		}
	}
	strictly(t, "server.json", &entry)
	if !regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(entry.Name) || len(entry.Description) > 100 || entry.Repository.Source != "github" {
		t.Errorf("%+v", entry)
	}
	if entry.Version != manifest(t).Version {
		t.Errorf("server.json has version %s, plugin.json %s", entry.Version, manifest(t).Version)
	}
	if len(entry.Packages) != 1 {
		t.Fatalf("%+v", entry.Packages)
	}
	p := entry.Packages[0]
	if p.RegistryType != "oci" || !strings.HasSuffix(p.Identifier, "/trainwright:"+entry.Version) || p.Transport.Type != "stdio" || p.RuntimeHint != "docker" {
		t.Errorf("%+v", p)
	}
	var arguments []string
	for _, a := range p.PackageArguments {
		arguments = append(arguments, a.Value)
	}
	accepts(t, "server.json", arguments)
	image := dockerfile(t)
	if want := `io.modelcontextprotocol.server.name="` + entry.Name + `"`; image["LABEL"] != want {
		t.Errorf("the image's label is %s, not %s", image["LABEL"], want)
	}
	mount := p.RuntimeArguments[0]
	if mount.Name != "--mount" || !strings.HasSuffix(mount.Value, ",dst="+image["WORKDIR"]) || !strings.Contains(mount.Value, "{workspace}") || mount.Variables["workspace"].Format != "filepath" {
		t.Errorf("%+v does not mount the folder in which the image works, %s", mount, image["WORKDIR"])
	}
}

// dockerfile gives the last one of each instruction: those of the image, not of the stage that builds.
func dockerfile(t *testing.T) map[string]string {
	t.Helper()
	last := map[string]string{}
	for line := range strings.Lines(string(repository(t, "Dockerfile"))) {
		if instruction, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok && instruction == strings.ToUpper(instruction) && instruction != "#" {
			last[instruction] = rest
		}
	}
	return last
}

func TestImage(t *testing.T) {
	text, image := string(repository(t, "Dockerfile")), dockerfile(t)
	toolchain := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(repository(t, "go.mod")))
	if !strings.Contains(text, "FROM golang:"+toolchain[1]+"-") {
		t.Errorf("the image is not built with Go %s", toolchain[1])
	}
	build := regexp.MustCompile(`RUN CGO_ENABLED=0 go build -trimpath -ldflags "[^"]*-X main\.release=\$\{VERSION\}" -o (\S+) \./cmd/trainwright\n`).FindStringSubmatch(text)
	if build == nil || !strings.Contains(text, "COPY --from=build "+build[1]+" ") {
		t.Error("no static binary is built and copied")
	}
	if !strings.HasPrefix(image["FROM"], "python:3") || image["USER"] == "root" || image["USER"] == "" {
		t.Errorf("%v", image)
	}
	var entrypoint, arguments []string
	if err := json.Unmarshal([]byte(image["ENTRYPOINT"]), &entrypoint); err != nil || !slices.Equal(entrypoint, []string{"trainwright"}) {
		t.Errorf("ENTRYPOINT %v, %v", entrypoint, err)
	}
	if err := json.Unmarshal([]byte(image["CMD"]), &arguments); err != nil {
		t.Error(err)
	}
	accepts(t, "Dockerfile", arguments)
}

// releaseConfig is what of .goreleaser.yaml is checked.
type releaseConfig struct {
	Version  int
	Project  string `yaml:"project_name"`
	Archives []struct{ Files []string }
	Builds   []struct {
		Main, Binary                      string
		Env, Flags, Ldflags, Goos, Goarch []string
	}
}

func TestReleaseConfiguration(t *testing.T) {
	var config releaseConfig
	if err := yaml.Unmarshal(repository(t, ".goreleaser.yaml"), &config); err != nil {
		t.Fatal(err)
	}
	if config.Version != 2 || config.Project != "trainwright" || len(config.Builds) != 1 {
		t.Fatalf("%+v", config)
	}
	b := config.Builds[0]
	if b.Binary != "trainwright" || b.Main != "./cmd/trainwright" || !slices.Contains(b.Env, "CGO_ENABLED=0") || !slices.Contains(b.Flags, "-trimpath") {
		t.Errorf("%+v", b)
	}
	out, err := exec.Command("go", "tool", "dist", "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	ports := strings.Fields(string(out))
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, goarch := range []string{"amd64", "arm64"} {
			if !slices.Contains(b.Goos, goos) || !slices.Contains(b.Goarch, goarch) || !slices.Contains(ports, goos+"/"+goarch) {
				t.Errorf("%s/%s is not built", goos, goarch)
			}
		}
	}
	for _, file := range config.Archives[0].Files {
		repository(t, file)
	}
	set := regexp.MustCompile(`-X main\.(\w+)=`).FindStringSubmatch(strings.Join(b.Ldflags, " "))
	if len(set) != 2 || set[1] != "release" {
		t.Fatalf("the linker sets %v, the program reads release", set)
	}
	old := release
	defer func() { release = old }()
	if release = "1.2.3"; version() != "1.2.3" {
		t.Errorf("version %s", version())
	}
}
