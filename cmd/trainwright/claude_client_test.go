//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/trainwright/trainwright/internal/clients"
	"github.com/trainwright/trainwright/internal/contract"
	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/server"
)

// Claude Code itself, with a scripted model behind it, completes the example's training: it reads the configuration that
// install writes, starts the server, passes on what the model calls and shows the model every answer whole.
func TestClaudeCodeCompletesTheExample(t *testing.T) {
	binary, err := faulty()
	if err != nil {
		t.Fatal(err)
	}
	workspace, handoff := exampleWorkspace(t, 1)
	fewRows(t, workspace)
	m := &model{t: t, first: toolUse{Name: "trainer", Input: map[string]any{"step_handoff": handoff, "wait_seconds": 2}}}
	api := httptest.NewServer(m)
	defer api.Close()

	events := m.converse(t, api.URL, workspace, binary)
	hello := events[0]
	if at := slices.IndexFunc(hello.MCPServers, func(s mcpServer) bool { return s.Name == "trainwright" && s.Status == "connected" }); at < 0 {
		t.Errorf("servers: %+v", hello.MCPServers)
	}
	if !slices.Contains(hello.Tools, "mcp__trainwright__trainer") || !slices.Contains(hello.Tools, "mcp__trainwright__job_status") {
		t.Errorf("tools: %v", hello.Tools)
	}
	if end := events[len(events)-1]; end.Type != "result" || end.IsError || end.Result != "success" {
		t.Errorf("the end: %+v", end)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.answers) == 0 {
		t.Fatal("no answer reached the model")
	}
	last := m.answers[len(m.answers)-1]
	if last.ExecutionResult.Status != contract.StatusSuccess || last.Run.PhaseStatus["6_validation"] != contract.StatusSuccess {
		t.Errorf("the step ends in %s, %v", last.ExecutionResult.Status, last.Run.PhaseStatus)
	}
	if !m.instructed {
		t.Error("the instructions did not reach the model")
	}
}

// model answers the messages API as a language model would: it calls first, then each next call that an answer names,
// and says at last how the step ended.
type model struct {
	t     *testing.T
	first toolUse

	mu         sync.Mutex
	replies    int
	answers    []engine.Envelope
	instructed bool
}

type toolUse struct {
	Type  string         `json:"type"`
	ID    string         `json:"id"`
	Name  string         `json:"name"`
	Input map[string]any `json:"input"`
}

// block is a part of a message's content.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/v1/messages") {
		_, _ = io.WriteString(w, `{"input_tokens":1}`) // probes of the address, counts of tokens
		return
	}
	var request struct {
		Model    string
		Stream   bool
		Tools    []json.RawMessage
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &request); err != nil {
		m.t.Errorf("the client sends %v: %.200s", err, body)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replies++
	m.instructed = m.instructed || bytes.Contains(body, instructions())
	var results []block
	for _, message := range request.Messages {
		var blocks []block
		_ = json.Unmarshal(message.Content, &blocks) // a plain text is none
		results = append(results, slices.DeleteFunc(blocks, func(b block) bool { return b.Type != "tool_result" })...)
	}
	call, says := m.turn(results, len(request.Tools) > 0)
	reply(w, fmt.Sprintf("msg_%d", m.replies), request.Model, request.Stream, call, says)
}

// instructions are the server's, as they stand within a request.
func instructions() []byte {
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(server.Instructions) // a text always encodes
	return bytes.Trim(quoted.Bytes(), "\"\n")
}

// turn decides what to do after the results of so many calls.
func (m *model) turn(results []block, mayCall bool) (*toolUse, string) {
	if !mayCall { // the client asks for a title, a summary
		return nil, "title"
	}
	if len(results) == 0 {
		return m.call(m.first), ""
	}
	last := results[len(results)-1]
	text := structured(last.Content)
	var answer engine.Envelope
	if err := json.Unmarshal([]byte(text), &answer); err != nil || last.IsError {
		m.t.Errorf("the model is shown %s, %v", text, err)
		return nil, "unreadable"
	}
	m.answers = append(m.answers, answer)
	next := answer.Run.NextCall
	if answer.ExecutionResult.Status != contract.StatusPartial || next == nil || len(m.answers) > 40 {
		return nil, answer.ExecutionResult.Status
	}
	return m.call(toolUse{Name: next.Tool, Input: next.Arguments}), ""
}

