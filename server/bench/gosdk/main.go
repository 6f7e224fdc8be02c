// Command gosdk is a server with the three tools of the benchmark on the official Go SDK. Without arguments it serves
// stdin and stdout; with "http" it serves streamable HTTP on a free port of the loopback, which it prints on stderr.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type text struct {
	Text string `json:"text" jsonschema:"what to give back"`
}

type summands struct {
	A float64 `json:"a" jsonschema:"the first number"`
	B float64 `json:"b" jsonschema:"the second number"`
}

type sum struct {
	Sum float64 `json:"sum"`
}

type span struct {
	Seconds float64 `json:"seconds" jsonschema:"how long to wait"`
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "gosdk", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "Gives back what it got."}, func(_ context.Context, _ *mcp.CallToolRequest, in text) (*mcp.CallToolResult, text, error) {
		return nil, in, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "add", Description: "Adds two numbers."}, func(_ context.Context, _ *mcp.CallToolRequest, in summands) (*mcp.CallToolResult, sum, error) {
		return nil, sum{in.A + in.B}, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "hold", Description: "Waits, as one waits for a job."}, func(ctx context.Context, _ *mcp.CallToolRequest, in span) (*mcp.CallToolResult, span, error) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(in.Seconds * float64(time.Second))):
		}
		return nil, in, nil
	})
	if len(os.Args) < 2 {
		if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			log.Fatal(err)
		}
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "http://%s/mcp\n", listener.Addr())
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	log.Fatal(http.Serve(listener, handler))
}
