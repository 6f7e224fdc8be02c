package jobs

import (
	_ "embed"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainwright/trainwright/internal/rundir"
)

// RunnerFile is the rendered runner in a job's folder.
const RunnerFile = "runner.sh"

//go:embed runner.sh
var runner string

// Runner renders the supervisor of the job for a machine that has a POSIX shell and not this binary: what the request says
// as shell variables, then runner.sh. folder is the job's folder as that machine names it. The script holds what request.json
// holds, so that no secret is in it; values of pass_env come from the environment that it is started in.
func Runner(req Request, folder string) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# Runner of job " + req.JobID + ", rendered from " + RequestFile + ". Do not edit: it is rendered again.\n")
	warning, limit := req.Warning()
	target, err := filepath.Rel(filepath.Join(req.WorkDir, "logs"), folder)
	if err != nil {
		target = folder
	}
	for _, variable := range [][2]string{
		{"tw_folder", folder}, {"tw_work_dir", req.WorkDir}, {"tw_log_target", filepath.ToSlash(target)},
		{"tw_job_id", req.JobID}, {"tw_run_id", req.RunID}, {"tw_state_head", stateHead(req)},
		{"tw_watch_text", jsonText(req.Watch)}, {"tw_left_out", "-name " + strings.Join(rundir.SkippedDirs, " -o -name ")},
		{"tw_warning", seconds(warning)}, {"tw_limit", seconds(limit)}, {"tw_grace", seconds(req.Grace())},
	} {
		b.WriteString(variable[0] + "=" + quote(variable[1]) + "\n")
	}
	b.WriteString("tw_environment() {\n\t:\n")
	for _, name := range slices.Sorted(maps.Keys(req.Env)) {
		b.WriteString("\texport " + name + "=" + quote(req.Env[name]) + "\n")
	}
	b.WriteString("}\n" + calling("tw_command", req.Command) + calling("tw_watched", req.Watch))
	return b.String() + runner
}

// calling is a shell function that calls its arguments with these words behind them.
func calling(name string, words []string) string {
	text := name + "() {\n\t\"$@\""
	for _, word := range words {
		text += " " + quote(word)
	}
	return text + "\n}\n"
}

// RunnerLook is a script that says of several jobs which of their processes are alive; see "look" in runner.sh.
func RunnerLook() string { return "tw_folder=\nset -- look \"$@\"\n" + runner }

// stateHead are the first lines of state.json, which the request fixes.
func stateHead(req Request) string {
	var b strings.Builder
	for _, field := range [][2]string{{"site", req.Site}, {"channel", req.Channel}, {"marker", req.Marker}} {
		if field[1] == "" {
			continue
		}
		b.WriteString("  \"" + field[0] + "\": " + jsonText(field[1]) + ",\n")
	}
	return b.String()
}

// jsonText is a string, or a list of strings, as JSON: either can always be encoded.
func jsonText(v any) string {
	text, err := encode(v)
	if err != nil {
		return "null"
	}
	return string(text)
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
