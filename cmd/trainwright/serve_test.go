//go:build unix

package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serveHTTP starts a server on a free port and gives its address.
func serveHTTP(t *testing.T, env []string, arguments ...string) (url string, process *exec.Cmd) {
	t.Helper()
	cmd := trainwright(env, append([]string{"serve", "--workspace", t.TempDir(), "--http", "127.0.0.1:0"}, arguments...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewReader(stderr)
	line, err := lines.ReadString('\n')
	_, url, found := strings.Cut(strings.TrimSpace(line), "trainwright serves MCP at ")
	if err != nil || !found || strings.HasSuffix(url, ":0/mcp") {
		t.Fatalf("%q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // a full pipe would stop its log
	return url, cmd
}

// A server over HTTP says where it is, wants the token it was started with, and ends on SIGTERM with a client connected.
func TestServeHTTP(t *testing.T) {
	const token = "0123456789abcdef0123"
	file, trace := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, given := range map[string]struct{ arguments, env []string }{
		"file":        {arguments: []string{"--token-file", file, "--trace", trace}},
		"environment": {env: []string{tokenVariable + "=" + token}},
	} {
		t.Run(name, func(t *testing.T) {
			url, cmd := serveHTTP(t, given.env, given.arguments...)
			for sent, want := range map[string]int{"": http.StatusUnauthorized, token: http.StatusOK} {
				if got := initializeOver(t, url, sent); got != want {
					t.Errorf("with token %q: %d, want %d", sent, got, want)
				}
			}
			began := time.Now()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			var code *exec.ExitError
			if err := cmd.Wait(); errors.As(err, &code) || time.Since(began) > 5*time.Second {
				t.Errorf("ended after %v: %v", time.Since(began), err)
			}
		})
	}
	info, err := os.Stat(trace)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	if data, err := os.ReadFile(trace); err != nil || strings.Count(string(data), "\n") != 2 || !strings.Contains(string(data), `"method":"initialize"`) || strings.Contains(string(data), token) {
		t.Errorf("the trace: %s, %v", data, err)
	}
}

// The Inspector gets on with the server over HTTP in both eras, and finds every file of a skill as its digest says.
func TestInspectorOverHTTP(t *testing.T) {
	url, _ := serveHTTP(t, nil)
	bin, err := filepath.Abs("../../.cache/npm/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{
		{"--protocol-era", "legacy", "--method", "tools/list", "--strict"},
		{"--protocol-era", "modern", "--method", "skills/list", "--verify"},
	} {
		command := exec.Command(filepath.Join(bin, "mcp-inspector"), append([]string{"--cli", url, "--transport", "http"}, arguments...)...)
		command.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "trainer") || strings.Contains(string(out), "mismatch") {
			t.Errorf("%v: %v\n%s", arguments, err, out)
		}
	}
}

func initializeOver(t *testing.T, url, token string) (status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
