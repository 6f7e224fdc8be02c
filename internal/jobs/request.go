package jobs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Resources is what the job needs. Zero means not asked for. TimeLimit is "HH:MM:SS" or "D-HH:MM:SS", the form that
// sbatch --time takes.
type Resources struct {
	Nodes       int    `json:"nodes,omitempty"`
	GPUsPerNode int    `json:"gpus_per_node,omitempty"`
	CPUs        int    `json:"cpus,omitempty"`
	MemoryMB    int64  `json:"memory_mb,omitempty"`
	TimeLimit   string `json:"time_limit,omitempty"`
	Partition   string `json:"partition,omitempty"`
}

// Request is a job's request.json: everything that a supervisor needs to run it, on whatever machine.
type Request struct {
	// JobID names the folder: letters, digits, '.', '_' and '-', at most 128.
	JobID string `json:"job_id"`
	// RunID is the run that the job belongs to; empty for a job without one.
	RunID   string `json:"run_id,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Command is an argv; nothing passes through a shell. A name without a slash is looked up on PATH, a relative path
	// is taken from WorkDir.
	Command []string `json:"command"`
	// Env is added to the scrubbed environment of the submitting process and wins over it. It is kept on disk, so secrets
	// are refused here: they go into PassEnv. PYTHONUNBUFFERED=1 is set unless either says otherwise.
	Env map[string]string `json:"env,omitempty"`
	// PassEnv names variables of the submitting process that reach the job although they look like secrets. Only the
	// names are kept; the values go from process to process.
	PassEnv []string `json:"pass_env,omitempty"`
	// WorkDir is the absolute directory that the command starts in: the run's code_save_dir.
	WorkDir   string    `json:"work_dir"`
	Resources Resources `json:"resources"`
	// WallTimeSeconds ends the job when it is over; 0 leaves it to Resources.TimeLimit, or to no limit.
	WallTimeSeconds int `json:"wall_time_seconds,omitempty"`
	// GraceSeconds lies between the SIGTERM that warns the command and the SIGKILL that ends it; 0 means 5. A limit is
	// announced that long before it is reached.
	GraceSeconds int `json:"grace_seconds,omitempty"`
	// ExpectedOutputs are paths or globs, absolute or below WorkDir. A job that exits 0 without leaving them has failed.
	ExpectedOutputs []string `json:"expected_outputs,omitempty"`
	// Watch are absolute folders, such as the run's code_save_dir, whose files are listed in left.json before the exit record
	// is written; see Left.
	Watch   []string `json:"watch,omitempty"`
	Site    string   `json:"site,omitempty"`
	Channel string   `json:"channel,omitempty"`
	// Marker is a token that finds the job again in a scheduler's list when its id was lost.
	Marker string `json:"marker,omitempty"`
	// Basis is the hash of what the job was asked to do with which data, its code left out.
	Basis       string    `json:"basis,omitempty"`
	SubmittedBy string    `json:"submitted_by,omitempty"`
	Task        string    `json:"task,omitempty"`
	CreatedAt   time.Time `json:"created_at"`

	// Unknown holds fields that this version does not know; they are kept and written back.
	Unknown map[string]json.RawMessage `json:"-"`
}

// plainRequest is Request without its methods, so that encoding/json does not call them again.
type plainRequest Request

// MarshalJSON writes the known fields in their order and the unknown ones after them, sorted.
func (r Request) MarshalJSON() ([]byte, error) {
	known, err := encode(plainRequest(r))
	if err != nil || len(r.Unknown) == 0 {
		return known, err
	}
	out := bytes.NewBuffer(known[:len(known)-1])
	for _, name := range slices.Sorted(maps.Keys(r.Unknown)) {
		key, err := encode(name)
		if err != nil {
			return nil, err
		}
		out.WriteByte(',')
		out.Write(key)
		out.WriteByte(':')
		out.Write(r.Unknown[name])
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// UnmarshalJSON reads the known fields and keeps the others in Unknown.
func (r *Request) UnmarshalJSON(data []byte) error {
	var plain plainRequest
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if strict.Decode(&plain) == nil { // as it nearly always is: no second pass
		*r = Request(plain)
		return nil
	}
	plain = plainRequest{}
	if err := json.Unmarshal(data, &plain); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	for _, name := range requestFields {
		delete(all, name)
	}
	if len(all) > 0 {
		plain.Unknown = all
	}
	*r = Request(plain)
	return nil
}

// requestFields are the JSON names of Request, in its order.
var requestFields = []string{"job_id", "run_id", "attempt", "command", "env", "pass_env", "work_dir", "resources",
	"wall_time_seconds", "grace_seconds", "expected_outputs", "watch", "site", "channel", "marker", "basis", "submitted_by", "task", "created_at"}

// encode is json.Marshal without HTML escaping and without the newline that an Encoder adds.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// WallTime is the limit in force: WallTimeSeconds, else Resources.TimeLimit, else 0 for none.
func (r Request) WallTime() time.Duration {
	if r.WallTimeSeconds > 0 {
		return time.Duration(r.WallTimeSeconds) * time.Second
	}
	limit, err := ParseTimeLimit(r.Resources.TimeLimit)
	if err != nil {
		return 0 // Create refuses such a request
	}
	return limit
}

// defaultGrace lies between SIGTERM and SIGKILL when the request names no time: enough to write a small checkpoint.
const defaultGrace = 5 * time.Second

// Grace is the time between the warning and the end.
func (r Request) Grace() time.Duration {
	if r.GraceSeconds > 0 {
		return time.Duration(r.GraceSeconds) * time.Second
	}
	return defaultGrace
}

// Warning is when, after the start, the command is told that its wall time runs out, and End when it is killed. A grace
// that was asked for is taken out of the limit; where none was, or none fits, the limit itself is the warning.
func (r Request) Warning() (warning, end time.Duration) {
	limit := r.WallTime()
	if limit == 0 {
		return 0, 0
	}
	if r.GraceSeconds > 0 && r.Grace() < limit {
		return limit - r.Grace(), limit
	}
	return limit, limit + defaultGrace
}

var timeLimit = regexp.MustCompile(`^(?:(\d{1,4})-)?(\d{1,4}):([0-5]\d):([0-5]\d)$`)

// ParseTimeLimit reads "HH:MM:SS" or "D-HH:MM:SS" (sbatch(1), --time). The empty string is 0, no limit.
func ParseTimeLimit(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	match := timeLimit.FindStringSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("time limit %q is not HH:MM:SS or D-HH:MM:SS", text)
	}
	var parts [4]int
	for i, digits := range match[1:] {
		if digits != "" {
			parts[i], _ = strconv.Atoi(digits) // the expression lets only digits through
		}
	}
	return time.Duration(parts[0])*24*time.Hour + time.Duration(parts[1])*time.Hour +
		time.Duration(parts[2])*time.Minute + time.Duration(parts[3])*time.Second, nil
}
