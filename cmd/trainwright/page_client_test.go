//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"image/png"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/trainwright/trainwright/tools"
)

// The Inspector's web page, in a headless browser, connects to the server, lists its tools and shows the answer of one.
// TRAINWRIGHT_PICTURE names a file for the picture of the page.
func TestInspectorWebPage(t *testing.T) {
	binary, err := faulty()
	if err != nil {
		t.Fatal(err)
	}
	workspace, handoff := exampleWorkspace(t, 1)
	handoff.Inputs.Runtime.ExecutionIntent = "plan_only" // a run to show, without a job
	planned, _ := callTool(t, binary, workspace, "trainer", map[string]any{"step_handoff": handoff})
	picture := os.Getenv("TRAINWRIGHT_PICTURE")
	if picture == "" {
		picture = filepath.Join(t.TempDir(), "page.png")
	}
	command := script(t, "page.mjs", inspectorPage(t, binary, workspace), browser(t), t.TempDir(), picture, planned.Run.RunID)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var page struct {
		Text   string
		Faults []string
	}
	if err := json.Unmarshal(out, &page); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for _, tool := range tools.All(tools.Deps{}) {
		if !strings.Contains(page.Text, tool.Name) {
			t.Errorf("the page does not show %s", tool.Name)
		}
	}
	for _, shown := range []string{"Structured Output", `"run_id": "` + planned.Run.RunID + `"`, handoff.StepGoal} {
		if !strings.Contains(page.Text, shown) {
			t.Errorf("the page does not show %q", shown)
		}
	}
	if len(page.Faults) != 0 {
		t.Errorf("the page fails: %v", page.Faults)
	}
	drawn(t, picture)
}

// drawn fails unless the picture has the size of the page and more than one colour.
func drawn(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	picture, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	size, colours := picture.Bounds(), map[any]bool{}
	for x := size.Min.X; x < size.Max.X; x += 3 {
		for y := size.Min.Y; y < size.Max.Y; y += 3 {
			colours[picture.At(x, y)] = true
		}
	}
	if size.Dx() != 1400 || size.Dy() != 1200 || len(colours) < 10 {
		t.Errorf("the picture has %v and %d colours", size, len(colours))
	}
}

var pageAddress = regexp.MustCompile(`http://127\.0\.0\.1:\d+\?\S+`)

// inspectorPage starts the Inspector's web page for a server on stdio, and gives its address.
func inspectorPage(t *testing.T, binary, workspace string) string {
	t.Helper()
	home, bin := t.TempDir(), filepath.Join(npmTools(t), ".bin")
	config := filepath.Join(home, "mcp.json")
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"trainwright": map[string]any{"type": "stdio", "command": binary, "args": []string{"serve", "--workspace", workspace}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, data, 0o644); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(filepath.Join(bin, "mcp-inspector"), "--web", "--config", config)
	command.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+home, "HOST=127.0.0.1", "CLIENT_PORT="+freePort(t),
		"MCP_SANDBOX_PORT=0", "MCP_AUTO_OPEN_ENABLED=false", "MCP_INSPECTOR_SECRET_STORE=memory")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it starts the server, which must end with it
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		_ = command.Wait()
	})
	lines := bufio.NewReader(out)
	var said strings.Builder
	for {
		line, err := lines.ReadString('\n')
		said.WriteString(line)
		if url := pageAddress.FindString(line); url != "" {
			go func() { _, _ = io.Copy(io.Discard, lines) }() // a full pipe would stop it
			return url
		}
		if err != nil {
			t.Fatalf("the page is not served: %v\n%s", err, said.String())
		}
	}
}

// freePort is a port that nobody listened on a moment ago: the page wants to be told one.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// browser is the headless browser that .ci/install found or put there.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no headless browser: run .ci/install, as make test does")
	return ""
}
