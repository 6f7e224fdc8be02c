package clients

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/rundir"
)

var update = flag.Bool("update", false, "write what comes out into the golden files")

// desk is a user's home and a project in it.
type desk struct {
	t             *testing.T
	home, project string
}

func newDesk(t *testing.T) desk {
	t.Helper()
	home := t.TempDir()
	project := filepath.Join(home, "project")
	if err := os.Mkdir(project, 0o755); err != nil {
		t.Fatal(err)
	}
	return desk{t, home, project}
}

func (d desk) target(scope Scope) Target {
	return Target{System{"linux", d.home, func(string) string { return "" }}, scope, d.project}
}

// path is the file that the client would create.
func (d desk) path(c Client, scope Scope) string {
	files := c.files(d.target(scope).System, scope, d.project)
	return files[len(files)-1]
}

func (d desk) put(path, text string) {
	d.t.Helper()
	if err := rundir.WriteFile(path, []byte(text)); err != nil {
		d.t.Fatal(err)
	}
}

func (d desk) install(c Client, scope Scope, s Server, force bool) (Change, error) {
	d.t.Helper()
	change, err := c.Install(d.target(scope), s, force)
	if err == nil {
		err = change.Write()
	}
	return change, err
}

func (d desk) uninstall(c Client, scope Scope, name string) Change {
	d.t.Helper()
	change, err := c.Uninstall(d.target(scope), name)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := change.Write(); err != nil {
		d.t.Fatal(err)
	}
	return change
}

func must(t *testing.T, name string) Client {
	t.Helper()
	c, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "<none>"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func code(err error) string {
	var refused *finding.Refused
	if errors.As(err, &refused) {
		return refused.Findings[0].Code
	}
	return ""
}

var ours = Server{Name: "trainwright", Command: "/opt/bin/trainwright"}

// Each file of testdata is one configuration: what it was, and what it is with the entry. Installing again changes
// nothing; uninstalling gives the bytes back, with the backup and, unless the
// archive says otherwise, without.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 12 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { golden(t, file) })
	}
}

func golden(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(archive.Comment), "\n")
	words := strings.SplitN(first, " ", 3)
	c, scope, server := must(t, words[0]), Scope(words[1]), ours
	if len(words) == 3 {
		if workspace, ok := strings.CutPrefix(words[2], "workspace="); ok {
			server.Workspace = workspace
		} else {
			server.Command = words[2]
		}
	}
	before, after := "<none>", ""
	for _, f := range archive.Files {
		switch f.Name {
		case "before":
			before = string(f.Data)
		case "after":
			after = string(f.Data)
		}
	}
	d := newDesk(t)
	path := d.path(c, scope)
	if before != "<none>" {
		d.put(path, before)
	}
	change, err := d.install(c, scope, server, false)
	if err != nil || change.Action != Add || change.Path != path {
		t.Fatalf("%+v, %v", change, err)
	}
	got := content(t, path)
	if *update {
		files := []txtar.File{{Name: "before", Data: []byte(before)}, {Name: "after", Data: []byte(got)}}
		if before == "<none>" {
			files = files[1:]
		}
		archive.Files = files
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		after = got
	}
	if diff := cmp.Diff(after, got); diff != "" {
		t.Fatalf("installed (-want +got):\n%s", diff)
	}
	if kept := content(t, path+BackupSuffix); kept != before {
		t.Errorf("backup: %q", kept)
	}
	if change, err := d.install(c, scope, server, false); err != nil || change.Action != Already || content(t, path) != after {
		t.Errorf("the second time: %+v, %v", change, err)
	}
	if err := os.Remove(path + BackupSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	d.uninstall(c, scope, server.Name)
	if left := content(t, path); left != before && !strings.Contains(string(archive.Comment), "(by the backup)") {
		t.Errorf("uninstalled without a backup: %s", cmp.Diff(before, left))
	}
	if before != "<none>" {
		d.put(path, before)
	}
	if _, err := d.install(c, scope, server, false); err != nil {
		t.Fatal(err)
	}
	d.uninstall(c, scope, server.Name)
	if left := content(t, path); left != before {
		t.Errorf("uninstalled: %s", cmp.Diff(before, left))
	}
	if change := d.uninstall(c, scope, server.Name); change.Action != Absent {
		t.Errorf("uninstalled again: %+v", change)
	}
}

