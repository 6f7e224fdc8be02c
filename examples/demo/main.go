// Command demo is what `make demo` runs: an MCP client with a script instead of a model. It copies the example project
// into a fresh workspace, starts the server over a real pipe, hands over the step and makes each next call that an
// answer names, as an agent would. It exits with 0 only when the step ends in success.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"gopkg.in/yaml.v3"
)

// The demo ends after so many calls or so much time, whatever the server answers.
const (
	maxCalls  = 30
	maxTime   = 5 * time.Minute
	waitForIt = 30 // seconds that a call may wait for a job
)

func main() {
	server := flag.String("server", "bin/trainwright", "the trainwright binary")
	project := flag.String("project", "examples/breast-cancer", "project with a step_handoff.yaml")
	workspaces := flag.String("into", ".demo", "folder under which the project is copied, replacing an earlier copy")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), maxTime)
	defer cancel()
	if err := run(ctx, *server, *project, *workspaces); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		cancel()
		os.Exit(1)
	}
}

func run(ctx context.Context, server, project, workspaces string) error {
	workspace := filepath.Join(workspaces, filepath.Base(project))
	if err := copyFresh(project, workspace); err != nil {
		return err
	}
	handoff, err := readHandoff(filepath.Join(workspace, "step_handoff.yaml"))
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(workspaces, "server.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	session, err := connect(ctx, server, workspace, log)
	if err != nil {
		return fmt.Errorf("%w; the server's log is %s", err, log.Name())
	}
	defer session.client.Close()

	answer, err := session.walk(ctx, map[string]any{"step_handoff": handoff, "wait_seconds": waitForIt})
	if err != nil {
		return err
	}
	if err := session.printReport(ctx, answer); err != nil {
		return err
	}
	printPaths(answer.Result.Artifacts)
	if answer.Result.Status != "success" {
		return fmt.Errorf("the step ended as %s: %s", answer.Result.Status, answer.Result.Observation.Summary)
	}
	return nil
}

// copyFresh replaces to by a copy of from.
func copyFresh(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("copy the example: %w", err)
	}
	return nil
}

// readHandoff returns what stands under step_handoff in a YAML file.
func readHandoff(path string) (any, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file map[string]any
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if file["step_handoff"] == nil {
		return nil, fmt.Errorf("read %s: no step_handoff in it", path)
	}
	return file["step_handoff"], nil
}

// session is one connection to the server.
type session struct {
	client *client.Client
	calls  int
}

func connect(ctx context.Context, server, workspace string, log io.Writer) (*session, error) {
	fmt.Printf("$ %s serve --workspace %s\n", server, workspace)
	arguments := []string{"serve", "--workspace", workspace}
	c, err := client.NewStdioMCPClientWithOptions(server, nil, arguments, transport.WithCommandStderrWriter(log))
	if err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		if n.Method == "notifications/progress" {
			fmt.Printf("     … %v\n", n.Params.AdditionalFields["message"])
		}
	})
	if err := c.Start(ctx); err != nil { // the process runs already; this wires the notifications
		return nil, errors.Join(fmt.Errorf("start the client: %w", err), c.Close())
	}
	hello := mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: mcp.LATEST_LEGACY_PROTOCOL_VERSION,
		ClientInfo:      mcp.Implementation{Name: "trainwright-demo", Version: "1"},
	}}
	info, err := c.Initialize(ctx, hello)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("initialize: %w", err), c.Close())
	}
	tools, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tools/list: %w", err), c.Close())
	}
	fmt.Printf("%s %s, protocol %s, %d tools\n", info.ServerInfo.Name, info.ServerInfo.Version, info.ProtocolVersion, len(tools.Tools))
	return &session{client: c}, nil
}

// answer is the part of a tool's structured content that the demo follows; internal/engine has all of it.
type answer struct {
	Result struct {
		Status      string            `json:"status"`
		Artifacts   map[string]string `json:"artifacts"`
		Observation struct {
			Summary string   `json:"summary"`
			Missing []string `json:"missing"`
			Risks   []string `json:"risks"`
		} `json:"observation"`
	} `json:"execution_result"`
	Run struct {
		RunID       string            `json:"run_id"`
		PhaseStatus map[string]string `json:"phase_status"`
		NextCall    *struct {
			Tool      string         `json:"tool"`
			Arguments map[string]any `json:"arguments"`
		} `json:"next_call"`
	} `json:"run"`
	Needs []struct {
		Field string `json:"field"`
		Why   string `json:"why"`
	} `json:"needs"`
	Findings []struct {
		Code   string `json:"code"`
		What   string `json:"what"`
		Remedy string `json:"remedy"`
	} `json:"findings"`
}

