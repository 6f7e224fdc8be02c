package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
)

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`

// process is a server at the other end of two pipes.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(ctx context.Context, command []string) (*process, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{cmd, in, bufio.NewReaderSize(out, 1<<20)}, nil
}

// ask sends one line and gives the one that comes back. The server must be one that tells nothing unasked.
func (p *process) ask(line string) ([]byte, error) {
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		return nil, err
	}
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("no answer to %.80s: %w", line, err)
	}
	if bytes.Contains(answer, []byte(`"error":{`)) {
		return nil, fmt.Errorf("%.80s: %s", line, answer)
	}
	return answer, nil
}

// end takes the server away; how it ends is another test's matter.
func (p *process) end() {
	_ = p.in.Close()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// connected starts a server and opens its session.
func connected(ctx context.Context, command []string) (*process, error) {
	p, err := start(ctx, command)
	if err != nil {
		return nil, err
	}
	if _, err := p.ask(hello); err != nil {
		p.end()
		return nil, err
	}
	_, err = io.WriteString(p.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	return p, err
}

// call is the line of a call.
func call(id int, tool string, arguments any) string {
	encoded, _ := json.Marshal(arguments) // ours alone
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, encoded)
}

// site is a server over HTTP.
type site struct {
	cmd *exec.Cmd
	url string
}

func open(ctx context.Context, command []string) (*site, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(stderr)
	line, err := lines.ReadString('\n')
	at := strings.Index(line, "http://")
	if err != nil || at < 0 {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("%s says %q: %w", command[0], line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // a full pipe would stop it
	return &site{cmd, strings.TrimSpace(line[at:])}, nil
}

func (s *site) end() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// client is a session on a site, with connections of its own.
type client struct {
	http    *http.Client
	url, id string
}

func (s *site) connect(ctx context.Context) (*client, error) {
	c := &client{http: &http.Client{Transport: &http.Transport{}}, url: s.url}
	if _, err := c.post(ctx, hello); err != nil {
		return nil, err
	}
	_, err := c.post(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c, err
}

// post sends a message and gives what came back whole.
func (c *client) post(ctx context.Context, body string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if c.id != "" {
		request.Header.Set("Mcp-Session-Id", c.id)
		request.Header.Set("MCP-Protocol-Version", "2025-11-25")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode >= 300 || bytes.Contains(answer, []byte(`"error":{`)) {
		return "", fmt.Errorf("%.80s: %s %s", body, response.Status, answer)
	}
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		c.id = id
	}
	return string(answer), nil
}