// Bytes that an archive of text can't hold.
func TestBytesAreKept(t *testing.T) {
	tests := []struct{ name, client, before, after string }{
		{"CRLF", "cursor", "{\r\n  \"mcpServers\": {\r\n    \"a\": {}\r\n  }\r\n}\r\n",
			"{\r\n  \"mcpServers\": {\r\n    \"a\": {},\r\n    \"trainwright\": {\r\n      \"type\": \"stdio\",\r\n      \"command\": \"/opt/bin/trainwright\",\r\n" +
				"      \"args\": [\"serve\", \"--workspace\", \"${workspaceFolder}\"]\r\n    }\r\n  }\r\n}\r\n"},
		{"no line end at the end", "gemini", `{"a": 1}`,
			`{"a": 1, "mcpServers": {"trainwright": {"command": "/opt/bin/trainwright", "args": ["serve"], "timeout": 660000}}}`},
		{"a byte order mark", "gemini", "\ufeff{\"mcpServers\": {\"a\": 1}}\n",
			"\ufeff{\"mcpServers\": {\"a\": 1, \"trainwright\": {\"command\": \"/opt/bin/trainwright\", \"args\": [\"serve\"], \"timeout\": 660000}}}\n"},
		{"TOML with CRLF", "codex", "a = 1\r\n", "a = 1\r\n\r\n[mcp_servers.trainwright]\r\ncommand = \"/opt/bin/trainwright\"\r\nargs = [\"serve\"]\r\ntool_timeout_sec = 660\r\n"},
		{"TOML without a line end", "codex", "a = 1", "a = 1\n\n[mcp_servers.trainwright]\ncommand = \"/opt/bin/trainwright\"\nargs = [\"serve\"]\ntool_timeout_sec = 660\n"},
		{"an empty file", "codex", "", "[mcp_servers.trainwright]\ncommand = \"/opt/bin/trainwright\"\nargs = [\"serve\"]\ntool_timeout_sec = 660\n"},
		{"nothing but white space", "gemini", " \n",
			"{\n  \"mcpServers\": {\n    \"trainwright\": {\n      \"command\": \"/opt/bin/trainwright\",\n      \"args\": [\"serve\"],\n      \"timeout\": 660000\n    }\n  }\n}\n"},
		{"a comment that ends the line of the only member", "gemini", "{\"a\": 1 // x\n}",
			"{\"a\": 1, // x\n  \"mcpServers\": {\n    \"trainwright\": {\n      \"command\": \"/opt/bin/trainwright\",\n      \"args\": [\"serve\"],\n      \"timeout\": 660000\n    }\n  }\n}"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, c := newDesk(t), must(t, test.client)
			path := d.path(c, c.Default)
			d.put(path, test.before)
			if _, err := d.install(c, c.Default, ours, false); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.after, content(t, path)); diff != "" {
				t.Errorf("installed (-want +got):\n%s", diff)
			}
			d.uninstall(c, c.Default, ours.Name)
			if left := content(t, path); left != test.before {
				t.Errorf("uninstalled: %q", left)
			}
		})
	}
}

// Entries in any place go without a trace on their neighbours.
func TestUninstallFromTheMiddle(t *testing.T) {
	tests := []struct{ client, before, after string }{
		{"gemini", "{\n  \"mcpServers\": {\n    \"trainwright\": {\"x\": 1}, // mine\n    // b's\n    \"b\": {}\n  }\n}", "{\n  \"mcpServers\": { // mine\n    // b's\n    \"b\": {}\n  }\n}"},
		{"gemini", "{\"mcpServers\": {\"a\": {}, \"trainwright\": {}, \"b\": {}}}", "{\"mcpServers\": {\"a\": {}, \"b\": {}}}"},
		{"gemini", "{\"mcpServers\": {\"trainwright\": {},}}", "{\"mcpServers\": {}}"},
		{"gemini", "{\"mcpServers\": {/* mine */ \"trainwright\": {}}}", "{\"mcpServers\": {/* mine */}}"},
		{"gemini", "{\"mcpServers\": {\"trainwright\": null, \"b\": {}}}", "{\"mcpServers\": { \"b\": {}}}"},
		{"codex", "a = 1\n\n[mcp_servers.trainwright]\n# why\ncommand = \"x\"\n\n[mcp_servers.trainwright.env]\nA = \"1\"\n\n# b's\n[b]\nc = 1\n", "a = 1\n\n# b's\n[b]\nc = 1\n"},
		{"codex", "[mcp_servers.trainwright]\ncommand = \"x\"\n\n[b]\nc = 1\n", "[b]\nc = 1\n"},
		{"codex", "[mcp_servers]\na.command = \"y\"\ntrainwright = {command = \"x\"}\n[b]\n", "[mcp_servers]\na.command = \"y\"\n[b]\n"},
		{"codex", "[mcp_servers.\"trainwright\"]\ncommand = \"\"\"\n[b]\n\"\"\"\n[c]\n", "[c]\n"},
	}
	for _, test := range tests {
		d, c := newDesk(t), must(t, test.client)
		path := d.path(c, User)
		d.put(path, test.before)
		d.uninstall(c, User, ours.Name)
		if left := content(t, path); left != test.after {
			t.Errorf("%q\n got %q\nwant %q", test.before, left, test.after)
		}
		if kept := content(t, path+BackupSuffix); kept != test.before {
			t.Errorf("backup: %q", kept)
		}
	}
}

