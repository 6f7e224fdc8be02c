// Package pyprobe asks a Python interpreter about Python files. What it runs is a probe of ours that parses them; nothing of the
// project is imported or run.
package pyprobe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// loader runs the probe, which comes with the question: a command line is too short for it on some systems.
const loader = `import json, sys
ask = json.load(sys.stdin)
exec(compile(ask.pop("probe"), "probe.py", "exec"), {"ASK": ask, "__name__": "probe"})`

// Ask starts python isolated from the user's site and from the current folder, gives it the probe with the question as ASK, and reads
// the line of JSON that it prints into answer. It ends after limit. An error names the interpreter and its last words.
func Ask(ctx context.Context, python, probe string, question map[string]any, limit time.Duration, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	asked := map[string]any{"probe": probe}
	for name, value := range question {
		asked[name] = value
	}
	in, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, python, "-I", "-c", loader)
	command.Stdin, command.WaitDelay = bytes.NewReader(in), time.Second
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err == nil {
		out = bytes.TrimSpace(out) // what a site customisation prints stands before the answer
		err = json.Unmarshal(out[bytes.LastIndexByte(out, '\n')+1:], answer)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s did not read the script within %s", filepath.ToSlash(python), limit)
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return fmt.Errorf("%s could not read the script: %w %.200s", filepath.ToSlash(python), err, lines[len(lines)-1])
	}
	return nil
}
