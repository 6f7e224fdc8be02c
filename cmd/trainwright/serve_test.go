//go:build unix

package main

import (
	"bufio"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A server over HTTP says where it is, wants the token it was started with, and ends on SIGTERM with a client connected.
func TestServeHTTP(t *testing.T) {
	const token = "0123456789abcdef0123"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, given := range map[string]struct{ arguments, env []string }{
		"file":        {arguments: []string{"--token-file", file}},
		"environment": {env: []string{tokenVariable + "=" + token}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], append([]string{"serve", "--workspace", t.TempDir(), "--http", "127.0.0.1:0"}, given.arguments...)...)
			cmd.Env = append(append(os.Environ(), asBinary+"=1", "GORACE=atexit_sleep_ms=0"), given.env...)
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			line, err := bufio.NewReader(stderr).ReadString('\n')
			_, url, found := strings.Cut(strings.TrimSpace(line), "trainwright serves MCP at ")
			if err != nil || !found || strings.HasSuffix(url, ":0/mcp") {
				t.Fatalf("%q, %v", line, err)
			}
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