func TestAnEntryThatDiffers(t *testing.T) {
	tests := []struct{ client, before, replaced, shown string }{
		{"claude-code", "{\n  \"mcpServers\": {\n    \"trainwright\": {\n      \"command\": \"old\",\n      \"env\": {\"API_KEY\": \"sk-abcdefghijklmnopqrstuvwx\"}\n    },\n    \"b\": {}\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    \"trainwright\": {\n      \"type\": \"stdio\",\n      \"command\": \"/opt/bin/trainwright\",\n      \"args\": [\"serve\"]\n    },\n    \"b\": {}\n  }\n}\n",
			`-       "command": "old",`},
		{"claude-code", `{"mcpServers": {"trainwright": {"command": "old"}}}`, `{"mcpServers": {"trainwright": {"type": "stdio", "command": "/opt/bin/trainwright", "args": ["serve"]}}}`, `+ {"mcpServers"`},
		{"codex", "[mcp_servers.trainwright]\ncommand = \"old\"\n[mcp_servers.trainwright.env]\nA = \"b\"\n\n[c]\n",
			"[mcp_servers.trainwright]\ncommand = \"/opt/bin/trainwright\"\nargs = [\"serve\"]\ntool_timeout_sec = 660\n\n[c]\n", `- command = "old"`},
	}
	for _, test := range tests {
		d, c := newDesk(t), must(t, test.client)
		path := d.path(c, User)
		d.put(path, test.before)
		change, err := d.install(c, User, ours, false)
		if err != nil || change.Action != Differs || content(t, path) != test.before {
			t.Fatalf("%+v, %v", change, err)
		}
		if !strings.Contains(change.Diff, test.shown) || strings.Contains(change.Diff, "sk-abc") {
			t.Errorf("shown:\n%s", change.Diff)
		}
		if change, err = d.install(c, User, ours, true); err != nil || change.Action != Replace {
			t.Fatalf("%+v, %v", change, err)
		}
		if diff := cmp.Diff(test.replaced, content(t, path)); diff != "" {
			t.Errorf("replaced (-want +got):\n%s", diff)
		}
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name, client, before, code string
		line                       int
	}{
		{"broken JSON", "claude-code", "{\n  \"a\": ,\n}", "client_config_malformed", 2},
		{"cut JSON", "vscode", "{\n  \"servers\": {\n", "client_config_malformed", 3},
		{"a comment where the client knows none", "claude-code", "{\n  // x\n  \"a\": 1\n}", "client_config_malformed", 2},
		{"a list", "cursor", "[]", "client_config_malformed", 1},
		{"servers that are a list", "cursor", "{\n \"mcpServers\": []}", "client_config_malformed", 2},
		{"a key twice", "cursor", "{\"mcpServers\": {},\n\"mcpServers\": {}}", "client_config_malformed", 2},
		{"a comment alone", "vscode", "// nothing", "client_config_malformed", 1},
		{"broken TOML", "codex", "a = 1\nb = \n", "client_config_malformed", 2},
		{"servers that are an inline table", "codex", "mcp_servers = {a = {command = \"x\"}}\n", "client_config_form", 0},
		{"too deep for a parser", "vscode", "{\n\"a\": " + strings.Repeat("[", 2_000_000), "client_config_malformed", 2},
		{"not UTF-8", "codex", "a = \"\xff\"\n", "client_config_malformed", 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, c := newDesk(t), must(t, test.client)
			path := d.path(c, c.Default)
			d.put(path, test.before)
			_, err := d.install(c, c.Default, ours, true)
			if code(err) != test.code {
				t.Fatalf("got %v", err)
			}
			var refused *finding.Refused
			if errors.As(err, &refused); refused.Findings[0].Where.Line != test.line || refused.Findings[0].Where.Path != path {
				t.Errorf("where: %v", err)
			}
			if test.line > 0 && !strings.Contains(err.Error(), "column") {
				t.Errorf("no column: %v", err)
			}
			if content(t, path) != test.before || content(t, path+BackupSuffix) != "<none>" {
				t.Error("the file was touched")
			}
		})
	}
	if _, err := Find("claude-cod"); code(err) != "client_unknown" || !strings.Contains(err.Error(), `"claude-code"?`) {
		t.Error(err)
	}
	d := newDesk(t)
	if _, err := must(t, "codex").Install(d.target(User), Server{Name: "a b", Command: "x"}, false); code(err) != "client_server_name_invalid" {
		t.Error(err)
	}
	for _, name := range []string{"vscode", "cursor"} {
		if _, err := must(t, name).Install(d.target(User), ours, false); code(err) != "client_workspace_needed" {
			t.Errorf("%s: %v", name, err)
		}
	}
	lost := d.target(Project)
	lost.Project = filepath.Join(d.project, "nowhere")
	if _, err := must(t, "cursor").Install(lost, ours, false); code(err) != "client_config_outside" {
		t.Error(err)
	}
}

