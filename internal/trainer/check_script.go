package trainer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/finding"
)

// helpLimit bounds the question for --help, which imports the script's frameworks and can take long.
const helpLimit = 60 * time.Second

// helpFlag finds the options that a --help text names.
var helpFlag = regexp.MustCompile(`(?:^|[\s,\[|(])(--?[A-Za-z][\w-]*)`)

// checkHelp runs the script with --help, in an empty folder and with nothing of trainwright's environment, and compares.
func checkHelp(ctx context.Context, python, script string, arguments []Passed) []finding.Finding {
	ctx, cancel := context.WithTimeout(ctx, helpLimit)
	defer cancel()
	folder, err := os.MkdirTemp("", "trainwright-help-")
	if err != nil {
		return []finding.Finding{{Code: "help_failed", Severity: finding.Error, What: err.Error(), Remedy: "make room in the folder for temporary files"}}
	}
	defer os.RemoveAll(folder)
	command := exec.CommandContext(ctx, python, script, "--help")
	command.Dir, command.WaitDelay = folder, 2*time.Second
	command.Env = append(plainEnvironment(os.Environ()), "PYTHONDONTWRITEBYTECODE=1", "COLUMNS=200")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		what := fmt.Sprintf("%s --help ended with %v", script, err)
		if line := lastLine(stderr.String()); line != "" {
			what += ": " + line
		}
		return []finding.Finding{{Code: "help_failed", Severity: finding.Error, What: what, Where: &finding.Where{Path: script}, Expected: "exit status 0",
			Remedy: "the script fails before it parses its arguments: see the message; a missing module is installed in the environment that python names"}}
	}
	known := map[string]bool{}
	for _, m := range helpFlag.FindAllStringSubmatch(string(out), -1) {
		known[m[1]] = true
	}
	var found []finding.Finding
	for _, a := range arguments {
		if strings.HasPrefix(a.Name, "-") && !known[a.Name] {
			found = append(found, finding.Finding{Code: "argument_unknown_to_script", Severity: finding.Error, What: fmt.Sprintf("--help of the script does not name %s", a.Name),
				Where: &finding.Where{Path: script, Field: a.Field}, Expected: "an argument that the script takes", Remedy: "the script may build its arguments elsewhere; send the arguments it takes under arguments"})
		}
	}
	return found
}

// plainEnvironment is the environment without trainwright's own variables.
func plainEnvironment(environ []string) []string {
	var out []string
	for _, kv := range environ {
		if !strings.HasPrefix(kv, "TRAINWRIGHT_") {
			out = append(out, kv)
		}
	}
	return out
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return cellText(lines[len(lines)-1])
}