func (m *model) call(c toolUse) *toolUse {
	c.Type, c.ID, c.Name = "tool_use", fmt.Sprintf("toolu_%d", len(m.answers)), "mcp__trainwright__"+c.Name
	return &c
}

// structured gives the part of a tool's result that is the structured content: the client shows it as a text behind one
// text for each link.
func structured(content json.RawMessage) string {
	var blocks []block
	_ = json.Unmarshal(content, &blocks) // the caller sees that nothing came
	for _, b := range blocks {
		if strings.HasPrefix(b.Text, "{") {
			return b.Text
		}
	}
	return string(content)
}

// reply writes one message of the model, as a stream of events or whole.
func reply(w http.ResponseWriter, id, name string, stream bool, call *toolUse, says string) {
	stop, content, begun := "end_turn", any(map[string]any{"type": "text", "text": says}), any(map[string]any{"type": "text", "text": ""})
	delta := map[string]any{"type": "text_delta", "text": says}
	if call != nil {
		stop, content = "tool_use", call
		begun = toolUse{call.Type, call.ID, call.Name, map[string]any{}}
		input, _ := json.Marshal(call.Input) // it came as JSON
		delta = map[string]any{"type": "input_json_delta", "partial_json": string(input)}
	}
	message := map[string]any{"id": id, "type": "message", "role": "assistant", "model": name, "content": []any{content},
		"stop_reason": stop, "stop_sequence": nil, "usage": map[string]any{"input_tokens": 10, "output_tokens": 1}}
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(message)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	message["content"], message["stop_reason"] = []any{}, nil
	for _, event := range []map[string]any{
		{"type": "message_start", "message": message},
		{"type": "content_block_start", "index": 0, "content_block": begun},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 5}},
		{"type": "message_stop"},
	} {
		encoded, _ := json.Marshal(event)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], encoded)
	}
}

// mcpServer is how the client got on with a server.
type mcpServer struct{ Name, Status string }

// event is a line of the client's output.
type event struct {
	Type, Subtype string
	Tools         []string
	MCPServers    []mcpServer `json:"mcp_servers"`
	IsError       bool        `json:"is_error"`
	Result        string
}

// converse runs Claude Code once in the workspace, with a home and a configuration of its own and nothing of this
// machine's environment: neither an account nor a proxy.
func (m *model) converse(t *testing.T, api, workspace, binary string) []event {
	t.Helper()
	client, err := clients.Find("claude-code")
	if err != nil {
		t.Fatal(err)
	}
	change, err := client.Install(clients.Target{Scope: clients.Project, Project: workspace}, clients.Server{Name: "trainwright", Command: binary}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := change.Write(); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), claudeCode(t), "-p", "Train the classifier.", "--mcp-config", filepath.Join(workspace, ".mcp.json"),
		"--strict-mcp-config", "--allowedTools", "mcp__trainwright__*", "--output-format", "stream-json", "--verbose")
	home := t.TempDir()
	command.Dir = workspace
	command.Env = []string{"HOME=" + home, "CLAUDE_CONFIG_DIR=" + filepath.Join(home, "claude"), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + home,
		"ANTHROPIC_API_KEY=dummy", "ANTHROPIC_BASE_URL=" + api, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("claude: %v\n%s%s", err, out, stderr.String())
	}
	var events []event
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // fields of other lines have other types
		}
		if e.Type == "system" && e.Subtype != "init" {
			continue
		}
		events = append(events, e)
	}
	if len(events) < 2 || events[0].Subtype != "init" {
		t.Fatalf("claude says %s%s", out, stderr.String())
	}
	return events
}

// claudeCode is the program itself: the package's own entry only finds it.
func claudeCode(t *testing.T) string {
	t.Helper()
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	path := filepath.Join(npmTools(t), "@anthropic-ai", "claude-code-"+runtime.GOOS+"-"+arch, "claude")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run .ci/install, as make test does", err)
	}
	return path
}