// walk calls trainer and then each next call that an answer names, until none is named or only a person could go on.
func (s *session) walk(ctx context.Context, arguments map[string]any) (answer, error) {
	tool := "trainer"
	for {
		a, err := s.call(ctx, tool, arguments)
		if err != nil {
			return a, err
		}
		a.print()
		next := a.Run.NextCall
		if a.Result.Status != "partial" || next == nil {
			return a, nil
		}
		if s.calls == maxCalls {
			return a, fmt.Errorf("no end after %d calls", maxCalls)
		}
		tool, arguments = next.Tool, next.Arguments
	}
}

func (s *session) call(ctx context.Context, tool string, arguments map[string]any) (answer, error) {
	s.calls++
	fmt.Printf("\n[%d] %s %s\n", s.calls, tool, shorten(arguments))
	var a answer
	request := mcp.CallToolRequest{Params: mcp.CallToolParams{
		Name: tool, Arguments: arguments, Meta: &mcp.Meta{ProgressToken: s.calls},
	}}
	result, err := s.client.CallTool(ctx, request)
	if err != nil {
		return a, fmt.Errorf("call %s: %w", tool, err)
	}
	content, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return a, err
	}
	if result.IsError {
		return a, fmt.Errorf("%s refused the input: %s", tool, content)
	}
	if err := json.Unmarshal(content, &a); err != nil {
		return a, fmt.Errorf("answer of %s: %w", tool, err)
	}
	return a, nil
}

// shorten renders arguments in one line; a handoff is shown by its goal.
func shorten(arguments map[string]any) string {
	shown := map[string]any{}
	for name, value := range arguments {
		if handoff, ok := value.(map[string]any); ok && name == "step_handoff" {
			value = fmt.Sprint(handoff["step_goal"], " …")
		}
		shown[name] = value
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (a answer) print() {
	fmt.Printf("     %s: %s\n", a.Result.Status, a.Result.Observation.Summary)
	phases := make([]string, 0, len(a.Run.PhaseStatus))
	for name, status := range a.Run.PhaseStatus {
		phases = append(phases, name+" "+status)
	}
	slices.Sort(phases)
	fmt.Printf("     %s\n", strings.Join(phases, ", "))
	for _, n := range a.Needs {
		fmt.Printf("     needs %s: %s\n", n.Field, n.Why)
	}
	for _, f := range a.Findings {
		fmt.Printf("     %s: %s; %s\n", f.Code, f.What, f.Remedy)
	}
	for _, risk := range a.Result.Observation.Risks {
		fmt.Printf("     risk: %s\n", risk)
	}
}

// printReport reads the validation report the way a client does, as a resource. A step that ended before its last
// phase has none, and its status says so.
func (s *session) printReport(ctx context.Context, a answer) error {
	if a.Result.Artifacts["validation_report"] == "" {
		return nil
	}
	uri := "run://" + a.Run.RunID + "/validation_report.md"
	result, err := s.client.ReadResource(ctx, mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: uri}})
	if err != nil {
		return fmt.Errorf("read %s: %w", uri, err)
	}
	for _, c := range result.Contents {
		if text, ok := c.(mcp.TextResourceContents); ok {
			fmt.Printf("\n--- %s\n%s\n---\n", uri, strings.TrimSpace(text.Text))
		}
	}
	return nil
}

// printPaths names the files that a reader will want to open: the report, and what the training left.
func printPaths(artifacts map[string]string) {
	if report := artifacts["validation_report"]; report != "" {
		fmt.Printf("report       %s\n", report)
	}
	code := artifacts["code_save_dir"]
	if code == "" {
		return
	}
	for _, kind := range []struct{ name, pattern string }{
		{"metrics", "outputs/metrics.jsonl"},
		{"predictions", "outputs/predictions-*.jsonl"},
		{"checkpoint", "checkpoints/epoch-*.complete.json"},
	} {
		found, err := filepath.Glob(filepath.Join(code, kind.pattern))
		if err != nil {
			continue // the patterns are constants; code itself may hold a bracket
		}
		for _, path := range found {
			fmt.Printf("%-12s %s\n", kind.name, strings.TrimSuffix(path, ".complete.json"))
		}
	}
}
