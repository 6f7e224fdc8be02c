// Command three is our server layer with the three tools of the benchmark, so that it is measured against its peers with
// the same tools. Without arguments it serves stdin and stdout; with "http", streamable HTTP on a free port of the
// loopback, which it prints on stderr.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/trainwright/trainwright/internal/engine"
	"github.com/trainwright/trainwright/resources"
	"github.com/trainwright/trainwright/server"
	"github.com/trainwright/trainwright/tools"
)

func main() {
	if err := serve(context.Background(), len(os.Args) > 1); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, http bool) error {
	s := server.New(server.Options{Version: "1", Tools: three, Resources: none{}, Log: zerolog.New(os.Stderr).Level(zerolog.ErrorLevel)})
	if !http {
		return server.NewStdio(s).Serve(ctx, os.Stdin, os.Stdout)
	}
	listener, err := server.ListenHTTP("127.0.0.1:0", "")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "http://%s/mcp\n", listener.Addr())
	// All clients come from one address, as they never do outside a benchmark.
	return server.NewHTTP(s, server.HTTPOptions{Rate: 1e6, Concurrent: 1000}).Serve(ctx, listener)
}

// three are the tools.
var three = []tools.Tool{
	offer("echo", "Gives back what it got.", `"text":{"type":"string"}`, `"text":{"type":"string"}`, func(_ context.Context, in struct {
		Text string `json:"text"`
	}) any {
		return in
	}),
	offer("add", "Adds two numbers.", `"a":{"type":"number"},"b":{"type":"number"}`, `"sum":{"type":"number"}`, func(_ context.Context, in struct{ A, B float64 }) any {
		return map[string]float64{"sum": in.A + in.B}
	}),
	offer("hold", "Waits, as one waits for a job.", `"seconds":{"type":"number"}`, `"seconds":{"type":"number"}`, func(ctx context.Context, in struct {
		Seconds float64 `json:"seconds"`
	}) any {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(in.Seconds * float64(time.Second))):
		}
		return in
	}),
}

func offer[T any](name, description, input, output string, work func(context.Context, T) any) tools.Tool {
	object := func(properties string) tools.Schema {
		return func() json.RawMessage { return json.RawMessage(`{"type":"object","properties":{` + properties + `}}`) }
	}
	return tools.Tool{Name: name, Description: description, InputSchema: object(input), OutputSchema: object(output),
		Call: func(ctx context.Context, _ engine.Caller, arguments json.RawMessage) (tools.Result, error) {
			var in T
			if err := json.Unmarshal(arguments, &in); err != nil {
				return tools.Result{}, fmt.Errorf("arguments of %s: %w", name, err)
			}
			out := work(ctx, in)
			text, err := json.Marshal(out)
			return tools.Result{Structured: out, Text: string(text)}, err
		}}
}

// none is a library without resources.
type none struct{}

func (none) List(context.Context, string) ([]resources.Item, string, error) { return nil, "", nil }

func (none) Read(_ context.Context, uri string) (resources.Content, error) {
	return resources.Content{}, fmt.Errorf("%s: %w", uri, resources.ErrNotFound)
}