// A read-only file is its owner's word, also where a rename could replace it.
func TestReadOnlyFile(t *testing.T) {
	d, c := newDesk(t), must(t, "codex")
	path := d.path(c, User)
	d.put(path, "a = 1\n")
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := d.install(c, User, ours, true); code(err) != "client_config_read_only" || content(t, path) != "a = 1\n" {
		t.Error(err)
	}
}

func TestWhatTheSystemForbids(t *testing.T) {
	if err := denied("x", &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}); code(err) != "client_config_denied" {
		t.Error(err)
	}
	if err := denied("x", fs.ErrClosed); err != fs.ErrClosed {
		t.Error(err)
	}
}

// In a file of one long line the change is what is shown.
func TestDifferenceOfALongLine(t *testing.T) {
	long := strings.Repeat("x", 5000)
	got := difference([]byte(long+"a\n"), []byte(long+"b\n"))
	if want := "- …" + long[:100] + "a\n+ …" + long[:100] + "b\n"; got != want {
		t.Errorf("%q", got)
	}
}

func TestPermissionsAreKept(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no permission bits on Windows")
	}
	d, c := newDesk(t), must(t, "claude-code")
	path := d.path(c, User)
	d.put(path, `{"secret": 1}`)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	d.put(path+BackupSuffix, "an older one, readable for all")
	if _, err := d.install(c, User, ours, false); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, path + BackupSuffix} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", p, info.Mode(), err)
		}
	}
	if content(t, path+BackupSuffix) != `{"secret": 1}` {
		t.Error("the backup is an old one")
	}
}

func TestLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege on Windows")
	}
	d, c := newDesk(t), must(t, "cursor")
	link := func(target, path string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.RemoveAll(path), os.Symlink(target, path)); err != nil {
			t.Fatal(err)
		}
	}
	server := ours
	server.Workspace = d.project

	// A user's dotfiles: the link stays, the file behind it changes.
	real := filepath.Join(d.home, "dotfiles", "mcp.json")
	d.put(real, "{}")
	link(real, d.path(c, User))
	change, err := d.install(c, User, server, false)
	if err != nil || !strings.Contains(content(t, real), "trainwright") || content(t, real+BackupSuffix) != "{}" {
		t.Errorf("%+v, %v", change, err)
	}
	if info, err := os.Lstat(d.path(c, User)); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	d.uninstall(c, User, ours.Name)
	if content(t, real) != "{}" {
		t.Errorf("uninstalled: %q", content(t, real))
	}

	// A project's file, or its folder, that is a link to somebody else's.
	link(real, d.path(c, Project))
	if _, err := d.install(c, Project, ours, false); code(err) != "client_config_outside" {
		t.Errorf("a file: %v", err)
	}
	link(filepath.Join(d.home, "dotfiles"), filepath.Dir(d.path(c, Project)))
	if _, err := d.install(c, Project, ours, false); code(err) != "client_config_outside" {
		t.Errorf("a folder: %v", err)
	}
	link("nowhere", d.path(c, User))
	if _, err := d.install(c, User, server, false); code(err) != "client_config_irregular" {
		t.Errorf("a link that leads nowhere: %v", err)
	}
	link("/dev/null", d.path(c, User))
	if _, err := d.install(c, User, server, false); code(err) != "client_config_irregular" {
		t.Errorf("a device: %v", err)
	}
}

