package local

import (
	"slices"
	"strings"

	"github.com/trainwright/trainwright/internal/jobs"
)

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
