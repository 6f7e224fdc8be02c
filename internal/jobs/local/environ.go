package local

import (
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/jobs"
	"github.com/trainwright/trainwright/internal/redact"
)

// scrub is the environment that a job may inherit: without secrets, except those it names, and without the switches that
// inject faults into trainwright.
func scrub(environ, pass []string) []string {
	out := make([]string, 0, len(environ))
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case strings.HasPrefix(name, "TRAINWRIGHT_FAULT"), name == stageVariable:
		case slices.Contains(pass, name) || redact.Value(name, value) == value:
			out = append(out, pair)
		}
	}
	return out
}

// folderVariable tells the job's processes which job they belong to; it also finds them when their supervisor is gone.
const folderVariable = "TRAINWRIGHT_JOB_DIR"

// commandEnviron is the environment of the command: what the supervisor inherited, Python's output unbuffered so that the
// log of a crash is whole, then what the request sets.
func commandEnviron(inherited []string, folder string, request jobs.Request) []string {
	values := map[string]string{"PYTHONUNBUFFERED": "1"}
	var names []string
	for _, pair := range inherited {
		if name, value, ok := strings.Cut(pair, "="); ok && name != "" {
			values[name] = value
		}
	}
	for name, value := range request.Env {
		values[name] = value
	}
	values[folderVariable] = folder
	values["TRAINWRIGHT_JOB_ID"] = request.JobID
	values["TRAINWRIGHT_RUN_ID"] = request.RunID
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = name + "=" + values[name]
	}
	return out
}

// lookup is the value of a variable in an environment, "" where it is not set.
func lookup(environ []string, name string) string {
	for _, pair := range slices.Backward(environ) {
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value
		}
	}
	return ""
}