// The client itself may write its file between our look and our write.
func TestAnotherWriterWins(t *testing.T) {
	d, c := newDesk(t), must(t, "claude-code")
	path := d.path(c, User)
	d.put(path, "{}")
	change, err := c.Install(d.target(User), ours, false)
	if err != nil {
		t.Fatal(err)
	}
	d.put(path, `{"numStartups": 1}`)
	if err := change.Write(); code(err) != "client_config_changed" || content(t, path) != `{"numStartups": 1}` {
		t.Errorf("%v, %s", err, content(t, path))
	}
}

// OpenCode reads opencode.json and opencode.jsonc.
func TestOpenCodeChoosesTheFileThatIsThere(t *testing.T) {
	d, c := newDesk(t), must(t, "opencode")
	plain, comments := filepath.Join(d.project, "opencode.json"), filepath.Join(d.project, "opencode.jsonc")
	d.put(comments, "{} // mine\n")
	if change, err := d.install(c, Project, ours, false); err != nil || change.Path != comments {
		t.Fatalf("%+v, %v", change, err)
	}
	d.put(plain, content(t, comments))
	d.put(comments, "{}\n")
	if change := d.uninstall(c, Project, ours.Name); change.Path != plain || change.Action != Remove {
		t.Errorf("%+v", change)
	}
}

func TestPlaces(t *testing.T) {
	home := filepath.FromSlash("/home/u")
	nothing := func(string) string { return "" }
	moved := func(variable string) string {
		return filepath.Join(home, "moved", variable)
	}
	tests := []struct{ os, client, usual, moved string }{
		{"linux", "claude-code", ".claude.json", "moved/CLAUDE_CONFIG_DIR/.claude.json"},
		{"darwin", "codex", ".codex/config.toml", "moved/CODEX_HOME/config.toml"},
		{"linux", "gemini", ".gemini/settings.json", "moved/GEMINI_CLI_HOME/.gemini/settings.json"},
		{"darwin", "opencode", ".config/opencode/opencode.json", "moved/XDG_CONFIG_HOME/opencode/opencode.json"},
		{"linux", "vscode", ".config/Code/User/mcp.json", "moved/XDG_CONFIG_HOME/Code/User/mcp.json"},
		{"darwin", "vscode", "Library/Application Support/Code/User/mcp.json", "Library/Application Support/Code/User/mcp.json"},
		{"windows", "vscode", "AppData/Roaming/Code/User/mcp.json", "moved/APPDATA/Code/User/mcp.json"},
		{"windows", "cursor", ".cursor/mcp.json", ".cursor/mcp.json"},
	}
	for _, test := range tests {
		c := must(t, test.client)
		for want, env := range map[string]func(string) string{test.usual: nothing, test.moved: moved} {
			files := c.files(System{test.os, home, env}, User, "")
			if got := files[len(files)-1]; got != filepath.Join(home, filepath.FromSlash(want)) {
				t.Errorf("%s on %s: %s", test.client, test.os, got)
			}
			if test.usual == test.moved {
				break
			}
		}
	}
}

// Whatever JSON a client holds: an entry that comes in and goes out leaves it as it was.
func FuzzJSONThereAndBack(f *testing.F) {
	for _, seed := range []string{"{}", "{\"mcp\": {\"a\": 1}}", "{\"mcp\":\n{ /* x */ }}", "{\"a\": [1, // x\n 2], }", "{\r\n\t\"mcp\": {\"a\": {},}\r\n}"} {
		f.Add([]byte(seed))
	}
	at := spot{keys: []string{"mcp"}, name: "trainwright"}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := parseJSON(data, at)
		if err != nil || d.index >= 0 {
			return
		}
		entry := members{{"command", "x"}, {"args", []string{"serve"}}}
		text, err := d.put(entry)
		if err != nil {
			t.Fatal(err)
		}
		with, err := parseJSON(text, at)
		if err != nil {
			t.Fatalf("%v\n%q\n%q", err, data, text)
		}
		if there, _ := with.entry(); there == nil || !cmp.Equal(with.others(), d.others()) {
			t.Fatalf("%q\n%q", data, text)
		}
		texts, err := with.remove()
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			back, err := parseJSON(text, at)
			if err != nil || back.index >= 0 || !cmp.Equal(back.others(), d.others()) {
				t.Fatalf("%v\n%q\n%q", err, data, text)
			}
		}
		if len(d.path) == 2 && len(d.path[1].Members) > 0 && !bytes.Equal(texts[len(texts)-1], data) {
			t.Fatalf("\n%q\n%q", data, texts)
		}
	})
}
