// Command bench measures the server beside two peers in the same run: servers with the same three tools on the official
// TypeScript SDK and on the official Go SDK. It prints what it measured, and each aim beside what was reached; it exits
// with 1 where one was missed. make bench calls it from the root of the repository, after .ci/install.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"
)

// How much is measured. Rounds alternate between the servers, so that what else the machine does hits all of them.
const (
	starts       = 15
	rounds       = 5
	callsARound  = 1000
	listsARound  = 200
	webClients   = 50
	callsOfEach  = 40
	fastCalls    = 300
	settledAfter = 500 * time.Millisecond
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	met, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if !met {
		os.Exit(1)
	}
}

// contestant is a server to measure: how it is started for stdio and for HTTP.
type contestant struct {
	name        string
	stdio, http []string
	tools       int
}

// figures are what was measured of one.
type figures struct {
	start, memory                  float64 // ms, MB
	call, list, web, behindWaiting spread
}

// spread is the middle and the end of many durations, in ms.
type spread struct{ p50, p99 float64 }

func spreadOf(all []time.Duration) spread {
	slices.Sort(all)
	at := func(share float64) float64 { return ms(all[min(len(all)-1, int(share*float64(len(all))))]) }
	return spread{at(0.50), at(0.99)}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (s spread) String() string {
	if s == (spread{}) {
		return "-"
	}
	return fmt.Sprintf("%.2f / %.2f", s.p50, s.p99)
}

func run(ctx context.Context) (met bool, err error) {
	dir, err := os.MkdirTemp("", "trainwright-bench-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	all, err := build(ctx, dir)
	if err != nil {
		return false, err
	}
	measured := make([]figures, len(all))
	for _, step := range []struct {
		says string
		do   func(context.Context, []contestant, []figures) error
	}{
		{"start and memory", starting},
		{"calls over stdio", talking},
		{"50 clients over HTTP", crowding},
		{"a fast call while 50 clients wait", waiting},
	} {
		fmt.Fprintf(os.Stderr, "%s …\n", step.says)
		if err := step.do(ctx, all, measured); err != nil {
			return false, fmt.Errorf("%s: %w", step.says, err)
		}
	}
	jobs, err := behindJobs(ctx, all[0], dir)
	if err != nil {
		return false, fmt.Errorf("clients that wait for a job: %w", err)
	}
	show(all, measured)
	return judge(measured, jobs), nil
}

// build makes the servers: ours as it is shipped, ours with the three tools, and the peers.
func build(ctx context.Context, dir string) ([]contestant, error) {
	for name, arguments := range map[string][]string{
		"trainwright": {"build", "-trimpath", "-o", filepath.Join(dir, "trainwright"), "./cmd/trainwright"},
		"three":       {"build", "-trimpath", "-o", filepath.Join(dir, "three"), "./server/bench/three"},
		"gosdk":       {"-C", "server/bench/gosdk", "build", "-trimpath", "-o", filepath.Join(dir, "gosdk"), "."},
	} {
		command := exec.CommandContext(ctx, "go", arguments...)
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := command.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	node, script, err := typescript(dir)
	if err != nil {
		return nil, err
	}
	ours, workspace := filepath.Join(dir, "trainwright"), filepath.Join(dir, "workspace")
	if err := os.CopyFS(workspace, os.DirFS("examples/breast-cancer")); err != nil {
		return nil, fmt.Errorf("copy the example: %w", err)
	}
	serve := []string{ours, "serve", "--log-level", "error", "--workspace", workspace}
	return []contestant{
		{name: "trainwright, as shipped", stdio: serve, http: append(slices.Clone(serve), "--http", "127.0.0.1:0", "--rate", "1000000", "--concurrent", "1000")},
		{name: "trainwright's server, three tools", stdio: []string{filepath.Join(dir, "three")}, http: []string{filepath.Join(dir, "three"), "http"}, tools: 3},
		{name: "official TypeScript SDK", stdio: []string{node, script}, http: []string{node, script, "http"}, tools: 3},
		{name: "official Go SDK", stdio: []string{filepath.Join(dir, "gosdk")}, http: []string{filepath.Join(dir, "gosdk"), "http"}, tools: 3},
	}, nil
}

// typescript puts the script beside its packages, and finds the Node of .ci/install.
func typescript(dir string) (node, path string, err error) {
	modules, err := filepath.Abs(".cache/npm/node_modules")
	if err != nil {
		return "", "", err
	}
	node, err = filepath.EvalSymlinks(filepath.Join(modules, ".bin", "node"))
	if err != nil {
		if node, err = exec.LookPath("node"); err != nil {
			return "", "", fmt.Errorf("%w: run .ci/install", err)
		}
	}
	if _, err := os.Stat(modules); err != nil {
		return "", "", fmt.Errorf("%w: run .ci/install", err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		return "", "", err
	}
	text, err := os.ReadFile("server/bench/typescript.mjs")
	if err != nil {
		return "", "", fmt.Errorf("%w: run it from the root of the repository", err)
	}
	path = filepath.Join(dir, "typescript.mjs")
	return node, path, os.WriteFile(path, text, 0o644)
}

// show prints what was measured.
func show(all []contestant, measured []figures) {
	columns := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(columns, "p50 / p99 in ms\tstart\tidle MB\ttools/call\ttools/list\t50 clients\tbehind 50 that wait")
	for i, c := range all {
		m := measured[i]
		fmt.Fprintf(columns, "%s\t%.1f\t%.1f\t%s\t%s\t%s\t%s\n", c.name, m.start, m.memory, m.call, m.list, m.web, m.behindWaiting)
	}
	_ = columns.Flush()
	fmt.Println()
}

// judge prints the aims and says whether all were reached.
func judge(measured []figures, jobs spread) bool {
	shipped, ours, script, sdk := measured[0], measured[1], measured[2], measured[3]
	columns := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(columns, "aim\treached\twanted\t")
	met := true
	aim := func(says string, reached, wanted float64, unit string) {
		ok := reached <= wanted
		met = met && ok
		fmt.Fprintf(columns, "%s\t%.2f %s\t<= %.2f %s\t%s\n", says, reached, unit, wanted, unit, map[bool]string{true: "yes", false: "NO"}[ok])
	}
	aim("start to first reply, a tenth of TypeScript's", shipped.start, script.start/10, "ms")
	for name, peer := range map[string]figures{"TypeScript": script, "Go": sdk} {
		aim("p50 of tools/call over stdio, beside "+name, ours.call.p50, peer.call.p50, "ms")
		aim("p99 of tools/call over stdio, beside "+name, ours.call.p99, peer.call.p99, "ms")
		aim("p50 of tools/list over stdio, beside "+name, ours.list.p50, peer.list.p50, "ms")
		aim("p99 of tools/list over stdio, beside "+name, ours.list.p99, peer.list.p99, "ms")
	}
	aim("p99 of a fast call while 50 clients wait for a job", jobs.p99, 50, "ms")
	aim("memory when idle", shipped.memory, 40, "MB")
	_ = columns.Flush()
	return met
}
