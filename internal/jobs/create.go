package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/trainwright/trainwright/internal/finding"
	"github.com/trainwright/trainwright/internal/redact"
	"github.com/trainwright/trainwright/internal/rundir"
)

// lockWait bounds the wait for another process that creates the same job at this moment.
const lockWait = 10 * time.Second

// Create makes the job's folder: script.sh, then request.json, whose presence is the commit. The same request again is no
// change (created_at aside, which a repeated call sets anew); another request for the same folder is refused with
// job_exists_differs, since what has been asked for may be running.
func Create(folder string, req Request) error {
	if problems := req.check(folder); len(problems) > 0 {
		return finding.Refuse(problems...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	unlock, err := rundir.Lock(ctx, filepath.Join(folder, "create.lock"))
	if err != nil {
		return fmt.Errorf("lock the job's folder %s: %w", folder, err)
	}
	defer unlock()

	req.CreatedAt = req.CreatedAt.UTC()
	path := filepath.Join(folder, RequestFile)
	var stored Request
	switch err := rundir.ReadJSON(path, &stored); {
	case err == nil:
		return same(path, stored, req)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read the job's request: %w", err)
	}
	if err := rundir.WriteFile(filepath.Join(folder, ScriptFile), []byte(Script(req))); err != nil {
		return fmt.Errorf("write the job's script: %w", err)
	}
	if err := rundir.WriteJSON(path, req); err != nil {
		return fmt.Errorf("write the job's request: %w", err)
	}
	return nil
}

// same answers nil when the two requests ask for the same, else a refusal that names the fields.
func same(path string, stored, sent Request) error {
	sent.CreatedAt = stored.CreatedAt
	was, err := fields(stored)
	if err != nil {
		return err
	}
	is, err := fields(sent)
	if err != nil {
		return err
	}
	differ := map[string]bool{}
	for name, value := range was {
		differ[name] = !reflect.DeepEqual(value, is[name])
	}
	for name, value := range is {
		differ[name] = !reflect.DeepEqual(value, was[name])
	}
	maps.DeleteFunc(differ, func(_ string, different bool) bool { return !different })
	if len(differ) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(differ))
	return finding.Refuse(finding.Finding{Code: "job_exists_differs", Severity: finding.Error,
		What:     fmt.Sprintf("job %s exists and was created with another %s", stored.JobID, strings.Join(names, ", ")),
		Where:    &finding.Where{Path: path, Field: names[0]},
		Expected: "the request as it is stored, which never changes", Remedy: "use a new job id for the changed request"})
}

// fields is the request as plain JSON values by name.
func fields(req Request) (map[string]any, error) {
	data, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode the job's request: %w", err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("decode the job's request: %w", err)
	}
	return out, nil
}

var (
	idPattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
	envPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// check lists everything that keeps the request from being run.
func (r Request) check(folder string) []finding.Finding {
	var out []finding.Finding
	refuse := func(code, field, what, expected, remedy string) {
		out = append(out, finding.Finding{Code: code, Severity: finding.Error, What: what,
			Where: &finding.Where{Field: field}, Expected: expected, Remedy: remedy})
	}
	if !idPattern.MatchString(r.JobID) {
		refuse("job_id_invalid", "job_id", fmt.Sprintf("%q can't name a job", r.JobID),
			"1 to 128 letters, digits, '.', '_' or '-', first a letter or digit", "send another job_id")
	} else if filepath.Base(folder) != r.JobID {
		refuse("job_id_invalid", "job_id", fmt.Sprintf("job %s does not belong into the folder %s", r.JobID, folder),
			"a folder with the name of the job", "create it in "+filepath.Join(filepath.Dir(folder), r.JobID))
	}
	if len(r.Command) == 0 || r.Command[0] == "" {
		refuse("command_missing", "command", "the job has no command", `an argv such as ["python3", "train.py"]`, "send the command")
	}
	for i, arg := range r.Command {
		if strings.ContainsRune(arg, 0) {
			refuse("command_invalid", fmt.Sprintf("command[%d]", i), "the argument holds a NUL byte", "text without NUL", "remove it")
		}
	}
	if !filepath.IsAbs(r.WorkDir) {
		refuse("work_dir_invalid", "work_dir", fmt.Sprintf("the working directory %q is not absolute", r.WorkDir),
			"an absolute path", "send the run's code_save_dir")
	}
	for i, folder := range r.Watch {
		if !filepath.IsAbs(folder) || strings.ContainsFunc(folder, unicode.IsControl) {
			refuse("watch_invalid", fmt.Sprintf("watch[%d]", i), fmt.Sprintf("the folder %q can't be watched", folder),
				"an absolute path without control characters", "send the run's code_save_dir")
		}
	}
	if _, err := ParseTimeLimit(r.Resources.TimeLimit); err != nil {
		refuse("time_limit_invalid", "resources.time_limit", err.Error(), `such as "00:30:00"`, "send it in this form")
	}
	for field, value := range map[string]int64{"wall_time_seconds": int64(r.WallTimeSeconds), "grace_seconds": int64(r.GraceSeconds),
		"resources.nodes": int64(r.Resources.Nodes), "resources.gpus_per_node": int64(r.Resources.GPUsPerNode),
		"resources.cpus": int64(r.Resources.CPUs), "resources.memory_mb": r.Resources.MemoryMB} {
		if value < 0 {
			refuse("resources_invalid", field, fmt.Sprintf("%s is %d", field, value), "0 (not asked for) or more", "send a count")
		}
	}
	return append(out, r.checkEnv()...)
}

// checkEnv refuses names that no environment can hold and values that must not be kept on disk.
func (r Request) checkEnv() []finding.Finding {
	var out []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		value, where := r.Env[name], &finding.Where{Field: "env." + name}
		switch {
		case !envPattern.MatchString(name) || strings.ContainsRune(value, 0):
			out = append(out, finding.Finding{Code: "env_invalid", Severity: finding.Error, Where: where,
				What: fmt.Sprintf("%q can't be set in an environment", name), Expected: "a name of letters, digits and '_', a value without NUL",
				Remedy: "rename the variable"})
		case redact.Value(name, value) != value:
			out = append(out, finding.Finding{Code: "secret_in_request", Severity: finding.Error, Where: where,
				What: name + " looks like a secret and would be kept on disk", Expected: "secrets outside the request",
				Remedy: "set " + name + " where trainwright is started and name it in pass_env"})
		}
	}
	return out
}
